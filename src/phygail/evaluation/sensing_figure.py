"""How convergence and time change with noise or delay: one line per method."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from phygail.evaluation.evidence import Evidence
from phygail.evaluation.report_tables import sensed_column, sensed_means
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

PANEL_IN = (3.4, 2.3)
LABELS = {"noise_m": "noise of every coordinate (m)", "delay_steps": "age of news of neighbors (steps)"}


def draw_sensing(evidence: Evidence, path: Path) -> None:
    """Convergence and mean recovery time over noise or delay; every setting (N, damage) weighs the same."""
    with checked_draft(path, PICTURE_SUFFIXES) as draft:
        save_figure(sensing_figure(evidence), draft)


def sensing_figure(evidence: Evidence) -> Figure:
    """The figure behind `draw_sensing`."""
    column, _ = sensed_column(evidence)
    means = sensed_means(evidence)
    (wide, high), left, bottom = PANEL_IN, 0.65, 0.85
    figure = blank(2 * (wide + left) + 0.15, high + bottom + 0.2)
    styles = line_styles(evidence.methods)
    for place, (what, label) in enumerate((("converged", "convergence rate"), ("time_s", "recovery time (s)"))):
        axes = add_panel(figure, left + place * (wide + left), bottom, wide, high)
        for name, style in styles.items():
            mine = means.filter(pl.col("method") == name)
            face = "white" if style.hollow else style.color
            axes.plot(
                mine[column], mine[what], color=style.color, marker=style.marker, markersize=5, linewidth=1.5,
                markerfacecolor=face, label=name if place == 0 else None,
            )  # fmt: skip
        axes.set_ylim(bottom=-0.04 if what == "converged" else 0, top=1.06 if what == "converged" else None)
        axes.set_xlabel(LABELS[column], fontsize=8.5, color=SOFT)
        axes.set_ylabel(label, fontsize=9, color=INK)
        dress_axes(axes)
    figure.legend(loc="lower center", ncols=len(styles), frameon=False, fontsize=8.5, labelcolor=INK)
    return figure
