"""Tables of docs/worlds.md, from rows and records under results/: what worlds cost, soaks, contacts with inertia."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import polars as pl

from phygail.experiments.experiment import FULL_SIZE
from phygail.experiments.rows import read_rows, rows_table
from phygail.experiments.statistics import world_means
from phygail.render.tables import cell_text, markdown_table

RESULTS = Path(__file__).parent
EXPERIMENTS = ("waves", "fading", "obstacles", "no-center", "dynamics", "altitude")


def world_rows() -> pl.DataFrame:
    """The rows of the six experiments, each flight once."""
    paths = [path for name in EXPERIMENTS for path in sorted((RESULTS / name).glob("*/rows.csv"))]
    rows = rows_table([row for path in paths for row in read_rows(path)])
    return rows.unique(["scenario", "method", "world"], keep="first", maintain_order=True)


def costs_table(_: str) -> str:
    """Every world that was flown: reach-evolved on its cases, and the others on theirs, as factors to the plain one."""
    rows = world_rows()
    means = {(row["world"], row["method"]): row for row in world_means(rows).iter_rows(named=True)}
    order = {world: place for place, world in enumerate(FULL_SIZE)}
    worlds = sorted({world for world, _ in means}, key=lambda world: (order.get(world, len(order)), world))
    others = [name for name in ("reach", "sidr", "convex") if any(method == name for _, method in means)]
    header = ["world", "N", "cases", "reconnected", "split steps", "x plain", "re-splits", "largest share"]
    lines = []
    for world in worlds:
        row = means.get((world, "reach-evolved"))
        if row is None:
            continue
        mine = rows.filter((pl.col("world") == world) & (pl.col("method") == "reach-evolved"))
        cells = [
            f"`{world}`" if world else "plain", ", ".join(map(str, sorted(mine["uavs"].unique()))), str(row["cases"]),
            f"{int(mine['converged'].sum())}", cell_text(row["split"], ".0f"), cell_text(row["factor"], ".2f"),
            cell_text(row["resplits"], ".1f"), cell_text(row["largest_share"], ".2f"),
        ]  # fmt: skip
        for name in others:
            other = means.get((world, name))
            failed = "" if other is None else f", {round(other['converged'] * other['cases'])} of {other['cases']}"
            cells.append("" if other is None else cell_text(other["factor"], ".2f") + failed)
        lines.append(cells)
    return markdown_table([*header, *(f"`{name}`: x plain, reconnected" for name in others)], lines)


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
