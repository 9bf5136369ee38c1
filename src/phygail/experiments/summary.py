"""Summaries of a comparison, as Markdown and on the terminal; tables and figure of failures of single UAVs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from phygail import __version__
from phygail.config import Physics, physics_line, physics_values
from phygail.experiments.rows import TIMEOUT
from phygail.experiments.statistics import Evidence, split_cases, steps_by_damage, summarize
from phygail.render.style import (
    SOFT,
    LineStyle,
    add_line,
    drawer,
    label_axes,
    line_of,
    line_styles,
    panel_grid,
    plain_log_ticks,
)
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
    """Number of episodes that timed out."""
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
    """The line about imperfect sensing; empty where it was perfect."""
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


# --- failures of single UAVs (METHODS 9.9): time against meters, movers and coverage ---------------------------------

SHOWN_SIZE = 100  # swarm size of the tables by number of failures, and of the figure
KIND_WORDS = {"single": "spread over the swarm", "region": "side by side"}
PANEL_IN = (3.7, 2.9)
_MARK: dict[str, Any] = {"linestyle": "none", "markersize": 6.5, "markeredgewidth": 1.3}  # a point without a line
# Header, expression, format; of flights until connected, then of plans flown to their end.
_FLOWN: tuple[tuple[str, pl.Expr, str], ...] = (
    ("reconnected", pl.col("converged").mean(), ".1%"),
    ("steps", pl.col("steps").mean(), ".2f"),
    ("x bound", pl.col("steps").sum() / pl.col("bound_steps").sum(), ".2f"),
    ("max m", pl.col("max_m").mean(), ".1f"),
    ("total m", (pl.col("distance_m_per_uav") * pl.col("alive")).mean(), ".1f"),
    ("moved", pl.col("moved").mean(), ".2f"),
    ("messages", pl.col("messages").mean(), ".1f"),
    ("coverage lost %", pl.col("lost_pct").mean(), ".3f"),
    ("longer paths %", pl.col("longer_pct").mean(), ".2f"),
    ("contacts per UAV", pl.col("contact_events_per_uav").mean(), ".4f"),
)
_PLANNED: tuple[tuple[str, pl.Expr, str], ...] = (
    ("connected", pl.col("plan_connected").mean(), ".1%"),
    ("max m", pl.col("plan_max_m").mean(), ".1f"),
    ("total m", pl.col("plan_total_m").mean(), ".1f"),
    ("moved", pl.col("plan_moved").mean(), ".2f"),
    ("coverage lost %", pl.col("plan_lost_pct").mean(), ".3f"),
    ("longer paths %", pl.col("plan_longer_pct").mean(), ".3f"),
)
_BY_SIZE = tuple(column for column in _FLOWN if column[0] in ("x bound", "total m", "moved"))


def failures(evidence: Evidence) -> str:
    """Per kind and number of failures at one swarm size: until connected, and to the targets."""
    size = shown_size(evidence)
    rows = kinds(evidence).filter(pl.col("uavs") == size)
    parts = []
    for kind, count in sorted(
        rows.select("kind", "damaged").unique().rows(), key=lambda key: (key[1], key[0] != "single")
    ):
        here = rows.filter((pl.col("kind") == kind) & (pl.col("damaged") == count))
        words = "One failure" if count == 1 else f"{count} failures, {KIND_WORDS[kind]}"
        planned = here.filter(pl.col("plan_connected").is_not_null())
        cases = here.unique("scenario")
        parts += [
            f"## {words}, N = {size:,}\n",
            f"{cases.height} cases; bound {cell_text(cases['bound_steps'].mean(), '.2f')} steps, "
            f"{cell_text(cases['subnets'].mean(), '.2f')} subnets; the failed took "
            f"{cell_text(cases['failure_pct'].mean(), '.3f')} % of the watched area with them.\n",
            "Until connected, the rule of this project:\n",
            _table(evidence, here, _FLOWN),
        ]
        if planned.height:
            parts += ["To the targets, the rule of the publications:\n", _table(evidence, planned, _PLANNED)]
    return "\n".join(parts)


def failures_by_size(evidence: Evidence) -> str:
    """Time over bound, meters and movers of one failure, for every swarm size."""
    rows = evidence.rows.filter(pl.col("damaged") == 1)
    header = ["method", *(f"{title}, N={n}" for title, _, _ in _BY_SIZE for n in evidence.sizes)]
    lines = []
    for name in evidence.methods:
        mine = rows.filter(pl.col("method") == name)
        by_size = dict(zip(*_means(mine, "uavs", _BY_SIZE), strict=True))
        if mine.height:
            cells = [cell_text(by_size[n][k] if n in by_size else None, form)
                     for k, (_, _, form) in enumerate(_BY_SIZE) for n in evidence.sizes]  # fmt: skip
            lines.append([f"`{name}`", *cells])
    return f"## One failure, by swarm size\n\n{markdown_table(header, lines)}"


def shown_size(evidence: Evidence) -> int:
    """The swarm size that is shown whole: 100 if it was flown, else the largest."""
    return SHOWN_SIZE if SHOWN_SIZE in evidence.sizes else max(evidence.sizes)


def kinds(evidence: Evidence) -> pl.DataFrame:
    """The rows with `kind`: "single" or "region", the first word of the id."""
    return evidence.rows.with_columns(kind=pl.col("scenario").str.split("-").list.first())


def _means(
    rows: pl.DataFrame, by: str, columns: tuple[tuple[str, pl.Expr, str], ...]
) -> tuple[list[Any], list[tuple[float, ...]]]:
    """(values of `by`, the columns for each)."""
    figures = rows.group_by(by).agg(value.alias(str(k)) for k, (_, value, _) in enumerate(columns)).sort(by)
    return figures[by].to_list(), figures.drop(by).rows()


def _table(evidence: Evidence, rows: pl.DataFrame, columns: tuple[tuple[str, pl.Expr, str], ...]) -> str:
    figures = dict(zip(*_means(rows, "method", columns), strict=True))
    lines = [
        [f"`{name}`", *(cell_text(value, form) for value, (_, _, form) in zip(figures[name], columns, strict=True))]
        for name in evidence.methods
        if name in figures
    ]
    return markdown_table(["method", *(title for title, _, _ in columns)], lines)


# --- figure ----------------------------------------------------------------------------------------------------------


def failures_figure(evidence: Evidence) -> Figure:
    """Left: time over bound against meters flown, one failure. Right: reconnected share over the number of failures."""
    rows = kinds(evidence).filter(pl.col("uavs") == shown_size(evidence))
    styles = line_styles(evidence.methods)
    legend = {name: line_of(style, **_MARK) for name, style in styles.items()}
    figure, ((trade,), (share,)) = panel_grid(1, 2, PANEL_IN, legend, gap_in=(0.7, 0.0))
    _draw_trade(trade, rows.filter(pl.col("damaged") == 1), styles)
    _draw_share(share, rows, styles)
    for axes, title in ((trade, "one failure"), (share, "more failures")):
        label_axes(axes, title=f"{title}, N = {shown_size(evidence):,}")
    return figure


draw_failures = drawer(failures_figure)


def _draw_trade(axes: Axes, rows: pl.DataFrame, styles: dict[str, LineStyle]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for name, (over, total, _) in zip(*_means(rows, "method", _BY_SIZE), strict=True):
        add_line(axes, styles[str(name)], [total], [over], **_MARK)
    axes.set_ylim(bottom=0.85)
    for axis in (axes.xaxis, axes.yaxis):
        plain_log_ticks(axis)
    label_axes(axes, x="flown by all UAVs until connected (m)", y="recovery time / bound")


def _draw_share(axes: Axes, rows: pl.DataFrame, styles: dict[str, LineStyle]) -> None:
    """Solid: failures spread over the swarm; dashed: side by side, which begin with the same single failure.

    Methods that reconnect every case share one gray line: a dozen equal lines could not be told apart.
    """
    least = dict(rows.group_by("method").agg(pl.col("converged").min()).iter_rows())
    always = [name for name in styles if least.get(name) == 1]
    if always:
        counts = sorted(rows["damaged"].unique())
        axes.plot(counts, [100.0] * len(counts), color=SOFT, linewidth=1.4)
        words = always[0] if len(always) == 1 else f"{len(always)} methods: always"
        axes.annotate(words, (counts[0], 100), (4, 4), textcoords="offset points", fontsize=8, color=SOFT)
    for name, style in styles.items():
        if name in always:
            continue
        for kind, line in (("single", "-"), ("region", (0, (4, 2)))):
            mine = rows.filter((pl.col("method") == name) & ((pl.col("kind") == kind) | (pl.col("damaged") == 1)))
            counts, values = _means(mine, "damaged", (("", pl.col("converged").mean(), ""),))
            add_line(axes, style, counts, [100 * value for (value,) in values], linestyle=line)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(top=106)
    label_axes(axes, x="failures (solid: spread, dashed: side by side)", y="reconnected (%)")
