"""Layouts: where the UAVs of a swarm are before the damage."""

from __future__ import annotations

import math

import numpy as np

from phygail.config import SEPARATION_M, InputError, Physics
from phygail.swarm.checks import positive
from phygail.swarm.links import find_links, near_pairs

PAPER_WIDTHS_M = {20: 320.0, 50: 500.0, 100: 750.0, 200: 1000.0, 500: 1600.0}  # side of the square map by N
LARGEST_SWARM = 10_000
WHOLE_REDRAWS = 200  # layouts drawn afresh before strays are moved instead
STRAY_REDRAWS = 400  # rounds of moving strays
PLACEMENT_ROUNDS = 300  # rounds of redrawing UAVs that stand too close


def width_for(uavs: int) -> float:
    """Side of the square map for a swarm of `uavs` (METHODS 2.2): the paper's five, the same density between."""
    size = max((n for n in PAPER_WIDTHS_M if n <= uavs), default=20)
    return PAPER_WIDTHS_M[size] * math.sqrt(uavs / size)


def check_size(uavs: int) -> None:
    """Refuse swarm sizes outside 2 .. 10,000."""
    if not 2 <= uavs <= LARGEST_SWARM:
        raise InputError(f"a swarm of {uavs} UAVs: choose from 2 to {LARGEST_SWARM:,}")


def draw_layout(
    uavs: int, rng: np.random.Generator, width_m: float | None = None, physics: Physics | None = None
) -> np.ndarray:
    """A connected uniform layout with at least SEPARATION_M between any two UAVs.

    Whole layouts are redrawn until one is connected. Where that is hopeless (above some 2,000 UAVs at the paper's
    density nearly every draw leaves a stray at the rim) the UAVs outside the largest subnet are redrawn instead.

    Args:
        uavs: Swarm size N, 2 to 10,000.
        rng: Source of randomness.
        width_m: Side of the map; `width_for(uavs)` if None.
        physics: Radio range that decides what is connected.

    Returns:
        (N, 2) m, in [0, width]^2.
    """
    check_size(uavs)
    width = width_for(uavs) if width_m is None else positive("width", width_m)
    reach = (physics or Physics()).range_m
    redraws = max(1, min(WHOLE_REDRAWS, 100_000 // uavs))
    layout = np.empty((0, 2))
    for _ in range(redraws):
        layout = _spread(layout[:0], uavs, width, rng)
        if find_links(layout, reach).connected:
            return layout
    return _move_strays(layout, width, reach, rng)


def _spread(fixed: np.ndarray, uavs: int, width: float, rng: np.random.Generator) -> np.ndarray:
    """Fill up `fixed` ((k, 2) m) to `uavs` points, uniform, each SEPARATION_M from every earlier one."""
    points = fixed
    # Oler's inequality: no more points than this fit at all. Refused at once, because the number of pairs that stand
    # too close, and with it time and memory, would grow with the square of the swarm.
    side = width / SEPARATION_M
    hopeless = uavs > 2 / math.sqrt(3) * side**2 + 2 * side + 1
    for _ in range(0 if hopeless else PLACEMENT_ROUNDS):
        points = np.vstack([points, rng.uniform(0.0, width, size=(uavs - len(points), 2))])
        close, distance = near_pairs(points, SEPARATION_M)
        late = np.unique(close[distance < SEPARATION_M].max(axis=1, initial=0))
        late = late[late >= len(fixed)]
        if not len(late):
            return points
        points = np.delete(points, late, axis=0)
    raise InputError(
        f"{uavs} UAVs do not fit {SEPARATION_M:g} m apart into a map {width:g} m wide: "
        f"use fewer UAVs or a width near {width_for(uavs):.0f} m"
    )


def _move_strays(layout: np.ndarray, width: float, reach: float, rng: np.random.Generator) -> np.ndarray:
    """Redraw whoever is outside the largest subnet until there is one."""
    for _ in range(STRAY_REDRAWS):
        links = find_links(layout, reach)
        if links.connected:
            return layout
        sizes = np.bincount(links.subnet)
        if sizes.max() < len(layout) / 2:  # no strays but dust: collecting it would grow a clump, not a uniform layout
            break
        layout = _spread(layout[links.subnet == sizes.argmax()], len(layout), width, rng)
    raise InputError(
        f"{len(layout)} UAVs with a radio range of {reach:g} m stay split on a map {width:g} m wide: "
        "use more UAVs, a longer range or a narrower map"
    )
