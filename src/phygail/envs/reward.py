"""The default reward of the environment: r_env of METHODS 4.3 by the formulas of the training, which need no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from phygail.swarm.links import near_pairs
from phygail.swarm.state import SwarmState
from phygail.training.rewards import crowding_reward, shared_reward

# Judges one step by the states before and after it: (n,), one number per alive UAV, or one for all.
Reward = Callable[[SwarmState, SwarmState], np.ndarray | float]


@dataclass(frozen=True)
class TeamReward:
    """r_i = r_step + r_safe_i + r_term: everybody shares the first and the last, the safety penalty is one's own.

    The names and numbers are those of `training.profiles.TrainConfig`. Not scaled and not clipped: one episode is worth
    between about -5 - 5 N_s and 74.

    Attributes:
        step_penalty: r_step = -step_penalty / T_max per step.
        r_base: On success.
        r_time: On success, times eta(t) = min(exp(decay (1 - t / T_max)), eta_max). The paper measures t against an
            expert's time; here nobody demonstrates, so it is measured against T_max, as in training without it.
        decay: lambda. eta_max: Cap of eta.
        p_fail: Per subnet that is left when the budget is used up.
        w_col: Per meter that another alive UAV is closer than `safe_m`.
        safe_m: D_safe, m.
    """

    step_penalty: float = 5.0
    r_base: float = 20.0
    r_time: float = 20.0
    decay: float = 1.0
    eta_max: float = 3.0
    p_fail: float = 5.0
    w_col: float = 0.01
    safe_m: float = 15.0

    def __call__(self, before: SwarmState, after: SwarmState) -> np.ndarray:
        """(n,) reward of the step that led to `after`."""
        budget = after.scenario.budget_steps
        # T_max is the pace of the environment: it knows of no expert (METHODS 4.7).
        shared = shared_reward(after.step, budget, budget, after.terminated, after.truncated, after.links.count, self)
        pairs, distances = near_pairs(after.positions, self.safe_m)
        return shared + crowding_reward(pairs.T.reshape(-1), np.tile(distances, 2), len(after.positions), self)
