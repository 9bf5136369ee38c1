"""A second opinion on flights: speed, contact between steps, finite numbers, connectivity, from positions alone.

Written without the simulator, its links and its filter, so that a defect there cannot hide here: plain numpy on the
positions of a recorded flight.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

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
    apart = trace[:, i] - trace[:, j]  # (T, P, 2)
    both = present[:, i] & present[:, j]
    start = np.sqrt((apart[0] ** 2).sum(axis=1))
    change = np.diff(apart, axis=0)
    share = -(apart[:-1] * change).sum(axis=2) / np.maximum((change * change).sum(axis=2), 1e-300)
    offset = apart[:-1] + np.clip(share, 0.0, 1.0)[..., None] * change
    close = np.where(both[1:], np.sqrt((offset * offset).sum(axis=2)), np.inf).min(axis=0, initial=np.inf)
    return float(np.max(np.minimum(contact_m, start) - close, initial=0.0))


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
