"""Plan once, then fly: the behavior of every method that computes target positions at t = 0 (METHODS 2.5)."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from phygail.methods.base import GlobalMethod
from phygail.methods.forces import go
from phygail.perception.view import GlobalView

PLAN_MARGIN_M = 0.1  # plans are connected at R - this, so that rounding cannot break an edge that sits exactly at R


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


def largest_move_m(positions: np.ndarray, targets: np.ndarray) -> float:
    """The largest displacement of a plan: its duration in meters of flight."""
    return float(np.hypot(*(targets - positions).T).max())
