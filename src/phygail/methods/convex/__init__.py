"""convex (METHODS 8.2): the yardstick. With all positions known, plan the shortest flight that reconnects the swarm.

Along a fixed tree the shortest plan is a cone program. `methods.convex.search` searches trees until the plan meets the
lower bound, which certifies that no method can be faster, or until the budget is used up. A last program removes
needless motion. All UAVs arrive together, so connection never comes later than planned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from phygail.config import LINK_TOLERANCE_M, InputError, Physics
from phygail.methods.base import GlobalMethod, register
from phygail.methods.convex.search import Plan, TreeSearch, contraction, edge_ranges_m, least_motion, shortest_flight
from phygail.methods.steering import go
from phygail.sensing.views import GlobalView
from phygail.swarm.tree import gap_m, steps_to_close, tree_excess_m

RANGE_MARGIN_M = 1e-3  # at a range of 120 m: plans are connected at R_plan = R - this R/(120 m)
GAIN_STEPS = 0.01  # steps; a smaller gain is none
TIGHT_ACCURACY = 1e-11  # of the solver where only the link tolerance is left as slack
BEHIND_M = 10.0  # of flight, at a range of 120 m: delay by the filter that makes a new plan necessary


@dataclass(frozen=True)
class PlannedFlight:
    """A plan ready to be flown.

    Attributes:
        targets: (n, 2) m.
        steps: Steps until all have arrived and the network is one.
        bound_steps: No method needs fewer.
        fallback: Whether the solver failed. The plan then contracts the swarm, which also reconnects it.
    """

    targets: np.ndarray
    steps: int
    bound_steps: int
    fallback: bool


def plan_flight(
    positions: np.ndarray, physics: Physics, effort: float = 1.0, heights: np.ndarray | None = None
) -> PlannedFlight:
    """The shortest flight found that makes the swarm one network.

    Args:
        positions: (n, 2) m.
        physics: Radio and vehicle.
        effort: Multiplies the budget of the tree search; 0 leaves the least possible budget.
        heights: (n,) m, which stay; None in one layer. Where they keep the swarm split for ever, they are left out.
    """
    gap = float(tree_excess_m(positions, physics.range_m, heights).max(initial=0.0))
    if not math.isfinite(gap):
        return plan_flight(positions, physics, effort)
    bound = steps_to_close(gap, physics)
    if bound == 0:
        return PlannedFlight(positions, 0, 0, False)
    points, order, back = _canonical(positions)
    sorted_heights = None if heights is None else heights[order]
    plan, steps, fallback = _plan_canonical(points, physics, bound, effort, sorted_heights)
    targets = np.empty_like(positions)
    targets[order] = positions[order] + (plan.targets - points) @ back
    return PlannedFlight(targets, steps, bound, fallback)


def _plan_canonical(
    points: np.ndarray, physics: Physics, bound: int, effort: float, heights: np.ndarray | None
) -> tuple[Plan, int, bool]:
    """The plan, its whole number of steps, and whether the solver failed."""
    stride, margin = physics.stride_m, RANGE_MARGIN_M * physics.unit
    range_m, slack = physics.range_m - margin, margin / 2  # the other half of the margin is for the flight
    gain = GAIN_STEPS * stride
    search = TreeSearch(
        points, range_m, slack_m=slack, enough_m=bound * stride + margin / 2, gain_m=gain, effort=effort,
        heights=heights,
    )  # fmt: skip
    plan = search.run()
    ranges = edge_ranges_m(plan.edges, range_m, heights)
    shrunk = contraction(points, plan.edges, ranges)
    fallback = shrunk.flight_m < plan.flight_m - gain
    if fallback:
        plan = shrunk
    steps = max(bound, math.ceil((plan.flight_m - margin / 10) / stride))
    # The margin costs at most its length times the tensions, for t(R) is convex; that may be one step too many. At
    # heights a range of the plane, sqrt(R^2 - dz^2), grows R / sqrt(R^2 - dz^2) times as fast as R.
    growth = 1.0 if heights is None else float(np.max(range_m / np.maximum(ranges, margin)))
    if math.ceil((plan.flight_m - plan.tension.sum() * 1.01 * margin * growth) / stride) < steps:
        full = edge_ranges_m(plan.edges, physics.range_m + LINK_TOLERANCE_M / 2, heights)
        tight = shortest_flight(points, plan.edges, full, accuracy=TIGHT_ACCURACY)
        fewer = max(bound, math.ceil((tight.flight_m - LINK_TOLERANCE_M / 10) / stride))
        if fewer < steps:
            return tight, fewer, fallback
    trimmed = least_motion(points, plan, ranges, max(plan.flight_m, steps * stride), slack_m=slack)
    return trimmed, steps, fallback


def _canonical(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The swarm in an order and in coordinates that depend on its shape only.

    Turning, mirroring, shifting or renumbering a swarm then does the same to its plan (METHODS G2-G4), although the
    tree search breaks ties by index and chooses at random.

    Returns:
        (n, 2) m points, the farthest from the mean first and on the x axis; (n,) their rows; (2, 2) matrix B with
        world offset = offset @ B.
    """
    offsets = positions - positions.mean(axis=0)
    distance = np.hypot(offsets[:, 0], offsets[:, 1])
    order = np.argsort(-distance, kind="stable")
    x, y = offsets[order[0]] / distance[order[0]]
    turned = offsets[order] @ np.array([[x, -y], [y, x]])
    mirror = -1.0 if (turned[:, 1] ** 3).sum() < 0 else 1.0
    return turned * [1.0, mirror], order, np.array([[x, y], [-y * mirror, x * mirror]])


@register
class Convex(GlobalMethod):
    """v_i = (q_i - p_i) / time left, closed loop; q from `plan_flight` at t = 0.

    Under the safety filter UAVs may be held up. Delayed UAVs fly on at full speed. If that does not reconnect the
    swarm, a new plan is made from the present positions. If a plan closes no gap, all UAVs fly to the middle, where any
    two that block each other are linked.

    Attributes:
        planned_steps: Steps of the plan made first (0 before it is made).
        bound_steps: The lower bound at that time.
    """

    name = "convex"
    summary = "the shortest joint flight found by convex optimization over spanning trees; the yardstick"

    def __init__(self, rng: np.random.Generator | None = None, *, effort: float = 1.0) -> None:
        super().__init__(rng)
        if not (math.isfinite(effort) and effort >= 0):
            raise InputError(f"effort {effort}: give a number from 0 (no tree search) on; 1 is the default")
        self.effort = effort
        self.planned_steps = 0
        self.bound_steps = 0
        self._targets: np.ndarray | None = None
        self._arrival = 0  # step at which all should have arrived
        self._gap_m = math.inf  # gap when the last plan was made
        self._gathering = False

    @property
    def ratio(self) -> float:
        """Planned steps over the bound: 1 certifies an optimal plan."""
        return self.planned_steps / self.bound_steps if self.bound_steps else 1.0

    def act(self, view: GlobalView) -> np.ndarray:
        physics = view.mission.physics
        if self._targets is None:
            flight = self._plan(view, self.effort)
            self.planned_steps, self.bound_steps = flight.steps, flight.bound_steps
        elif view.step >= self._arrival + physics.steps_to_fly(BEHIND_M) and not self._gathering:
            self._plan_again(view)
        assert self._targets is not None
        left = self._arrival - view.step
        if left <= 1 or view.mission.map is not None:
            return go(view.positions, self._targets, physics, view.mission.map)
        return (self._targets - view.positions) / (left * physics.step_s)

    def _plan(self, view: GlobalView, effort: float) -> PlannedFlight:
        flight = plan_flight(view.positions, view.mission.physics, effort, view.heights)
        if flight.fallback:
            self.flag = "fallback:contraction"
        self._targets, self._arrival = flight.targets, view.step + flight.steps
        self._gap_m = gap_m(view.positions, view.mission.physics.range_m, view.heights)
        return flight

    def _plan_again(self, view: GlobalView) -> None:
        gap = gap_m(view.positions, view.mission.physics.range_m, view.heights)
        if gap < self._gap_m - view.mission.physics.stride_m:
            self._plan(view, 0.0)
            return
        self._gathering = True
        self.flag = "fallback:gather"
        self._targets = np.tile((view.positions.min(axis=0) + view.positions.max(axis=0)) / 2, (len(view.positions), 1))
