"""Engines: workers that fly episodes. A worker that dies loses no finished row, and its episodes are flown again.

`Pool` is what the engines share: `LocalEngine` (processes on this machine) and `ray_engine` (a cluster).
Every worker has a single thread for linear algebra: rows depend neither on the number of workers nor on the engine.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Generic, Protocol, TypeVar

from phygail.config import ONE_THREAD, InputError, settle_worker
from phygail.experiments.rows import LOST, TIMEOUT, Job, Result, Task, case_reader, fly_task, prepare

MOST_LOSSES = 3  # workers that one episode may crash before its row becomes an error
MOST_FALSE_STARTS = 3  # workers in a row that may die before they are ready
HANG_GRACE_S = 60.0  # beyond the timeout: drawing the scenario and one long step
_LANDING_S = 10.0  # seconds to wait for running episodes when the run is refused
_AHEAD = 2  # tasks a worker holds, so that it does not idle while rows are written
TICK_S = 0.5
_WORKER_MARK = "PHYGAIL_WORKER"
WORKER_ENVIRONMENT = ONE_THREAD | {"PYTHONHASHSEED": "0", _WORKER_MARK: "1"}

log = logging.getLogger("phygail")


@dataclass(frozen=True)
class Ready:
    """The worker knows all methods and waits for tasks."""


@dataclass(frozen=True)
class Refusal:
    """The job itself is wrong; holds the line for the user."""

    message: str


def serve(handle: int, parent: int) -> None:
    """Receive a `Job`, then answer each `Task` with a `Result` until the pipe closes.

    Args:
        handle: File descriptor of this end of the pipe.
        parent: Process id of the parent.
    """
    settle_worker(parent)
    pipe: Connection[object, object] = Connection(handle)
    try:
        job = pipe.recv()
        assert isinstance(job, Job)
        try:
            _answer(pipe, job)
        except InputError as error:
            pipe.send(Refusal(str(error)))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _answer(pipe: Connection[object, object], job: Job) -> None:
    prepare(job)
    pipe.send(Ready())
    read_case = case_reader(job)
    while True:
        task = pipe.recv()
        assert isinstance(task, Task)
        pipe.send(fly_task(job, task, read_case))


class RefusedError(InputError):
    """A worker found the job itself at fault."""


class Engine(Protocol):
    """A place where episodes are flown."""

    def start(self, job: Job) -> None:
        """Bring up workers; return when one has accepted the job, raise `RefusedError` if it is at fault."""

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Result]]:
        """Fly all tasks, each once, in any order; batches of results as they come."""

    def stop(self) -> None:
        """End all workers."""


class Worker(ABC):
    """A worker and the tasks it holds, the first of which it is flying."""

    exit_reason = "no word from it"  # what is known about how it ended

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()
        self.ready = False
        self.case: int | None = None  # scenario that it flew last and remembers
        self.since = time.monotonic()  # start of the first task

    def give(self, task: Task) -> None:
        """Add a task after those that it holds."""
        if not self.tasks:
            self.since = time.monotonic()
        self.tasks.append(task)
        self.case = task.index
        self.send(task)

    def finish(self) -> None:
        """The first task is done."""
        self.tasks.popleft()
        self.since = time.monotonic()

    @abstractmethod
    def send(self, task: Task) -> None:
        """Send a task; if the worker has died, the next read shows it."""

    @abstractmethod
    def has_news(self) -> bool:
        """Whether it has sent something that was not read yet."""

    @abstractmethod
    def end(self) -> None:
        """Kill it."""


AnyWorker = TypeVar("AnyWorker", bound=Worker)


class _Queue:
    """Tasks that no worker holds, by scenario; a worker stays with its scenario as long as that has tasks."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._cases: dict[int, deque[Task]] = {}
        self._taken: set[int] = set()
        self._count = 0
        for task in tasks:
            self.put(task)

    def put(self, task: Task) -> None:
        self._cases.setdefault(task.index, deque()).append(task)
        self._count += 1

    def take(self, case: int | None) -> Task:
        if case not in self._cases:
            case = next((c for c in self._cases if c not in self._taken), next(iter(self._cases)))
        self._taken.add(case)
        task = self._cases[case].popleft()
        if not self._cases[case]:
            del self._cases[case]
        self._count -= 1
        return task

    def __len__(self) -> int:
        return self._count


class Pool(ABC, Generic[AnyWorker]):
    """What all engines share: which worker flies which task, and what happens to tasks of workers that die or hang.

    Args:
        workers: How many.
        grace_s: Seconds after the timeout until a worker that is stuck in a single step is killed.
    """

    def __init__(self, workers: int, grace_s: float = HANG_GRACE_S) -> None:
        if workers < 1:
            raise InputError(f"{workers} workers: choose at least 1")
        self._size = workers
        self._grace_s = grace_s
        self._workers: list[AnyWorker] = []
        self._losses: Counter[Task] = Counter()
        self._false_starts = 0
        self._refusal = ""

    @abstractmethod
    def _hire(self) -> AnyWorker:
        """Start a worker on the job; it says `Ready` or `Refusal`, then a `Result` for each task."""

    @abstractmethod
    def _hear(self) -> Iterable[tuple[AnyWorker, object]]:
        """Wait up to `TICK_S`; gives (worker, message), with None from a worker that is lost."""

    def _wanted(self) -> int:
        """How many workers there should be now."""
        return self._size

    def start(self, job: Job) -> None:
        if _WORKER_MARK in os.environ:
            raise InputError("a worker imported a script that starts a comparison: put it under __name__ == '__main__'")
        self._job = job
        self._losses.clear()  # tasks of an earlier job have the same numbers
        self._false_starts = 0
        self._refusal = ""
        self._queue = _Queue(())
        self._fill_up(len(job.cases.ids()) * len(job.methods))
        while not any(w.ready for w in self._workers):
            self._collect()

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Result]]:
        self._queue = _Queue(tasks)
        while len(self._queue) or any(w.tasks for w in self._workers):
            self._fill_up(len(self._queue))
            self._distribute()
            if results := self._collect():
                yield results
            if self._refusal:
                yield from self._last_results()
                raise RefusedError(self._refusal)

    def _last_results(self) -> Iterator[list[Result]]:
        """Wait for running episodes after a task was refused: a finished row is never thrown away."""
        deadline = time.monotonic() + _LANDING_S
        while any(w.tasks for w in self._workers) and time.monotonic() < deadline:
            if results := self._collect():
                yield results

    def stop(self) -> None:
        for worker in self._workers:
            worker.end()
        self._workers = []

    def _fill_up(self, useful: int) -> None:
        while len(self._workers) < min(self._wanted(), useful):
            self._workers.append(self._hire())

    def _distribute(self) -> None:
        """Give tasks to workers, one each per round: near the end no worker holds a task that another could fly."""
        for depth in range(1, _AHEAD + 1):
            if depth > 1 and len(self._queue) <= _AHEAD * len(self._workers):
                return
            for worker in self._workers:
                if worker.ready and len(worker.tasks) < depth and len(self._queue):
                    worker.give(self._queue.take(worker.case))

    def _collect(self) -> list[Result]:
        """Wait for news; replace workers that died or hang."""
        results: list[Result] = []
        for worker, message in self._hear():
            if message is None and self._refusal:
                worker.tasks.clear()
            elif message is None:
                self._replace(worker, flag=LOST, chances=MOST_LOSSES)
            elif isinstance(message, Refusal):
                if not worker.ready:
                    raise RefusedError(message.message)
                self._refusal = self._refusal or message.message
                worker.tasks.clear()  # it may have stopped; its remaining messages are read
            elif isinstance(message, Ready):
                worker.ready, self._false_starts = True, 0
            elif isinstance(message, Result):
                if worker.tasks:
                    worker.finish()
                results.append(message)
        self._end_hanging()
        return results

    def _end_hanging(self) -> None:
        if self._job.timeout_s is None:
            return
        limit = self._job.timeout_s + self._grace_s
        for worker in list(self._workers):
            if worker.tasks and time.monotonic() - worker.since > limit and not worker.has_news():
                worker.exit_reason = f"stuck for {limit:g} s"
                self._replace(worker, flag=TIMEOUT, chances=1)

    def _replace(self, worker: AnyWorker, *, flag: str, chances: int) -> None:
        """Put the tasks of a lost worker back and start another; a task may be flown `MOST_LOSSES` times."""
        worker.end()
        if not worker.ready:
            self._false_starts += 1
            if self._false_starts >= MOST_FALSE_STARTS:
                raise InputError(f"workers end at their start ({worker.exit_reason}): is there enough memory?")
        for place, task in enumerate(worker.tasks):
            if place == 0:
                task = self._judge(task, worker.exit_reason, flag, chances)
            self._queue.put(task)
        self._workers[self._workers.index(worker)] = self._hire()

    def _judge(self, task: Task, exit_reason: str, flag: str, chances: int) -> Task:
        """The task to queue again after it crashed a worker: the same, or with a flag after its last chance."""
        scenario = self._job.cases.ids()[task.index]
        if task.flag:  # nothing was flown: the scenario itself crashes workers, and would do so forever
            raise InputError(
                f"workers are lost on drawing the scenario {scenario} ({exit_reason}): is there enough memory? "
                "Run again without it"
            )
        log.warning("a worker was lost with %s on %s (%s)", task.method, scenario, exit_reason)
        self._losses[task] += 1
        return replace(task, flag=flag) if self._losses[task] >= chances else task


class _Process(Worker):
    """A fresh Python process (nothing is forked, so a script needs no main guard) and the pipe to it."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self.pipe: Connection[object, object]
        self.pipe, far = Pipe()
        handle = far.fileno()
        search = os.pathsep.join(p for p in sys.path if p)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c",
             f"from phygail.experiments.engine import serve; serve({handle}, {os.getpid()})"],
            env=os.environ | WORKER_ENVIRONMENT | {"PYTHONPATH": search},
            stdin=subprocess.DEVNULL, stdout=sys.__stderr__.fileno() if sys.__stderr__ else subprocess.DEVNULL,
            pass_fds=[handle],
        )  # fmt: skip
        far.close()
        self.send(job)

    def send(self, message: object) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.pipe.send(message)

    def has_news(self) -> bool:
        return self.pipe.poll()

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()


class LocalEngine(Pool[_Process]):
    """Worker processes on this machine."""

    def _hire(self) -> _Process:
        return _Process(self._job)

    def _hear(self) -> Iterator[tuple[_Process, object]]:
        by_pipe = {w.pipe: w for w in self._workers}
        for pipe in wait(list(by_pipe), timeout=TICK_S):
            worker = by_pipe[pipe]  # type: ignore[index]  # wait() returns what it was given
            try:
                yield worker, worker.pipe.recv()
            except (EOFError, OSError):
                with contextlib.suppress(
                    subprocess.TimeoutExpired
                ):  # it closed the pipe and lives on: then it is killed
                    worker.exit_reason = f"exit code {worker.process.wait(TICK_S)}"
                yield worker, None
