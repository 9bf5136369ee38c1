"""Rows on disk are flown again: does the code of today still give them?

Every folder with rows.csv says in run.json what decided its rows: scenarios, safety, sensing, policy. A share of the
rows, spread evenly over methods, swarm sizes and damage, is flown with the same settings. Every column but the timings
is compared: numbers with decimals up to rounding, all others exactly. Flights that several folders share are flown
once. Rows that cannot be flown are counted with the reason.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from phygail.config import InputError, Physics
from phygail.experiments.engine import Engine
from phygail.experiments.experiment import Named, is_drawn
from phygail.experiments.folder import content_digest, digest
from phygail.experiments.grid import CaseList, Cases
from phygail.experiments.rows import COLUMNS, CURVE, TIMEOUT, TIMINGS, Job, Key, Result, Row, Task, key_of, read_rows
from phygail.experiments.runner import WEIGHTS, weights_digest
from phygail.files import read_text
from phygail.methods import METHODS
from phygail.methods.base import installed
from phygail.sensing.imperfect import Sensing
from phygail.swarm.scenario import load_scenarios

ROUNDING = 1e-6  # relative: distances and speeds may differ by this between processors; counts and texts must be equal
COMPARED = tuple(name for name in COLUMNS if name not in (*TIMINGS, "version"))  # the version is no result of a flight
WORLD_US = 4.0  # cost of the simulator per alive UAV and step, beside the `solve_s` of a row
_SENSING = {"sigma_m": "noise_m", "delay_steps": "delay_steps", "bias_m": "bias_m"}  # field -> key of run.json
# Keys that run.json may have. Another key may decide rows in an unknown way: such a folder is not flown.
_KNOWN = {
    "source", "uavs", "damage", "failures", "cases", "seed", "scenarios", "content",
    "methods", "safety", "policy", "plugins", "world", *_SENSING.values(), *asdict(Physics()),
}  # fmt: skip
_PLUGIN = "plugin "


@dataclass(frozen=True)
class Setting:
    """What decides a flight beside its scenario and its method.

    Attributes:
        file: Scenario file; scenarios are drawn by their ids if None.
        physics: Radio and vehicle of drawn scenarios; a file has its own.
        safety: Whether every command is filtered.
        sensing: How imperfectly the method sees.
        policy: Policy file for the methods that take one.
        world: What drawn scenarios have beyond the plain world.
    """

    file: Path | None = None
    physics: Physics = field(default_factory=Physics)
    safety: bool = False
    sensing: Sensing = field(default_factory=Sensing)
    policy: Path | None = None
    world: str = ""


@dataclass(frozen=True)
class Old:
    """A chosen row, its folder below results/, and the setting that it was flown with."""

    folder: str
    setting: Setting
    row: Row

    @property
    def cost_s(self) -> float:
        """Seconds that flying it again will take, estimated from its timings."""
        return (self.row["solve_s"] or 0.0) + 1e-6 * WORLD_US * self.row["alive"] * self.row["steps"]


@dataclass
class Plan:
    """The rows that are flown, and those that are not.

    Attributes:
        chosen: Rows to fly.
        left_out: How many rows by (folder, reason).
        slow_s: Seconds of the chosen rows that are left out as slow.
        notes: Lines about folders whose rows will differ for a reason that is known.
    """

    chosen: list[Old] = field(default_factory=list)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    slow_s: float = 0.0
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Pair:
    """A row as it is on disk and as it is flown today."""

    old: Old
    new: Row

    @property
    def differing(self) -> list[str]:
        """The columns that are not equal; rows that are older than the columns of worlds are not compared in those."""
        older = self.old.row["alive_end"] is None
        names = [name for name in COMPARED if not (older and name in CURVE)]
        return [name for name in names if not _equal(self.old.row[name], self.new[name])]


def _equal(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=ROUNDING, abs_tol=ROUNDING)
    return bool(old == new)


# --- what to fly -----------------------------------------------------------------------------------------------------


def plan_again(results: Path, *, share: float, most_s: float, only: str = "", methods: Collection[str] = ()) -> Plan:
    """Choose rows of every folder below `results`.

    Args:
        results: Folder with folders of rows.
        share: Of the rows of each method, at least one of each.
        most_s: Chosen rows that took longer are left out; the choice of the others does not depend on it.
        only: Name of a folder below `results`; all if empty.
        methods: Names; all if empty.
    """
    if not 0 < share <= 1:
        raise InputError(f"a share of {share:g}: choose above 0, at most 1")
    found = (path.parent for path in (results / only).rglob("rows.csv"))
    places = sorted(place for place in found if (place / "run.json").exists())  # others hold no comparison
    if not places:
        raise InputError(f"{results / only} holds no rows.csv: name a folder below {results}")
    known = _Files(results)
    plan = Plan()
    for place in places:
        _plan_folder(plan, place, known, share, most_s, methods)
    return plan


def _plan_folder(plan: Plan, place: Path, known: _Files, share: float, most_s: float, methods: Collection[str]) -> None:
    name = place.relative_to(known.results).as_posix()
    rows = [row for row in read_rows(place / "rows.csv") if not methods or row["method"] in methods]
    config = json.loads(read_text(place / "run.json"))["config"]
    setting = known.setting(config)
    ready = []
    for row in rows:
        reason = setting if isinstance(setting, str) else _reason(row, setting)
        if reason:
            plan.left_out[name, reason] += 1
        else:
            ready.append(row)
    if isinstance(setting, str):
        return
    for row in choose_rows(ready, share):
        if (row["solve_s"] or 0.0) > most_s:
            plan.left_out[name, f"chosen but slower than {most_s:g} s"] += 1
            plan.slow_s += row["solve_s"]
        else:
            plan.chosen.append(Old(name, setting, row))
    for method in sorted({row["method"] for row in ready}):
        flown = config.get(WEIGHTS + method)
        if flown and flown != weights_digest(method):
            plan.notes.append(f"{name}: {method} was flown with other weights than it has today")


def choose_rows(rows: Sequence[Row], share: float) -> list[Row]:
    """A share of the rows of each method, at least one, spread evenly over swarm sizes and damage.

    The settings of a method are put in line, and every (1 / share)-th row is taken. Within a setting the order of the
    rows depends only on their scenarios, so folders with the same cases choose the same rows.
    """
    chosen: list[Row] = []
    for method in sorted({row["method"] for row in rows}):
        mine = sorted((row for row in rows if row["method"] == method), key=_order)
        wanted = math.ceil(round(share * len(mine), 9))
        counts = Counter(_stratum(mine[int((k + 0.5) * len(mine) / wanted)]) for k in range(wanted))
        for row in mine:
            if counts[_stratum(row)]:
                counts[_stratum(row)] -= 1
                chosen.append(row)
    return chosen


def _stratum(row: Row) -> tuple[int, int]:
    return row["uavs"], row["damaged"]


def _order(row: Row) -> tuple[int, int, bytes]:
    return *_stratum(row), hashlib.sha256(row["scenario"].encode()).digest()


def _reason(row: Row, setting: Setting) -> str:
    """Why a row cannot be flown; empty if it can."""
    if row["method"] not in METHODS:
        return f"there is no method {row['method']} today"
    if not installed(METHODS.get(row["method"])):
        return f"{row['method']} needs an extra that is not installed"
    if TIMEOUT in row["flag"].split(";"):
        return "met a time limit"
    if setting.file is None and not is_drawn(row["scenario"]):
        return "its id does not say how its scenario is drawn"
    return ""


class _Files:
    """The policies and scenario files of the tree, found by their content."""

    def __init__(self, results: Path) -> None:
        self.results = results
        bundled = [Path(str(file)) for file in (files("phygail") / "weights").iterdir()]
        policies = [file for file in (*bundled, *results.rglob("*.onnx")) if file.suffix == ".onnx"]
        self._policies = {digest(file.read_bytes()): file for file in policies}
        self._cases = {content_digest(load_scenarios(file)): file for file in results.rglob("cases.json")}

    def setting(self, config: dict[str, Any]) -> Setting | str:
        """The setting that run.json describes, or the reason why it cannot be flown."""
        unknown = [key for key in config if key not in _KNOWN and not key.startswith((WEIGHTS, _PLUGIN))]
        if unknown:
            return f"run.json says {unknown[0]}, which is unknown here"
        if config.get("plugins") or any(key.startswith(_PLUGIN) for key in config):
            return "flown with a plugin"
        policy, content = config.get("policy"), config.get("content")
        if policy and policy not in self._policies:
            return "its policy is not in the tree"
        if content and content not in self._cases:
            return "its scenario file is not in the tree"
        radio = {} if content else {name: config[name] for name in asdict(Physics()) if name in config}
        sensing = {name: config[key] for name, key in _SENSING.items() if key in config}
        return Setting(
            self._cases[content] if content else None,
            Physics(**radio),
            config["safety"] == "on",
            Sensing(**sensing),
            self._policies[policy] if policy else None,
            config.get("world", ""),
        )


# --- flying it -------------------------------------------------------------------------------------------------------


def fly_again(
    chosen: Iterable[Old], engine: Engine, progress: Callable[[float, float], None] | None = None
) -> Iterator[Pair]:
    """Fly rows again, setting by setting.

    Args:
        chosen: Rows.
        engine: Where to fly.
        progress: Receives the work done and the whole work, in seconds of one core by the old timings.
    """
    groups: dict[Setting, dict[Key, list[Old]]] = defaultdict(lambda: defaultdict(list))
    for old in chosen:
        groups[old.setting][key_of(old.row)].append(old)
    total = sum(olds[0].cost_s for flights in groups.values() for olds in flights.values())
    done = 0.0
    for setting, flights in groups.items():
        for result in _fly(setting, flights, engine):
            olds = flights[key_of(result.row)]
            done += olds[0].cost_s
            if progress:
                progress(done, total)
            yield from (Pair(old, result.row) for old in olds)


def _fly(setting: Setting, flights: dict[Key, list[Old]], engine: Engine) -> Iterator[Result]:
    cases: Cases = Named(tuple(sorted({scenario for scenario, _ in flights})), setting.physics, setting.world)
    if setting.file is not None:
        cases = CaseList(tuple(load_scenarios(setting.file)))
    numbers = {scenario: index for index, scenario in enumerate(cases.ids())}
    # Long flights come first, so that no worker idles at the end.
    order = sorted(flights, key=lambda key: -flights[key][0].cost_s)
    methods = tuple(dict.fromkeys(method for _, method in order))
    try:
        engine.start(Job(cases, methods, setting.safety, policy=setting.policy, sensing=setting.sensing))
        for results in engine.run([Task(numbers[scenario], method) for scenario, method in order]):
            yield from results
    finally:
        engine.stop()


# --- what came of it -------------------------------------------------------------------------------------------------

HEADER = ("folder", "flown", "equal", "differ", "steps differ", "steps old", "steps new", "largest difference")


def folder_cells(pairs: Iterable[Pair], by: Callable[[Pair], str]) -> list[list[str]]:
    """A line per group: rows flown, equal, differing, mean steps before and now, the flight that changed most."""
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[by(pair)].append(pair)
    return [_cells(name, groups[name]) for name in sorted(groups)]


def _cells(name: str, pairs: list[Pair]) -> list[str]:
    differ = sum(bool(pair.differing) for pair in pairs)
    old, new = ([rows["steps"] for rows in side] for side in zip(*((p.old.row, p.new) for p in pairs), strict=True))
    changes = [after - before for before, after in zip(old, new, strict=True)]
    place = max(range(len(pairs)), key=lambda k: (abs(changes[k]), key_of(pairs[k].new)))
    row = pairs[place].new
    largest = f"{changes[place]:+d}: {row['method']} on {row['scenario']}" if changes[place] else "-"
    counts = [len(pairs), len(pairs) - differ, differ, sum(change != 0 for change in changes)]
    means = [f"{sum(steps) / len(steps):.2f}" for steps in (old, new)]
    return [name, *map(str, counts), *means, largest]
