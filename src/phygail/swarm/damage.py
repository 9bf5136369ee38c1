"""Damage: which UAVs a failure takes. Always at least two stay alive."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from phygail.config import InputError
from phygail.swarm.checks import shown

LEAST_ALIVE = 2


def damage_count(uavs: int, ratio: float) -> int:
    """Ratio x N rounded half up, leaving at least two alive."""
    if uavs < LEAST_ALIVE:
        raise InputError(f"a swarm of {uavs} UAVs: at least {LEAST_ALIVE} are needed")
    if not 0.0 <= ratio <= 1.0:
        raise InputError(f"damage ratio {ratio}: choose from 0 to 1")
    # 1e-9: 0.15 * 50 is 7.5 on paper and 7.499999999999999 in floating point for some ratios.
    return min(math.floor(uavs * ratio + 0.5 + 1e-9), uavs - LEAST_ALIVE)


def random_damage(uavs: int, ratio: float, rng: np.random.Generator) -> np.ndarray:
    """A uniformly random set of `damage_count(uavs, ratio)` UAVs, sorted."""
    return np.sort(rng.choice(uavs, size=damage_count(uavs, ratio), replace=False))


def strike_damage(layout: np.ndarray, x_m: float, y_m: float, radius_m: float) -> np.ndarray:
    """Everyone within `radius_m` of (x, y), sorted: an area strike."""
    if not all(map(math.isfinite, (x_m, y_m, radius_m))) or radius_m < 0:
        raise InputError(f"strike {x_m},{y_m},{radius_m}: give X,Y,RADIUS in meters, the radius not negative")
    hit = np.flatnonzero(np.hypot(layout[:, 0] - x_m, layout[:, 1] - y_m) <= radius_m)
    return checked_damage(len(layout), hit)


def checked_damage(uavs: int, damaged: Iterable[int]) -> np.ndarray:
    """The sorted list of damaged UAVs, or a clear error: out of range, twice, or fewer than two left."""
    entries = list(damaged)
    for entry in entries:
        if isinstance(entry, bool) or not isinstance(entry, (int, np.integer)):
            raise InputError(f"damaged UAV {shown(entry)}: give whole numbers from 0 to {uavs - 1}")
        if not 0 <= entry < uavs:
            raise InputError(f"damaged UAV {shown(int(entry))} is out of range: the swarm has UAVs 0 to {uavs - 1}")
    unique = np.unique(np.asarray(entries, dtype=np.intp))
    if len(unique) < len(entries):
        raise InputError("a damaged UAV is listed twice: list each once")
    if uavs - len(unique) < LEAST_ALIVE:
        raise InputError(f"{len(unique)} of {uavs} UAVs damaged: at least {LEAST_ALIVE} must stay alive")
    return unique
