"""The expert database: flat arrays, a journal while it is built, one HDF5 file.

Every scenario is one small file that appears whole or not at all, so nothing in the folder can be half-written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_type_hints

import numpy as np

from phygail import __version__
from phygail.config import InputError, Physics
from phygail.files import make_folder, read_json, whole_file, write_text
from phygail.methods.phygail.experts.recipe import Demonstration, held_out
from phygail.swarm.scenario import Scenario

NOBODY = -1  # winner of a scenario that no method solved; such scenarios are journaled but not kept

# Arrays with the dtype they have on disk, on every machine.
Reals = Annotated[np.ndarray, "<f8"]
Wholes = Annotated[np.ndarray, "<i8"]
Flags = Annotated[np.ndarray, "|b1"]
Texts = Annotated[np.ndarray, "|S64"]

_RECORD = "build.json"

FORMAT = "phygail-experts"
FORMAT_VERSION = 1
SUFFIXES = (".h5", ".hdf5")
_PACKED = ("layout", "positions", "velocities")  # long arrays, which are compressed
_COUNTS = "dropped"


@dataclass(frozen=True, eq=False)
class Archive:
    """S demonstrations by M methods. Arrays with a row per scenario first, then flat ones, scenario after scenario.

    Only the alive have rows in the trajectories; the damaged stay where the layout has them.

    Attributes:
        id: (S,) bytes. ratio: (S,) damage ratio asked for. case: (S,) int. held_out: (S,) bool, for validation.
        seed: (S,) int. uavs: (S,) int, N. lost: (S,) int, damaged UAVs.
        width_m: (S,) m. center: (S, 2) m. range_m, speed_mps, step_s: (S,). budget_steps: (S,) int.
        winner: (S,) int, column of the expert. expert_steps: (S,) int, T_E.
        success: (S, M) bool. moves: (S, M) int. contacts: (S, M) events per UAV. raised: (S, M) bool, an error.
        layout: (sum N, 2) m. damaged: (sum lost,) int, indices within the layout of their scenario.
        positions: (sum (T_E + 1) n, 2) m, t = 0..T_E, all alive of t = 0 first.
        velocities: (sum T_E n, 2) m/s, executed at t = 0..T_E-1.
    """

    id: Texts
    ratio: Reals
    case: Wholes
    held_out: Flags
    seed: Wholes
    uavs: Wholes
    lost: Wholes
    width_m: Reals
    center: Reals
    range_m: Reals
    speed_mps: Reals
    step_s: Reals
    budget_steps: Wholes
    winner: Wholes
    expert_steps: Wholes
    success: Flags
    moves: Wholes
    contacts: Reals
    raised: Flags
    layout: Reals
    damaged: Wholes
    positions: Reals
    velocities: Reals

    def __post_init__(self) -> None:
        for name in names():
            getattr(self, name).setflags(write=False)

    def __len__(self) -> int:
        return len(self.id)

    @property
    def alive(self) -> np.ndarray:
        """(S,) int, number of alive n."""
        return self.uavs - self.lost

    @cached_property
    def starts(self) -> dict[str, np.ndarray]:
        """(S + 1,) int per flat array: scenario s owns the rows starts[s]:starts[s + 1]."""
        rows = {
            "layout": self.uavs,
            "damaged": self.lost,
            "positions": (self.expert_steps + 1) * self.alive,
            "velocities": self.expert_steps * self.alive,
        }
        return {name: np.concatenate([[0], np.cumsum(count)]) for name, count in rows.items()}

    @cached_property
    def spots(self) -> np.ndarray:
        """(sum lost, 2) m, where the damaged are, in the rows of `damaged`."""
        return self.layout[self.damaged + np.repeat(self.starts["layout"][:-1], self.lost)]

    def rows(self, name: str, s: int) -> np.ndarray:
        """The rows of scenario s in the flat array `name`."""
        first, last = self.starts[name][s : s + 2]
        return getattr(self, name)[first:last]

    def scenario(self, s: int) -> Scenario:
        """Scenario s as it was flown."""
        physics = Physics(float(self.range_m[s]), float(self.speed_mps[s]), float(self.step_s[s]))
        return Scenario(
            self.id[s].decode(), self.rows("layout", s).copy(), self.rows("damaged", s).astype(np.intp),
            float(self.width_m[s]), self.center[s].copy(), physics, int(self.budget_steps[s]), int(self.seed[s]),
        )  # fmt: skip

    def trajectory(self, s: int) -> tuple[np.ndarray, np.ndarray]:
        """(T_E + 1, n, 2) m and (T_E, n, 2) m/s of the expert on scenario s."""
        n = int(self.alive[s])
        return self.rows("positions", s).reshape(-1, n, 2), self.rows("velocities", s).reshape(-1, n, 2)


@cache
def names() -> Mapping[str, str]:
    """Every array of an archive and its dtype."""
    hints = get_type_hints(Archive, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


def make_archive(arrays: dict[str, Any]) -> Archive:
    """An archive of anything that converts to its arrays."""
    return Archive(**{name: np.array(arrays[name], dtype=dtype) for name, dtype in names().items()})


def pack(demo: Demonstration) -> Archive:
    """One demonstration as an archive of length one."""
    case, outcomes = demo.scenario, demo.outcomes
    return make_archive(
        {
            "id": [case.id.encode()],
            "ratio": [demo.ratio],
            "case": [demo.case],
            "held_out": [held_out(demo.case)],
            "seed": [case.seed or 0],
            "uavs": [case.uavs],
            "lost": [len(case.damaged)],
            "width_m": [case.width_m],
            "center": [case.center],
            "range_m": [case.physics.range_m],
            "speed_mps": [case.physics.speed_mps],
            "step_s": [case.physics.step_s],
            "budget_steps": [case.budget_steps],
            "winner": [NOBODY if demo.winner is None else demo.winner],
            "expert_steps": [len(demo.velocities)],
            "success": [[o.success for o in outcomes]],
            "moves": [[o.moves for o in outcomes]],
            "contacts": [[o.contacts for o in outcomes]],
            "raised": [[bool(o.error) for o in outcomes]],
            "layout": case.layout,
            "damaged": case.damaged,
            "positions": demo.positions.reshape(-1, 2),
            "velocities": demo.velocities.reshape(-1, 2),
        }
    )


def concatenate(parts: Sequence[Archive]) -> Archive:
    """One archive of several, in their order."""
    return Archive(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names()})


class Journal:
    """The folder OUT.parts beside the database OUT.

    Args:
        out: The database that is being built.
        config: What decides its content; a folder holds parts of one config.
    """

    def __init__(self, out: Path, config: dict[str, Any]) -> None:
        self.folder = out.with_name(f"{out.name}.parts")
        self._config = config
        self._record = self.folder / _RECORD

    def begin(self) -> set[int]:
        """Make the folder, or find it; the numbers of the scenarios that are finished."""
        if self._record.exists():
            self._check()
        else:
            if any(self.folder.glob("*.npz")):
                raise InputError(f"{self.folder} holds parts but no {_RECORD}: delete it or choose another output")
            make_folder(self.folder)
            write_text(self._record, json.dumps(self._config, indent=2) + "\n")
        return {int(part.stem) for part in self.folder.glob("[0-9]*.npz")}

    def _check(self) -> None:
        remedy = f"repeat its command, delete {self.folder} or choose another output"
        try:
            earlier = dict(read_json(self._record))
        except (TypeError, ValueError):
            raise InputError(f"{self._record} is not the record of a build: {remedy}") from None
        difference = first_difference(earlier, self._config)
        if difference:
            raise InputError(f"{self.folder} holds parts of another database ({difference}): {remedy}")

    def save(self, number: int, part: Archive) -> None:
        """Keep a finished scenario."""
        with whole_file(self._path(number)) as draft:
            np.savez(draft, **{name: getattr(part, name) for name in names()})

    def load(self, number: int) -> Archive:
        """A finished scenario."""
        path = self._path(number)
        try:
            with np.load(path) as arrays:
                return make_archive(dict(arrays))
        except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
            raise InputError(f"{path} is damaged: delete it and run the same command again") from None

    def remove(self) -> None:
        """Delete the folder; the record goes last, so that an interrupted removal is recognized and repeated."""
        if not self._record.exists():
            return
        self._check()
        for part in self.folder.iterdir():
            if part != self._record:
                part.unlink()
        self._record.unlink()
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.npz"


def first_difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The first key in which two configs differ, in words; empty if they are equal."""
    for key in dict.fromkeys([*now, *before]):
        if before.get(key) != now.get(key):
            was, wanted = (json.dumps(config.get(key))[:60] for config in (before, now))
            return f"{key} was {was}, now {wanted}"
    return ""


def require_h5py() -> ModuleType:
    """The module h5py, or one line that says how to get it."""
    try:
        import h5py
    except ImportError:
        raise InputError("expert databases need h5py: pip install 'phygail[learn]'") from None
    return h5py


def write_archive(
    path: Path, archive: Archive, config: dict[str, Any], dropped: dict[str, int], command: str = ""
) -> None:
    """Write a database, whole or not at all; equal arguments give equal bytes.

    Args:
        path: Where.
        archive: The demonstrations.
        config: `Recipe.config`.
        dropped: Scenarios that no method solved, counted by damage ratio.
        command: How a user repeats it.
    """
    h5py = require_h5py()
    attributes = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "command": command,
        "seed": config["seed"],
        "pool": config["pool"],
        "config": json.dumps(config),
        _COUNTS: json.dumps(dropped),
        "content_sha256": digest(archive, config, dropped),
    }
    with whole_file(path) as draft, h5py.File(draft, "w") as file:
        for name in names():
            packing = {"compression": "gzip", "shuffle": True} if name in _PACKED else {}
            file.create_dataset(name, data=getattr(archive, name), **packing)
        for name, starts in archive.starts.items():
            file.create_dataset(f"{name}_start", data=starts)
        file.attrs.update(attributes)


def read_archive(path: Path) -> tuple[Archive, dict[str, Any]]:
    """The demonstrations of a database and its attributes, or one line that says what is wrong with the file."""
    h5py = require_h5py()
    if not path.is_file():
        raise InputError(f"cannot read {path}: there is no such file; build it with phygail experts")
    try:
        with h5py.File(path, "r") as file:
            about = dict(file.attrs)
            _check_format(path, about)
            archive = make_archive({name: file[name][()] for name in names()})
            starts = {name: file[f"{name}_start"][()] for name in archive.starts}
            config, dropped = json.loads(about["config"]), json.loads(about[_COUNTS])
            whole = about["content_sha256"] == digest(archive, config, dropped)
    except InputError:
        raise
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"{path} is damaged or no expert database ({error}): build it again") from None
    if not whole or not all(np.array_equal(starts[name], own) for name, own in archive.starts.items()):
        raise InputError(f"{path} is damaged (its content is not what was written): build it again")
    return archive, about | {"config": config, _COUNTS: dropped}


def _check_format(path: Path, about: dict[str, Any]) -> None:
    if about.get("format") != FORMAT:
        raise InputError(f"{path} is no expert database: build one with phygail experts")
    if about.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {about.get('format_version')}, this version reads {FORMAT_VERSION}: "
            "build it again"
        )


def digest(archive: Archive, config: dict[str, Any], dropped: dict[str, int]) -> str:
    """SHA-256 of all that a database says about scenarios and flights; not of the command that made it."""
    total = hashlib.sha256(json.dumps([config, dropped], sort_keys=True).encode())
    for name, dtype in names().items():
        array = getattr(archive, name)
        total.update(f"{name} {dtype} {array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
