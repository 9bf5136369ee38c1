"""Pictures of a running episode, drawn without a display."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from phygail.evaluation.scene import add_dots, add_links, add_title, make_scene, plural, prepare_panel
from phygail.evaluation.style import SOFT, SUCCESS, add_panel, new_figure
from phygail.swarm.episode import Episode
from phygail.swarm.metrics import Meter
from phygail.swarm.state import SwarmState, initial_state

SIDE_IN, TITLE_IN, GAP_IN = 4.8, 0.48, 0.16  # map, room for its title, margin
DPI = 100


def draw_frame(state: SwarmState) -> np.ndarray:
    """(height, width, 3) uint8, always of the same size: the map right now, UAVs in the color of their first subnet."""
    first = initial_state(state.scenario)
    flight = Episode(
        state.scenario, state.terminated, state.truncated, state.step, Meter(first).result(), 0.0, 0.0, (first, state)
    )
    scene = make_scene({"": flight}, SIDE_IN)  # the view holds the map, and grows when somebody flies out of it
    figure = new_figure(SIDE_IN + 2 * GAP_IN, SIDE_IN + TITLE_IN + GAP_IN, DPI)
    axes = add_panel(figure, GAP_IN, GAP_IN, SIDE_IN, SIDE_IN)
    prepare_panel(axes, scene)
    add_links(axes, scene, state.links, state.positions)
    add_dots(axes, scene, state.positions)
    words = f"step {state.step:,} of {state.scenario.budget_steps:,}"
    network = "one network" if state.terminated else plural(state.links.count, "subnet")
    add_title(axes, words, network, SUCCESS if state.terminated else SOFT)
    canvas = cast(Any, figure.canvas)  # matplotlib leaves the methods of its canvas without types
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
