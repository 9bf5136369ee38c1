"""Recorded runs for the page: folders that `phygail compare` wrote, rows to look at and cases to fly again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from phygail.config import InputError
from phygail.evaluation.grid import Grid
from phygail.evaluation.rows import read_rows
from phygail.swarm.scenario import scenario_to_json

ROWS = "rows.csv"
MOST_ROWS = 2_000  # of one run
MOST_RUNS = 200
SHOWN = (
    "scenario",
    "method",
    "uavs",
    "damaged",
    "subnets",
    "converged",
    "steps",
    "bound_steps",
    "contact_events_per_uav",
)
_FRESH_ID = re.compile(r"n(\d{2,5})-d(\d\.\d{3})-c(\d{3,6})-s(\d{1,18})")  # as `Grid` names what it draws


class Runs:
    """The runs below one folder, by name. A client names a run; it never names a path."""

    def __init__(self, folder: Path | None) -> None:
        if folder is not None and not folder.is_dir():
            raise InputError(f"no folder {folder}: name one that holds results of phygail compare")
        self._folder = folder

    def __bool__(self) -> bool:
        return self._folder is not None

    def _found(self) -> dict[str, Path]:
        if self._folder is None:
            return {}
        files = sorted(self._folder.glob(f"*/{ROWS}"))[:MOST_RUNS]
        if (self._folder / ROWS).is_file():
            files.insert(0, self._folder / ROWS)
        return {file.parent.name: file for file in files}

    def listing(self) -> list[str]:
        """The names of all runs."""
        return list(self._found())

    def find(self, name: str, scenario: str | None = None) -> dict[str, Any]:
        """The rows of a run, or the scenario of one of its rows as an entry of a scenario file."""
        file = self._found().get(name)
        if file is None:
            raise InputError(f"no run {name[:60]!r}: there are {', '.join(self.listing()) or 'none'}")
        if scenario is not None:
            return redraw(scenario)
        rows = read_rows(file)
        return {"rows": [{key: row.get(key) for key in SHOWN} for row in rows[:MOST_ROWS]], "all": len(rows)}


def redraw(name: str) -> dict[str, Any]:
    """The scenario that a grid has drawn under this id, drawn again: it depends on its own coordinates only."""
    match = _FRESH_ID.fullmatch(name)
    if match is None:
        raise InputError(f"the scenario {name[:60]!r} was not drawn from a grid: open its scenario file instead")
    uavs, damage, case, seed = int(match[1]), float(match[2]), int(match[3]), int(match[4])
    return scenario_to_json(Grid((uavs,), (damage,), case + 1, seed).scenario(case))
