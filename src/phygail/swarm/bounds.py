"""The lower bound on recovery time: no controller reconnects a swarm in fewer steps (METHODS 8.1)."""

from __future__ import annotations

import math

import numpy as np

from phygail.config import LINK_TOLERANCE_M, Physics
from phygail.swarm.tree import spanning_tree

_STEP_SLACK = 1e-6  # of a step: rounding must not push the bound above a reachable optimum


def bound_steps(positions: np.ndarray, physics: Physics) -> int:
    """ceil((w - R) / (2 v_max dt)), w the longest edge of the Euclidean minimum spanning tree; 0 if connected.

    w is the smallest range at which the swarm would be one network (the bottleneck property of minimum spanning
    trees). A step shortens any distance by at most 2 v_max dt, so w falls no faster, and it must fall to R.

    Args:
        positions: (n, 2) m, the alive.
        physics: Radio and vehicle.
    """
    longest = float(spanning_tree(positions)[1].max(initial=0.0))
    closing = 2 * physics.stride_m
    steps = max(0.0, longest - physics.range_m) / closing
    # A UAV so slow that the link tolerance is more than 1e-6 of its step gets the tolerance itself as slack.
    return max(0, math.ceil(steps - max(_STEP_SLACK, LINK_TOLERANCE_M / closing)))
