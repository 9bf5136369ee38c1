"""Plan once, then fly (METHODS 2.5), and the contraction operator H = I - K L of a swarm (METHODS 3.4).

H is row-stochastic: H^q P pulls every UAV toward the mean of its neighbors, and to one point in the limit. Everything
is dense: n^2 numbers, fine up to some 5,000 alive; 10,000 alive need about 2 GB and minutes.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from phygail.config import PAPER_RANGE_M, Physics
from phygail.methods.base import GlobalMethod
from phygail.methods.steering import go
from phygail.sensing.views import GlobalView
from phygail.swarm.links import find_links
from phygail.swarm.tree import spanning_tree

PLAN_MARGIN_M = 0.1  # at a range of 120 m, see `plan_range_m`

THRESHOLD_SHARE = 0.25  # of the way from the smallest connecting threshold to the extent of the swarm
GAIN = 0.99  # K max_i deg_i; below 1 keeps H non-negative with a positive diagonal
LARGEST_POWER = 2_000  # q; a swarm still split there gets the limit of H^q P, its centroid


def plan_range_m(range_m: float) -> float:
    """R_plan = R - 0.1 m R/(120 m): plans are connected at it, so that rounding breaks no edge of length R."""
    return range_m - PLAN_MARGIN_M * (range_m / PAPER_RANGE_M)


class PlanMethod(GlobalMethod):
    """`plan` gives every UAV a target; all fly straight to theirs until the network is one or the budget ends."""

    targets: np.ndarray | None = None  # (n, 2) m

    @abstractmethod
    def plan(self, view: GlobalView) -> np.ndarray:
        """(n, 2) m, finite targets for all alive, from the situation at t = 0."""

    def act(self, view: GlobalView) -> np.ndarray:
        if self.targets is None:
            self.targets = self.plan(view)
            if not np.isfinite(self.targets).all():
                raise FloatingPointError(f"{self.name} planned a target that is not a number")
        return go(view.positions, self.targets, view.mission.physics, view.mission.map)


class TrainedPlanMethod(PlanMethod):
    """A planner around a network whose weights, rates and tolerances were chosen at a range of 120 m.

    It plans in units in which the radio range is 120, so all its lengths are shares of the range. Its plan is the same
    for every radio that has the same proportion to the swarm.
    """

    @abstractmethod
    def plan_scaled(self, view: GlobalView) -> np.ndarray:
        """(n, 2), targets in the units of `view`, in which the radio range is 120."""

    def plan(self, view: GlobalView) -> np.ndarray:
        return self.plan_scaled(at_reference_range(view)) * view.mission.physics.unit


def at_reference_range(view: GlobalView) -> GlobalView:
    """The view with all lengths divided by R/(120 m): what a swarm with the paper's radio would see."""
    mission, unit = view.mission, view.mission.physics.unit
    physics = Physics(
        range_m=PAPER_RANGE_M,  # not R/unit, which may be a rounding away
        speed_mps=mission.physics.speed_mps / unit,
        step_s=mission.physics.step_s,
        contact_m=mission.physics.contact_m / unit,
    )
    mission = replace(mission, center=mission.center / unit, width_m=mission.width_m / unit, physics=physics)
    links = replace(view.links, lengths=view.links.lengths / unit)
    heights = None if view.heights is None else view.heights / unit
    return replace(
        view,
        heights=heights,
        mission=mission,
        roster=view.roster / unit,
        positions=view.positions / unit,
        velocities=view.velocities / unit,
        links=links,
    )


def largest_move_m(positions: np.ndarray, targets: np.ndarray) -> float:
    """The largest displacement of a plan: its duration in meters of flight."""
    return float(np.hypot(*(targets - positions).T).max())


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


def canonical_order(points: np.ndarray) -> np.ndarray:
    """Rows sorted by place: a plan then does not depend on the numbering of the UAVs, not even by rounding."""
    return np.lexsort((points[:, 1], points[:, 0]))
