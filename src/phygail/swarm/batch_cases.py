"""The constants of many scenarios, stacked for the batched world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from phygail.config import LINK_TOLERANCE_M
from phygail.swarm.safety import kept_m, neighbor_radius_m
from phygail.swarm.scenario import Scenario


@dataclass(frozen=True, eq=False)
class Cases:
    """What stays the same while B worlds fly; worlds on the last axis. n is the largest number of alive, or more.

    Attributes:
        mask: (n, B) bool, True for the rows of alive UAVs; the others are padding.
        pairs: (n, n, B) bool, pairs of different alive UAVs.
        center: (2, B) m. width_m: (B,) m.
        speed_mps: (B,) v_max. step_s: (B,). budget_steps: (B,) int.
        reach_m: (B,) m, radio range with its tolerance. contact_m: (B,) m, contact distance.
        near_m, kept_m: (B,) m, neighbor radius of the safety filter and the distance that it keeps.
    """

    mask: np.ndarray
    pairs: np.ndarray
    center: np.ndarray
    width_m: np.ndarray
    speed_mps: np.ndarray
    step_s: np.ndarray
    budget_steps: np.ndarray
    reach_m: np.ndarray
    contact_m: np.ndarray
    near_m: np.ndarray
    kept_m: np.ndarray


def stack_cases(scenarios: Sequence[Scenario], least_rows: int = 0) -> Cases:
    """The constants of `scenarios`, with at least `least_rows` rows per world."""
    alive = np.array([len(s.spots) for s in scenarios])
    rows = np.arange(max(least_rows, alive.max()))
    mask = rows[:, None] < alive
    pairs = mask[:, None] & mask[None]
    pairs[rows, rows] = False
    physics = [s.physics for s in scenarios]
    return Cases(
        mask,
        pairs,
        center=np.stack([s.center for s in scenarios], axis=1),
        width_m=np.array([s.width_m for s in scenarios]),
        speed_mps=np.array([p.speed_mps for p in physics]),
        step_s=np.array([p.step_s for p in physics]),
        budget_steps=np.array([s.budget_steps for s in scenarios]),
        reach_m=np.array([p.range_m + LINK_TOLERANCE_M for p in physics]),
        contact_m=np.array([p.contact_m for p in physics]),
        near_m=np.array([neighbor_radius_m(p) for p in physics]),
        kept_m=np.array([kept_m(p) for p in physics]),
    )
