"""Cases for a soak: random swarms and those that rules fail on, each a pure function of (seed, number).

Rings, lines, lattices at exactly the radio range, far clusters, centers off the middle, hollow and nested subnets, two
survivors in opposite corners; with any radio, speed and step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from phygail.config import InputError, Physics
from phygail.rng import generator
from phygail.swarm.checks import shown
from phygail.swarm.layout import draw_layout, width_for
from phygail.swarm.links import find_links, near_pairs
from phygail.swarm.scenario import Scenario, make_scenario

MOST_UAVS = 60
Draw = Callable[[np.random.Generator, float], tuple[np.ndarray, np.ndarray]]  # -> (layout in m, damaged)


def soak_case(seed: int, number: int, *, kinds: tuple[str, ...] = ()) -> Scenario:
    """Case number `number` of a soak; one in three is a random swarm, the others go through the hard kinds.

    Args:
        seed: Of the soak. number: From 0 on. kinds: Only these (`KINDS`).
    """
    rng = generator(seed, "soak", number)
    names = kinds or (("random",) if number % 3 == 0 else HARD)
    name = names[int(rng.integers(len(names)))]
    if name not in KINDS:
        raise InputError(f"kind {shown(name)}: choose from {', '.join(KINDS)}")
    physics = _any_radio(rng) if rng.random() < 0.3 else Physics()
    layout, damaged = KINDS[name](rng, physics.range_m)
    layout, damaged = _apart(layout, damaged, physics.contact_m)
    center = None
    if name == "off-center" or rng.random() < 0.1:
        low, high = layout.min(axis=0), layout.max(axis=0)
        center = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low))
    return make_scenario(
        f"soak-{name}-{number}-s{seed}", layout, damaged.tolist(), center=center, physics=physics, seed=seed
    )


def _any_radio(rng: np.random.Generator) -> Physics:
    range_m = float(np.exp(rng.uniform(np.log(40.0), np.log(1000.0))))
    step = float(np.exp(rng.uniform(np.log(0.02), np.log(0.5))))
    stride = range_m * float(np.exp(rng.uniform(np.log(0.004), np.log(0.05))))
    return Physics(range_m, stride / step, step, min(10.0, range_m / 12))


def _apart(layout: np.ndarray, damaged: np.ndarray, contact_m: float) -> tuple[np.ndarray, np.ndarray]:
    """Without UAVs that stand in contact with an earlier one; at least two stay alive."""
    kept = np.ones(len(layout), dtype=bool)
    pairs, lengths = near_pairs(layout, contact_m)
    for early, late in pairs[lengths < contact_m].tolist():
        kept[late] &= not kept[early]
    gone = np.flatnonzero(np.isin(np.flatnonzero(kept), damaged))
    return layout[kept], gone[: max(0, kept.sum() - 2)]


def _random(rng: np.random.Generator, range_m: float) -> tuple[np.ndarray, np.ndarray]:
    uavs = int(rng.integers(6, MOST_UAVS + 1))
    width = width_for(uavs, range_m) * float(rng.uniform(0.9, 1.1))
    layout = draw_layout(uavs, rng, width, Physics(range_m=range_m, contact_m=min(10.0, range_m / 12)))
    damaged = rng.permutation(uavs)[: int(rng.integers(1, uavs - 1))]
    return layout, damaged


def _ring(rng: np.random.Generator, range_m: float) -> tuple[np.ndarray, np.ndarray]:
    uavs = int(rng.integers(5, 40))
    radius = uavs * range_m * float(rng.uniform(0.7, 1.0)) / (2 * np.pi)
    angle = 2 * np.pi * (np.arange(uavs) + rng.uniform(0, 0.3, uavs)) / uavs
    layout = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return layout, rng.permutation(uavs)[: int(rng.integers(1, uavs - 1))]


def _line(rng: np.random.Generator, range_m: float) -> tuple[np.ndarray, np.ndarray]:
    uavs = int(rng.integers(3, 30))
    turn = rng.uniform(0, 2 * np.pi)
    along = np.arange(uavs) * range_m * float(rng.choice([1.0, 0.999999, 0.8]))
    return along[:, None] * [np.cos(turn), np.sin(turn)], rng.permutation(uavs)[: int(rng.integers(1, uavs - 1))]


def _lattice(rng: np.random.Generator, range_m: float) -> tuple[np.ndarray, np.ndarray]:
    side = int(rng.integers(2, 8))
    x, y = np.meshgrid(np.arange(side), np.arange(int(rng.integers(2, 8))))
    layout = range_m * np.stack([x.ravel(), y.ravel()], axis=1).astype(float)
    return layout, rng.permutation(len(layout))[: int(rng.integers(1, len(layout) - 1))]


def _clusters(rng: np.random.Generator, range_m: float) -> tuple[np.ndarray, np.ndarray]:
    count = int(rng.integers(2, 6))
    middles = rng.uniform(-6 * range_m, 6 * range_m, (count, 2))
    points = [m + rng.normal(0, range_m / 4, (int(rng.integers(1, 10)), 2)) for m in middles]
    bridge = rng.uniform(-6 * range_m, 6 * range_m, (int(rng.integers(1, 12)), 2))
    layout = np.concatenate([*points, bridge])
    return layout, np.arange(len(layout) - len(bridge), len(layout))


def _hollow(rng: np.random.Generator, range_m: float) -> tuple[np.ndarray, np.ndarray]:
    """A connected ring around a subnet that it cannot hear."""
    uavs = int(rng.integers(16, 34))
    angle = 2 * np.pi * np.arange(uavs) / uavs
    ring = uavs * 0.95 * range_m / (2 * np.pi) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inner = rng.normal(0, range_m / 5, (int(rng.integers(1, 6)), 2))
    between = rng.uniform(-range_m, range_m, (int(rng.integers(1, 10)), 2)) * 1.6
    layout = np.concatenate([ring, inner, between])
    return layout, np.arange(len(ring) + len(inner), len(layout))


def _nested(rng: np.random.Generator, range_m: float) -> tuple[np.ndarray, np.ndarray]:
    """Half rings inside each other, open to different sides."""
    parts = []
    for level in range(1, int(rng.integers(3, 5))):
        radius = level * 1.3 * range_m
        count = max(2, int(np.pi * radius / (0.9 * range_m)))
        angle = level * np.pi + np.linspace(0, np.pi, count)
        parts.append(radius * np.stack([np.cos(angle), np.sin(angle)], axis=1))
    layout = np.concatenate([*parts, rng.uniform(-range_m, range_m, (3, 2)) * 3])
    return layout, np.arange(len(layout) - 3, len(layout))


def _corners(rng: np.random.Generator, range_m: float) -> tuple[np.ndarray, np.ndarray]:
    """Two survivors in opposite corners of what was a swarm."""
    uavs = int(rng.integers(8, MOST_UAVS + 1))
    width = width_for(uavs, range_m)
    layout = np.concatenate([[[0.0, 0.0], [width, width]], rng.uniform(0, width, (uavs - 2, 2))])
    return layout, np.arange(2, uavs)


KINDS: dict[str, Draw] = {
    "random": _random, "ring": _ring, "line": _line, "lattice": _lattice, "clusters": _clusters, "hollow": _hollow,
    "nested": _nested, "corners": _corners, "off-center": _random,
}  # fmt: skip
HARD = tuple(name for name in KINDS if name != "random")


def is_split(scenario: Scenario) -> bool:
    """Whether there is anything to do."""
    return not find_links(scenario.spots, scenario.physics.range_m).connected
