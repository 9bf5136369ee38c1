"""Summaries of a comparison, as Markdown and on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from phygail import __version__
from phygail.config import Physics, physics_line, physics_values
from phygail.experiments.statistics import split_cases, steps_by_damage, summarize
from phygail.experiments.task import TIMEOUT
from phygail.render.tables import Column, TextTable, cell_text, markdown_table, table_cells, terminal_table

NOTES = (
    "Failures enter with their whole step budget. Best first: by convergence, then by pooled steps. "
    "± is the half width of the 95 % normal confidence interval of the mean (1.96 s / √cases). "
    "x bound is the sum of steps over the sum of lower bounds. "
    "Contacts are the times a pair came closer than the contact distance, per UAV; "
    "the rates are pairs in contact per UAV and second, capped at 2 per case in the second column. "
    "Rank: per case the mean of the ranks by success, time and capped contact rate, ties sharing the mean rank; "
    "then the mean over cases."
)

_COLUMNS = (
    Column("method", "method", ""),
    Column("cases", "cases", "d"),
    Column("reconnected", "convergence", ".1%"),
    Column("steps", "steps", ".1f"),
    Column("time s", "time_s", ".2f"),
    Column("std", "time_std_s", ".2f"),
    Column("±", "time_ci95_s", ".2f"),
    Column("x bound", "over_bound", ".2f"),
    Column("contacts", "contact_events_per_uav", ".3f"),
    Column("rate", "contact_rate_raw", ".3f"),
    Column("capped", "contact_rate_capped", ".3f"),
    Column("distance m", "distance_m_per_uav", ".1f"),
    Column("first action ms", "first_action_ms", ".2f"),
    Column("rank", "rank", ".2f"),
)
_BRIEF = ("method", "cases", "convergence", "steps", "time_s", "over_bound", "contact_events_per_uav", "rank")


def overall_cells(summary: pl.DataFrame, only: Sequence[str] | None = None) -> tuple[list[str], list[list[str]]]:
    """(header, rows) of a summary per method."""
    return table_cells([c for c in _COLUMNS if only is None or c.key in only], summary.iter_rows(named=True))


def summary_table(rows: pl.DataFrame) -> TextTable:
    """The overall summary for the terminal."""
    summary = summarize(rows)
    return terminal_table("Overall, best first", *overall_cells(summary, _BRIEF))


def summary_markdown(rows: pl.DataFrame, config: dict[str, Any], command: str) -> str:
    """summary.md: how the rows were made, overall, per swarm size, mean steps per damage ratio."""
    scenarios, split = rows["scenario"].n_unique(), split_cases(rows)
    connected = scenarios - split["scenario"].n_unique()
    parts = ["# Comparison\n", *_provenance(config, command, scenarios)]
    if connected:
        parts.append(f"{connected} of {scenarios} scenarios were already connected and are left out of every figure.\n")
    if split.is_empty():
        return "\n".join([*parts, "No scenario was split: there is nothing to compare.\n"])
    parts += ["## Overall\n", markdown_table(*overall_cells(summarize(rows))), NOTES + "\n", "## By swarm size\n"]
    by_size = summarize(rows, "uavs")
    for uavs in by_size["uavs"].unique().sort():
        part = by_size.filter(pl.col("uavs") == uavs)
        parts += [f"### {uavs} UAVs\n", markdown_table(*overall_cells(part))]
    parts += ["## Mean steps by damage ratio\n", markdown_table(*_damage_cells(rows))]
    errors = int(rows["flag"].str.starts_with("error:").sum())
    if errors:
        parts.append(f"{errors} episodes failed with an error (flag `error:...` in rows.csv, details in errors.log).\n")
    timed_out = count_timeouts(rows)
    if timed_out:
        parts.append(f"{timed_out} episodes ended at the timeout and count as failures (flag `timeout` in rows.csv).\n")
    return "\n".join(parts)


def count_timeouts(rows: pl.DataFrame) -> int:
    """Episodes that took longer than they may."""
    return int(rows["flag"].str.split(";").list.contains(TIMEOUT).sum())


def _provenance(config: dict[str, Any], command: str, scenarios: int) -> list[str]:
    if "failures" in config:
        source = (
            f"UAVs {_listed(config['uavs'])}; failures {_listed(config['failures'])} ({config['source']}); "
            f"{config['cases']} cases per setting; seed {config['seed']}"
        )
    elif "uavs" in config:
        source = (
            f"UAVs {_listed(config['uavs'])}; damage {_listed(config['damage'])}; "
            f"{config['cases']} cases per cell; seed {config['seed']}"
        )
    else:
        source = f"{config['scenarios']} given scenarios ({config['content'][:19]}…)"
    lines = [f"    {command}\n"] if command else []
    settings = f"{scenarios} scenarios, safety {config['safety']}{_sensing(config)}"
    radio = physics_line({**physics_values([Physics()]), **config})
    return [*lines, f"phygail {__version__}. {source}; {settings}.\n", f"{radio[0].upper()}{radio[1:]}.\n"]


def _sensing(config: Mapping[str, Any]) -> str:
    """What imperfect sensing there was; nothing where it was perfect."""
    words = (
        ("noise_m", "noise {:g} m"), ("bias_m", "bias {:g} m"), ("delay_steps", "delay {:d} steps"),
        ("world", "world {}"),
    )  # fmt: skip
    return "".join(f", {text.format(config[name])}" for name, text in words if config.get(name))


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{v:g}" for v in values)


def _damage_cells(rows: pl.DataFrame) -> tuple[list[str], list[list[str]]]:
    wide = steps_by_damage(rows)
    header = ["method", *(f"{float(name):g}" for name in wide.columns[1:])]
    return header, [[row[0], *(cell_text(v, ".1f") for v in row[1:])] for row in wide.iter_rows()]
