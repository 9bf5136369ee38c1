"""center-fly (METHODS 3.1): everybody flies straight to the shared center."""

from __future__ import annotations

import numpy as np

from phygail.methods.base import GlobalMethod, LocalMethod, register
from phygail.methods.forces import go
from phygail.perception.view import GlobalView, LocalView


@register
class CenterFly(LocalMethod):
    """v_i = go(p_i -> c). No collision avoidance."""

    name = "center-fly"
    summary = "everybody flies straight to the shared center"

    def act(self, view: LocalView) -> np.ndarray:
        return go(view.positions, view.mission.center, view.mission.physics)


class CenterFlyCentroid(GlobalMethod):
    """v_i = go(p_i -> mean of the alive): the target that earlier public code intends.

    Not registered: it needs everybody's position, which a split swarm does not have, and is within 2 % of `center-fly`.
    Fly it with `run_episode(scenario, CenterFlyCentroid())`.
    """

    name = "center-fly-centroid"
    summary = "everybody flies straight to the mean of the alive"

    def act(self, view: GlobalView) -> np.ndarray:
        return go(view.positions, view.positions.mean(axis=0), view.mission.physics)
