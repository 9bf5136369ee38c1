"""The default reward of the environment: r_env of METHODS 4.3, in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phygail.swarm.links import near_pairs
from phygail.swarm.state import SwarmState

# Judges one step by the states before and after it: (n,), one number per alive UAV, or one for all.
Reward = Callable[[SwarmState, SwarmState], np.ndarray | float]


@dataclass(frozen=True)
class TeamReward:
    """r_i = r_step + r_safe_i + r_term: everybody shares the first and the last, the safety penalty is one's own.

    Not scaled and not clipped: one episode is worth between about -5 - 5 N_s and 74.

    Attributes:
        step_total: r_step = -step_total / T_max per step.
        base: r_base, on success.
        time: r_time, times eta(t) = min(exp(time_slope (1 - t / (time_share T_max))), time_cap) on success. The paper
            measures t against the time of an expert; here nobody demonstrates, so it is measured against T_max.
        time_slope: lambda. time_share: alpha. time_cap: eta_max.
        failure: P_fail, per subnet that is left when the budget is used up.
        safety: omega_col, per meter that another alive UAV is closer than `safe_m`.
        safe_m: D_safe, m.
    """

    step_total: float = 5.0
    base: float = 20.0
    time: float = 20.0
    time_slope: float = 1.0
    time_share: float = 1.2
    time_cap: float = 3.0
    failure: float = 5.0
    safety: float = 0.01
    safe_m: float = 15.0

    def __call__(self, before: SwarmState, after: SwarmState) -> np.ndarray:
        """(n,) reward of the step that led to `after`."""
        shared = -self.step_total / after.scenario.budget_steps
        if after.terminated:
            shared += self.base + self.time * self.urgency(after.step / after.scenario.budget_steps)
        elif after.truncated:
            shared -= self.failure * after.links.count
        return shared - self.safety * closeness_m(after.positions, self.safe_m)

    def urgency(self, share: float) -> float:
        """Eta at this share of the budget."""
        return min(math.exp(self.time_slope * (1 - share / self.time_share)), self.time_cap)


def closeness_m(positions: np.ndarray, safe_m: float) -> np.ndarray:
    """(n,) m, sum over the others of max(0, safe_m - d_ij)."""
    pairs, distances = near_pairs(positions, safe_m)
    short = np.tile(safe_m - distances, 2)
    return np.bincount(pairs.T.reshape(-1), weights=short, minlength=len(positions))
