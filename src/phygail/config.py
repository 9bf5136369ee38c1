"""Constants of the world, the one error that users see, registries, and how worker processes behave.

Every number has its unit and meaning beside it. Values are those of the paper (METHODS 2.1) unless a comment
says otherwise.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Generic, TypeVar

LINK_TOLERANCE_M = 1e-6  # a link is d <= range + this: a rigidly moved 120 m link must not break by rounding
PAPER_RANGE_M = 120.0  # D_comm of the paper: maps are made and lengths of methods chosen for it (Physics.unit)
CONTACT_M = 10.0  # d_col of the paper
CONTACT_TOLERANCE_M = 1e-6  # a contact is d < contact distance - this
BUDGET_WIDTHS = 0.8  # T_max: the distance flown at full speed, in widths of the map
ONE_THREAD = dict.fromkeys(  # environment of processes whose sums do not depend on the machine
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
_PARENT_CHECK_S = 1.0


class InputError(ValueError):
    """Bad input from a user: one line that names the value, the bound and the remedy. The command line exits 2."""


def require_extra(what: str, extra: str, *modules: str) -> None:
    """Refuse what the light install cannot do, and say what to install.

    Args:
        what: What needs it, in the plural.
        extra: Name of the extra in pyproject.toml.
        modules: Modules that must be installed; none is imported here.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"{what} need {' and '.join(missing)}: pip install 'phygail[{extra}]'")


class EndedFromOutside(SystemExit):
    """The process was asked to end (SIGTERM). A SystemExit that a method raises is an error of the method."""


def settle_worker(parent: int) -> None:
    """Prepare a worker process: it leaves Ctrl-C to the parent (a process id) and ends when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent decides
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """Exit when the parent has ended, even in the middle of an episode: nobody would read its row."""
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_S)
    os._exit(1)


@dataclass(frozen=True)
class Physics:
    """Radio and vehicle, the same for every UAV of a swarm."""

    range_m: float = PAPER_RANGE_M  # D_comm: two alive UAVs at most this far apart have a link
    speed_mps: float = 10.0  # v_max: limit of the Euclidean norm of the velocity
    step_s: float = 0.1  # duration of one control step
    contact_m: float = CONTACT_M  # d_col: two alive UAVs closer than this are in contact; fresh layouts keep it

    @property
    def stride_m(self) -> float:
        """The farthest a UAV can fly in one step."""
        return self.speed_mps * self.step_s

    @property
    def unit(self) -> float:
        """The range over 120 m: the factor for a length chosen at the paper's radio, where it is exactly 1."""
        return self.range_m / PAPER_RANGE_M

    @property
    def spacing(self) -> float:
        """The contact distance over 10 m: the factor for a distance between UAVs chosen at the paper's."""
        return self.contact_m / CONTACT_M

    def steps_to_fly(self, length_m: float) -> int:
        """Steps at full speed, at least one, for a length chosen at 120 m: methods measure waiting times in ranges."""
        return max(1, round(length_m * self.unit / self.stride_m))


def physics_values(kinds: Iterable[Physics]) -> dict[str, float | list[float]]:
    """Radio and vehicle of some swarms as run.json holds them: a number each, the sorted values where they differ."""
    entries = [asdict(physics) for physics in kinds]
    distinct = {name: sorted({entry[name] for entry in entries}) for name in asdict(Physics())}
    return {name: values[0] if len(values) == 1 else values for name, values in distinct.items()}


def physics_line(values: Mapping[str, float | list[float]]) -> str:
    """The line above every table: "radio 120 m, 10 m/s, step 0.1 s, contact 10 m"; "60 to 120" where they differ."""

    def span(name: str) -> str:
        value = values[name]
        return f"{value[0]:g} to {value[-1]:g}" if isinstance(value, list) else f"{value:g}"

    return f"radio {span('range_m')} m, {span('speed_mps')} m/s, step {span('step_s')} s, contact {span('contact_m')} m"


# --- registries: one per kind of thing; an unknown name gets an error that says which ones exist ---------------------

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to entries, in the order of registration.

    Attributes:
        kind: What the entries are, for error messages ("method").

    Args:
        kind: See above.
        aliases: Other names of entries.
        retired: Names that no entry may carry, each with the line that says what became of it.
    """

    def __init__(
        self, kind: str, aliases: Mapping[str, str] | None = None, retired: Mapping[str, str] | None = None
    ) -> None:
        self.kind = kind
        self._aliases = dict(aliases or {})
        self._retired = dict(retired or {})
        self._entries: dict[str, T] = {}

    def add(self, name: str, entry: T) -> T:
        """Register `entry` under `name`; a name is given once."""
        if name in self._retired:
            raise InputError(f"{self.kind} {name!r}: {self._retired[name]}")
        if name in self._aliases:
            raise InputError(f"{self.kind} {name!r} is another name of {self._aliases[name]}: choose another name")
        if name in self._entries:
            raise InputError(f"{self.kind} {name!r} is registered twice: choose another name")
        self._entries[name] = entry
        return entry

    def get(self, name: str) -> T:
        """The entry called `name`, or a clear error with the nearest names."""
        name = self.canonical(name)
        if name in self._retired:
            raise InputError(f"{self.kind} {name!r}: {self._retired[name]}")
        if name not in self._entries:
            near = difflib.get_close_matches(name, self._entries, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise InputError(f"unknown {self.kind} {name!r}: {hint}there are {', '.join(self._entries)}")
        return self._entries[name]

    def canonical(self, name: str) -> str:
        """The one name of an entry that may have several."""
        return self._aliases.get(name, name)

    def names(self) -> list[str]:
        """All names, in the order of registration."""
        return list(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._aliases
