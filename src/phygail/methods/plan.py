"""Plan once, then fly: the behavior of every method that computes target positions at t = 0 (METHODS 2.5)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np

from phygail.config import PAPER_RANGE_M, Physics
from phygail.methods.base import GlobalMethod
from phygail.methods.forces import go
from phygail.perception.view import GlobalView

PLAN_MARGIN_M = 0.1  # at a range of 120 m, see `plan_range_m`


def plan_range_m(range_m: float) -> float:
    """R_plan = R - 0.1 m R/(120 m): plans are connected at it, so that rounding breaks no edge that sits at R."""
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
        return go(view.positions, self.targets, view.mission.physics)


class TrainedPlanMethod(PlanMethod):
    """A planner around a network whose weights, rates and tolerances were chosen at a range of 120 m.

    It plans in units in which the radio range is just that, so all its lengths are shares of the range, and its plan is
    the same one for every radio that stands in the same proportion to the swarm.
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
    return replace(
        view,
        mission=mission,
        roster=view.roster / unit,
        positions=view.positions / unit,
        velocities=view.velocities / unit,
        links=links,
    )


def largest_move_m(positions: np.ndarray, targets: np.ndarray) -> float:
    """The largest displacement of a plan: its duration in meters of flight."""
    return float(np.hypot(*(targets - positions).T).max())
