"""Tables of docs/worlds.md, and numbers of other pages, from rows and records: what worlds cost whom, whom they break,
soaks, contacts with inertia.
"""

from __future__ import annotations

import csv
import functools
import json

import numpy as np
import polars as pl
from facts import RESULTS, fact

from phygail.experiments.experiment import FULL_SIZE
from phygail.experiments.rows import read_rows, rows_table
from phygail.experiments.statistics import paired_ratio, world_means
from phygail.render.tables import cell_text, interval_text, markdown_table

METHODS = (  # beside reach-evolved, in the order of the columns
    "phygail-plus", "reach", "sidr", "phygail", "phygail-taught", "center-fly", "convex",
)  # fmt: skip
EXPERIMENTS = ("waves", "fading", "obstacles", "no-center", "dynamics", "altitude")


@functools.cache
def world_rows() -> pl.DataFrame:
    """The rows of the six experiments, each flight once; without swarms that a world's links leave whole at t = 0."""
    paths = [path for name in EXPERIMENTS for path in sorted((RESULTS / name).glob("*/rows.csv"))]
    rows = rows_table([row for path in paths for row in read_rows(path)])
    return rows.unique(["scenario", "method", "world"], keep="first", maintain_order=True).filter(pl.col("subnets") > 1)


def costs_table(_: str) -> str:
    """Every world that reach-evolved has flown in, its steps as factors to the plain one."""
    rows = world_rows()
    means = {(row["world"], row["method"]): row for row in world_means(rows).iter_rows(named=True)}
    order = {world: place for place, world in enumerate(FULL_SIZE)}
    worlds = sorted({world for world, _ in means}, key=lambda world: (order.get(world, len(order)), world))
    header = ["world", "N", "cases", "reconnected", "split steps", "x plain", "re-splits", "largest share"]
    lines = []
    for world in worlds:
        row = means.get((world, "reach-evolved"))
        if row is None:
            continue
        mine = rows.filter((pl.col("world") == world) & (pl.col("method") == "reach-evolved"))
        cells = [
            f"`{world}`" if world else "plain", ", ".join(map(str, sorted(mine["uavs"].unique()))), str(row["cases"]),
            f"{int(mine['converged'].sum())}", cell_text(row["split"], ".0f"),
            interval_text(row["factor"], row["factor_low"], row["factor_high"]),
            cell_text(row["resplits"], ".1f"), cell_text(row["largest_share"], ".2f"),
        ]  # fmt: skip
        lines.append(cells)
    return markdown_table(header, lines)


def methods_table(_: str) -> str:
    """Every method in the main worlds: its split steps over those of reach-evolved on the cases that it flew."""
    rows = world_rows()
    known = [name for name in METHODS if rows.filter((pl.col("method") == name) & (pl.col("world") != "")).height]
    lines = []
    for world in (*FULL_SIZE, "altitude-spread=40"):
        here = rows.filter(pl.col("world") == world)
        cells = [_ratio_cell(here, name) for name in known]
        lines.append([f"`{world}`" if world else "plain", *cells])
    return markdown_table(["world", *(f"`{name}`" for name in known)], lines)


def _ratio_cell(here: pl.DataFrame, name: str) -> str:
    """Split steps of a method in a world over those of reach-evolved, paired, and how many cases it reconnected."""
    split = pl.when(pl.col("converged") == 1).then(pl.coalesce("split_steps", "steps")).otherwise(pl.col("steps"))
    mine, best = (
        here.filter(pl.col("method") == method).select("scenario", "uavs", "damaged", "converged", split=split)
        for method in (name, "reach-evolved")
    )
    both = mine.join(best.select("scenario", best="split"), on="scenario", maintain_order="left")
    if both.is_empty():
        return cell_text(None, "")
    setting = both.select(pl.concat_str("uavs", "damaged", separator=" ")).to_series().to_numpy()
    pair = paired_ratio(both["split"].to_numpy().astype(float), both["best"].to_numpy().astype(float), setting)
    return f"{interval_text(*pair)}, {int(both['converged'].sum())} of {both.height}"


@fact
def failed_in(method: str, *world: str) -> str:
    """Cases that a method did not reconnect in a world of the experiments: "2 of 15"; a world may hold colons."""
    mine = world_rows().filter((pl.col("method") == method) & (pl.col("world") == ":".join(world)))
    return f"{mine.height - int(mine['converged'].sum()):,} of {mine.height:,}"


@fact
def soaked(name: str) -> str:
    """Failures of a soak under results/soak: "12 of 10,000"."""
    record = json.loads((RESULTS / "soak" / name / "soak.json").read_text(encoding="utf-8"))
    return f"{len(record['failures']):,} of {record['split']:,}"


@fact
def redundant(column: str) -> str:
    """A column of results/redundancy.csv with --redundant over the same without, paired, with its 95 % interval."""
    rows = pl.read_csv(RESULTS / "redundancy.csv").sort("scenario")
    mine, theirs = (rows.filter(pl.col("redundant") == k)[column].to_numpy().astype(float) for k in (1, 0))
    setting = np.array([name.rsplit("-c", 1)[0] for name in rows.filter(pl.col("redundant") == 0)["scenario"]])
    return interval_text(*paired_ratio(mine, theirs, setting))


def soaks_table(_: str) -> str:
    """Every soak: episodes, steps, failures, those where the conditions of the argument hold."""
    header = ["soak", "filter", "seed", "episodes", "flown", "steps", "failures", "conditions hold", "failures there"]
    lines = []
    for path in sorted(RESULTS.glob("soak/*/soak.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        settings, failures = record["settings"], record["failures"]
        there = sum(failure.get("condition", "all hold") == "all hold" for failure in failures)
        lines.append([
            f"`{settings['world']}`" if settings["world"] else "plain", settings["safety"], str(settings["seed"]),
            f"{record['done']:,}", f"{record['split']:,}", f"{record['steps']:,}", str(len(failures)),
            f"{record.get('argued', record['split']):,}", str(there),
        ])  # fmt: skip
    return markdown_table(header, lines)


def contacts_table(_: str) -> str:
    """Closest approach of any pair with inertia and the filter, by method and setting."""
    with (RESULTS / "inertia" / "contacts.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    settings = sorted({(row["acceleration_mps2"], row["lag_s"]) for row in rows})
    header = ["method", "flights", *(f"{float(a):g} m/s², lag {float(lag):g} s" for a, lag in settings), "too close"]
    lines = []
    for name in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == name]
        cells = []
        for setting in settings:
            close = [float(r["closest_m"]) for r in mine if (r["acceleration_mps2"], r["lag_s"]) == setting]
            cells.append(f"{min(close):.2f} m" if close else "")
        lines.append([f"`{name}`", str(len(mine)), *cells, str(sum(float(r["short_m"]) > 1e-5 for r in mine))])
    return markdown_table(header, lines)


def redundancy_table(_: str) -> str:
    """With and without --redundant: the flight, and the 20 s after it."""
    with (RESULTS / "redundancy.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {"steps": ".0f", "flown_m_per_uav": ".0f", "critical": ".1f", "connected_share": ".2f", "splits": ".1f"}
    header = [
        "",
        "flights",
        "reconnected",
        "steps",
        "meters per UAV",
        "critical UAVs",
        "connected after",
        "splits after",
    ]
    lines = []
    for redundant, label in (("0", "without"), ("1", "`--redundant`")):
        mine = [row for row in rows if row["redundant"] == redundant]
        means = [cell_text(sum(float(row[name]) for row in mine) / len(mine), form) for name, form in columns.items()]
        lines.append([label, str(len(mine)), str(sum(int(row["converged"]) for row in mine)), *means])
    return markdown_table(header, lines)
