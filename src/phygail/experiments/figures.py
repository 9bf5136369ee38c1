"""Line figures: curves over damage, over noise or delay, over budgets of neighbors, over training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from phygail.config import InputError
from phygail.experiments.experiment import Variant
from phygail.experiments.statistics import (
    SEEDED,
    Evidence,
    Interval,
    common_by_world,
    log_mean_interval,
    ratio_interval,
    sensed_column,
    sensed_means,
    share_interval,
    split_cases,
    trainings_of,
    validations,
    weighed,
    weighed_mean,
    with_variants,
    world_means,
)
from phygail.methods.phygail.graph import GRAPHS, GraphSpec
from phygail.render.style import (
    MOST_COLUMNS,
    SOFT,
    LineStyle,
    add_line,
    add_panel,
    drawer,
    dress_axes,
    label_axes,
    line_of,
    line_styles,
    new_figure,
    panel_grid,
    plain_log_ticks,
)

PANEL_IN = (2.75, 1.75)  # width and height of a panel
BAND_ALPHA = 0.12
SPREAD = 3.2  # percent of UAVs lost over which the marks of all methods at one damage ratio are spread
SPREAD_OF_WORLDS = 0.75  # of the way from one world to the next: over which the marks of all methods are spread
SPREAD_OF_LEVELS = 0.015  # of the highest level of noise or delay: from the marks of one method to the next
NO_CONTACTS = 0.002  # per UAV: the mark of fewer cannot be told from zero
BOUND_LINE: dict[str, Any] = {"color": "#8A929B", "linestyle": (0, (4, 2.5)), "linewidth": 1.3, "zorder": 1.5}
_NEEDED = (
    "scenario", "method", "uavs", "damaged", "subnets", "converged", "steps", "time_s", "bound_steps",
    "contact_events_per_uav", "contact_rate_capped",
)  # fmt: skip

SENSING_PANEL_IN = (3.4, 2.3)
LABELS = {"noise_m": "noise of every coordinate (m)", "delay_steps": "age of news of neighbors (steps)"}

NEIGHBORS_PANEL_IN = (3.4, 1.8)
BUDGETS = {"k_act": "linked UAVs attended to, $K_{act}$", "k_dmg": "damaged UAVs attended to, $K_{dmg}$"}
SHOWN = {"time_s": "recovery time (s)", "contact_events_per_uav": "contacts per UAV"}

LEARNING_PANEL_IN = (3.6, 2.4)
DISTINCT = 8  # colors; further lines are dashed


def curves_figure(rows: pl.DataFrame) -> Figure:
    """Convergence rate, mean recovery time (log axis) and contacts over the share of UAVs lost; one column per N.

    Failures enter with the whole budget as their time (METHODS 2.6). Bands are 95 % confidence intervals over cases:
    of a mean by the standard error of its logarithm, of a rate by Wilson. Where nobody fails there is no band in
    the upper panels: those of many methods would pile up, and say the number of cases only; who never fails is counted
    above, and their marks take turns. The dashed line is the mean bound.

    Args:
        rows: Columns of rows.csv (docs/formats.md).
    """
    cells = _prepared(rows)
    figure, panels, styles = _chart_grid(cells, 3)
    for uavs, (rate, time, contacts) in panels.items():
        here = cells.filter(pl.col("uavs") == uavs)
        limit = here.unique("scenario").group_by("lost").agg(pl.col("bound_s").mean()).sort("lost")
        time.plot(limit["lost"], limit["bound_s"], **BOUND_LINE)
        for name, style in styles.items():
            mine = here.filter(pl.col("name") == name)
            _add_curve(rate, mine, style, share_interval, "converged")
            _add_curve(time, mine, style, log_mean_interval, "time_s")
            _add_curve(contacts, mine, style, log_mean_interval, "contact_events_per_uav")
        rate.set_ylim(-0.04, 1.06)
        always, all_of_them = _take_turns(rate, 1.0), len(rate.lines)
        told = "nobody fails" if always == all_of_them else f"{always} of {all_of_them} never fail"
        rate.set_title(told if always else "", loc="right", fontsize=8, color=SOFT)
        _take_turns(contacts, 0.0, NO_CONTACTS)
        time.set_yscale("log", nonpositive="clip")  # methods differ by factors
        plain_log_ticks(time.yaxis)
        least = here.filter(pl.col("time_s") > 0).group_by("name", "lost").agg(pl.col("time_s").mean())["time_s"].min()
        time.set_ylim(bottom=0.5 * cast("float", least) if least else 0.05)
    most = max(1.0, *(axes.get_ylim()[1] for _, _, axes in panels.values()))
    for _, _, contacts in panels.values():
        contacts.set_yscale("symlog", linthresh=0.1)  # zero is common and must stay visible
        contacts.set_ylim(-0.005, 1.2 * most)
        contacts.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    _spread_marks(figure)
    _name_axes(panels, ("convergence rate", "recovery time (s)", "contacts per UAV"))
    return figure


def over_bound_figure(rows: pl.DataFrame) -> Figure:
    """Recovery time over the lower bound by damage, one panel per N, on a log axis.

    As everywhere in this project "x times" is sum of steps over sum of bounds within a cell (METHODS 2.6). Bands are
    95 % confidence intervals of that ratio (`statistics.ratio_interval`).
    """
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
        plain_log_ticks(axes.yaxis)
    _spread_marks(figure)
    _name_axes(panels, ("recovery time / bound",))
    return figure


def _spread_marks(figure: Figure, width: float = SPREAD) -> None:
    """Shift the marks of each method a little aside, by `width` in all: equal methods must not hide each other."""
    for axes in figure.axes:
        lines = [line for line in axes.lines if line.get_marker() not in (None, "None", "")]
        for k, line in enumerate(lines):
            shift = width * (k / max(1, len(lines) - 1) - 0.5) if len(lines) > 1 else 0.0
            line.set_xdata(np.asarray(line.get_xdata(), dtype=float) + shift)


def _take_turns(axes: Axes, level: float, within: float = 0.0) -> int:
    """How many lines never leave a level; they lie on each other, so their marks take turns."""
    flat = [line for line in axes.lines if np.max(np.abs(np.asarray(line.get_ydata()) - level)) <= within]
    for place, line in enumerate(flat):
        if len(np.asarray(line.get_xdata())) >= len(flat):
            line.set_markevery((place, len(flat)))
    return len(flat)


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
    legend = {name: line_of(style) for name, style in styles.items()} | {"lower bound": Line2D([], [], **BOUND_LINE)}
    figure, panels = panel_grid(rows, len(sizes), PANEL_IN, legend)
    for axes in figure.axes:
        axes.set_xlim(0, 100)
        axes.xaxis.set_major_locator(MultipleLocator(25))
    return figure, dict(zip(sizes, panels, strict=True)), styles


def _name_axes(panels: dict[int, list[Axes]], labels: tuple[str, ...]) -> None:
    """N above each column, the share of lost UAVs below it, what is measured at the left of every row of columns."""
    for uavs, column in panels.items():
        label_axes(column[0], title=f"N = {uavs:,}")
        label_axes(column[-1], x="UAVs lost (%)")
        for axes in column[:-1]:
            axes.tick_params(labelbottom=False)
    for column in list(panels.values())[::MOST_COLUMNS]:
        for axes, label in zip(column, labels, strict=True):
            label_axes(axes, y=label)
            axes.yaxis.set_label_coords(-0.155, 0.5)


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
    axes.add_line(line_of(style, x, middle, zorder=3))
    rates = interval is share_interval
    always = rates and min(middle) == 1.0
    if rates:
        low = [1.0 if rate == 1.0 else least for rate, least in zip(middle, low, strict=True)]
    if not always and len(x) > 1:
        axes.fill_between(x, low, high, color=style.color, alpha=BAND_ALPHA, linewidth=0, zorder=2)
    elif not always:
        axes.vlines(x, low, high, color=style.color, alpha=0.6, linewidth=1.2, zorder=2)
    axes.autoscale_view(scalex=False)


def sensing_figure(evidence: Evidence) -> Figure:
    """Convergence and mean recovery time over noise or delay; every setting (N, damage) weighs the same."""
    column, _ = sensed_column(evidence)
    means = sensed_means(evidence)
    styles = line_styles(evidence.methods)
    legend = {name: line_of(style) for name, style in styles.items()}
    figure, panels = panel_grid(1, 2, SENSING_PANEL_IN, legend, gap_in=(0.7, 0.0), head_in=0.15)
    measures = (("converged", "convergence rate", (-0.04, 1.06)), ("time_s", "recovery time (s)", (0, None)))
    for (axes,), (what, label, limits) in zip(panels, measures, strict=True):
        for name, style in styles.items():
            mine = means.filter(pl.col("method") == name)
            add_line(axes, style, mine[column], mine[what], label=name)
        axes.set_ylim(*limits)
        label_axes(axes, x=LABELS[column], y=label)
    highest = float(means[column].max())  # type: ignore[arg-type]  # a number
    _spread_marks(figure, SPREAD_OF_LEVELS * highest * (len(styles) - 1))
    for (axes,) in panels:
        axes.set_xlim(-0.05 * (highest or 1.0), 1.05 * (highest or 1.0))
    return figure


def worlds_figure(evidence: Evidence) -> Figure:
    """Share reconnected and mean split steps: one line per world of an experiment, one mark per method.

    On the cases that all methods with a few cases in a world have flown; the plain world first.
    """
    means = world_means(common_by_world(evidence.rows))
    order = {leg.world: place for place, leg in enumerate(evidence.experiment.legs)}
    names = sorted(set(means["world"]), key=lambda world: order.get(world, len(order)))
    methods = [name for name in evidence.methods if name in set(means["method"])]
    styles = line_styles(methods)
    high, left, foot = max(0.22, 0.1 + 0.05 * len(styles)) * len(names) + 0.3, 3.1, 0.95
    figure = new_figure(left + 5.7, high + foot + 0.15)
    for place, (what, label, limits) in enumerate(
        (("converged", "reconnected", (-0.03, 1.05)), ("split", "split steps", (0, None)))
    ):
        axes = add_panel(figure, left + place * 2.85, foot, 2.55, high)
        dress_axes(axes)
        for name, style in styles.items():
            mine = means.filter(pl.col("method") == name)
            spread = SPREAD_OF_WORLDS if len(styles) > 1 else 0.0  # equal methods must not hide each other
            aside = spread * (methods.index(name) / max(1, len(styles) - 1) - 0.5)
            rows = [names.index(world) + aside for world in mine["world"]]
            add_line(axes, style, mine[what], rows, label=name, linewidth=0)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(*limits)
        axes.set_yticks(range(len(names)), [name or "plain" for name in names] if place == 0 else [""] * len(names))
        label_axes(axes, x=label)
    handles = [line_of(style) for style in styles.values()]
    figure.legend(handles, list(styles), loc="lower center", ncols=min(6, len(styles)), frameon=False, fontsize=8.5)
    return figure


def neighbors_figure(evidence: Evidence) -> Figure:
    """Mean recovery time and contacts over K_act and K_dmg; every damage ratio weighs the same."""
    means = budget_means(evidence)
    padded = line_styles(f"{n:06d}" for n in evidence.sizes)  # they are sorted by name
    styles = dict(zip(evidence.sizes, padded.values(), strict=True))
    legend = {f"N = {uavs}": line_of(style) for uavs, style in styles.items()}
    figure, panels = panel_grid(2, 2, NEIGHBORS_PANEL_IN, legend, head_in=0.15)
    for column, (budget, label) in zip(panels, BUDGETS.items(), strict=True):
        along = sweep(evidence.experiment.variants, budget)
        points = means.join(pl.DataFrame(along, schema={"name": pl.String, "k": pl.Int64}, orient="row"), on="name")
        for axes, what in zip(column, SHOWN, strict=True):
            for uavs, style in styles.items():
                mine = points.filter(pl.col("uavs") == uavs).sort("k")
                add_line(axes, style, mine["k"], mine[what], label=f"N = {uavs}")
            axes.set_ylim(bottom=0)
            axes.set_xticks(sorted({k for _, k in along}))
        column[0].tick_params(labelbottom=False)
        label_axes(column[-1], x=label)
    for axes, measure in zip(panels[0], SHOWN.values(), strict=True):
        label_axes(axes, y=measure)
    return figure


def budget_means(evidence: Evidence) -> pl.DataFrame:
    """Mean time and contacts by `name` of the variant and `uavs`."""
    rows = weighed(with_variants(evidence), ("name", "uavs"))
    return rows.group_by("name", "uavs").agg(weighed_mean(what) for what in SHOWN)


def sweep(variants: Sequence[Variant], budget: str) -> list[tuple[str, int]]:
    """(variant, K) of those that differ from the full graph in this one budget at most, by K."""
    full = GraphSpec()
    found = []
    for variant in variants:
        graphs = [setting.removeprefix("graph=") for setting in variant.settings if setting.startswith("graph=")]
        spec = GRAPHS[graphs[0]] if graphs else full
        k = getattr(spec, budget)
        if spec == replace(full, **{budget: k}):
            found.append((variant.name, k))
    return sorted(found, key=lambda pair: pair[1])


def learning_figure(evidence: Evidence) -> Figure:
    """Held-out success and time over bound by CPU minutes (by epoch, if a log has none): of a variant the mean of its
    seeds, and all within a band.
    """
    curves = learning_curves(evidence.folder)
    timed = all(curve["cpu_minutes"].is_finite().all() for curve in curves.values())
    clock, clock_label = ("cpu_minutes", "CPU minutes of one core") if timed else ("epoch", "epoch")
    styles = line_styles(curves)
    lines = {name: ("-", "--", ":")[number // DISTINCT % 3] for number, name in enumerate(styles)}
    legend = {name: line_of(style, linestyle=lines[name], markersize=3.0) for name, style in styles.items()}
    legend = legend if len(legend) > 1 else {}  # the text around a single line says what it is
    figure, panels = panel_grid(1, 2, LEARNING_PANEL_IN, legend, gap_in=(0.7, 0.0), head_in=0.15, entry_in=1.7)
    measures = (("success", "held-out success", (-0.04, 1.06)), ("over_bound", "time over bound", (0.9, None)))
    for (axes,), (what, label, limits) in zip(panels, measures, strict=True):
        for name, style in styles.items():
            mine = curves[name]
            low, high = mine[f"{what}_low"], mine[f"{what}_high"]
            axes.fill_between(mine[clock], low, high, color=style.color, alpha=BAND_ALPHA, linewidth=0)
            look = {"linestyle": lines[name], "linewidth": 1.3, "markersize": 3.0}
            add_line(axes, style, mine[clock], mine[what], label=name, **look)
        if what == "over_bound":
            axes.set_yscale("log")  # the first policies need ten times as long as the last
            plain_log_ticks(axes.yaxis)
        axes.set_ylim(*limits)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        label_axes(axes, x=clock_label, y=label)
    return figure


def learning_curves(folder: Path) -> dict[str, pl.DataFrame]:
    """Epoch, CPU minutes, success and time over bound of every variant: mean of its seeds, of the last two also lowest
    and highest.
    """
    points = [
        {"name": SEEDED.sub(r"\g<variant>", name), **point}
        for name, training in trainings_of(folder)
        for point in validations(training)
    ]
    if not points:
        raise InputError(f"{folder} holds no validation to draw: train for more epochs")
    shown = pl.col("success", "over_bound")
    means = pl.DataFrame(points).group_by("name", "epoch").agg(
        pl.col("cpu_minutes").mean(), shown.mean(), shown.min().name.suffix("_low"), shown.max().name.suffix("_high")
    )  # fmt: skip
    return {str(name): part for (name,), part in means.sort("name", "epoch").group_by("name", maintain_order=True)}


draw_curves = drawer(curves_figure)
draw_over_bound = drawer(over_bound_figure)
draw_sensing = drawer(sensing_figure)
draw_worlds = drawer(worlds_figure)
draw_neighbors = drawer(neighbors_figure)
draw_learning = drawer(learning_figure)
