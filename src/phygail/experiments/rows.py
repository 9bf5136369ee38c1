"""One raw row per episode: from a task to its row, the columns, and the file that never loses a finished row.

While a comparison runs, `rows.csv` is a journal: every finished row is appended, flushed and forced to disk. A line
torn by a kill is dropped on resume. At the end the file is replaced by the same rows, sorted by scenario and method.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import importlib
import io
import os
import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phygail import __version__
from phygail.config import InputError
from phygail.experiments.failures import Failures, measures
from phygail.experiments.grid import Cases
from phygail.files import parse_number, write_text
from phygail.methods.base import (
    METHODS,
    OLD_NAMES,
    OLD_VERSION,
    Method,
    checked_flag,
    explained,
    load_methods,
    make_method,
    named_faults,
    nonfinite_fault,
    takes_policy,
)
from phygail.methods.controller import fly_case, policy_option
from phygail.sensing.imperfect import Sensing
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import Episode, initial_state
from phygail.swarm.tree import bound_for

if TYPE_CHECKING:
    import polars as pl

Row = dict[str, Any]
Key = tuple[str, str]  # (scenario, method)

# Column -> type, in the order of the file (docs/formats.md). Empty cells: the seed of scenarios from files, and columns
# that a method which failed with an error did not reach.
COLUMNS: dict[str, type] = {
    "scenario": str,
    "method": str,
    "uavs": int,  # N before the damage
    "damaged": int,  # how many
    "alive": int,
    "subnets": int,  # right after the damage
    "converged": int,  # 1 reconnected, 0 not: the mean is the convergence rate
    "steps": int,  # executed moves; the whole budget for failures
    "time_s": float,
    "bound_steps": int,  # no method can need fewer
    "contact_events_per_uav": float,
    "contact_rate_raw": float,
    "contact_rate_capped": float,
    "distance_m_per_uav": float,
    "max_speed_mps": float,
    "first_action_ms": float,  # wall time of the first command
    "solve_s": float,  # wall time of all commands
    "seed": int,
    "safety": str,  # on or off
    "variant": str,  # policy file that a method flew with, otherwise empty
    "flag": str,  # fallback that fired, nonfinite, timeout, or error:<type>
    "version": str,
    "noise_m": float,  # standard deviation of every observed coordinate
    "delay_steps": int,  # age of everything known about neighbors
    "bias_m": float,  # standard deviation of the constant error of every stored coordinate
    "world": str,  # what the scenario has beyond the plain world, as --world reads it; empty for the plain one
    "split_steps": int,  # steps that began with a network that was not one; equals steps in the plain world
    "resplits": int,  # times that a network that was one split
    "connected_share": float,  # of the states, in which the network was one
    "largest_share": float,  # mean of the largest subnet over the alive: area under the resilience curve
    "first_step": int,  # at which the network was one for the first time; empty if never
    "alive_end": int,
}
CURVE = ("split_steps", "resplits", "connected_share", "largest_share", "first_step", "alive_end")
# Further columns of comparisons on failures of single UAVs (METHODS 9.9), where it matters who moved. Columns of a plan
# are empty for a method without one.
MEASURED: dict[str, type] = {
    "max_m": float,  # longest path of a UAV
    "moved": int,  # UAVs with a path longer than 0.01 m
    "messages": int,  # broadcasts that the rule needs
    "failure_pct": float,  # watched area lost with the failed UAVs, as a share of that before
    "lost_pct": float,  # watched area lost at the end, the failed included
    "longer_pct": float,  # pairs of alive UAVs with more hops than before the failure, or none
    "plan_connected": int,  # this and the following: for a plan flown to its end, not only until connected
    "plan_max_m": float,
    "plan_total_m": float,
    "plan_moved": int,
    "plan_lost_pct": float,
    "plan_longer_pct": float,
}
FURTHER: dict[str, Any] = {
    "noise_m": 0.0,
    "delay_steps": 0,
    "bias_m": 0.0,
    "world": "",
    **dict.fromkeys(CURVE),
}  # columns that older files lack, and what they mean there
TIMINGS = ("first_action_ms", "solve_s")  # the only columns that differ between two runs
ERROR = "error:"  # how the flag of a method that raised begins
LOST = f"{ERROR}WorkerLost"  # flag of an episode that took its workers down; flown again on resume


def key_of(row: Mapping[str, Any]) -> Key:
    """What a row is about."""
    return row["scenario"], row["method"]


def columns_of(*, measured: bool) -> dict[str, type]:
    """The columns of a file, with or without those of `MEASURED`."""
    return COLUMNS | MEASURED if measured else COLUMNS


def csv_text(rows: Iterable[Mapping[str, Any]], *, header: bool, measured: bool = False) -> str:
    """Rows as CSV lines; floats in the shortest form that reads back exactly."""
    columns = columns_of(measured=measured)
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    if header:
        writer.writerow(columns)
    writer.writerows([["" if row[c] is None else row[c] for c in columns] for row in rows])
    return lines.getvalue()


def read_rows(path: Path) -> list[Row]:
    """The whole rows of a journal or finished file; a torn last line is left out, other damage is an error."""
    try:
        data = path.read_bytes()
        # Cut before decoding: a kill can tear a line in the middle of a character.
        text = data[: data.rfind(b"\n") + 1].decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}; choose another folder") from None
    lines = text.split("\n")[:-1]  # an id is printable, so no cell holds a line break
    if not lines:
        return []
    header = lines[0].removesuffix("\r").split(",")
    measured = list(MEASURED) if header[-len(MEASURED) :] == list(MEASURED) else []  # all of them or none
    usual = len(header) - len(measured)
    columns = [*list(COLUMNS)[:usual], *measured]
    if header != columns or usual < len(COLUMNS) - len(FURTHER):
        raise InputError(f"{path} does not begin with the columns of a comparison: choose another folder")
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        try:
            rows.append(FURTHER | _parse(line, columns))
        except (ValueError, csv.Error):
            raise InputError(f"{path}, row {number} is damaged: delete this row and run again") from None
        _refuse_old_name(path, rows[-1])
    return rows


def _refuse_old_name(path: Path, row: Row) -> None:
    """Refuse names of version 0.1, which mean something else now, or nothing."""
    if row["method"] in OLD_NAMES and row["version"].startswith(OLD_VERSION):
        raise InputError(
            f"{path} holds rows of {row['method']} of version {row['version']}, which is {OLD_NAMES[row['method']]} "
            "now: rename them first (results/rename_methods.py)"
        )


def _parse(line: str, columns: list[str]) -> Row:
    """The row in one line; ValueError or csv.Error if it is not a row."""
    (record,) = csv.reader([line], strict=True)  # ValueError for an empty line
    kinds = COLUMNS | MEASURED
    cells = zip(columns, record, strict=True)
    return {name: _READERS[kinds[name]](cell) if cell or kinds[name] is str else None for name, cell in cells}


def _whole(cell: str) -> int:
    """A whole number as we write it: int() alone would take 1_0 and digits of other scripts."""
    if not _WHOLE.fullmatch(cell):
        raise ValueError(f"{cell!r} is not a whole number")
    return int(cell)


_WHOLE = re.compile(r"-?[0-9]{1,19}")
_READERS: dict[type, Callable[[str], Any]] = {str: str, int: _whole, float: parse_number}


def save_rows(path: Path, rows: Iterable[Mapping[str, Any]], *, measured: bool = False) -> None:
    """Replace the file by these rows, sorted by scenario and method, whole or not at all."""
    write_text(path, csv_text(sorted(rows, key=key_of), header=True, measured=measured))


class Journal:
    """Appends rows to a CSV file that begins with its header; returns only when they are on disk."""

    def __init__(self, path: Path, *, measured: bool = False) -> None:
        self._file = path.open("a", encoding="utf-8", newline="")
        self._measured = measured

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows durably."""
        try:
            self._file.write(csv_text(rows, header=False, measured=self._measured))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise InputError(f"cannot write {self._file.name}: {error.strerror}; make room and run again") from None

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):  # closing retries a row that did not fit; `append` has reported it
            self._file.close()


def rows_table(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """The rows as a polars table, sorted by scenario and method."""
    import polars as pl  # 0.3 s: only when a table is wanted

    kinds = {str: pl.String, int: pl.Int64, float: pl.Float64}
    ordered = sorted(rows, key=key_of)
    columns = columns_of(measured=bool(ordered) and all(name in ordered[0] for name in MEASURED))
    return pl.DataFrame(
        [{c: row[c] for c in columns} for row in ordered],
        schema={name: kinds[kind] for name, kind in columns.items()},
    )


# --- tasks -----------------------------------------------------------------------------------------------------------

TIMEOUT = "timeout"  # flag of an episode that took longer than it may
SPARED = "spared"  # flag of an episode in which an event would have left fewer than two
NONFINITE = "nonfinite"  # flag of an episode with commands that are not finite; the world took them as zero
_DECIMALS = 9  # of times: 137 steps of 0.1 s are 13.7 s, not 13.700000000000001 s
_CACHED = 8  # drawn scenarios a worker remembers: drawing one can cost more than flying it


@dataclass(frozen=True)
class Job:
    """What every worker of a comparison knows.

    Attributes:
        cases: The scenarios; workers draw those of a grid themselves.
        methods: Names.
        safety: Whether every command is filtered.
        timeout_s: Wall time per episode, if limited.
        policy: Policy file for the methods that take one.
        files: Python files that register methods. modules: Modules that do.
        sensing: How imperfectly every method sees.
    """

    cases: Cases
    methods: tuple[str, ...]
    safety: bool = False
    timeout_s: float | None = None
    policy: Path | None = None
    files: tuple[Path, ...] = ()
    modules: tuple[str, ...] = ()
    sensing: Sensing = field(default_factory=Sensing)

    @property
    def measured(self) -> bool:
        """Whether rows hold what failures of single UAVs are judged by."""
        return isinstance(self.cases, Failures)


@dataclass(frozen=True)
class Task:
    """One episode.

    Attributes:
        index: Number of the scenario.
        method: Name.
        flag: Flag of the row of an episode that was given up, because its worker hung or died; nothing is flown then.
    """

    index: int
    method: str
    flag: str = ""


@dataclass(frozen=True)
class Result:
    """A finished row, and what went wrong: all of it for the error log, and in one line."""

    task: Task
    row: Row
    details: str = ""
    cause: str = ""


@dataclass(frozen=True)
class Case:
    """A scenario with what all methods share."""

    scenario: Scenario
    subnets: int
    bound: int | None


def make_case(scenario: Scenario) -> Case:
    """Count the subnets and work out the bound."""
    subnets = initial_state(scenario).links.count
    return Case(scenario, subnets, bound_for(scenario))


def prepare(job: Job) -> None:
    """Import what the job needs and make each method once, so that a missing extra or a bad policy shows at once."""
    load_methods(job.files)
    for module in job.modules:
        importlib.import_module(module)
    for name in job.methods:
        with named_faults(METHODS.get(name)):
            make_method(name, **policy_option(name, job.policy))


def case_reader(job: Job) -> Callable[[int], Case]:
    """A function that makes cases by number and remembers the last few."""
    return functools.lru_cache(maxsize=_CACHED)(lambda index: make_case(job.cases.scenario(index)))


def fly_task(job: Job, task: Task, read_case: Callable[[int], Case]) -> Result:
    """The row of one episode. Whatever a method raises becomes a failed row, never a lost one."""
    case = read_case(task.index)
    facts = case_row(case, task.method, safety=job.safety, policy=job.policy, sensing=job.sensing)
    if job.measured:
        facts |= dict.fromkeys(MEASURED)
    if task.flag:
        given_up = f"given up: {task.flag}"
        return Result(task, facts | {"flag": task.flag}, given_up, given_up)
    try:
        episode, method = fly_case(
            case.scenario, task.method, safety=job.safety, policy=job.policy, timeout_s=job.timeout_s,
            sensing=job.sensing, record=job.measured,
        )  # fmt: skip
        cause = nonfinite_fault(method) if episode.nonfinite else ""
        row = facts | episode_row(episode, method) | (measures(episode, method) if job.measured else {})
        return Result(task, row, cause, cause)
    except BaseException as error:  # a method from outside may raise anything, also what would end this worker
        flag, cause = f"{ERROR}{type(error).__name__}", explained(error, METHODS.get(task.method))
        return Result(task, facts | {"flag": flag}, traceback.format_exc(), cause)


def case_row(case: Case, name: str, *, safety: bool, policy: Path | None, sensing: Sensing | None = None) -> Row:
    """The cells that are known before the flight; the outcome is that of an error until it is replaced."""
    scenario, sensing = case.scenario, sensing or Sensing()
    budget = scenario.budget_steps
    return {
        "scenario": scenario.id,
        "method": name,
        "uavs": scenario.uavs,
        "damaged": len(scenario.damaged),
        "alive": len(scenario.alive),
        "subnets": case.subnets,
        "converged": 0,
        "steps": budget,
        "time_s": time_of(budget, scenario),
        "bound_steps": case.bound,
        "contact_events_per_uav": None,
        "contact_rate_raw": None,
        "contact_rate_capped": None,
        "distance_m_per_uav": None,
        "max_speed_mps": None,
        "first_action_ms": None,
        "solve_s": None,
        "seed": scenario.seed,
        "safety": "on" if safety else "off",
        "variant": policy.stem if policy is not None and takes_policy(name) else "",
        "flag": "",
        "version": __version__,
        "noise_m": float(sensing.sigma_m),
        "delay_steps": sensing.delay_steps,
        "bias_m": float(sensing.bias_m),
        "world": "" if scenario.world.plain else scenario.world.label(),
        **dict.fromkeys(CURVE),
    }


def time_of(steps: int, scenario: Scenario) -> float:
    """The duration of these steps in seconds."""
    return round(steps * scenario.physics.step_s, _DECIMALS)


def episode_row(episode: Episode, method: Method) -> Row:
    """The cells that the flight decides."""
    metrics, scenario = episode.metrics, episode.scenario
    timed_out = not episode.terminated and episode.steps < scenario.budget_steps
    flags = [checked_flag(method), NONFINITE if episode.nonfinite else "", TIMEOUT if timed_out else "",
             SPARED if episode.spared else ""]  # fmt: skip
    return {
        "converged": int(episode.terminated),
        "steps": episode.scored_steps,
        "time_s": time_of(episode.scored_steps, scenario),
        "contact_events_per_uav": metrics.contact_events_per_uav,
        "contact_rate_raw": metrics.contact_rate_raw,
        "contact_rate_capped": metrics.contact_rate_capped,
        "distance_m_per_uav": metrics.distance_m_per_uav,
        "max_speed_mps": metrics.max_speed_mps,
        "first_action_ms": round(episode.first_action_s * 1e3, 4),
        "solve_s": round(episode.solve_s, 6),
        "flag": ";".join(filter(None, flags)),
        **{name: getattr(metrics, name) for name in CURVE},
    }
