"""The rows of an experiment as they stand on disk, and means in which every setting weighs the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from phygail import __version__
from phygail.config import InputError
from phygail.evaluation.experiment import Experiment
from phygail.evaluation.flight import TIMEOUT
from phygail.evaluation.rows import ERROR, frame, read_rows
from phygail.evaluation.summary import split_cases
from phygail.files import read_json

NOTES = "experiment.json"  # what the rows do not say: settings that were skipped, methods that were left out
SETTING = ("uavs", "damage")  # a setting is one swarm size at one damage ratio


@dataclass(frozen=True)
class Evidence:
    """All that a report is made from.

    Attributes:
        experiment: As declared.
        rows: Columns of rows.csv of split swarms, `damage` and `leg`.
        runs: What run.json says of every run, in order.
        notes: Lines about what was skipped or left out.
        version: Of the package that flew.
        folder: Where it stands.
    """

    experiment: Experiment
    rows: pl.DataFrame
    runs: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
    version: str
    folder: Path

    @property
    def sizes(self) -> list[int]:
        """Swarm sizes that were flown."""
        return sorted(self.rows["uavs"].unique())

    @property
    def methods(self) -> list[str]:
        """Methods that flew: as declared, others after them by name."""
        flown = set(self.rows["method"].unique())
        declared = [name for name in self.experiment.methods if name in flown]
        return declared + sorted(flown - set(declared))


def load_evidence(experiment: Experiment, folder: Path) -> Evidence:
    """Read every leg below `folder`; rows of two versions are refused, never pooled."""
    parts, runs, taken = [], [], set()
    for path in sorted(folder.glob("*/rows.csv")):
        found = read_rows(path)
        if found:
            parts.append(frame(found).with_columns(leg=pl.lit(path.parent.name)))
            record = read_json(path.parent / "run.json")
            runs += record.get("runs", [])
            taken |= set(record.get("taken_from", []))
    runs += read_notes(folder)["runs"]
    if not parts and (experiment.legs or not runs):
        raise InputError(f"{folder} holds no flights of {experiment.name}: run phygail reproduce {experiment.name}")
    rows = pl.concat(parts) if parts else frame([]).with_columns(leg=pl.lit(""))
    versions = sorted(rows["version"].unique())
    if len(versions) > 1:
        raise InputError(
            f"{folder} mixes rows of phygail {' and '.join(versions)}: fly them again in another folder"
        )  # fmt: skip
    split = split_cases(rows).drop("rank")  # ranks across legs would mix conditions
    version = versions[0] if versions else __version__
    notes = [*_taken_note(taken), *_notes(folder, split)]
    return Evidence(experiment, split, tuple(runs), tuple(notes), version, folder)


def read_notes(folder: Path) -> dict[str, Any]:
    """The content of experiment.json; empty without one."""
    path = folder / NOTES
    known = read_json(path) if path.exists() else {}
    return {"settings": {}, "left_out": {}, "runs": [], **known}


def _taken_note(folders: Iterable[str]) -> Iterable[str]:
    """What must be said if another experiment had flown some of the flights."""
    if names := sorted({folder.split("/")[0] for folder in folders}):
        known = ", ".join(f"`{name}`" for name in names)
        yield f"Flights that {known} had flown with the same cases and settings are taken from there, timings included"


def _notes(folder: Path, rows: pl.DataFrame) -> Iterable[str]:
    known = read_notes(folder)
    yield from dict.fromkeys(line for lines in known["settings"].values() for line in lines)  # legs share settings
    flown = set(rows["method"].unique())
    for method, why in known["left_out"].items():
        if method not in flown:
            yield f"{method} was left out: {why}"
    yield from _flag_notes(rows)


def _flag_notes(rows: pl.DataFrame) -> Iterable[str]:
    """Who met the time limit, raised, or needed a fallback, and how often."""
    episodes = dict(rows.group_by("method").len().iter_rows())
    flags = rows.select("method", flag=pl.col("flag").str.split(";")).explode("flag").filter(pl.col("flag") != "")
    kinds = flags.with_columns(flag=pl.col("flag").str.replace(f"^{ERROR}.*", ERROR))
    for method, flag, count in kinds.group_by("method", "flag").len().sort("method", "flag").iter_rows():
        fate = {
            TIMEOUT: "met the time limit and are entered as failures",
            ERROR: "ended with an error and are entered as failures",
        }
        yield f"{method}: {count} of {episodes[method]} episodes {fate.get(flag, f'carry the flag {flag}')}"


# --- means in which every setting weighs the same --------------------------------------------------------------------


def weighed(rows: pl.DataFrame, by: Iterable[str] = ("method",)) -> pl.DataFrame:
    """The rows with a column `weight`: 1 over the number of cases of the row's setting within its group."""
    return rows.with_columns(weight=1.0 / pl.len().over([*by, *SETTING]))


def weighed_mean(column: str) -> pl.Expr:
    """Mean of a column of weighed rows; empty cells are left out."""
    value, weight = pl.col(column), pl.col("weight").filter(pl.col(column).is_not_null())
    return (value * pl.col("weight")).sum() / weight.sum()


def weighed_std(column: str) -> pl.Expr:
    """Standard deviation over cases of a column of weighed rows."""
    spread = (pl.col(column) - weighed_mean(column)) ** 2
    return ((spread * pl.col("weight")).sum() / pl.col("weight").filter(pl.col(column).is_not_null()).sum()).sqrt()


def over_bound() -> pl.Expr:
    """Sum of steps over sum of bounds of weighed rows, cases with a bound above 0."""
    bounded = pl.col("bound_steps") > 0
    total = [(pl.col(name) * pl.col("weight")).filter(bounded).sum() for name in ("steps", "bound_steps")]
    return total[0] / total[1]


def cases_text(rows: pl.DataFrame, settings: int) -> str:
    """How many cases per setting one method flew: "10", "5-10", and how many settings if not all."""
    counts = rows.group_by(SETTING).len()["len"]
    low, high = int(counts.min()), int(counts.max())  # type: ignore[arg-type]  # counts are whole numbers
    span = f"{high}" if low == high else f"{low}-{high}"
    return span if len(counts) == settings else f"{span} ({len(counts)} of {settings} settings)"


def setting_count(rows: pl.DataFrame) -> int:
    """Number of settings that anybody flew."""
    return rows.select(SETTING).unique().height


def common_cases(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the scenarios that every method of the frame flew."""
    methods = rows["method"].n_unique()
    return rows.filter(pl.col("method").n_unique().over("scenario") == methods)
