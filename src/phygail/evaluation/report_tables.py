"""The tables of the experiments, each a function from evidence to Markdown; the paper's numbers stand beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import polars as pl

from phygail.evaluation.evidence import (
    SETTING,
    Evidence,
    cases_text,
    common_cases,
    over_bound,
    setting_count,
    weighed,
    weighed_mean,
    weighed_std,
)
from phygail.evaluation.experiment import Numbers
from phygail.evaluation.flight import TIMEOUT
from phygail.evaluation.paper import LARGE
from phygail.evaluation.summary import case_rank
from phygail.evaluation.tables import NOTHING, cell_text, markdown_table
from phygail.registry import Registry

TABLES: Registry[Callable[[Evidence], str]] = Registry("table")


def aggregate(evidence: Evidence) -> str:
    """Table II of the paper: convergence, time, contacts and rank over the large swarms."""
    sizes = [n for n in evidence.sizes if n in LARGE] or evidence.sizes
    rows = evidence.rows.filter(pl.col("uavs").is_in(sizes))
    settings, common = setting_count(rows), common_cases(rows)
    ranks = _ranks(common)
    figures = weighed(rows).group_by("method").agg(
        weighed_mean("converged").alias("convergence"),
        *(weighed_mean(name).alias(name) for name in ("time_s", "contact_rate_capped", "contact_events_per_uav")),
        *(weighed_std(name).alias(f"{name}_std") for name in ("time_s", "contact_rate_capped")),
        over_bound().alias("over_bound"),
    )  # fmt: skip
    header = [
        "method", "cases", "reconnected", "paper", "time s", "paper", "capped contact rate", "paper",
        "contacts per UAV", "x bound", "rank", "paper",
    ]  # fmt: skip
    lines = []
    for row in figures.sort("convergence", "time_s", "method", descending=[True, False, False]).iter_rows(named=True):
        name = row["method"]
        said = evidence.experiment.published.get(name, {})
        lines.append([
            f"`{name}`", cases_text(rows.filter(pl.col("method") == name), settings),
            cell_text(row["convergence"], ".3f"), _said(said, "convergence", ".3f"),
            _spread(row["time_s"], row["time_s_std"], ".2f"), _said(said, "time_s", ".2f", "time_std_s"),
            _spread(row["contact_rate_capped"], row["contact_rate_capped_std"], ".3f"),
            _said(said, "contact_rate_capped", ".3f", "contact_std"), cell_text(row["contact_events_per_uav"], ".3f"),
            cell_text(row["over_bound"], ".2f"), cell_text(ranks.get(name), ".2f"), _said(said, "rank", ".3f"),
        ])  # fmt: skip
    cases = common["scenario"].n_unique()
    note = (
        f"Over N = {_listed(sizes)}; the paper's columns are over N = {_listed(LARGE)}. Mean ± standard deviation over "
        f"cases. Ranks are over the {cases:,} cases that every method flew.\n"
    )
    return f"## Aggregate\n\n{markdown_table(header, lines)}\n{note}"


def by_size(evidence: Evidence) -> str:
    """Convergence, time, bound, contacts and distance per swarm size, best first."""
    means = ("steps", "time_s", "contact_events_per_uav", "contact_rate_capped", "distance_m_per_uav")
    header = [
        "method", "cases", "reconnected", "steps", "time s", "x bound", "contacts per UAV", "capped contact rate",
        "distance m",
    ]  # fmt: skip
    parts = []
    for uavs in evidence.sizes:
        rows = evidence.rows.filter(pl.col("uavs") == uavs)
        figures = weighed(rows).group_by("method").agg(
            weighed_mean("converged").alias("convergence"), *(weighed_mean(name).alias(name) for name in means),
            weighed_std("time_s").alias("std"), over_bound().alias("over_bound"),
        )  # fmt: skip
        best_first = figures.sort("convergence", "steps", "method", descending=[True, False, False])
        lines = [
            [
                f"`{row['method']}`", cases_text(rows.filter(pl.col("method") == row["method"]), setting_count(rows)),
                cell_text(row["convergence"], ".3f"), cell_text(row["steps"], ".1f"),
                _spread(row["time_s"], row["std"], ".2f"), cell_text(row["over_bound"], ".2f"),
                cell_text(row["contact_events_per_uav"], ".3f"), cell_text(row["contact_rate_capped"], ".3f"),
                cell_text(row["distance_m_per_uav"], ".1f"),
            ]
            for row in best_first.iter_rows(named=True)
        ]  # fmt: skip
        parts.append(f"## {uavs:,} UAVs\n\n{markdown_table(header, lines)}")
    return "\n".join(parts)


def bound_table(evidence: Evidence) -> str:
    """Time over bound by method and N, then by damage within each N."""
    sizes = evidence.sizes
    parts = ["## Time over bound by swarm size\n", markdown_table(*_ratio_cells(evidence, evidence.rows, "uavs", "N="))]
    for uavs in sizes:
        rows = evidence.rows.filter(pl.col("uavs") == uavs)
        parts += [f"## {uavs:,} UAVs, by damage ratio\n", markdown_table(*_ratio_cells(evidence, rows, "damage", ""))]
    return "\n".join(parts)


def runtime(evidence: Evidence) -> str:
    """Table IV of the paper: first response, solving time, steps."""
    header = ["method", "cases", "first response ms", "paper", "solve s", "paper", "ms per step", "steps", "paper"]
    parts = []
    for uavs in evidence.sizes:
        rows = evidence.rows.filter(pl.col("uavs") == uavs)
        lines = []
        for name in evidence.methods:
            mine = weighed(rows.filter(pl.col("method") == name))
            if mine.is_empty():
                continue
            said = evidence.experiment.published.get(name, {})
            steps = mine.select(weighed_mean("steps").alias("mean"), weighed_std("steps").alias("std")).row(0)
            pace = (mine["solve_s"] * 1e3 / mine["steps"]).median()
            lines.append([
                f"`{name}`", cases_text(mine, setting_count(rows)),
                cell_text(mine["first_action_ms"].median(), ".2f"), _said(said, f"response_ms@{uavs}", ".2f"),
                cell_text(mine["solve_s"].median(), ".3f"), _said(said, f"solve_s@{uavs}", ".2f"),
                cell_text(pace, ".3f"), _spread(steps[0], steps[1], ".1f"), _said(said, f"steps@{uavs}", ".1f"),
            ])  # fmt: skip
        parts.append(f"## {uavs:,} UAVs\n\n{markdown_table(header, lines)}")
    return "\n".join(parts)


def sensing(evidence: Evidence) -> str:
    """Convergence and time by noise or delay, whichever the experiment varies."""
    column, unit = sensed_column(evidence)
    levels = sorted(evidence.rows[column].unique())
    figures = sensed_means(evidence)
    parts = []
    for what, said_of, title, form in (
        ("converged", "convergence", "Reconnected", ".3f"),
        ("time_s", "time_s", "Recovery time, s", ".2f"),
    ):
        lines = []
        for name in evidence.methods:
            mine = figures.filter(pl.col("method") == name)
            values = dict(zip(mine[column], mine[what], strict=True))
            cases = cases_text(evidence.rows.filter(pl.col("method") == name).unique("scenario"), _settings(evidence))
            lines.append([f"`{name}`", cases, *(cell_text(values.get(level), form) for level in levels)])
        for name, said in evidence.experiment.published.items():
            cells = [_said(said, f"{said_of}@{level:g}", form) for level in levels]
            lines.append([f"*paper:* `{name}`", "50", *cells])
        header = ["method", "cases", *(f"{level:g} {unit}" for level in levels)]
        parts.append(f"## {title}\n\n{markdown_table(header, lines)}")
    parts.append(f"Over N = {_listed(evidence.sizes)}, damage {_listed(sorted(evidence.rows['damage'].unique()))}.\n")
    return "\n".join(parts)


def sensed_means(evidence: Evidence) -> pl.DataFrame:
    """(method, level, converged, time_s), means over settings.

    A level at which a method lacks one of its settings is left out: its mean would be one over other swarms.
    """
    column, _ = sensed_column(evidence)
    setting = pl.struct(SETTING)
    whole = setting.n_unique().over("method", column) == setting.n_unique().over("method")
    rows = weighed(evidence.rows.filter(whole), ("method", column))
    return rows.group_by("method", column).agg(weighed_mean("converged"), weighed_mean("time_s")).sort(column)


def sensed_column(evidence: Evidence) -> tuple[str, str]:
    """(column, unit) of what an experiment on sensing varies."""
    return ("delay_steps", "steps") if evidence.rows["delay_steps"].n_unique() > 1 else ("noise_m", "m")


def safety(evidence: Evidence) -> str:
    """Contacts, time and convergence without and with the filter, on the cases that both flew."""
    flown = evidence.rows
    both = flown.filter(pl.col("safety").n_unique().over("scenario", "method") == 2)
    figures = weighed(both, ("method", "safety")).group_by("method", "safety").agg(
        pl.len().alias("cases"), weighed_mean("converged").alias("convergence"), over_bound().alias("over_bound"),
        *(weighed_mean(name).alias(name) for name in ("time_s", "contact_events_per_uav", "contact_rate_capped")),
    )  # fmt: skip
    shown = (
        ("reconnected", "convergence", ".3f"), ("time s", "time_s", ".2f"), ("x bound", "over_bound", ".2f"),
        ("contacts per UAV", "contact_events_per_uav", ".3f"), ("capped rate", "contact_rate_capped", ".3f"),
    )  # fmt: skip
    lines = []
    for name in evidence.methods:
        mine = {row["safety"]: row for row in figures.filter(pl.col("method") == name).iter_rows(named=True)}
        if len(mine) == 2:
            pairs = [cell_text(mine[state][column], form) for _, column, form in shown for state in ("off", "on")]
            lines.append([f"`{name}`", str(mine["off"]["cases"]), *pairs])
    header = ["method", "cases", *(f"{title}, {state}" for title, _, _ in shown for state in ("off", "on"))]
    return f"## Without and with the filter, N = {_listed(evidence.sizes)}\n\n{markdown_table(header, lines)}"


def scale(evidence: Evidence) -> str:
    """Convergence, time over bound and cost per UAV of large swarms."""
    late = pl.col("flag").str.split(";").list.contains(TIMEOUT)  # they did not fly the steps they are charged with
    work = (pl.col("steps") * pl.col("alive")).filter(~late).sum()
    figures = weighed(evidence.rows).group_by("uavs", "method").agg(
        pl.len().alias("cases"), weighed_mean("converged").alias("convergence"), weighed_mean("time_s").alias("time_s"),
        over_bound().alias("over_bound"), (pl.col("solve_s").filter(~late).sum() * 1e6 / work).alias("cost_us"),
    )  # fmt: skip
    header = ["method", "N", "cases", "reconnected", "time s", "x bound", "µs per UAV and step"]
    lines = []
    for name in evidence.methods:
        for row in figures.filter(pl.col("method") == name).sort("uavs").iter_rows(named=True):
            lines.append([
                f"`{name}`", f"{row['uavs']:,}", str(row["cases"]), cell_text(row["convergence"], ".3f"),
                cell_text(row["time_s"], ".1f"), cell_text(row["over_bound"], ".2f"), cell_text(row["cost_us"], ".1f"),
            ])  # fmt: skip
    return f"## Large swarms\n\n{markdown_table(header, lines)}"


for _name, _table in (
    ("aggregate", aggregate), ("by-size", by_size), ("over-bound", bound_table), ("runtime", runtime),
    ("sensing", sensing), ("safety", safety), ("scale", scale),
):  # fmt: skip
    TABLES.add(_name, _table)


# --- cells -----------------------------------------------------------------------------------------------------------


def _ranks(common: pl.DataFrame) -> dict[str, float]:
    if common.is_empty():
        return {}
    ranked = weighed(common.with_columns(rank=case_rank()))
    means = ranked.group_by("method").agg(weighed_mean("rank").alias("rank"))
    return dict(zip(means["method"], means["rank"], strict=True))


def _ratio_cells(evidence: Evidence, rows: pl.DataFrame, column: str, prefix: str) -> tuple[list[str], list[list[str]]]:
    """Time over bound: a row per method, a column per value of `column`."""
    values = sorted(rows[column].unique())
    figures = weighed(rows).group_by("method", column).agg(over_bound().alias("ratio"))
    lines = []
    for name in evidence.methods:
        mine = figures.filter(pl.col("method") == name)
        ratios = dict(zip(mine[column], mine["ratio"], strict=True))
        lines.append([f"`{name}`", *(cell_text(ratios.get(value), ".2f") for value in values)])
    return ["method", *(f"{prefix}{value:g}" for value in values)], lines


def _settings(evidence: Evidence) -> int:
    return setting_count(evidence.rows)


def _said(said: Numbers, key: str, form: str, spread: str = "") -> str:
    """A number of the paper, with its standard deviation if it gives one."""
    if key not in said:
        return NOTHING
    return _spread(said[key], said[spread], form) if spread else cell_text(said[key], form)


def _spread(mean: float | None, std: float | None, form: str) -> str:
    return f"{cell_text(mean, form)} ± {cell_text(std, form)}" if mean is not None else NOTHING


def _listed(values: Iterable[float]) -> str:
    return ", ".join(f"{value:,}" if isinstance(value, int) else f"{value:g}" for value in values)
