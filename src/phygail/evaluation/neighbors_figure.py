"""What the budgets of neighbors K_act and K_dmg change: time and contacts over each, a line per swarm size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from phygail.evaluation.evidence import Evidence, weighed, weighed_mean
from phygail.evaluation.experiment import Variant
from phygail.evaluation.style import (
    INK,
    PICTURE_SUFFIXES,
    SOFT,
    add_panel,
    checked_draft,
    dress_axes,
    line_styles,
    save_figure,
)
from phygail.evaluation.style import new_figure as blank
from phygail.evaluation.trained_tables import with_variants
from phygail.perception.graph import GRAPHS, GraphSpec

PANEL_IN = (3.4, 1.8)
BUDGETS = {"k_act": "linked UAVs attended to, $K_{act}$", "k_dmg": "damaged UAVs attended to, $K_{dmg}$"}
SHOWN = {"time_s": "recovery time (s)", "contact_events_per_uav": "contacts per UAV"}


def draw_neighbors(evidence: Evidence, path: Path) -> None:
    """Mean recovery time and contacts over K_act and K_dmg; every damage ratio weighs the same."""
    with checked_draft(path, PICTURE_SUFFIXES) as draft:
        save_figure(neighbors_figure(evidence), draft)


def neighbors_figure(evidence: Evidence) -> Figure:
    """The figure behind `draw_neighbors`: a column per budget, a row per measure."""
    means = budget_means(evidence)
    (wide, high), left, bottom, gap = PANEL_IN, 0.75, 0.85, 0.2
    figure = blank(2 * (wide + left) + 0.15, 2 * high + gap + bottom + 0.2)
    styles = list(line_styles(f"{n:06d}" for n in evidence.sizes).values())  # padded: they are sorted by name
    for column, (budget, label) in enumerate(BUDGETS.items()):
        along = sweep(evidence.experiment.variants, budget)
        points = means.join(pl.DataFrame(along, schema={"name": pl.String, "k": pl.Int64}, orient="row"), on="name")
        for row, (what, measure) in enumerate(SHOWN.items()):
            axes = add_panel(
                figure, left + column * (wide + left), bottom + (len(SHOWN) - 1 - row) * (high + gap), wide, high
            )
            for uavs, style in zip(evidence.sizes, styles, strict=True):
                mine = points.filter(pl.col("uavs") == uavs).sort("k")
                axes.plot(
                    mine["k"], mine[what], color=style.color, marker=style.marker, markersize=5, linewidth=1.5,
                    label=f"N = {uavs}" if row == column == 0 else None,
                )  # fmt: skip
            axes.set_ylim(bottom=0)
            axes.set_xticks(sorted({k for _, k in along}))
            if row == len(SHOWN) - 1:
                axes.set_xlabel(label, fontsize=8.5, color=SOFT)
            else:
                axes.tick_params(labelbottom=False)
            if column == 0:
                axes.set_ylabel(measure, fontsize=9, color=INK)
            dress_axes(axes)
    figure.legend(loc="lower center", ncols=len(styles), frameon=False, fontsize=8.5, labelcolor=INK)
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
