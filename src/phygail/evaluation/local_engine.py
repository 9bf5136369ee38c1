"""The local engine: worker processes on this machine."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

from phygail.evaluation.flight import Job
from phygail.evaluation.pool import TICK_S, WORKER_ENVIRONMENT, Pool, Worker


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
             f"from phygail.evaluation.worker import serve; serve({handle}, {os.getpid()})"],
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
                    worker.fate = f"exit code {worker.process.wait(TICK_S)}"
                yield worker, None
