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
    """Number of networks of `points` ((n, 2) m), by flooding from one UAV after the other."""
    left = set(range(len(points)))
    count = 0
    while left:
        count += 1
        edge = [left.pop()]
        while edge:
            here = points[edge.pop()]
            others = np.array(sorted(left), dtype=int)
            if not len(others):
                break
            near = others[np.sqrt(((points[others] - here) ** 2).sum(axis=1)) <= range_m + RANGE_SLACK_M]
            left -= set(near.tolist())
            edge += near.tolist()
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
        i, j = np.triu_indices(positions.shape[1], 1)
        start = np.sqrt(((positions[0][i] - positions[0][j]) ** 2).sum(axis=1))
        short = np.minimum(contact_m, start) - closest_m(positions)
        if short.size and short.max() > CONTACT_SLACK * contact_m:
            found.append(f"contact: a pair came {short.max():.3g} m closer than it may")
    return found


@dataclass(frozen=True)
class Limits:
    """What a flight in any world must keep.

    Attributes:
        stride_m: Of a step, wind included. contact_m: Contact distance; 0 if nothing is promised.
        range_m: Of the disc in which the last network must be one; 0 if links are no disc.
        discs: (x, y, radius) m and walls: (x, y, x, y, half thickness) m that nobody may enter.
        change_m: By how much the way of a step may differ from that of the step before.
    """

    stride_m: float
    contact_m: float
    range_m: float
    discs: tuple[tuple[float, float, float], ...] = ()
    walls: tuple[tuple[float, float, float, float, float], ...] = ()
    change_m: float = np.inf


def world_faults(members: list[np.ndarray], positions: list[np.ndarray], limits: Limits) -> list[str]:
    """What is wrong with a flight during which UAVs may be lost; empty if nothing is.

    Args:
        members: Of every step: (n,) roster indices, ascending. positions: (n, 2) m. limits: What it must keep.
    """
    if not all(np.isfinite(p).all() for p in positions):
        return ["a position is not a number"]
    found: dict[str, str] = {}
    allowed: dict[tuple[int, int], float] = {}
    before: dict[int, np.ndarray] = {}
    for t in range(1, len(positions)):
        stay = np.isin(members[t - 1], members[t])
        names, start, end = members[t], positions[t - 1][stay], positions[t]
        way = end - start
        far = np.sqrt((way**2).sum(axis=1)).max()
        if far > limits.stride_m * (1 + SPEED_SLACK):
            found["speed"] = f"overspeed: {far:.9g} m in step {t}"
        jump = max(
            (float(np.hypot(*(w - before[k]))) for k, w in zip(names, way, strict=True) if k in before), default=0
        )
        if jump > limits.change_m * (1 + SPEED_SLACK) + 1e-9:
            found["accel"] = f"acceleration: the way of a step changed by {jump:.6g} m in step {t}"
        before = dict(zip(names.tolist(), way, strict=True))
        if limits.contact_m:
            short = _contact(names, start, end, limits.contact_m, allowed)
            if short > CONTACT_SLACK * limits.contact_m:
                found["contact"] = f"contact: a pair came {short:.3g} m closer than it may, step {t}"
        for share in (0.5, 1.0):
            deep = _deepest_m(start + share * way, limits)
            if deep > 1e-9:
                found["obstacle"] = f"obstacle: {deep:.3g} m inside in step {t}"
    if limits.range_m and subnets(positions[-1], limits.range_m) > 1:
        found["split"] = f"still {subnets(positions[-1], limits.range_m)} subnets after {len(positions) - 1} steps"
    return list(found.values())


def _contact(
    names: np.ndarray, start: np.ndarray, end: np.ndarray, contact_m: float, allowed: dict[tuple[int, int], float]
) -> float:
    """By how much some pair came closer in this step than its earlier distances and the contact distance allow."""
    i, j = np.triu_indices(len(names), 1)
    apart = np.sqrt(((start[i] - start[j]) ** 2).sum(axis=1))
    close = closest_m(np.stack([start, end]))
    worst = 0.0
    for k in np.flatnonzero(close < contact_m):
        pair = (int(names[i[k]]), int(names[j[k]]))
        least = min(allowed.get(pair, np.inf), contact_m, apart[k])
        worst = max(worst, least - close[k])
        allowed[pair] = least
    return worst


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
