"""Generalized advantage estimation per (world, UAV) (Schulman et al. 2016)."""

from __future__ import annotations

import numpy as np


def estimate_advantages(
    rewards: np.ndarray,
    values: np.ndarray,
    after: np.ndarray,
    ended: np.ndarray,
    gamma: float,
    gae_lambda: float,
) -> tuple[np.ndarray, np.ndarray]:
    """(advantages, value targets), both (T, B, n).

    delta_t = R_t + gamma V_{t+1} - V_t,  A_t = delta_t + gamma lambda A_{t+1};  V_{t+1} = A_{t+1} = 0 where the
    episode ended with step t. The cut at the horizon is no end: it bootstraps with `after`.

    Args:
        rewards: (T, B, n). values: (T, B, n), V of the states acted in.
        after: (B, n), V of the states after the last step; not read where the episode ended with it.
        ended: (T, B) bool, the episode ended with this step; the next step belongs to another one.
        gamma: Discount. gae_lambda: Trade of bias for variance.
    """
    advantages = np.zeros_like(rewards)
    following, running = after, np.zeros_like(after)
    for t in range(len(rewards) - 1, -1, -1):
        goes_on = ~ended[t][:, None]
        delta = rewards[t] + gamma * np.where(goes_on, following, 0.0) - values[t]
        running = delta + gamma * gae_lambda * np.where(goes_on, running, 0.0)
        advantages[t], following = running, values[t]
    return advantages, advantages + values


def normalize(advantages: np.ndarray) -> np.ndarray:
    """Mean 0 and standard deviation 1 over all nodes of the epoch ((M,), padding left out by the caller)."""
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)
