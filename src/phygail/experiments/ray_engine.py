"""The Ray engine: the same episodes, and trainings, on a cluster, one worker per CPU.

`RAY_ADDRESS` names the cluster; without it a Ray instance is started on this machine. Every node needs the same
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from phygail import __version__
from phygail.config import InputError
from phygail.experiments.engine import HANG_GRACE_S, TICK_S, WORKER_ENVIRONMENT, Pool, Ready, Refusal, Worker
from phygail.experiments.rows import Job, Result, Task, case_reader, fly_task, prepare

ADDRESS = "RAY_ADDRESS"
_LOCAL = "local"  # address of an instance on this machine, as Ray calls it
_STORE_BYTES = 128 * 2**20  # shared memory of a Ray of our own: rows are small
_NUMERICS = ("numpy", "scipy", "clarabel", "onnxruntime")  # other versions of these can give other rows
_RECOUNT_S = 10.0  # between two looks at the size of the cluster
_PATIENCE_S = 30.0  # seconds without a worker before a note says that we wait
_HOST_AND_PORT = re.compile(r"(?:ray://)?\[?([^/\]]+?)\]?:(\d+)")
_KNOCK_S = 5.0

log = logging.getLogger("phygail")


@functools.cache
def surroundings() -> dict[str, str]:
    """What must be equal on two machines for equal rows: the digest of our files, versions of numerical packages."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(f for f in package.rglob("*") if f.is_file() and "__pycache__" not in f.parts):
        digest.update(f"{file.relative_to(package).as_posix()}\n".encode() + file.read_bytes())
    ours = f"{__version__} (files {digest.hexdigest()[:12]})"
    return {"phygail": ours} | {name: importlib.metadata.version(name) for name in _NUMERICS}


def check_surroundings(expected: Mapping[str, str]) -> None:
    """Refuse a node that has another installation than the sender (`surroundings`; empty: they share one)."""
    here = surroundings() if expected else {}
    for name, wanted in expected.items():
        if here[name] != wanted:
            raise InputError(
                f"the node {platform.node()} has {name} {here[name]}, this machine {wanted}: install the same on both"
            )


@dataclass(frozen=True)
class Parcel:
    """A job on its way to other machines.

    Attributes:
        job: With the paths of the sender.
        contents: Path -> content of the plugins and the policy.
        surroundings: Of the sender; the receiver must have the same. Empty if they share one installation.
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
    check_surroundings(parcel.surroundings)
    at_home = {file: _settle(file, content) for file, content in parcel.contents.items()}
    job = parcel.job
    return replace(job, files=tuple(at_home[f] for f in job.files), policy=at_home[job.policy] if job.policy else None)


def _settle(file: Path, content: bytes) -> Path:
    """The file itself where this machine has it, too; else a copy with the same name."""
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
        """Prepare the job on this node."""
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
    """An actor and the answers that are still to come, in their order."""

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
        require_ray()
        self._own = False  # whether we have started Ray on this machine
        self._connected = False  # whether we have to disconnect
        self._recount_at = 0.0
        self._patient_until = float("inf")

    def start(self, job: Job) -> None:
        import ray

        if not ray.is_initialized():
            self._own, self._connected = connect(self._size), True
        self._parcel = ray.put(pack(job, {} if self._own else surroundings()))
        self._actor = ray.remote(Flyer).options(num_cpus=1, runtime_env=_environment(self._own))
        self._patient_until = time.monotonic() + _PATIENCE_S
        super().start(job)

    def stop(self) -> None:
        super().stop()
        if self._connected:
            import ray

            ray.shutdown()
            self._connected = self._own = False

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
        if answers:  # and the answers of all other workers that are done
            answers, _ = ray.wait(list(by_answer), num_returns=len(by_answer), timeout=0)
        for answer in answers:
            worker = by_answer[answer]
            worker.owed.popleft()
            try:
                yield worker, ray.get(answer)
            except Exception as error:  # the worker ended, or its error
                worker.exit_reason = _brief(error)
                yield worker, None
        self._tell_of_waiting()

    def _tell_of_waiting(self) -> None:
        if time.monotonic() > self._patient_until and not any(worker.ready for worker in self._workers):
            log.warning("Ray has no CPU free for this run yet: waiting")
            self._patient_until = float("inf")


def require_ray() -> None:
    """Refuse, in one line, to go on without Ray."""
    if importlib.util.find_spec("ray") is None:
        raise InputError("the engine ray needs Ray: pip install 'phygail[cluster]'")


def connect(cpus: int) -> bool:
    """Connect to the cluster at `RAY_ADDRESS`, or start a Ray on this machine; whether it is one of our own."""
    import ray

    address = os.environ.get(ADDRESS) or _LOCAL
    own = address == _LOCAL
    options: dict[str, Any] = {}
    if own:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves this machine
        options = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
    logging.getLogger("ray").setLevel(logging.ERROR)
    with _our_sigterm():
        try:
            _knock(address)
            ray.init(address, log_to_driver=False, configure_logging=False, **options)
        except Exception as error:  # Ray raises many kinds
            remedy = "see its message above" if own else f"check {ADDRESS}, or unset it for this machine alone"
            raise InputError(f"cannot use Ray at {address!r} ({_brief(error)}): {remedy}") from error
    return own


def _environment(own: bool) -> dict[str, Any]:
    """What processes on Ray find in their environment."""
    variables = dict(WORKER_ENVIRONMENT)
    if own:  # as local workers have it; the paths of this machine mean nothing to others
        variables["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    return {"env_vars": variables}


def each_on_ray(
    function: Callable[..., object], jobs: Sequence[tuple[Any, ...]], files: Sequence[Path], workers: int, losses: int
) -> None:
    """Call `function(*job)` for every job on the cluster, each in a process of its own with one CPU.

    What it makes must outlast it on disk: a job whose worker dies is called again, up to `losses` times.

    Args:
        function: Of a module. jobs: Its arguments.
        files: Files and folders that every node must see under these names.
        workers: CPUs of a Ray of our own.
        losses: Times that the worker of a job may die.
    """
    require_ray()
    import ray

    ours = not ray.is_initialized()
    own = ours and connect(workers)
    try:
        fresh = ray.remote(num_cpus=1, max_calls=1, max_retries=losses, runtime_env=_environment(own))
        call = fresh(_call_there)
        expected = {} if own else surroundings()
        left = [call.remote(function, job, [file.resolve() for file in files], expected) for job in jobs]
        while left:
            done, left = ray.wait(left)
            for answer in done:
                ray.get(answer)
    except ray.exceptions.RayTaskError as error:
        raise (error.cause if isinstance(error.cause, InputError) else error) from None
    except ray.exceptions.WorkerCrashedError as error:
        raise InputError(
            f"a worker on Ray died {losses + 1} times ({_brief(error)}): is there enough memory?"
        ) from None
    finally:
        if ours:
            ray.shutdown()


def _call_there(
    function: Callable[..., object], job: tuple[Any, ...], files: Sequence[Path], expected: Mapping[str, str]
) -> None:
    """A call on a node, if it has our code and sees our files."""
    check_surroundings(expected)
    for file in files:
        if not file.exists():
            raise InputError(f"the node {platform.node()} does not see {file}: put it where all nodes find it")
    function(*job)


def _brief(error: Exception) -> str:
    """The most useful line of an error: the last of a traceback, else the first."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1] if any(line.startswith("Traceback") for line in lines) else lines[0]


def _knock(address: str) -> None:
    """Raise at once if nobody listens at HOST:PORT: Ray itself would try for minutes."""
    if found := _HOST_AND_PORT.fullmatch(address):
        host, port = found.groups()
        try:
            socket.create_connection((host, int(port)), timeout=_KNOCK_S).close()
        except (OSError, OverflowError) as error:  # OverflowError: the port is out of range
            raise ConnectionError(f"nobody answers: {error}") from None


@contextlib.contextmanager
def _our_sigterm() -> Iterator[None]:
    """Keep our signal handler, which ends the run in order; Ray would replace it by its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
