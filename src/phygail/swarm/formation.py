"""Layouts: where the UAVs of a swarm are before the damage."""

from __future__ import annotations

import math

import numpy as np

from phygail.config import PAPER_RANGE_M, InputError, Physics
from phygail.swarm.checks import LARGEST_COORDINATE_M, positive
from phygail.swarm.links import find_links, near_pairs

PAPER_WIDTHS_M = {20: 320.0, 50: 500.0, 100: 750.0, 200: 1000.0, 500: 1600.0}  # side of the square map by N
LARGEST_SWARM = 10_000
WHOLE_REDRAWS = 200  # layouts drawn afresh before strays are moved instead
STRAY_REDRAWS = 400  # rounds of moving strays
PLACEMENT_ROUNDS = 300  # rounds of redrawing UAVs that stand too close


def width_for(uavs: int, range_m: float = PAPER_RANGE_M) -> float:
    """Side of the square map for a swarm of `uavs` (METHODS 2.2): the paper's five, the same density between.

    The paper's maps are made for a radio of 120 m. With another one they grow in proportion, so that as many UAVs as
    in the paper are in range of each other: on a map of meters a 300 m radio would hardly ever split.
    """
    size = max((n for n in PAPER_WIDTHS_M if n <= uavs), default=20)
    width = PAPER_WIDTHS_M[size] * math.sqrt(uavs / size) * (range_m / PAPER_RANGE_M)
    if not width <= LARGEST_COORDINATE_M:
        raise InputError(
            f"a radio range of {range_m:g} m: the map of {uavs} UAVs would be {width:g} m wide, "
            f"more than {LARGEST_COORDINATE_M:g} m; choose a shorter range"
        )
    return width


def check_size(uavs: int) -> None:
    """Refuse swarm sizes outside 2 .. 10,000."""
    if not 2 <= uavs <= LARGEST_SWARM:
        raise InputError(f"a swarm of {uavs} UAVs: choose from 2 to {LARGEST_SWARM:,}")


def check_radio(physics: Physics) -> None:
    """Refuse a radio that reaches no farther than the contact distance, which fresh layouts keep."""
    if physics.contact_m >= physics.range_m:
        raise InputError(
            f"UAVs that keep a contact distance of {physics.contact_m:g} m have no links with a radio range of "
            f"{physics.range_m:g} m: choose a longer range or a shorter contact distance"
        )


def draw_layout(
    uavs: int, rng: np.random.Generator, width_m: float | None = None, physics: Physics | None = None
) -> np.ndarray:
    """A connected uniform layout without contacts: any two UAVs are at least the contact distance apart.

    Whole layouts are redrawn until one is connected. Where that is hopeless (above some 2,000 UAVs at the paper's
    density nearly every draw leaves a stray at the rim) the UAVs outside the largest subnet are redrawn instead.

    Args:
        uavs: Swarm size N, 2 to 10,000.
        rng: Source of randomness.
        width_m: Side of the map; `width_for` this swarm and radio if None.
        physics: Radio range that decides what is connected, and contact distance.

    Returns:
        (N, 2) m, in [0, width]^2.
    """
    check_size(uavs)
    radio = physics or Physics()
    check_radio(radio)
    width = width_for(uavs, radio.range_m) if width_m is None else positive("width", width_m)
    redraws = max(1, min(WHOLE_REDRAWS, 100_000 // uavs))
    layout = np.empty((0, 2))
    for _ in range(redraws):
        layout = _spread(layout[:0], uavs, width, radio, rng)
        if find_links(layout, radio.range_m).connected:
            return layout
    return _move_strays(layout, width, radio, rng)


def _spread(fixed: np.ndarray, uavs: int, width: float, physics: Physics, rng: np.random.Generator) -> np.ndarray:
    """Fill up `fixed` ((k, 2) m) to `uavs` points, uniform, each a contact distance from every earlier one."""
    points, apart = fixed, physics.contact_m
    # Oler's inequality: no more points than this fit at all. Refused at once, because the number of pairs that stand
    # too close, and with it time and memory, would grow with the square of the swarm.
    side = width / apart
    hopeless = uavs > 2 / math.sqrt(3) * side**2 + 2 * side + 1
    for _ in range(0 if hopeless else PLACEMENT_ROUNDS):
        points = np.vstack([points, rng.uniform(0.0, width, size=(uavs - len(points), 2))])
        close, distance = near_pairs(points, apart)
        late = np.unique(close[distance < apart].max(axis=1, initial=0))
        late = late[late >= len(fixed)]
        if not len(late):
            return points
        points = np.delete(points, late, axis=0)
    raise InputError(
        f"{uavs} UAVs do not fit {apart:g} m apart into a map {width:g} m wide: use fewer UAVs, "
        "a shorter contact distance or a wider map"
    )


def _move_strays(layout: np.ndarray, width: float, physics: Physics, rng: np.random.Generator) -> np.ndarray:
    """Redraw whoever is outside the largest subnet until there is one."""
    for _ in range(STRAY_REDRAWS):
        links = find_links(layout, physics.range_m)
        if links.connected:
            return layout
        sizes = np.bincount(links.subnet)
        if sizes.max() < len(layout) / 2:  # no strays but dust: collecting it would grow a clump, not a uniform layout
            break
        layout = _spread(layout[links.subnet == sizes.argmax()], len(layout), width, physics, rng)
    raise InputError(
        f"{len(layout)} UAVs with a radio range of {physics.range_m:g} m stay split on a map {width:g} m wide: "
        "use more UAVs, a longer range or a narrower map"
    )
