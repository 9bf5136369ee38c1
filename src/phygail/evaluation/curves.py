"""Curves over damage: how often, how fast and how safely each method reconnects."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MultipleLocator, NullLocator

from phygail.config import InputError
from phygail.evaluation.intervals import Interval, mean_interval, ratio_interval, share_interval
from phygail.evaluation.style import (
    FAINT,
    INK,
    PICTURE_SUFFIXES,
    SOFT,
    LineStyle,
    add_panel,
    checked_draft,
    line_styles,
    new_figure,
    save_figure,
)  # fmt: skip
from phygail.evaluation.summary import split_cases

PANEL_IN = (2.75, 1.75)  # width and height of a panel
LEGEND_IN = 0.2  # each line of the legend
AXIS = "#B8C0C8"
BAND_ALPHA = 0.12
BOUND_LINE: dict[str, Any] = {"color": "#8A929B", "linestyle": (0, (4, 2.5)), "linewidth": 1.3, "zorder": 1.5}
_NEEDED = (
    "scenario", "method", "uavs", "damaged", "subnets", "converged", "steps", "time_s", "bound_steps",
    "contact_events_per_uav", "contact_rate_capped",
)  # fmt: skip


def draw_curves(rows: pl.DataFrame, path: Path) -> None:
    """Convergence rate, mean recovery time (log axis) and contacts over the share of UAVs lost; one column per N.

    Failures enter with the whole budget as their time (METHODS 2.6). Bands are 95 % confidence
    intervals over cases: of a mean by 1.96 standard errors, of a rate by Wilson. The dashed line is the mean bound.

    Args:
        rows: Columns of rows.csv (docs/formats.md).
        path: PNG, PDF or SVG by suffix; written whole or not at all.
    """
    with checked_draft(path, PICTURE_SUFFIXES) as draft:
        save_figure(curves_figure(rows), draft)


def draw_over_bound(rows: pl.DataFrame, path: Path) -> None:
    """Recovery time over the lower bound by damage, one panel per N, on a log axis.

    As everywhere in this project "x times" is sum of steps over sum of bounds within a cell (METHODS 2.6). Bands are
    95 % confidence intervals of that ratio (`intervals.ratio_interval`).
    """
    with checked_draft(path, PICTURE_SUFFIXES) as draft:
        save_figure(over_bound_figure(rows), draft)


def curves_figure(rows: pl.DataFrame) -> Figure:
    """The figure behind `draw_curves`."""
    cells = _prepared(rows)
    figure, panels, styles = _chart_grid(cells, 3)
    for uavs, (rate, time, contacts) in panels.items():
        here = cells.filter(pl.col("uavs") == uavs)
        limit = here.unique("scenario").group_by("lost").agg(pl.col("bound_s").mean()).sort("lost")
        time.plot(limit["lost"], limit["bound_s"], **BOUND_LINE)
        for name, style in styles.items():
            mine = here.filter(pl.col("name") == name)
            _add_curve(rate, mine, style, share_interval, "converged")
            _add_curve(time, mine, style, mean_interval, "time_s")
            _add_curve(contacts, mine, style, mean_interval, "contact_events_per_uav")
        rate.set_ylim(-0.04, 1.06)
        time.set_yscale("log", nonpositive="clip")  # methods differ by factors
        _plain_log_ticks(time)
        least = here.filter(pl.col("time_s") > 0).group_by("name", "lost").agg(pl.col("time_s").mean())["time_s"].min()
        time.set_ylim(bottom=0.5 * cast("float", least) if least else 0.05)
    most = max(1.0, *(axes.get_ylim()[1] for _, _, axes in panels.values()))
    for _, _, contacts in panels.values():
        contacts.set_yscale("symlog", linthresh=0.1)  # zero is common and must stay visible
        contacts.set_ylim(-0.005, 1.2 * most)
        contacts.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    _name_axes(panels, ("convergence rate", "recovery time (s)", "contacts per UAV"))
    return figure


def over_bound_figure(rows: pl.DataFrame) -> Figure:
    """The figure behind `draw_over_bound`."""
    cells = _prepared(rows).filter(pl.col("bound_steps") > 0)
    if cells.is_empty():
        raise InputError("no row with a bound_steps above 0: there is no ratio to draw; compare at another damage")
    figure, panels, styles = _chart_grid(cells, 1)
    for uavs, (axes,) in panels.items():
        axes.set_yscale("log")
        axes.axhline(1.0, **BOUND_LINE)
        for name, style in styles.items():
            mine = cells.filter((pl.col("uavs") == uavs) & (pl.col("name") == name))
            _add_curve(axes, mine, style, ratio_interval, "steps", "bound_steps")
    top = max(2.2, *(axes.get_ylim()[1] for (axes,) in panels.values()))
    for (axes,) in panels.values():
        axes.set_ylim(0.9, top)
        _plain_log_ticks(axes)
    _name_axes(panels, ("recovery time / bound",))
    return figure


def _plain_log_ticks(axes: Axes) -> None:
    """Ticks at 1, 2, 5 of every decade, as plain numbers."""
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _prepared(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of split swarms with `name` of their line, `lost` in percent and `bound_s`, or a clear error."""
    missing = [column for column in _NEEDED if column not in rows.columns]
    if missing:
        raise InputError(f"the rows lack the column {missing[0]!r}: give the rows of a comparison (rows.csv)")
    cases = split_cases(rows)
    if cases.is_empty():
        raise InputError("no row with a split swarm: there is nothing to draw; compare at another damage ratio")
    step_s = pl.when(pl.col("steps") > 0).then(pl.col("time_s") / pl.col("steps")).otherwise(0.0)
    return cases.with_columns(
        _line_name(cases).alias("name"),
        (pl.col("damage") * 100).alias("lost"),
        (pl.col("bound_steps") * step_s).alias("bound_s"),
        pl.col("converged").cast(pl.Float64),
    )


def _line_name(rows: pl.DataFrame) -> pl.Expr:
    """The method, and what else tells lines apart where a comparison mixes it."""
    name = pl.col("method").cast(pl.String)
    for column in ("variant", "safety"):
        if column in rows.columns and rows[column].n_unique() > 1:
            label = pl.col(column).cast(pl.String).fill_null("")
            mixed = pl.col(column).n_unique().over("method") > 1
            shown = label if column == "variant" else pl.lit("safety ") + label
            name = name + pl.when(mixed & (label != "")).then(pl.lit(" (") + shown + ")").otherwise(pl.lit(""))
    return name


def _chart_grid(cells: pl.DataFrame, rows: int) -> tuple[Figure, dict[int, list[Axes]], dict[str, LineStyle]]:
    """An empty figure with a legend, its `rows` panels for each N (from the top), and the style of each line."""
    sizes = cells["uavs"].unique().sort().to_list()
    styles = line_styles(cells["name"].unique())
    (wide, high), left, gap, between, head = PANEL_IN, 0.68, 0.45, 0.16, 0.32
    width = left + len(sizes) * (wide + gap) - gap + 0.18
    per_row = max(1, int((width - 0.2) // 1.25))
    height = head + rows * (high + between) - between + 0.55 + LEGEND_IN * math.ceil((len(styles) + 1) / per_row)
    figure = new_figure(width, height)
    panels = {
        uavs: [
            add_panel(figure, left + k * (wide + gap), height - head - row * between - (row + 1) * high, wide, high)
            for row in range(rows)
        ]
        for k, uavs in enumerate(sizes)
    }
    for axes in figure.axes:
        _dress(axes)
    handles = [*map(_handle, styles.values()), Line2D([], [], **BOUND_LINE)]
    legend = figure.legend(
        handles, [*styles, "lower bound"], loc="lower center", ncols=min(per_row, len(handles)), frameon=False,
        fontsize=8.5, labelcolor=INK, handletextpad=0.6, columnspacing=1.6, borderaxespad=0.3,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure, panels, styles


def _name_axes(panels: dict[int, list[Axes]], labels: tuple[str, ...]) -> None:
    """N above each column, the share of lost UAVs below it, what is measured at the left."""
    for uavs, column in panels.items():
        column[0].set_title(f"N = {uavs:,}", loc="left", fontsize=10, fontweight="bold", color=INK)
        column[-1].set_xlabel("UAVs lost (%)", fontsize=8.5, color=SOFT)
        for axes in column[:-1]:
            axes.tick_params(labelbottom=False)
    for axes, label in zip(next(iter(panels.values())), labels, strict=True):
        axes.set_ylabel(label, fontsize=9, color=INK)
        axes.yaxis.set_label_coords(-0.155, 0.5)


def _dress(axes: Axes) -> None:
    """Light grid, no box, small gray ticks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(AXIS)
    axes.grid(visible=True, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlim(0, 100)
    axes.xaxis.set_major_locator(MultipleLocator(25))
    axes.tick_params(colors=SOFT, labelsize=8, length=3, width=0.6, color=AXIS)


def _handle(style: LineStyle) -> Line2D:
    face = "white" if style.hollow else style.color
    return Line2D(
        [], [], color=style.color, linewidth=1.5, marker=style.marker, markersize=4.8, markerfacecolor=face,
        markeredgecolor=style.color, markeredgewidth=1.1 if style.hollow else 0.0,
    )  # fmt: skip


def _add_curve(
    axes: Axes,
    mine: pl.DataFrame,
    style: LineStyle,
    interval: Callable[..., Interval],
    *columns: str,
) -> None:
    """One line with its band; a single damage ratio gets an error bar, since a band there has no width."""
    points = [
        (lost, *interval(*(cell[column].to_numpy() for column in columns)))
        for (lost,), cell in mine.drop_nulls(columns).sort("lost").group_by("lost", maintain_order=True)
    ]
    if not points:
        return
    x, middle, low, high = (list(values) for values in zip(*points, strict=True))
    line = _handle(style)
    line.set_data(x, middle)
    line.set_zorder(3)
    axes.add_line(line)
    if len(x) > 1:
        band = axes.fill_between(x, low, high, color=style.color, alpha=BAND_ALPHA, linewidth=0, zorder=2)
        if any(_shape(band) == _shape(other) for other in axes.collections[:-1]):
            band.remove()  # all who always reconnect have the same: piled up they would hide the panel
    else:
        axes.vlines(x, low, high, color=style.color, alpha=0.6, linewidth=1.2, zorder=2)
    axes.autoscale_view(scalex=False)


def _shape(drawn: Collection) -> list[bytes]:
    """Comparable; empty for a band of numbers that are none (a single case has no error)."""
    return [np.asarray(path.vertices).tobytes() for path in drawn.get_paths()]
