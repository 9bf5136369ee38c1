"""Worlds with at most 20 UAVs flying, of three kinds, to train `phygail` in: what a subnet of any swarm can meet.

whole: swarms of 20, any damage. survivors: the last of 50 to 200 UAVs, on their map. patch: a neighborhood of a swarm
of 200 or 500, alone on the map, its center up to 1 km away; brings dense rosters with few losses at any distance.
"""

from __future__ import annotations

import functools

import numpy as np

from phygail.rng import generator
from phygail.swarm.formation import draw_layout, width_for
from phygail.swarm.links import find_links
from phygail.swarm.scenario import Scenario, make_scenario

FLYING = 20  # at most
LAYOUTS = 24  # per swarm size, drawn once per seed: damage makes the variety
KINDS = (("whole", 0.2), ("survivors", 0.5), ("patch", 0.3))  # and their shares
SURVIVOR_SIZES = (50, 100, 200)
PATCH_SIZES = (200, 500)
PATCH_ROSTER = (24, 80)  # UAVs of a patch before the damage


def draw_worlds(count: int, seed: int, *key: int | str) -> list[Scenario]:
    """Scenarios that are split, each of a random kind; equal keys give equal worlds."""
    rng = generator(seed, "worlds", *key)
    names, shares = [name for name, _ in KINDS], [share for _, share in KINDS]
    worlds: list[Scenario] = []
    while len(worlds) < count:
        kind = str(rng.choice(names, p=shares))
        scenario = _draw(kind, seed, rng)
        if find_links(scenario.spots, scenario.physics.range_m).count > 1:
            worlds.append(scenario)
    return worlds


def _draw(kind: str, seed: int, rng: np.random.Generator) -> Scenario:
    if kind == "whole":
        return _damaged(_layout(20, int(rng.integers(LAYOUTS)), seed), int(rng.integers(2, FLYING)), 20, rng)
    sizes = SURVIVOR_SIZES if kind == "survivors" else PATCH_SIZES
    size = int(rng.choice(sizes))
    layout = _layout(size, int(rng.integers(LAYOUTS)), seed)
    if kind == "patch":
        roster = int(rng.integers(PATCH_ROSTER[0], PATCH_ROSTER[1] + 1))
        middle = layout[rng.integers(size)]
        layout = layout[np.argsort(np.hypot(*(layout - middle).T), kind="stable")[:roster]]
    return _damaged(layout, int(rng.integers(4, FLYING + 1)), size, rng)


def _damaged(layout: np.ndarray, flying: int, size: int, rng: np.random.Generator) -> Scenario:
    damaged = np.sort(rng.permutation(len(layout))[flying:])
    width = width_for(size)
    return make_scenario("world", layout, damaged, width_m=width)


@functools.lru_cache(maxsize=256)
def _layout(size: int, number: int, seed: int) -> np.ndarray:
    return draw_layout(size, generator(seed, "layout", size, number))
