"""A soak: random and hard cases, each a pure function of (seed, number), and an independent check of their flights.

The hard cases: rings, lines, lattices at exactly the radio range, far clusters, centers off the middle, hollow and
nested subnets, two survivors in opposite corners; with any radio, speed and step.

The check is a second opinion: speed, contact between steps, finite numbers and connectivity, from positions alone. It
uses neither the simulator nor its links and filter, so that a defect there cannot hide here: plain numpy on the
positions of a recorded flight.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

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
    """The layout without UAVs that stand in contact with an earlier one; at least two stay alive."""
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
    """A connected ring around a subnet that is out of its radio range."""
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
    """Whether the swarm is split, so that there is something to do."""
    return not find_links(scenario.spots, scenario.physics.range_m).connected


# --- the check -------------------------------------------------------------------------------------------------------

SPEED_SLACK = 1e-6  # of the speed limit
RANGE_SLACK_M = 2e-6  # of the link tolerance's size
CONTACT_SLACK = 1e-6  # of the contact distance


def closest_m(positions: np.ndarray) -> np.ndarray:
    """(P,) m, how close every pair i < j comes in continuous time; UAVs fly straight between steps.

    Args:
        positions: (T, n, 2) m.
    """
    i, j = np.triu_indices(positions.shape[1], 1)
    best = np.full(len(i), np.inf)
    for now, then in itertools.pairwise(positions):
        apart = now[i] - now[j]
        change = (then[i] - then[j]) - apart
        share = -(apart * change).sum(axis=1) / np.maximum((change * change).sum(axis=1), 1e-300)
        offset = apart + np.clip(share, 0.0, 1.0)[:, None] * change
        best = np.minimum(best, np.sqrt((offset * offset).sum(axis=1)))
    return best if len(positions) > 1 else np.hypot(*(positions[0][i] - positions[0][j]).T)


def subnets(points: np.ndarray, range_m: float) -> int:
    """Number of networks of `points` ((n, 2 or 3) m), by flooding from one UAV after the other."""
    apart = points[:, None] - points
    near = (apart * apart).sum(axis=2) <= (range_m + RANGE_SLACK_M) ** 2
    left = np.ones(len(points), dtype=bool)
    count = 0
    while left.any():
        count += 1
        reached = np.zeros(len(points), dtype=bool)
        edge = np.zeros(len(points), dtype=bool)
        edge[left.argmax()] = True
        while edge.any():
            reached |= edge
            edge = near[edge].any(axis=0) & ~reached
        left &= ~reached
    return count


def faults(positions: np.ndarray, *, range_m: float, stride_m: float, contact_m: float, filtered: bool) -> list[str]:
    """What is wrong with a flight in the plain world that should end in one network; empty if nothing is.

    Args:
        positions: (T, n, 2) m, of every step.
        range_m, contact_m: Radio range and contact distance. stride_m: The farthest that a UAV may fly in one step.
        filtered: Whether it promises no new contact.
    """
    if not np.isfinite(positions).all():
        return ["a position is not a number"]
    found = []
    way = np.sqrt((np.diff(positions, axis=0) ** 2).sum(axis=2))
    if way.size and way.max() > stride_m * (1 + SPEED_SLACK):
        found.append(f"overspeed: {way.max():.9g} m in a step of {stride_m:g} m")
    count = subnets(positions[-1], range_m)
    if count > 1:
        found.append(f"still {count} subnets after {len(positions) - 1} steps")
    if len(positions) > 1 and subnets(positions[-2], range_m - 2 * RANGE_SLACK_M) == 1:
        found.append("was one network a step before its end")
    if filtered:
        short = _contact(positions, np.ones(positions.shape[:2], dtype=bool), contact_m)
        if short > CONTACT_SLACK * contact_m:
            found.append(f"contact: a pair came {short:.3g} m closer than it may")
    return found


@dataclass(frozen=True)
class Limits:
    """What a flight in any world must keep.

    Attributes:
        stride_m: Of a step, wind included. contact_m: Contact distance; 0 if nothing is promised.
        range_m: Of the disc in which the last network must be one; 0 if links are no disc.
        discs: (x, y, radius) m and walls: (x, y, x, y, half thickness) m that nobody may enter.
        change_m: By how much the way of a step may differ from that of the step before.
        heights: m, of every UAV; empty in one layer. hold_steps: In so many last states the network must be one.
    """

    stride_m: float
    contact_m: float
    range_m: float
    discs: tuple[tuple[float, float, float], ...] = ()
    walls: tuple[tuple[float, float, float, float, float], ...] = ()
    change_m: float = np.inf
    heights: tuple[float, ...] = ()
    hold_steps: int = 1


def world_faults(members: list[np.ndarray], positions: list[np.ndarray], limits: Limits) -> list[str]:
    """What is wrong with a flight during which UAVs may be lost; empty if nothing is.

    Args:
        members: Of every step: (n,) roster indices. positions: (n, 2) m. limits: What it must keep.
    """
    total = 1 + max(int(names.max()) for names in members)
    trace, present = np.zeros((len(members), total, 2)), np.zeros((len(members), total), dtype=bool)
    for t, (names, points) in enumerate(zip(members, positions, strict=True)):
        trace[t, names], present[t, names] = points, True
    return trace_faults(trace, present, limits)


def trace_faults(trace: np.ndarray, present: np.ndarray, limits: Limits) -> list[str]:
    """The same for places ((T, N, 2) m) of all and whether they are there ((T, N) bool)."""
    if not np.isfinite(trace[present]).all():
        return ["a position is not a number"]
    found = []
    stay = present[:-1] & present[1:]
    way = np.where(stay[..., None], np.diff(trace, axis=0), 0.0)
    far = np.sqrt((way**2).sum(axis=2)).max(axis=1, initial=0.0)
    if far.max(initial=0.0) > limits.stride_m * (1 + SPEED_SLACK):
        found.append(f"overspeed: {far.max():.9g} m in step {far.argmax() + 1}")
    if np.isfinite(limits.change_m):
        jump = np.sqrt((np.diff(way, axis=0) ** 2).sum(axis=2)) * (stay[1:] & stay[:-1])
        if jump.max(initial=0.0) > limits.change_m * (1 + SPEED_SLACK) + 1e-9:
            found.append(f"acceleration: the way of a step changed by {jump.max():.6g} m")
    short = _contact(trace, present, limits.contact_m) if limits.contact_m else 0.0
    if short > CONTACT_SLACK * limits.contact_m:
        found.append(f"contact: a pair came {short:.3g} m closer than it may")
    if (limits.discs or limits.walls) and len(trace) > 1:
        deep = max(_deepest_m((trace[:-1] + share * way)[stay], limits) for share in (0.5, 1.0))
        if deep > 1e-9:
            found.append(f"obstacle: {deep:.3g} m inside")
    for back in range(min(limits.hold_steps, len(trace)) if limits.range_m else 0):
        points = trace[-1 - back][present[-1 - back]]
        if limits.heights:
            points = np.column_stack([points, np.array(limits.heights)[present[-1 - back]]])
        count = subnets(points, limits.range_m)
        if count > 1:
            found.append(f"still {count} subnets {back} steps before the end, after {len(trace) - 1} steps")
            break
    return found


def _contact(trace: np.ndarray, present: np.ndarray, contact_m: float) -> float:
    """By how much some pair came closer in continuous time than the contact distance and its distance at the start."""
    flown = np.flatnonzero(present[0])
    i, j = (flown[part] for part in np.triu_indices(len(flown), 1))
    x, y = trace[..., 0], trace[..., 1]
    apart2 = (x[:, i] - x[:, j]) ** 2 + (y[:, i] - y[:, j]) ** 2  # (T, P)
    # Two UAVs come closer within a step by at most the ways that they fly in it: other pairs are not looked at.
    way = np.where((present[:-1] & present[1:])[..., None], np.diff(trace, axis=0), 0.0)
    nearer = 2.0 * np.sqrt((way**2).sum(axis=2).max(initial=0.0))
    t, pair = np.nonzero((apart2[:-1] < (contact_m + nearer) ** 2) & present[1:, i] & present[1:, j])
    change = way[t, i[pair]] - way[t, j[pair]]
    apart = trace[t, i[pair]] - trace[t, j[pair]]
    share = -(apart * change).sum(axis=1) / np.maximum((change * change).sum(axis=1), 1e-300)
    offset = apart + np.clip(share, 0.0, 1.0)[:, None] * change
    allowed = np.minimum(contact_m, np.sqrt(apart2[0, pair]))
    return float(np.max(allowed - np.sqrt((offset * offset).sum(axis=1)), initial=0.0))


def _deepest_m(points: np.ndarray, limits: Limits) -> float:
    """How deep the deepest point is inside a disc or wall; negative outside."""
    deep = [-np.inf]
    for x, y, radius in limits.discs:
        deep.append(radius - np.sqrt(((points - [x, y]) ** 2).sum(axis=1)).min())
    for x, y, u, v, half in limits.walls:
        along = np.array([u - x, v - y])
        share = np.clip((points - [x, y]) @ along / (along @ along), 0.0, 1.0)
        deep.append(half - np.sqrt(((points - [x, y] - share[:, None] * along) ** 2).sum(axis=1)).min())
    return float(max(deep))
