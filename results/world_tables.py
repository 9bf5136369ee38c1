"""Tables of docs/worlds.md, from rows and records: what worlds cost whom, soaks, contacts with inertia."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl

from phygail.experiments.experiment import FULL_SIZE
from phygail.experiments.rows import read_rows, rows_table
from phygail.experiments.statistics import world_means
from phygail.render.tables import cell_text, interval_text, markdown_table

RESULTS = Path(__file__).parent
METHODS = (  # beside reach-evolved, in the order of the columns
    "phygail-plus", "reach", "sidr", "phygail", "phygail-taught", "center-fly", "convex",
)  # fmt: skip
EXPERIMENTS = ("waves", "fading", "obstacles", "no-center", "dynamics", "altitude")


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
    best = rows.filter(pl.col("method") == "reach-evolved").select("scenario", "world")
    lines = []
    for world in (*FULL_SIZE, "altitude-spread=40"):
        cells = [f"`{world}`" if world else "plain"]
        for name in known:
            mine = rows.filter(pl.col("world") == world, pl.col("method") == name)
            mine = mine.join(best, on=["scenario", "world"], how="semi")
            theirs = rows.filter(pl.col("method") == "reach-evolved").join(mine, on=["scenario", "world"], how="semi")
            cells.append(_ratio_cell(mine, theirs))
        lines.append(cells)
    return markdown_table(["world", *(f"`{name}`" for name in known)], lines)


def _ratio_cell(mine: pl.DataFrame, theirs: pl.DataFrame) -> str:
    """The ratio of mean split steps, and how many of the cases were reconnected."""
    if not mine.height:
        return "-"
    (ours,), (others,) = world_means(mine)["split"], world_means(theirs)["split"]
    return f"{ours / others:.2f} ({int(mine['converged'].sum())} of {mine.height})"


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
