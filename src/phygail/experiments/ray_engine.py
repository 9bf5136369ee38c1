"""The Ray engine: the same episodes on a cluster, one worker per CPU.

`RAY_ADDRESS` names the cluster; without it a Ray of its own is started on this machine. Every node needs the same
phygail and the same numerical packages, which is checked: rows of different code never mix. Plugins and the policy
travel with the job.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import platform
import re
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from phygail import __version__
from phygail.config import InputError
from phygail.experiments.engine import HANG_GRACE_S, TICK_S, WORKER_ENVIRONMENT, Pool, Ready, Refusal, Worker
from phygail.experiments.rows import Job, Result, Task, case_reader, fly_task, prepare

ADDRESS = "RAY_ADDRESS"
_LOCAL = "local"  # what Ray calls an instance of one's own
_STORE_BYTES = 128 * 2**20  # shared memory of a Ray of our own: rows are small
_NUMERICS = ("numpy", "scipy", "clarabel", "onnxruntime")  # other versions of these can give other rows
_RECOUNT_S = 10.0  # between two looks at the size of the cluster
_PATIENCE_S = 30.0  # without a worker, before we say that we wait
_HOST_AND_PORT = re.compile(r"(?:ray://)?\[?([^/\]]+?)\]?:(\d+)")
_KNOCK_S = 5.0

log = logging.getLogger("phygail")


@functools.cache
def surroundings() -> dict[str, str]:
    """What must be equal on two machines so that their rows are: digest of our files, versions of what computes."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(f for f in package.rglob("*") if f.is_file() and "__pycache__" not in f.parts):
        digest.update(f"{file.relative_to(package).as_posix()}\n".encode() + file.read_bytes())
    ours = f"{__version__} (files {digest.hexdigest()[:12]})"
    return {"phygail": ours} | {name: importlib.metadata.version(name) for name in _NUMERICS}


@dataclass(frozen=True)
class Parcel:
    """A job on its way to other machines.

    Attributes:
        job: With the paths of the sender.
        contents: Path -> content of the plugins and the policy.
        surroundings: Of the sender, to be found at the receiver; empty if they share one installation.
    """

    job: Job
    contents: Mapping[Path, bytes]
    surroundings: Mapping[str, str] = field(default_factory=dict)


def pack(job: Job, surroundings: Mapping[str, str]) -> Parcel:
    """Put the files that a job names beside it."""
    files = [*job.files, *([job.policy] if job.policy else [])]
    return Parcel(job, {file: file.read_bytes() for file in files}, surroundings)


def unpack(parcel: Parcel) -> Job:
    """The job with paths that hold on this machine; another installation than the sender's is refused."""
    here = surroundings() if parcel.surroundings else {}
    for name, wanted in parcel.surroundings.items():
        if here[name] != wanted:
            raise InputError(
                f"the node {platform.node()} has {name} {here[name]}, this machine {wanted}: install the same on both"
            )
    at_home = {file: _settle(file, content) for file, content in parcel.contents.items()}
    job = parcel.job
    return replace(job, files=tuple(at_home[f] for f in job.files), policy=at_home[job.policy] if job.policy else None)


def _settle(file: Path, content: bytes) -> Path:
    """The file itself where this machine has it too, else a copy of the same name."""
    if file.is_file() and file.read_bytes() == content:
        return file
    copy = Path(tempfile.mkdtemp(prefix="phygail-")) / file.name
    copy.write_bytes(content)
    return copy


class Flyer:
    """The worker on a node, as a Ray actor."""

    def __init__(self, parcel: Parcel) -> None:
        self._parcel = parcel

    def prepare(self) -> Ready | Refusal:
        """Make the job at home on this node."""
        try:
            self._job = unpack(self._parcel)
            prepare(self._job)
        except InputError as error:
            return Refusal(str(error))
        self._read_case = case_reader(self._job)
        return Ready()

    def fly(self, task: Task) -> Result | Refusal:
        """One episode."""
        try:
            return fly_task(self._job, task, self._read_case)
        except InputError as error:
            return Refusal(str(error))


class _Actor(Worker):
    """An actor and the answers it owes, in the order in which it gives them."""

    def __init__(self, handle: Any) -> None:
        super().__init__()
        self._handle = handle
        self.owed = deque([handle.prepare.remote()])

    def send(self, task: Task) -> None:
        self.owed.append(self._handle.fly.remote(task))

    def has_news(self) -> bool:
        import ray

        return bool(ray.wait([self.owed[0]], timeout=0)[0])

    def end(self) -> None:
        import ray

        ray.kill(self._handle)


class RayEngine(Pool[_Actor]):
    """Workers on the cluster at `RAY_ADDRESS`, as many as it has CPUs, or on a Ray of our own on this machine.

    A Ray that this process is connected to already is used and left connected.

    Args:
        workers: CPUs of a Ray of our own.
        grace_s: How long after the timeout a worker stuck in a single step is killed.
    """

    def __init__(self, workers: int, grace_s: float = HANG_GRACE_S) -> None:
        super().__init__(workers, grace_s)
        if importlib.util.find_spec("ray") is None:
            raise InputError("the engine ray needs Ray: pip install 'phygail[cluster]'")
        self._own = False  # whether Ray runs on this machine for us alone
        self._connected = False  # whether it is on us to disconnect
        self._recount_at = 0.0
        self._patient_until = float("inf")

    def start(self, job: Job) -> None:
        import ray

        if not ray.is_initialized():
            self._connect(os.environ.get(ADDRESS) or _LOCAL)
        self._parcel = ray.put(pack(job, {} if self._own else surroundings()))
        environment = dict(WORKER_ENVIRONMENT)
        if self._own:  # as local workers have it; the paths of this machine mean nothing to others
            environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        self._actor = ray.remote(Flyer).options(num_cpus=1, runtime_env={"env_vars": environment})
        self._patient_until = time.monotonic() + _PATIENCE_S
        super().start(job)

    def stop(self) -> None:
        super().stop()
        if self._connected:
            import ray

            ray.shutdown()
            self._connected = self._own = False

    def _connect(self, address: str) -> None:
        import ray

        self._own = address == _LOCAL
        options: dict[str, Any] = {}
        if self._own:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves this machine
            options = {"num_cpus": self._size, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
        logging.getLogger("ray").setLevel(logging.ERROR)
        with _our_sigterm():
            try:
                _knock(address)
                ray.init(address, log_to_driver=False, configure_logging=False, **options)
            except Exception as error:  # Ray raises many kinds
                remedy = (
                    "see its message above" if self._own else f"check {ADDRESS}, or unset it for this machine alone"
                )
                raise InputError(f"cannot use Ray at {address!r} ({_brief(error)}): {remedy}") from error
        self._connected = True

    def _wanted(self) -> int:
        """Every CPU of a cluster, also those of nodes that join later."""
        if not self._own and time.monotonic() >= self._recount_at:
            import ray

            untyped: Any = ray  # Ray annotates only part of itself
            self._size = max(1, int(untyped.cluster_resources().get("CPU", 1)))
            self._recount_at = time.monotonic() + _RECOUNT_S
        return self._size

    def _hire(self) -> _Actor:
        return _Actor(self._actor.remote(self._parcel))

    def _hear(self) -> Iterator[tuple[_Actor, object]]:
        import ray

        by_answer = {worker.owed[0]: worker for worker in self._workers if worker.owed}
        answers, _ = ray.wait(list(by_answer), timeout=TICK_S)
        if answers:  # and those of everybody else who is done
            answers, _ = ray.wait(list(by_answer), num_returns=len(by_answer), timeout=0)
        for answer in answers:
            worker = by_answer[answer]
            worker.owed.popleft()
            try:
                yield worker, ray.get(answer)
            except Exception as error:  # its end, or whatever it raised
                worker.exit_reason = _brief(error)
                yield worker, None
        self._tell_of_waiting()

    def _tell_of_waiting(self) -> None:
        if time.monotonic() > self._patient_until and not any(worker.ready for worker in self._workers):
            log.warning("Ray has no CPU free for this run yet: waiting")
            self._patient_until = float("inf")


def _brief(error: Exception) -> str:
    """The line of an error that says most: of a traceback the last, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1] if any(line.startswith("Traceback") for line in lines) else lines[0]


def _knock(address: str) -> None:
    """Raise at once if nobody listens at HOST:PORT: Ray itself would try for minutes."""
    if found := _HOST_AND_PORT.fullmatch(address):
        host, port = found.groups()
        try:
            socket.create_connection((host, int(port)), timeout=_KNOCK_S).close()
        except (OSError, OverflowError) as error:  # the latter from a port that is none
            raise ConnectionError(f"nobody answers: {error}") from None


@contextlib.contextmanager
def _our_sigterm() -> Iterator[None]:
    """Ray puts a handler of its own in the place of ours, which ends the run in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
