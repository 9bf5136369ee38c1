"""Potential-based shaping with the gap of the swarm (METHODS 2.5, 8.5): optional, off in the paper's profile.

F = gamma Phi(s') - Phi(s) with Phi = -w gap(P), and Phi = 0 where an episode ends. Discounted over an episode F adds
up to -Phi(s_0) whatever is flown, so the best policy stays the best (Ng, Harada, Russell 1999).
"""

from __future__ import annotations

import numpy as np

from phygail.swarm.batch import BatchState
from phygail.training.profiles import TrainConfig


def shaping_reward(before: BatchState, flown: BatchState, config: TrainConfig) -> np.ndarray:
    """(B,) F of the step from `before` to `flown` (not yet reset), before the division by reward_scale."""
    ended = flown.terminated | flown.truncated
    after = np.where(ended, 0.0, gaps_m(flown))
    return config.gap_weight * (gaps_m(before) - config.gamma * after)


def gaps_m(state: BatchState) -> np.ndarray:
    """(B,) m, `tree.gap_m` of every world: Prim's algorithm in all worlds at once."""
    distances, worlds = state.distances, np.arange(len(state.positions))
    outside = state.mask.copy()
    newest = np.zeros(len(worlds), dtype=np.intp)  # row 0 is alive in every world
    nearest = np.full(outside.shape, np.inf)
    range_m = np.array([s.physics.range_m for s in state.scenarios])
    total = np.zeros(len(worlds))
    for _ in range(state.rows - 1):
        outside[worlds, newest] = False
        nearest = np.minimum(nearest, distances[worlds, newest])
        offered = np.where(outside, nearest, np.inf)
        newest = offered.argmin(axis=1)
        length = offered[worlds, newest]
        total += np.where(np.isfinite(length), np.maximum(0.0, length - range_m), 0.0)
    return total
