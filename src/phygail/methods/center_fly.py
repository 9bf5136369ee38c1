"""center-fly (METHODS 3.1): everybody flies straight to the shared center."""

from __future__ import annotations

import numpy as np

from phygail.methods.base import LocalMethod, register
from phygail.methods.steering import go
from phygail.sensing.radio import SILENT
from phygail.sensing.views import LocalView


@register
class CenterFly(LocalMethod):
    """v_i = go(p_i -> c). No collision avoidance."""

    name = "center-fly"
    summary = "everybody flies straight to the shared center"
    talk = SILENT

    def act(self, view: LocalView) -> np.ndarray:
        return go(view.positions, view.mission.center, view.mission.physics, view.mission.map)
