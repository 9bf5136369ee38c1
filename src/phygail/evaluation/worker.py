"""The process that flies episodes for a comparison. It ends when its parent does."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

from phygail.config import InputError
from phygail.evaluation.flight import Job, Task, case_reader, fly_task, prepare

_PARENT_CHECK_S = 1.0


@dataclass(frozen=True)
class Ready:
    """The worker knows all methods and waits for tasks."""


@dataclass(frozen=True)
class Refusal:
    """The job itself is wrong: the user's line."""

    message: str


def serve(handle: int, parent: int) -> None:
    """Receive a `Job`, then answer each `Task` with a `Result` until the pipe closes.

    Args:
        handle: File descriptor of this end of the pipe.
        parent: Process id of the parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
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


def _end_with(parent: int) -> None:
    """Leave when the parent is gone, even in the middle of an episode: nobody would read its row."""
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_S)
    os._exit(1)
