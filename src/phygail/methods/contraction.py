"""The contraction operator H = I - K L of a swarm (METHODS 3.4): shared by CR-MGC, DEMD and GDR-TS.

H is row-stochastic: H^q P pulls every UAV toward the mean of its neighbors, and to one point in the limit. Everything
is dense: n^2 numbers, fine up to some 5,000 alive; 10,000 alive need about 2 GB and minutes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from phygail.methods.plan import plan_range_m
from phygail.swarm.links import find_links
from phygail.swarm.tree import spanning_tree

THRESHOLD_SHARE = 0.25  # of the way from the smallest connecting threshold to the extent of the swarm
GAIN = 0.99  # K max_i deg_i; below 1 keeps H non-negative with a positive diagonal
LARGEST_POWER = 2_000  # q; a swarm still split there gets the limit of H^q P, its centroid


@dataclass(frozen=True, eq=False)
class Contraction:
    """The operator and what it was made of.

    Attributes:
        d_max: m, largest pairwise distance.
        d_min: m, max(R, longest tree edge): the smallest threshold that joins everybody.
        threshold: m, d = d_min + 0.25 (d_max - d_min).
        adjacency: (n, n) bool, zero diagonal.
        gain: K = 0.99 / max_i deg_i.
        operator: (n, n), H = I - K L.
    """

    d_max: float
    d_min: float
    threshold: float
    adjacency: np.ndarray
    gain: float
    operator: np.ndarray


def contraction(points: np.ndarray, range_m: float) -> Contraction:
    """The operator of the threshold graph of `points` ((n, 2) m), n >= 2."""
    distance = cdist(points, points)
    d_max = float(distance.max())
    d_min = max(range_m, float(spanning_tree(points)[1].max(initial=0.0)))
    # A swarm narrower than its radio range has d_max < R: the threshold stays at d_min.
    threshold = d_min + THRESHOLD_SHARE * max(0.0, d_max - d_min)
    adjacency = distance <= threshold
    np.fill_diagonal(adjacency, False)
    operator, gain = operator_of(adjacency)
    return Contraction(d_max, d_min, threshold, adjacency, gain, operator)


def operator_of(adjacency: np.ndarray) -> tuple[np.ndarray, float]:
    """(H = I - K L, K = 0.99 / max deg) of any symmetric adjacency ((n, n) bool, zero diagonal), e.g. a k-hop graph.

    A graph without edges has K = 0 and H = I.
    """
    degree = adjacency.sum(axis=1)
    gain = GAIN / float(degree.max()) if degree.any() else 0.0
    operator = gain * adjacency
    np.fill_diagonal(operator, 1.0 - gain * degree)
    return operator, gain


def contraction_plan(points: np.ndarray, range_m: float) -> np.ndarray:
    """(n, 2) m, the plan of the operator of `points` alone, connected at R_plan of `range_m`."""
    return contract_until_connected(points, contraction(points, range_m).operator, plan_range_m(range_m))[0]


def contract_until_connected(
    points: np.ndarray, operator: np.ndarray, range_m: float, largest_power: int = LARGEST_POWER
) -> tuple[np.ndarray, int]:
    """(Y, q) with the smallest q for which Y = H^q P ((n, 2) m) is connected at `range_m` (R_plan for plans).

    H^q P converges to the centroid if H's graph is connected. Should `largest_power` not suffice (a graph in pieces, or
    a long thin one), Y is that limit, which is always connected, and q is `largest_power`.
    """
    moved = points
    for power in range(largest_power):
        if find_links(moved, range_m).connected:
            return moved, power
        moved = operator @ moved
    return np.broadcast_to(points.mean(axis=0), points.shape).copy(), largest_power
