"""The benchmark: frozen cases, one score, a leaderboard made from rows (docs/benchmark.md).

The cases are a scenario file of the package whose content is checked by its hash, so two people who name the same
benchmark flew the same cases. They were drawn once (tools/benchmark_cases.py) with a seed that drove no decision.
Methods fly without the safety filter: their contacts are their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from phygail import __version__
from phygail.config import InputError
from phygail.experiments.folder import content_digest, digest
from phygail.experiments.rows import Row, read_rows
from phygail.experiments.statistics import NORMAL_95
from phygail.files import read_json
from phygail.methods.base import METHODS, make_method, why_not
from phygail.methods.controller import plans_ahead
from phygail.render.tables import cell_text, markdown_table
from phygail.swarm.scenario import Scenario, load_scenarios

NAME = "benchmark 1"
FILE = "cases-1.json"
CONTENT = "sha256:309bc07bf3f4d7a46d5a4f1c5a53ebc52b30ab98607693db398c818c58a2ccc1"
PARTS = {
    "swarms": "20 to 500 UAVs, 5 % to 95 % lost at random",
    "strikes": "a disc of the map lost",
    "few-failures": "one critical UAV lost, or three around it",
    "radios": "ranges of 40 to 1,000 m, 3 to 20 m/s, steps of 0.05 to 0.5 s",
    "paper-layouts": "the paper's fixed layouts of 100 and 200 UAVs",
    "shapes": "rings around the center and a very slow vehicle, where rules failed once",
}
QUICK_UAVS = 50  # most UAVs of a case that --quick flies
AGAIN = "-c001-"  # in the id of the second case of a setting
REFERENCE = "sidr"  # other methods are compared with its flights of the same cases


def load_cases(*, quick: bool = False) -> list[Scenario]:
    """The cases, or the first small one of every setting; a changed file is refused."""
    path = Path(str(files("phygail.benchmark") / FILE))
    found = digest(path.read_bytes())
    if found != CONTENT:
        raise InputError(f"{path} is not {NAME}: its content is {found[:19]}..., not {CONTENT[:19]}...; reinstall")
    cases = load_scenarios(path)
    return [case for case in cases if case.uavs <= QUICK_UAVS and AGAIN not in case.id] if quick else cases


@dataclass(frozen=True)
class Score:
    """What one method did on some cases.

    Attributes:
        method: Name. cases: Their number. reconnected: Share of them.
        over_bound: Geometric mean over cases of steps over lower bound, failures with the whole budget; (low, high)
            in `over_bound_95` hold 95 % by the spread of its logarithm over cases.
        contacts: Times that a pair came closer than the contact distance, per UAV. meters: Flown per UAV.
        kilobytes: Told by radio per UAV (`sensing.radio`), at most: as if the network were one all the time; a method
            that plans ahead tells once.
    """

    method: str
    cases: int
    reconnected: float
    over_bound: float
    over_bound_95: tuple[float, float]
    contacts: float
    meters: float
    kilobytes: float | None


def score(rows: Sequence[Row]) -> Score:
    """The score of one method from its rows."""
    ratio = np.array([row["steps"] / max(1, row["bound_steps"]) for row in rows])
    middle, low, high = geometric_mean(ratio)
    told = told_bytes(rows)
    return Score(
        rows[0]["method"],
        len(rows),
        float(np.mean([row["converged"] for row in rows])),
        middle,
        (low, high),
        _mean(row["contact_events_per_uav"] for row in rows),
        _mean(row["distance_m_per_uav"] for row in rows),
        None if told is None else float(np.mean(told)) / 1000,
    )


def geometric_mean(values: np.ndarray) -> tuple[float, float, float]:
    """(mean, low, high) of positive (n,) values; the limits hold 95 % by the normal interval of the mean logarithm."""
    logs = np.log(values)
    error = NORMAL_95 * float(logs.std(ddof=1)) / math.sqrt(len(logs)) if len(logs) > 1 else math.nan
    middle = float(logs.mean())
    return math.exp(middle), math.exp(middle - error), math.exp(middle + error)


def against(rows: Sequence[Row], others: Sequence[Row]) -> tuple[float, float, float]:
    """(ratio, low, high): geometric mean over the cases that both flew of steps over the other's steps."""
    known = {row["scenario"]: row["steps"] for row in others}
    shared = [row["steps"] / known[row["scenario"]] for row in rows if row["scenario"] in known]
    return geometric_mean(np.array(shared)) if shared else (math.nan, math.nan, math.nan)


def told_bytes(rows: Sequence[Row]) -> list[float] | None:
    """Bytes that a UAV broadcasts in every flight; None if no radio of a split swarm can tell what the method knows."""
    name = rows[0]["method"]
    method = make_method(name) if name in METHODS and not why_not(name) else None
    if method is None or method.talk is None:
        return None
    once = plans_ahead(method)
    return [(1 if once else row["steps"]) * method.talk.bytes_per_step(row["alive"], row["uavs"]) for row in rows]


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else math.nan


# --- pages -----------------------------------------------------------------------------------------------------------


def by_method(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows of split swarms by method, best first: by share reconnected, then by time over bound."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["method"], []).append(row)
    order = {name: score(mine) for name, mine in groups.items()}
    return {
        name: groups[name] for name in sorted(groups, key=lambda n: (-order[n].reconnected, order[n].over_bound, n))
    }


def score_cells(rows: Iterable[Row]) -> tuple[list[str], list[list[str]]]:
    """(header, lines) of a leaderboard."""
    groups = by_method(rows)
    header = ["method", "scope", "cases", "reconnected", "x bound", "95 %", f"x {REFERENCE}", "95 %", "contacts",
              "meters", "kB"]  # fmt: skip
    return header, [_line(name, mine, groups.get(REFERENCE, [])) for name, mine in groups.items()]


def _line(name: str, rows: list[Row], reference: list[Row]) -> list[str]:
    done = score(rows)
    ratio, low, high = against(rows, reference) if name != REFERENCE else (1.0, math.nan, math.nan)
    scope = str(METHODS.get(name).scope) if name in METHODS else "?"
    return [
        f"`{name}`", scope, str(done.cases), cell_text(done.reconnected, ".1%"), cell_text(done.over_bound, ".2f"),
        _interval(*done.over_bound_95), cell_text(ratio, ".2f"), _interval(low, high),
        cell_text(done.contacts, ".3f"), cell_text(done.meters, ".0f"), cell_text(done.kilobytes, ",.0f"),
    ]  # fmt: skip


def _interval(low: float, high: float) -> str:
    return "" if math.isnan(low) else f"{low:.2f}-{high:.2f}"


def part_cells(rows: Iterable[Row]) -> tuple[list[str], list[list[str]]]:
    """(header, lines): time over bound by part, with the number of failures where there are any."""
    groups = by_method(rows)
    flown = {row["scenario"].split("/")[0] for mine in groups.values() for row in mine}
    parts = [name for name in PARTS if name in flown]
    return ["method", *parts], [[f"`{name}`", *(_part(mine, part) for part in parts)] for name, mine in groups.items()]


def _part(rows: list[Row], part: str) -> str:
    mine = [row for row in rows if row["scenario"].startswith(f"{part}/")]
    if not mine:
        return cell_text(None, "")
    failed = sum(not row["converged"] for row in mine)
    return f"{score(mine).over_bound:.2f}" + (f" ({failed} of {len(mine)} fail)" if failed else "")


def board(rows: Sequence[Row], *, quick: bool = False) -> str:
    """score.md, and the tables of docs/leaderboard.md."""
    part = f", small cases of at most {QUICK_UAVS} UAVs only: not for comparison" if quick else ""
    return "\n".join([
        f"{NAME[0].upper()}{NAME[1:]} ({CONTENT[:19]}), phygail {__version__}{part}.\n",
        markdown_table(*score_cells(rows)),
        "Time over bound by part:\n",
        markdown_table(*part_cells(rows)),
    ])  # fmt: skip


def read_entry(folder: Path) -> list[Row]:
    """The rows of a folder that `phygail benchmark` made of all cases; others are refused."""
    record: Any = read_json(folder / "run.json")
    if record["config"].get("content") != content_digest(load_cases()):
        raise InputError(f"{folder} did not fly {NAME}, all of it: fly phygail benchmark into it")
    if record["config"].get("safety") != "off":
        raise InputError(f"{folder} was flown with the safety filter: {NAME} is flown without")
    return read_rows(folder / "rows.csv")
