"""From rows on disk to figures per method: means in which every setting weighs the same, 95 % intervals (METHODS 2.6).

Scenarios that were already connected after the damage say nothing about a method and are left out everywhere.
An interval is (estimate, low, high); the limits of a single case are NaN.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from phygail import __version__
from phygail.config import InputError
from phygail.experiments.experiment import Experiment
from phygail.experiments.grid import DRAWN_ID
from phygail.experiments.rows import ERROR, TIMEOUT, read_rows, rows_table
from phygail.files import make_folder, read_json, read_text

NORMAL_95 = 1.959963984540054  # half width of a 95 % confidence interval in standard errors

Interval = tuple[float, float, float]

SETTINGS, LOG = "training.json", "log.jsonl"

NOTES = "experiment.json"  # what the rows do not say: settings that were skipped, methods that were left out
SETTING = ("uavs", "damage")  # a setting is one swarm size at one damage ratio

SEEDED = re.compile(r"^(?P<variant>.+)-s(?P<seed>\d+)$")


def split_cases(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows whose swarm was split, with two further columns: `damage` (nominal ratio) and `rank`."""
    split = rows.filter(pl.col("subnets") > 1)
    # Drawn scenarios carry their ratio in the id: 13 of 50 damaged is the cell 0.25, not 0.26.
    drawn = pl.col("scenario").str.extract(DRAWN_ID, 1).cast(pl.Float64)
    actual = (pl.col("damaged") / pl.col("uavs")).round(3)
    return split.with_columns(damage=pl.coalesce(drawn, actual), rank=case_rank())


def case_rank() -> pl.Expr:
    """Rank of a method within its case: the mean of its ranks by success, time and capped contact rate.

    Ties share the mean rank; failures tie last on success. A method that raised has no contact rate and is last.
    """
    contacts = pl.col("contact_rate_capped").fill_null(float("inf"))
    ranks = [value.rank("average").over("scenario") for value in (1 - pl.col("converged"), pl.col("time_s"), contacts)]
    return pl.mean_horizontal(ranks)


def summarize(rows: pl.DataFrame, by: str | None = None) -> pl.DataFrame:
    """Figures per method, pooled over all rows or within each value of `by` ("uavs", "damage").

    Columns: method, cases, convergence (rate), steps (mean), time_s (mean), time_std_s, time_ci95_s (half width of the
    normal interval, 1.96 s / sqrt(cases)), over_bound (sum of steps over sum of bounds, cases with a bound above 0),
    contact_events_per_uav, contact_rate_raw, contact_rate_capped, distance_m_per_uav (means), first_action_ms (median),
    solve_s (mean), rank (mean), errors (count).
    Failures enter with the whole budget. Best first: by convergence, then by pooled steps.
    """
    bounded = pl.col("bound_steps") > 0
    means = ("contact_events_per_uav", "contact_rate_raw", "contact_rate_capped", "distance_m_per_uav", "solve_s")
    groups = [by, "method"] if by else ["method"]
    figures = (
        split_cases(rows)
        .group_by(groups)
        .agg(
            pl.len().alias("cases"),
            pl.col("converged").mean().alias("convergence"),
            pl.col("steps").mean(),
            pl.col("time_s").mean(),
            pl.col("time_s").std().alias("time_std_s"),
            (NORMAL_95 * pl.col("time_s").std() / pl.len().sqrt()).alias("time_ci95_s"),
            (pl.col("steps").filter(bounded).sum() / pl.col("bound_steps").filter(bounded).sum()).alias("over_bound"),
            *(pl.col(name).mean() for name in means),
            pl.col("first_action_ms").median(),
            pl.col("rank").mean(),
            pl.col("flag").str.starts_with("error:").sum().cast(pl.Int64).alias("errors"),
        )
    )
    order = [*groups[:-1], "convergence", "steps", "method"]
    return figures.sort(order, descending=[False] * (len(groups) - 1) + [True, False, False])


def steps_by_damage(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean steps: a row per method (best first, then the bound), a column per damage ratio."""
    split = split_cases(rows)
    best_first = summarize(rows)["method"].to_list()
    bound = split.unique("scenario").select(
        "damage", method=pl.lit("bound"), steps=pl.col("bound_steps"), place=pl.lit(len(best_first))
    )
    place = pl.col("method").replace_strict(best_first, range(len(best_first)), return_dtype=pl.Int32)
    flown = split.select("damage", "method", "steps", place=place)
    means = pl.concat([flown, bound]).group_by("place", "method", "damage").agg(pl.col("steps").mean())
    wide = means.sort("damage").pivot("damage", index=["place", "method"], values="steps")
    return wide.sort("place").drop("place")


def mean_interval(values: np.ndarray) -> Interval:
    """Mean of (n,) values; nothing below zero, since times and counts are not."""
    estimate = float(values.mean())
    error = _half_width(values - estimate)
    return estimate, max(0.0, estimate - error) if error >= 0 else math.nan, estimate + error


def log_mean_interval(values: np.ndarray) -> Interval:
    """Mean of (n,) values with the 95 % interval of its logarithm (delta method): above zero, for log axes."""
    estimate, _, high = mean_interval(values)
    share = (high - estimate) / estimate if estimate else 0.0
    return estimate, estimate * math.exp(-share), estimate * math.exp(share)


def few_interval(values: np.ndarray) -> Interval:
    """Mean of (n,) values of which there are few, with Student's 95 % interval: 3 seeds give 4.30 standard errors."""
    estimate, n = float(values.mean()), len(values)
    error = float(special.stdtrit(n - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(n)
    return estimate, estimate - error, estimate + error


def share_interval(successes: np.ndarray) -> Interval:
    """Share of ones among (n,) zeros and ones, by Wilson: 50 successes of 50 leave room down to 0.93."""
    n, share = len(successes), float(successes.mean())
    if n < 2:
        return share, math.nan, math.nan
    shrink = 1 + NORMAL_95**2 / n
    middle = (share + NORMAL_95**2 / (2 * n)) / shrink
    error = NORMAL_95 / shrink * math.sqrt(share * (1 - share) / n + NORMAL_95**2 / (4 * n**2))
    return share, max(0.0, middle - error), min(1.0, middle + error)


def ratio_interval(steps: np.ndarray, bounds: np.ndarray) -> Interval:
    """Sum of (n,) steps over sum of (n,) bounds.

    To first order the error of the ratio is the mean of the residuals steps - ratio * bound over the mean bound.
    """
    ratio = float(steps.sum() / bounds.sum())
    error = _half_width(steps - ratio * bounds) / float(bounds.mean())
    return ratio, max(1.0, ratio - error) if error >= 0 else math.nan, ratio + error  # no method is below the bound


def paired_ratio(mine: np.ndarray, theirs: np.ndarray, settings: np.ndarray) -> Interval:
    """Sum of (n,) steps over sum of another method's (n,) steps on the same cases, not clipped at anything.

    To first order the error of the ratio is the sum of the residuals mine - ratio * theirs over the sum of theirs.
    Cases are drawn within settings ((n,) labels), so residuals vary about the mean of their setting, and differences
    between settings do not widen the interval. Where a setting has one case, there are no limits.
    """
    ratio = float(mine.sum() / theirs.sum())
    residuals = mine - ratio * theirs
    label = np.unique(settings, return_inverse=True)[1]
    count = np.bincount(label)
    if (count < 2).any():
        return ratio, math.nan, math.nan
    about = residuals - (np.bincount(label, residuals) / count)[label]
    error = NORMAL_95 * math.sqrt(float((about**2 * (count / (count - 1))[label]).sum())) / float(theirs.sum())
    return ratio, ratio - error, ratio + error


def compare_paired(rows: pl.DataFrame, method: str, other: str) -> tuple[Interval, int]:
    """`paired_ratio` of the steps of two methods over the cases that both flew, and their number; NaN without any."""
    chosen = split_cases(rows).filter(pl.col("method").is_in([method, other]))
    wide = chosen.pivot("method", index=["scenario", *SETTING], values="steps").sort("scenario")
    if not {method, other} <= set(wide.columns):
        return (math.nan, math.nan, math.nan), 0
    both = wide.drop_nulls()
    setting = both.select(pl.concat_str(SETTING, separator=" ")).to_series().to_numpy()
    pair = paired_ratio(both[method].to_numpy().astype(float), both[other].to_numpy().astype(float), setting)
    return pair, both.height


def _half_width(residuals: np.ndarray) -> float:
    """1.96 standard errors of a mean with these (n,) residuals; NaN for a single case."""
    n = len(residuals)
    return NORMAL_95 * math.sqrt(float((residuals**2).sum()) / (n - 1) / n) if n > 1 else math.nan


def copy_training(run: Path, folder: Path) -> None:
    """Copy settings and log of a run."""
    make_folder(folder)
    for source, target in (("config.json", SETTINGS), ("log.jsonl", LOG)):
        shutil.copyfile(run / source, folder / target)


def budget_text(folder: Path) -> str:
    """The budget of a training, without what makes the variant and its seed."""
    about: dict[str, Any] = read_json(folder / SETTINGS)
    config = about["config"]
    taught, hold = config.get("teach_rounds", 0), config.get("hold", 1)  # logs of older trainings lack them
    content = about["experts"].get("content_sha256")  # a pool of worlds has none
    what = "steps" if hold == 1 else f"decisions held {hold} steps"
    return (
        f"{config['epochs']} epochs of {config['worlds']} x {config['horizon']} {what}, "
        f"{config['ppo_epochs']} PPO passes, warm start of {config['clone_passes']} passes"
        + (f" and {taught} rounds of own flights with SIDR as teacher, " if taught else ", ")
        + (f"experts {content[:12]}" if content else f"a pool of {about['experts']['pool']:,} worlds")
    )


@dataclass(frozen=True)
class Evidence:
    """The material of a report.

    Attributes:
        experiment: As declared.
        rows: Columns of rows.csv of split swarms, `damage` and `leg`.
        runs: What run.json says of every run, in order.
        notes: Lines about what was skipped or left out.
        version: Of the package that flew.
        folder: Where it is.
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
            parts.append(rows_table(found).with_columns(leg=pl.lit(path.parent.name)))
            record = read_json(path.parent / "run.json")
            runs += record.get("runs", [])
            taken |= set(record.get("taken_from", []))
    runs += read_notes(folder)["runs"]
    if not parts and (experiment.legs or not runs):
        raise InputError(f"{folder} holds no flights of {experiment.name}: run phygail reproduce {experiment.name}")
    rows = pl.concat(parts) if parts else rows_table([]).with_columns(leg=pl.lit(""))
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
    """The note about flights that another experiment has flown."""
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
    """How often each method met the time limit, raised an error, or needed a fallback."""
    episodes = dict(rows.group_by("method").len().iter_rows())
    flags = rows.select("method", flag=pl.col("flag").str.split(";")).explode("flag").filter(pl.col("flag") != "")
    kinds = flags.with_columns(flag=pl.col("flag").str.replace(f"^{ERROR}.*", ERROR))
    for method, flag, count in kinds.group_by("method", "flag").len().sort("method", "flag").iter_rows():
        words = {
            TIMEOUT: "met the time limit and are entered as failures",
            ERROR: "ended with an error and are entered as failures",
        }
        yield f"{method}: {count} of {episodes[method]} episodes {words.get(flag, f'carry the flag {flag}')}"


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
    """Number of settings flown by any method."""
    return rows.select(SETTING).unique().height


def common_cases(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the scenarios that every method of the table flew."""
    methods = rows["method"].n_unique()
    return rows.filter(pl.col("method").n_unique().over("scenario") == methods)


def sensed_means(evidence: Evidence) -> pl.DataFrame:
    """(method, level, converged, time_s), means over settings.

    A level at which a method lacks one of its settings is left out, since its mean would be over other swarms.
    """
    column, _ = sensed_column(evidence)
    setting = pl.struct(SETTING)
    whole = setting.n_unique().over("method", column) == setting.n_unique().over("method")
    rows = weighed(evidence.rows.filter(whole), ("method", column))
    return rows.group_by("method", column).agg(weighed_mean("converged"), weighed_mean("time_s")).sort(column)


def sensed_column(evidence: Evidence) -> tuple[str, str]:
    """(column, unit) of what an experiment on sensing varies."""
    return ("delay_steps", "steps") if evidence.rows["delay_steps"].n_unique() > 1 else ("noise_m", "m")


def with_variants(evidence: Evidence) -> pl.DataFrame:
    """The rows with `name` and `training_seed` of the variant that flew, from the name of its policy."""
    parts = pl.col("variant").str.extract_groups(SEEDED.pattern)
    return evidence.rows.with_columns(
        name=parts.struct.field("variant"), training_seed=parts.struct.field("seed").cast(pl.Int64)
    )


def validations(folder: Path) -> list[dict[str, float]]:
    """Epoch, CPU minutes (NaN in older logs), success and time over bound of every validation in a log."""
    return [
        {"epoch": entry["epoch"], "cpu_minutes": entry.get("cpu_minutes", math.nan), **entry["validation"]}
        for entry in log_entries(folder)
        if entry.get("validation")
    ]


def log_entries(folder: Path) -> list[dict[str, Any]]:
    """Every line of a training's log."""
    return [json.loads(line) for line in read_text(folder / LOG).splitlines() if line.strip()]


def trainings_of(folder: Path) -> Iterable[tuple[str, Path]]:
    """(name, folder) of every training whose log is below a folder."""
    return [(path.parent.name, path.parent) for path in sorted(folder.glob(f"*/{LOG}"))]


# --- worlds ----------------------------------------------------------------------------------------------------------


def common_by_world(rows: pl.DataFrame, fewest: int = 5) -> pl.DataFrame:
    """Of every world the cases that all methods with at least `fewest` cases there have flown."""
    rows = rows.filter(pl.len().over("world", "method") >= fewest)
    count = pl.col("method").n_unique()
    return rows.filter(count.over("world", "scenario") == count.over("world"))


def world_means(rows: pl.DataFrame) -> pl.DataFrame:
    """Per world and method, in the order of the legs: means over the cases, failures with their whole budget.

    `factor` is the ratio of split steps to those of the plain world, on the cases that both have, from `factor_low` to
    `factor_high` with 95 % (`paired_ratio`).
    """
    # Rows of the plain world from before these columns: its flights end with the first whole network.
    complete = rows.with_columns(
        pl.coalesce("split_steps", "steps").alias("split_steps"),
        pl.coalesce("resplits", pl.lit(0)).alias("resplits"),
        pl.when(pl.col("converged") == 1).then(pl.coalesce("first_step", "steps")).alias("first_step"),
    )
    split = pl.when(pl.col("converged") == 1).then(pl.col("split_steps")).otherwise(pl.col("steps")).alias("split")
    known = complete.with_columns(split)
    plain = known.filter(pl.col("world") == "").select("scenario", "method", pl.col("split").alias("plain_split"))
    joined = known.join(plain, on=["scenario", "method"], how="left", maintain_order="left")
    groups = joined.group_by("world", "method", maintain_order=True)
    means = groups.agg(
        pl.len().alias("cases"),
        *(pl.col(c).mean() for c in ("converged", "split", "first_step", "resplits", "largest_share",
                                     "contact_events_per_uav")),
    )  # fmt: skip
    factors = [_to_plain(part.drop_nulls("plain_split")) for _, part in groups]
    return means.with_columns(
        pl.Series(name, values, dtype=pl.Float64)
        for name, values in zip(("factor", "factor_low", "factor_high"), zip(*factors, strict=True), strict=True)
    )


def _to_plain(both: pl.DataFrame) -> Interval:
    """Split steps of a world over those of the plain one, on cases flown in both; NaN without any."""
    if both.is_empty():
        return math.nan, math.nan, math.nan
    setting = both.select(pl.concat_str("uavs", "damaged", separator=" ")).to_series().to_numpy()
    return paired_ratio(both["split"].to_numpy().astype(float), both["plain_split"].to_numpy().astype(float), setting)
