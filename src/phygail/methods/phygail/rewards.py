"""Rewards of the paper (METHODS 4.3, paper IV-D), why waiting does not pay, and shaping with the gap of the swarm
(METHODS 2.5, 8.5).

    r_env_i = r_step + r_safe_i + r_term,   R_i = clip((r_env_i + w_IL r_GAIL_i) / scale, -R_max, R_max)

**Early success and a reward that is never negative.** r_GAIL >= 0 is paid for every step flown, and success ends the
episode: a policy could earn by waiting. One more step before success is worth w_IL r_GAIL + r_step and costs, of the
success reward S(t) = r_base + r_time eta(t), the difference S(t) - gamma S(t + 1) >= (1 - gamma) r_base, the least
once eta has faded. With the paper's constants and T_max = 256, before the division by 20:

    D = 0.5   0.0693 - 0.0195 = 0.0498  <  0.2     waiting never pays
    D = 0.9   0.2303 - 0.0195 = 0.2107  >  0.2     it pays, by 0.0107 a step, once eta < 0.054 (t > 4.7 T_E)

D = 0.9 is the discriminator's target for experts; for the policy it learns 0.1. So the paper's form is sound at and
below D = 0.889, and `TrainConfig` refuses constants with which waiting would pay at D = 0.5. The bias is still there,
though: of two equally fast ways the one that finishes first loses imitation reward. With `absorbing` a success is
credited with the mean imitation reward of the epoch for each of the T_max - t steps it saves, discounted (the
absorbing state of Kostrikov et al. 2019). Finishing is then neutral to GAIL as far as waiting is judged like the
average; it pays only if its r_GAIL exceeds the mean by more than 2.195.
The profile `paper` leaves it off, the others turn it on.

T_max: the world reports truncated, yet -P_fail N_s is paid there, so the learner treats it as terminal. Only the cut
at the horizon of an epoch bootstraps.

F = gamma Phi(s') - Phi(s) with Phi = -w gap(P), and Phi = 0 where an episode ends. Discounted over an episode F adds
up to -Phi(s_0) whatever is flown, so the best policy stays the best (Ng, Harada, Russell 1999).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from phygail.config import CONTACT_M
from phygail.swarm.batch import BatchState

if TYPE_CHECKING:
    from phygail.methods.phygail.config import TrainConfig  # needs torch, the environment does not

SMALLEST = 1e-8  # epsilon of the paper: D is clipped to [epsilon, 1 - epsilon]


class RewardWeights(Protocol):
    """The numbers of r_env; `TrainConfig` and the environment's `TeamReward` have them."""

    @property
    def r_base(self) -> float: ...
    @property
    def r_time(self) -> float: ...
    @property
    def decay(self) -> float: ...
    @property
    def eta_max(self) -> float: ...
    @property
    def step_penalty(self) -> float: ...
    @property
    def w_col(self) -> float: ...
    @property
    def safe_m(self) -> float: ...
    @property
    def p_fail(self) -> float: ...


def pace_steps(expert_steps: np.ndarray, budget_steps: np.ndarray, config: TrainConfig) -> np.ndarray:
    """What eta measures the time against: alpha T_E, or T_max where the expert's time is left out (METHODS 4.7)."""
    return config.tolerance * expert_steps if config.expert_time else budget_steps


def speed_bonus(steps: np.ndarray | int, pace: np.ndarray | int, weights: RewardWeights) -> np.ndarray:
    """eta(t) = min(exp(lambda (1 - t / pace)), eta_max), all in steps; see `pace_steps` (eq. 34)."""
    return np.minimum(np.exp(weights.decay * (1.0 - steps / np.asarray(pace))), weights.eta_max)


def shared_reward(
    steps: np.ndarray | int,
    pace: np.ndarray | int,
    budget_steps: np.ndarray | int,
    terminated: np.ndarray | bool,
    truncated: np.ndarray | bool,
    subnets: np.ndarray | int,
    weights: RewardWeights,
) -> np.ndarray:
    """r_step + r_term, which all alive share, of one world or of many: (B,) each (eq. 35, eq. 39).

    Args:
        steps: t, moves executed.
        pace: See `speed_bonus`.
        budget_steps: T_max; r_step = -step_penalty / T_max.
        terminated: Success pays r_success = r_base + r_time eta(t).
        truncated: The end of the budget costs p_fail for every one of `subnets`.
        subnets: N_s.
        weights: The numbers.
    """
    bonus = weights.r_base + weights.r_time * speed_bonus(steps, pace, weights)
    shared = -weights.step_penalty / np.asarray(budget_steps) + np.where(terminated, bonus, 0.0)
    return shared - np.where(truncated, weights.p_fail * np.asarray(subnets), 0.0)


def crowding_reward(rows: np.ndarray, distances: np.ndarray, count: int, weights: RewardWeights) -> np.ndarray:
    """(count,) r_safe_i = -w_col sum over the other alive j of max(0, D_safe - d_ij) (eq. 38).

    Args:
        rows: (m,) int, i of every pair (i, j) closer than D_safe; each pair stands twice.
        distances: (m,) m, its d_ij at a contact distance of 10 m (`Physics.spacing`).
        count: Number of rows.
        weights: The numbers.
    """
    return np.bincount(rows, weights=-weights.w_col * (weights.safe_m - distances), minlength=count)


def safety_reward(state: BatchState, weights: RewardWeights) -> np.ndarray:
    """(B, n) r_safe in every world; 0 for padding."""
    squared, (worlds, n) = state.links.squared, state.positions.shape[:2]
    spacing = state.cases.contact_m / CONTACT_M
    i, j, b = np.nonzero((squared < (weights.safe_m * spacing) ** 2) & state.cases.pairs)  # few: no root for the rest
    distances = np.sqrt(squared[i, j, b]) / spacing[b]
    return crowding_reward(b * n + i, distances, worlds * n, weights).reshape(worlds, n)


def environment_reward(flown: BatchState, expert_steps: np.ndarray, config: TrainConfig) -> np.ndarray:
    """(B, n) r_env of the step that led to `flown`, the same for all alive but for safety; 0 for padding (eq. 37).

    Args:
        flown: Right after the step, before any reset.
        expert_steps: (B,) int, T_E of the scenarios flown.
        config: Weights.
    """
    budget = flown.cases.budget_steps
    pace = pace_steps(expert_steps, budget, config)
    shared = shared_reward(flown.steps, pace, budget, flown.terminated, flown.truncated, flown.count, config)
    shared = shared - config.step_cost
    return np.where(flown.mask, shared[:, None] + safety_reward(flown, config), 0.0)


def saved_steps(flown: BatchState, config: TrainConfig) -> np.ndarray:
    """(B,) discounted number of steps that a success saves: sum of gamma^k, k = 1..T_max - t; 0 without success."""
    left = flown.cases.budget_steps - flown.steps
    total = config.gamma * (1.0 - config.gamma**left) / (1.0 - config.gamma)
    return np.where(flown.terminated, total, 0.0)


def imitation_reward(logits: np.ndarray) -> np.ndarray:
    """r_GAIL = -log(1 - clip(D, eps, 1 - eps)) of the logits; equal to softplus, bounded (eq. 32, eq. 33).

    In logits, because 1 - 1e-8 is 1 in single precision.
    """
    softplus = np.logaddexp(0.0, np.asarray(logits, dtype=np.float64))
    return np.clip(softplus, -math.log1p(-SMALLEST), -math.log(SMALLEST))


def gain_of_waiting(config: TrainConfig, probability: float, budget_steps: int, bonus: float = 0.0) -> float:
    """What one more step before success is worth when eta stays `bonus`, in units of R; positive: waiting pays.

    Args:
        config: Weights; without `absorbing`.
        probability: D while waiting.
        budget_steps: T_max.
        bonus: eta now; 0 is the worst case, long after the expert's time.
    """
    earned = config.w_il * float(imitation_reward(np.log(probability / (1.0 - probability))))
    lost = (1.0 - config.gamma) * (config.r_base + config.r_time * bonus)
    return (earned - config.step_penalty / budget_steps - config.step_cost - lost) / config.reward_scale


def shaping_reward(before: BatchState, flown: BatchState, config: TrainConfig) -> np.ndarray:
    """(B,) F of the step from `before` to `flown` (not yet reset), before the division by reward_scale."""
    ended = flown.terminated | flown.truncated
    after = np.where(ended, 0.0, gaps_m(flown))
    unit = np.array([s.physics.unit for s in flown.scenarios])
    return config.gap_weight * (gaps_m(before) - config.gamma * after) / unit


def largest_gap_shaping(
    before: BatchState, after: BatchState, held: np.ndarray, expert_steps: np.ndarray, config: TrainConfig
) -> np.ndarray:
    """(B,) F of a decision that was held ((B,) int steps), before the division by reward_scale.

    Phi = -w (largest gap) / (2 T_E strides): two UAVs close a gap by two strides a step, so what is left to gain is
    measured in T_E, whatever the world. Summed over the steps of a decision F is gamma^h Phi(s_h) - Phi(s_0).
    """
    ended = after.terminated | after.truncated
    later = np.where(ended, 0.0, tree_gaps_m(after)[1])
    closing = 2.0 * expert_steps * before.cases.speed_mps * before.cases.step_s
    weight = config.largest_gap_weight * config.reward_scale
    return weight * (tree_gaps_m(before)[1] - config.gamma**held * later) / closing


def gaps_m(state: BatchState) -> np.ndarray:
    """(B,) m, `tree.gap_m` of every world."""
    return tree_gaps_m(state)[0]


def tree_gaps_m(state: BatchState) -> tuple[np.ndarray, np.ndarray]:
    """(B,) m each: what the edges of the spanning tree lack, summed and the largest."""
    from phygail.swarm.compiled import tree_gaps  # needs Numba, which the environment does without

    range_m = np.array([s.physics.range_m for s in state.scenarios])
    return tree_gaps(state.positions, state.mask.sum(axis=1), range_m)
