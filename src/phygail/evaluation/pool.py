"""The local engine: worker processes on this machine. A worker that dies loses no finished row.

Workers are fresh Python processes (nothing is forked), so a script needs no main guard, and every one has a single
thread for linear algebra: rows do not depend on the number of workers.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Protocol

from phygail.config import InputError
from phygail.evaluation.flight import TIMEOUT, Job, Result, Task
from phygail.evaluation.rows import ERROR
from phygail.evaluation.worker import Ready, Refusal

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "RAYON_NUM_THREADS",
        "POLARS_MAX_THREADS",
    ),
    "1",
)
MOST_LOSSES = 3  # workers that one episode may take down before it is entered as an error
MOST_FALSE_STARTS = 3  # workers in a row that may die before they are ready
HANG_GRACE_S = 60.0  # beyond the timeout: drawing the scenario and one long step
_AHEAD = 2  # tasks a worker holds, so that it does not idle while rows are written
_TICK_S = 0.5
_WORKER_MARK = "PHYGAIL_WORKER"


class RefusedError(InputError):
    """A worker found the job itself at fault."""


class Engine(Protocol):
    """Somewhere to fly episodes."""

    def start(self, job: Job) -> None:
        """Bring up workers; return when one has accepted the job, raise `RefusedError` if it is at fault."""

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Result]]:
        """Fly all tasks, each once, in any order; batches of results as they come."""

    def stop(self) -> None:
        """End all workers."""


class _Worker:
    """One process, the pipe to it, and the tasks it holds, the first of which it is flying."""

    def __init__(self, job: Job) -> None:
        self.tasks: deque[Task] = deque()
        self.ready = False
        self.case: int | None = None  # scenario it worked on last and remembers
        self.since = time.monotonic()  # start of the first task
        self.pipe: Connection[object, object]
        self.pipe, far = Pipe()
        handle = far.fileno()
        search = os.pathsep.join(p for p in sys.path if p)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c",
             f"from phygail.evaluation.worker import serve; serve({handle}, {os.getpid()})"],
            env=os.environ | ONE_THREAD | {"PYTHONPATH": search, "PYTHONHASHSEED": "0", _WORKER_MARK: "1"},
            stdin=subprocess.DEVNULL, stdout=sys.__stderr__.fileno() if sys.__stderr__ else subprocess.DEVNULL,
            pass_fds=[handle],
        )  # fmt: skip
        far.close()
        self.send(job)

    def send(self, message: object) -> None:
        # If it died, the pipe reports that when it is read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.pipe.send(message)

    def give(self, task: Task) -> None:
        if not self.tasks:
            self.since = time.monotonic()
        self.tasks.append(task)
        self.case = task.index
        self.send(task)

    def finish(self) -> None:
        self.tasks.popleft()
        self.since = time.monotonic()

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()


class _Agenda:
    """Tasks not yet given away, by scenario; a worker stays with its scenario as long as that has tasks."""

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


class LocalEngine:
    """Worker processes on this machine.

    Args:
        workers: How many.
        grace_s: How long after the timeout a worker stuck in a single step is killed.
    """

    def __init__(self, workers: int, grace_s: float = HANG_GRACE_S) -> None:
        if workers < 1:
            raise InputError(f"{workers} workers: choose at least 1")
        self._size = workers
        self._grace_s = grace_s
        self._workers: list[_Worker] = []
        self._losses: Counter[Task] = Counter()
        self._false_starts = 0

    def start(self, job: Job) -> None:
        if _WORKER_MARK in os.environ:
            raise InputError("a worker imported a script that starts a comparison: put it under __name__ == '__main__'")
        self._job = job
        self._agenda = _Agenda(())
        self._workers = [_Worker(job) for _ in range(self._size)]
        while not any(w.ready for w in self._workers):
            self._collect()

    def run(self, tasks: Sequence[Task]) -> Iterator[list[Result]]:
        self._agenda = _Agenda(tasks)
        while len(self._agenda) or any(w.tasks for w in self._workers):
            self._distribute()
            if results := self._collect():
                yield results

    def stop(self) -> None:
        for worker in self._workers:
            worker.end()
        self._workers = []

    def _distribute(self) -> None:
        """Fill up every worker, one task each per round; near the end nobody hoards a task another could fly."""
        for depth in range(1, _AHEAD + 1):
            if depth > 1 and len(self._agenda) <= _AHEAD * self._size:
                return
            for worker in self._workers:
                if worker.ready and len(worker.tasks) < depth and len(self._agenda):
                    worker.give(self._agenda.take(worker.case))

    def _collect(self) -> list[Result]:
        """Wait for news; replace workers that died or hang."""
        results: list[Result] = []
        by_pipe = {w.pipe: w for w in self._workers}
        for pipe in wait(list(by_pipe), timeout=_TICK_S):
            worker = by_pipe[pipe]  # type: ignore[index]  # wait() returns what it was given
            try:
                message = worker.pipe.recv()
            except (EOFError, OSError):
                self._replace(worker, verdict=f"{ERROR}WorkerLost", chances=MOST_LOSSES)
                continue
            if isinstance(message, Refusal):
                raise RefusedError(message.message)
            if isinstance(message, Ready):
                worker.ready, self._false_starts = True, 0
            elif isinstance(message, Result):
                worker.finish()
                results.append(message)
        self._end_hanging()
        return results

    def _end_hanging(self) -> None:
        if self._job.timeout_s is None:
            return
        limit = self._job.timeout_s + self._grace_s
        for worker in list(self._workers):
            if worker.tasks and time.monotonic() - worker.since > limit and not worker.pipe.poll():
                self._replace(worker, verdict=TIMEOUT, chances=1)

    def _replace(self, worker: _Worker, *, verdict: str, chances: int) -> None:
        """Put the tasks of a lost worker back and start another; the task it was flying has so many chances."""
        worker.end()
        if not worker.ready:
            self._false_starts += 1
            if self._false_starts >= MOST_FALSE_STARTS:
                raise InputError(
                    f"worker processes end at their start (exit code {worker.process.returncode}): "
                    "see the messages above; is there enough memory?"
                )
        for place, task in enumerate(worker.tasks):
            if place == 0:
                self._losses[task] += 1
                if self._losses[task] >= chances:
                    task = Task(task.index, task.method, verdict)
            self._agenda.put(task)
        self._workers[self._workers.index(worker)] = _Worker(self._job)
