"""SIDR (METHODS 3.3, Chen et al. 2020): every subnet flies as a block toward the shared center."""

from __future__ import annotations

import math

import numpy as np

from phygail.methods.base import SubnetMethod, register
from phygail.methods.forces import go, repulsion
from phygail.perception.noise import SensedViews
from phygail.perception.pictures import decide_late
from phygail.perception.view import SubnetView, SubnetViews

AGGREGATE_AFTER = 0.55  # of the width W, in steps: t_wait


def aggregating(view: SubnetView | SubnetViews) -> bool:
    """Whether the late aggregation phase has begun (t >= t_wait).

    Two hollow subnets can both be centered on c without touching (1 of 30 cases at N=100); after t_wait everybody
    flies to c individually, which always ends in one network.
    """
    return view.step >= aggregation_step(view.mission.width_m)


def aggregation_step(width_m: float) -> int:
    """The first step of the late phase on a map of this width."""
    return math.ceil(AGGREGATE_AFTER * width_m - 1e-9)  # 0.55 * 400 is 220.00000000000003 in floating point


@register
class Sidr(SubnetMethod):
    """v_i = u_S + rep_i with u_S = go(g_S -> c), g_S the subnet's centroid; after t_wait v_i = go(p_i -> c) + rep_i."""

    name = "sidr"
    summary = "every subnet flies as a block toward the shared center (Chen et al. 2020)"
    own_centers = True

    def __init__(self, rng: np.random.Generator | None = None, *, rep: bool = True) -> None:
        super().__init__(rng)
        self.rep = rep

    def act(self, view: SubnetView) -> np.ndarray:
        mission = view.mission
        start = view.positions if aggregating(view) else view.positions.mean(axis=0, keepdims=True)
        base = np.broadcast_to(go(start, mission.center, mission.physics), view.positions.shape)
        return base + self._repulsion(view)

    def act_all(self, views: SubnetViews) -> np.ndarray:
        mission = views.mission
        start = views.positions if aggregating(views) else views.means(views.positions)[views.subnet]
        return go(start, views.centers[views.subnet], mission.physics) + self._repulsion(views)

    def act_late(self, views: SensedViews, delay_steps: int) -> np.ndarray:
        """(n, 2) m/s where news is late: every UAV follows the rule in its own picture of its subnet."""
        return decide_late(views, self.act_all, reckoned=self.reckons)

    def _repulsion(self, view: SubnetView | SubnetViews) -> np.ndarray:
        if not self.rep:
            return np.zeros_like(view.positions)
        return repulsion(view.positions, view.pairs, view.lengths, view.members, view.mission.physics)
