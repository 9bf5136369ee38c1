"""Numbers that documents quote, each worked out from rows on disk: `<!--NAME:ARGUMENTS-->TEXT<!--/-->`.

`results/update_readme.py` writes TEXT, a test compares. Sizes are "100", "100+200" or "all"; a draw is 1 or 2, the
scenarios of the headline drawn with seed 0 or seed 2.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl

from phygail.benchmark import against, load_cases
from phygail.experiments.catalog import EXPERIMENTS
from phygail.experiments.paper_tables import mean_ranks
from phygail.experiments.propositions import RADIO, read_measures
from phygail.experiments.rows import read_rows, rows_table
from phygail.experiments.statistics import (
    Evidence,
    Interval,
    common_cases,
    compare_paired,
    load_evidence,
    sensed_column,
    split_cases,
    summarize,
    validations,
    weighed,
    weighed_mean,
)
from phygail.files import read_json
from phygail.methods.phygail.config import PROFILES
from phygail.render.tables import interval_text

RESULTS = Path(__file__).parent
DRAWS = {
    "1": ("heuristics-safety", "policies", "policy-paper", "policy-plus"),
    "2": ("seed-2-rules", "seed-2-convex", "seed-2-convex-500", "seed-2-taught", "seed-2-plus"),
}
SEEDED = "-seed-"  # between the name of an experiment and the seed of another draw
FACTS: dict[str, Callable[..., str]] = {}


def fact(function: Callable[..., str]) -> Callable[..., str]:
    """Make a function known by its name."""
    FACTS[function.__name__] = function
    return function


def experiment_of(folder: str) -> str:
    """The experiment that made a folder of results: noise for noise-seed-2."""
    return folder.split(SEEDED)[0]


@functools.cache
def draw(number: str) -> pl.DataFrame:
    """The rows of the headline, one draw."""
    found = [RESULTS / name / "rows.csv" for name in DRAWS[number]]
    return rows_table([row for path in found if path.exists() for row in read_rows(path)])


@functools.cache
def evidence(folder: str) -> Evidence:
    """What an experiment flew."""
    return load_evidence(EXPERIMENTS.get(experiment_of(folder)), RESULTS / folder)


def _of_size(rows: pl.DataFrame, sizes: str) -> pl.DataFrame:
    return rows if sizes == "all" else rows.filter(pl.col("uavs").is_in([int(n) for n in sizes.split("+")]))


@fact
def paired(number: str, method: str, other: str, sizes: str = "all") -> str:
    """Steps of a method over another's on the same cases of a draw, with the paired 95 % interval."""
    return interval_text(*compare_paired(_of_size(draw(number), sizes), method, other)[0])


@fact
def in_experiment(folder: str, method: str, other: str, sizes: str = "all") -> str:
    """The same on the cases of an experiment that both methods flew."""
    return interval_text(*compare_paired(_of_size(evidence(folder).rows, sizes), method, other)[0])


@functools.cache
def _folder(name: str) -> pl.DataFrame:
    """The rows of a folder that `phygail compare` made."""
    return rows_table(read_rows(RESULTS / name / "rows.csv"))


@fact
def in_folder(folder: str, method: str, other: str, sizes: str = "all") -> str:
    """`paired` on the cases of a folder of `phygail compare`."""
    return interval_text(*compare_paired(_of_size(_folder(folder), sizes), method, other)[0])


@fact
def across(folder: str, other: str, method: str, theirs: str = "", sizes: str = "all") -> str:
    """Steps of a method in one folder over its (or another method's) in another, paired on the cases of both."""
    wanted = ((folder, method), (other, theirs or method))
    parts = [_of_size(_folder(name), sizes).filter(pl.col("method") == who) for name, who in wanted]
    named = [
        rows.select(
            "scenario", "uavs", "damaged", "subnets", "converged", "time_s", "contact_rate_capped", "steps"
        ).with_columns(method=pl.lit(name))
        for rows, name in zip(parts, ("mine", "theirs"), strict=True)
    ]
    return interval_text(*compare_paired(pl.concat(named), "mine", "theirs")[0])


@fact
def folder_mean(folder: str, method: str, column: str, sizes: str = "all", form: str = ".2f") -> str:
    """Mean of a column of the summary of a folder of `phygail compare`; "cases" is their number."""
    summary = summarize(_of_size(_folder(folder), sizes)).filter(pl.col("method") == method)
    return format(summary[column][0], "d" if column == "cases" else form)


@fact
def on_cases_of(folder: str, method: str, cases_of: str, sizes: str) -> str:
    """Mean steps of a method of one folder on the cases of another."""
    rows = _of_size(_folder(folder), sizes).filter(pl.col("method") == method)
    flown = rows.join(_folder(cases_of).select("scenario").unique(), on="scenario")
    return f"{flown['steps'].mean():.0f}"


@fact
def mean(number: str, method: str, column: str, sizes: str = "all", form: str = ".0f") -> str:
    """Mean of a column of the summary of a draw."""
    summary = summarize(_of_size(draw(number), sizes)).filter(pl.col("method") == method)
    return format(summary[column][0], form)


@fact
def flagged(number: str, method: str, flag: str = "late-phase") -> str:
    """How many flights of a draw carry a flag."""
    mine = draw(number).filter(pl.col("method") == method)
    return f"{mine.filter(pl.col('flag').str.contains(flag, literal=True)).height:,}"


WORLDS = ("waves", "fading", "obstacles", "no-center", "dynamics", "altitude")  # experiments of their own


@functools.cache
def _all_flights() -> pl.DataFrame:
    """Every flight under results/ by what makes it one: case, method, settings; trained variants are left out."""
    columns = ["scenario", "method", "safety", "noise_m", "delay_steps", "bias_m", "converged", "subnets", "uavs",
               "variant", "world"]  # fmt: skip
    parts = [
        rows_table(read_rows(path)).select(columns)
        for path in sorted(RESULTS.rglob("rows.csv"))
        if not any(name in path.parts for name in ("ablation", "sensitivity", "case-study", "inertia", *WORLDS))
    ]
    plain = (pl.col("subnets") > 1) & (pl.col("variant") == "") & (pl.col("world") == "")
    flown = pl.concat(parts).filter(plain)
    return flown.unique([name for name in columns if name != "converged"])


@fact
def flights(method: str) -> str:
    """Distinct flights of a method under results/."""
    return f"{_all_flights().filter(pl.col('method') == method).height:,}"


@fact
def flown(method: str, what: str) -> str:
    """The range of them: "uavs" from the fewest to the most, or the most of "noise_m" or "delay_s" (steps of 0.1 s)."""
    mine = _all_flights().filter(pl.col("method") == method)
    if what == "uavs":
        return f"{mine['uavs'].min():,} to {mine['uavs'].max():,}"
    most = mine["delay_steps"].max() / 10 if what == "delay_s" else mine[what].max()
    return f"{most:g}"


@fact
def failures(method: str) -> str:
    """Those of them that did not reconnect."""
    mine = _all_flights().filter(pl.col("method") == method)
    return f"{mine.height - int(mine['converged'].sum()):,}"


@fact
def rank(method: str, folder: str = "overall") -> str:
    """Rank among the paper's eight methods, by the paper's rule, over the cases that all methods flew."""
    return f"{_eight(folder)[method]:.2f}"


@fact
def printed(method: str, column: str, form: str = ".2f", folder: str = "overall") -> str:
    """What the paper prints of a method."""
    return format(EXPERIMENTS.get(folder).published[method][column], form)


@fact
def place(method: str, folder: str = "overall") -> str:
    """Its place among the eight."""
    ranks = _eight(folder)
    return str(sorted(ranks, key=lambda name: ranks[name]).index(method) + 1)


@functools.cache
def _eight(folder: str) -> dict[str, float]:
    shown = evidence(folder)
    rows = common_cases(shown.rows.filter(pl.col("uavs").is_in([100, 200, 500])))
    return mean_ranks(rows.filter(pl.col("method").is_in(list(shown.experiment.published))))


@fact
def seconds(folder: str, method: str, level: str = "0", sizes: str = "all", form: str = ".1f") -> str:
    """Mean recovery time of an experiment, settings weighed alike, at a level of noise (m) or delay (steps)."""
    return format(_seconds(folder, method, float(level), sizes), form)


@fact
def loss(folder: str, method: str, level: str, sizes: str = "all") -> str:
    """How many more steps the same cases take at a level of noise or delay than without: "+4 % (+1 to +6)"."""
    shown = evidence(folder)
    pair = sensed_ratio(replace(shown, rows=_of_size(shown.rows, sizes)), method, float(level))
    ratio, low, high = (f"{round(100 * (value - 1)):+d}" if math.isfinite(value) else "" for value in pair)
    return f"{ratio} % ({low} to {high})" if low else f"{ratio} %"


def sensed_ratio(shown: Evidence, method: str, level: float) -> Interval:
    """Steps of a method at a level of noise or delay over its steps without, on the same cases, with its interval."""
    column = sensed_column(shown)[0]
    mine = shown.rows.filter((pl.col("method") == method) & ((pl.col(column) == 0) | (pl.col(column) == level)))
    told = pl.when(pl.col(column) == level).then(pl.lit("with")).otherwise(pl.lit("without"))
    return compare_paired(mine.with_columns(method=told), "with", "without")[0]


@fact
def filtered(method: str) -> str:
    """Steps of a method with the safety filter over those without, on the same cases, with the paired interval."""
    mine = evidence("safety").rows.filter(pl.col("method") == method)
    return interval_text(*compare_paired(mine.with_columns(method=pl.col("safety")), "on", "off")[0])


def _seconds(folder: str, method: str, level: float, sizes: str) -> float:
    shown = evidence(folder)
    rows = _of_size(shown.rows.filter(pl.col("method") == method), sizes)
    if folder.startswith(("noise", "delay")):
        rows = rows.filter(pl.col(sensed_column(shown)[0]) == level)
    else:
        rows = rows.filter(pl.col("uavs").is_in([100, 200, 500])) if sizes == "all" else rows
    return float(weighed(rows).select(weighed_mean("time_s")).item())


@fact
def failed(folder: str, method: str) -> str:
    """How many of the flights of an experiment did not reconnect: "21 of 3,370"."""
    mine = evidence(folder).rows.filter(pl.col("method") == method)
    return f"{mine.height - int(mine['converged'].sum()):,} of {mine.height:,}"


@fact
def over(folder: str, method: str, sizes: str) -> str:
    """Sum of steps over sum of bounds of an experiment."""
    rows = _of_size(evidence(folder).rows.filter(pl.col("method") == method), sizes)
    mine = weighed(rows.filter(pl.col("bound_steps") > 0))
    return f"{(mine['steps'] * mine['weight']).sum() / (mine['bound_steps'] * mine['weight']).sum():.2f}"


@fact
def radio(method: str, uavs: str, quantity: str = "bytes", column: str = "bound") -> str:
    """Bytes, kB or rounds per UAV and second by radio; "bound" is when the network is one again."""
    if quantity == "kB":
        return f"{float(radio(method, uavs, 'bytes', column).replace(',', '')) / 1000:.1f}"
    rows = read_measures(RESULTS / "propositions" / RADIO)
    mine = [row[column] for row in rows if row["uavs"] == int(uavs) and row["quantity"] == f"{quantity} {method}"]
    return f"{sum(mine) / len(mine):,.0f}"


@fact
def cases(what: str, part: str = "") -> str:
    """Number of cases of the benchmark (or of a part of it), or distinct ones of a draw (or of a method of it)."""
    if what == "benchmark":
        return f"{sum(case.id.startswith(part) for case in load_cases()):,}"
    rows = split_cases(draw(what)).filter(pl.col("method") == part if part else pl.lit(True))
    return f"{rows['scenario'].n_unique():,}"


@fact
def per_setting(folder: str, sizes: str = "all", method: str = "reach-evolved") -> str:
    """Cases of every setting of an experiment, or of a draw (its number), that a method flew: "10", or "5 to 10"."""
    rows = draw(folder).with_columns(leg=pl.lit("")) if folder in DRAWS else evidence(folder).rows
    mine = _of_size(rows.filter(pl.col("method") == method), sizes)
    counts = mine.group_by("leg", "uavs", "damaged").len()["len"]
    return f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"


@fact
def single(method: str, column: str, failures_: str = "1", form: str = ".1f") -> str:
    """Mean of a column of the experiment single-failure with so many failures."""
    rows = evidence("single-failure").rows.filter((pl.col("method") == method) & (pl.col("damaged") == int(failures_)))
    flown = rows.with_columns(total_m=pl.col("distance_m_per_uav") * pl.col("alive"))
    return format(flown[column].mean(), form)


@fact
def single_cases(failures_: str) -> str:
    """Cases of a swarm size, kind and number of failures of the experiment single-failure: "200", or "30 to 100"."""
    rows = evidence("single-failure").rows.filter(pl.col("damaged") == int(failures_))
    counts = rows.group_by("leg", "uavs").agg(pl.col("scenario").n_unique())["scenario"]
    return f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"


@fact
def single_ratio(method: str, other: str, failures_: str = "1", leg: str = "") -> str:
    """Steps over another method's in the experiment single-failure or a leg of it, with the paired 95 % interval."""
    rows = evidence("single-failure").rows.filter(pl.col("damaged") == int(failures_))
    rows = rows.filter(pl.col("leg") == leg) if leg else rows
    return interval_text(*compare_paired(rows, method, other)[0])


@fact
def weights(method: str, key: str) -> str:
    """An entry of a policy's JSON, by its path with dots."""
    value = read_json(RESULTS.parent / "src" / "phygail" / "weights" / f"{method}.json")
    for part in key.split("."):
        value = value[part]
    return value if isinstance(value, str) else json.dumps(value)


@fact
def weight_count(method: str, without: str = "-") -> str:
    """Numbers in the weights of a policy, without the tensors whose names begin so, from the header of their file."""
    content = (RESULTS.parent / "src" / "phygail" / "weights" / f"{method}.safetensors").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    kept = [about["shape"] for name, about in header.items() if name != "__metadata__" and not name.startswith(without)]
    return f"{sum(math.prod(shape) for shape in kept):,}"


@fact
def generations(name: str) -> str:
    """How many generations the log of a training under results/trained holds."""
    return str(len((RESULTS / "trained" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()))


@fact
def light_mb(_: str) -> str:
    """What the light install may weigh: CI fails above."""
    return re.search(r"^LIGHT_MB := (\d+)", (RESULTS.parent / "Makefile").read_text(encoding="utf-8"), re.M)[1]


@fact
def selection(what: str) -> str:
    """Of the choice among evolved policies (results/trained/selection.csv): "cases", or "policies"."""
    rows = pl.read_csv(RESULTS / "trained" / "selection.csv")
    return str(rows.select(["policy"] if what == "policies" else ["uavs", "damage", "case"]).unique().height)


@functools.cache
def _inertia() -> pl.DataFrame:
    return pl.read_csv(RESULTS / "inertia" / "vehicles.csv", schema_overrides={"acceleration_mps2": pl.Float64})


@fact
def inertia(column: str, method: str, acceleration: str) -> str:
    """Closest approach (m), torn subnets or number of the flights with inertia (benchmarks/inertia.py)."""
    rows = _inertia().filter((pl.col("method") == method) & (pl.col("acceleration_mps2") == float(acceleration)))
    if column == "cases":
        return str(rows["scenario"].n_unique())
    return f"{rows['closest_m'].min():.2f}" if column == "closest_m" else str(rows["tears"].sum())


@fact
def case_study(column: str) -> str:
    """Of the case flown along the training, epoch by epoch: "epoch", "steps" or "bound_steps"."""
    found = sorted((RESULTS / "case-study").glob("epoch-*/rows.csv"))
    rows = [read_rows(path)[0] | {"epoch": int(path.parent.name.split("-")[1])} for path in found]
    values = list(dict.fromkeys(row[column] for row in rows)) if column == "bound_steps" else [r[column] for r in rows]
    return " and ".join(filter(None, (", ".join(map(str, values[:-1])), str(values[-1]))))


@fact
def wins(number: str, method: str, other: str) -> str:
    """In how many settings of a draw a method needs fewer steps than another: "18 of 30"."""
    rows = split_cases(draw(number)).filter(pl.col("method").is_in([method, other]))
    sums = rows.group_by("uavs", "damage", "method").agg(pl.col("steps").sum()).pivot("method", values="steps")
    whole = sums.drop_nulls()
    return f"{whole.filter(pl.col(method) < pl.col(other)).height} of {whole.height}"


@fact
def at_damage(number: str, method: str, other: str, low: str, high: str) -> str:
    """`paired` over the settings of a draw with damage from low to high."""
    rows = split_cases(draw(number)).filter(pl.col("damage").is_between(float(low), float(high)))
    return interval_text(*compare_paired(rows.drop("damage", "rank"), method, other)[0])


@fact
def slower(number: str, method: str, other: str, factor: str) -> str:
    """On how many cases of a draw a method needs more than so many times the steps of another: "26 of 600"."""
    steps = split_cases(draw(number)).pivot("method", index="scenario", values="steps").drop_nulls([method, other])
    return f"{steps.filter(pl.col(method) > float(factor) * pl.col(other)).height} of {steps.height}"


@fact
def setting(method: str, key: str) -> str:
    """A number of a policy's JSON as documents write it: "1,000"; several: "20, 50 and 100"."""
    value = json.loads(weights(method, key))
    *some, last = [f"{part:,}" for part in (value if isinstance(value, list) else [value])]
    return f"{', '.join(some)} and {last}" if some else last


@fact
def world_steps(method: str, form: str = "million") -> str:
    """Steps that the worlds of a PhyGAIL training flew at most, in all its stages: in millions, or of the paper's."""
    card = read_json(RESULTS.parent / "src" / "phygail" / "weights" / f"{method}.json")
    config, epochs = card["training"], 0
    while card:
        epochs, card = epochs + card["epoch"], card.get("first")
    steps = epochs * config["worlds"] * config["horizon"] * config.get("hold", 1)
    paper = PROFILES.get("paper")
    of_paper = paper.epochs * paper.worlds * paper.horizon * paper.hold
    return {"epochs": f"{epochs}", "million": f"{steps / 1e6:.1f}", "share": f"{100 * steps / of_paper:.1f} %"}[form]


@fact
def cpu_minutes(method: str) -> str:
    """What the training of the policy in the package took of one core, by its log."""
    seed = int(weights(method, "training.seed"))
    if method == "phygail-plus":
        log = pl.read_csv(RESULTS / "phygail-plus" / "learning.csv").filter(pl.col("seed") == seed)
        return f"{log['cpu_minutes'].max():.0f}"
    runs = sorted((RESULTS / "training").glob("full-s*"))
    mine = next(run for run in runs if read_json(run / "training.json")["config"]["seed"] == seed)
    return f"{validations(mine)[-1]['cpu_minutes']:.0f}"


@fact
def on_board(method: str, other: str) -> str:
    """Steps of a method over another's on the leaderboard: geometric mean over the cases of both, 95 %."""
    mine, theirs = (read_rows(RESULTS / "benchmark" / name / "rows.csv") for name in (method, other))
    return interval_text(*against(mine, theirs))


@fact
def yardstick(method: str, uavs: str) -> str:
    """How many swarms of the yardstick of phygail-plus (benchmarks/zero_shot.py) were reconnected: "0 of 50"."""
    rows = pl.read_csv(RESULTS / "phygail-plus" / "yardstick.csv")
    mine = rows.filter((pl.col("method") == method) & (pl.col("uavs") == int(uavs)))
    return f"{mine['success'].sum()} of {mine.height}"
