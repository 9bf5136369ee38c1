"""All pictures: one scenario before and after (drawn here), curves over damage and animations (from their modules)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

from phygail.evaluation.animation import animate_recovery
from phygail.evaluation.curves import draw_curves, draw_over_bound
from phygail.evaluation.scene import (
    add_dots,
    add_legend,
    add_links,
    add_range_bar,
    add_title,
    add_trails,
    damage_words,
    grid_shape,
    make_scene,
    outcome_words,
    prepare_panel,
)
from phygail.evaluation.style import (
    FAILURE,
    PICTURE_SUFFIXES,
    SOFT,
    add_panel,
    checked_draft,
    new_figure,
    save_figure,
)
from phygail.swarm.episode import Episode

__all__ = ["animate_recovery", "draw_curves", "draw_over_bound", "draw_recovery"]

PANEL_IN = 3.3  # side of a map panel
GAP_IN = 0.18  # between panels
TITLE_IN = 0.48  # above each panel
FOOT_IN = 0.38  # note below the legend
LEGEND_IN = 0.2  # each line of the legend


def draw_recovery(flights: Mapping[str, Episode], path: Path) -> None:
    """Draw one scenario right after the damage, then the moment each method reconnected it (or gave up).

    UAVs keep the color of their subnet after the damage throughout, so one sees who flew where.

    Args:
        flights: Recorded episodes of one scenario by name of the method.
        path: PNG, PDF or SVG by suffix; written whole or not at all.
    """
    with checked_draft(path, PICTURE_SUFFIXES) as draft:
        save_figure(recovery_figure(flights), draft)


def recovery_figure(flights: Mapping[str, Episode]) -> Figure:
    """The figure behind `draw_recovery`."""
    scene = make_scene(flights, PANEL_IN)
    columns, rows = grid_shape(len(flights) + 1)
    legend_rows = 1 if columns > 2 else 2
    foot = FOOT_IN + legend_rows * LEGEND_IN
    height = rows * (PANEL_IN + TITLE_IN) + (rows - 1) * GAP_IN + foot
    figure = new_figure(columns * PANEL_IN + (columns + 1) * GAP_IN, height)
    for k, (name, episode) in enumerate([("", None), *flights.items()]):
        left = GAP_IN + (k % columns) * (PANEL_IN + GAP_IN)
        top = height - TITLE_IN - (k // columns) * (PANEL_IN + TITLE_IN + GAP_IN)
        axes = add_panel(figure, left, top - PANEL_IN, PANEL_IN, PANEL_IN)
        prepare_panel(axes, scene)
        if episode is None:
            add_links(axes, scene, scene.links, scene.scenario.spots)
            add_dots(axes, scene, scene.scenario.spots)
            add_title(axes, "right after the damage", damage_words(scene))
            add_range_bar(figure, axes, scene)
        else:
            add_trails(axes, scene, episode)
            last = episode.states[-1]
            add_links(axes, scene, last.links, last.positions)
            add_dots(axes, scene, last.positions)
            add_title(axes, name, outcome_words(episode), SOFT if episode.terminated else FAILURE)
    add_legend(figure, scene, legend_rows)
    return figure
