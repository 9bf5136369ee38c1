"""Motion primitives that several methods share (METHODS 2.5)."""

from __future__ import annotations

import numpy as np

from phygail.config import Physics
from phygail.groups import group_sums

REPULSION = 1.0  # k_rep, of v_max: 10 m/s
REPULSION_RADIUS = 1.5  # d_s, of the contact distance: 15 m, the paper's training margin
LINK_PULL = 0.3  # k_link, of v_max: 3 m/s
LINK_PULL_START = 0.9  # of the radio range, where the pull begins
_COINCIDENT_M = 1e-6  # at a range of 120 m: closer pairs get a direction from their indices
_ARRIVED_M = 1e-9  # at a range of 120 m


def go(positions: np.ndarray, targets: np.ndarray, physics: Physics) -> np.ndarray:
    """Velocities ((n, 2) m/s) straight to the targets: full speed, exact arrival, never an overshoot."""
    offset = targets - positions
    distance = np.hypot(offset[..., 0], offset[..., 1])[..., None]
    speed = np.minimum(physics.speed_mps, distance / physics.step_s)
    arrived = _ARRIVED_M * physics.unit
    return np.where(distance < arrived, 0.0, offset / np.maximum(distance, arrived) * speed)


def repulsion(
    positions: np.ndarray,
    pairs: np.ndarray,
    lengths: np.ndarray,
    members: np.ndarray,
    physics: Physics,
) -> np.ndarray:
    """rep_i = k_rep sum over d_ij < d_s of (1 - d_ij/d_s) (p_i - p_j)/d_ij, (n, 2) m/s.

    Both constants belong to the vehicle: k_rep is its full speed, d_s 1.5 times its contact distance.

    Args:
        positions: (n, 2) m.
        pairs: (m, 2) int, links with i < j as rows. lengths: (m,) m.
        members: (n,) int, roster indices; coincident pairs are parted along a direction derived from them.
        physics: Radio and vehicle.
    """
    gain_mps, radius_m = REPULSION * physics.speed_mps, REPULSION_RADIUS * physics.contact_m
    coincident = _COINCIDENT_M * physics.unit
    close = lengths < radius_m
    i, j = pairs[close].T
    distance = lengths[close][:, None]
    away = (positions[i] - positions[j]) / np.maximum(distance, coincident)
    # Golden angle: pairs of neighboring indices are pushed apart in well-spread directions.
    angle = 2.399963 * (members[i] * 7919.0 + members[j])
    fixed = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    push = gain_mps * (1 - distance / radius_m) * np.where(distance < coincident, fixed, away)
    return _accumulate(len(positions), i, j, push)


def link_keeping(positions: np.ndarray, pairs: np.ndarray, lengths: np.ndarray, physics: Physics) -> np.ndarray:
    """link_i = k_link sum over 0.9 R <= d_ij <= R of ((d_ij - 0.9 R)/(0.1 R)) (p_j - p_i)/d_ij, (n, 2) m/s."""
    reach = physics.range_m
    far = lengths >= LINK_PULL_START * reach
    i, j = pairs[far].T
    distance = lengths[far][:, None]
    strain = (distance - LINK_PULL_START * reach) / ((1 - LINK_PULL_START) * reach)
    gain_mps, coincident = LINK_PULL * physics.speed_mps, _COINCIDENT_M * physics.unit
    pull = gain_mps * strain * (positions[j] - positions[i]) / np.maximum(distance, coincident)
    return _accumulate(len(positions), i, j, pull)


def _accumulate(n: int, i: np.ndarray, j: np.ndarray, force_on_i: np.ndarray) -> np.ndarray:
    """Sum pair forces per row: `force_on_i` acts on i, its opposite on j."""
    rows = np.concatenate([i, j])
    force = np.concatenate([force_on_i, -force_on_i])
    return group_sums(rows, force, n)
