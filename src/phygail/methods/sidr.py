"""SIDR (METHODS 3.3, Chen et al. 2020): every subnet flies as a block toward the shared center."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from phygail.methods.base import SubnetMethod, register
from phygail.methods.steering import block, go, repulsion
from phygail.sensing.imperfect import decide_delayed
from phygail.sensing.radio import HELLO, ID_BYTES, NUMBER_BYTES, PLACE_BYTES
from phygail.sensing.views import SubnetView, SubnetViews

AGGREGATED = "late-phase"  # flag of a flight that needed the aggregation phase; rows on disk spell it so
ROUNDING = 1e-9  # share of a length
AGGREGATE_AFTER = 0.55  # of the width W, flown at full speed: t_wait, when every subnet aggregates


def aggregating(views: SubnetViews) -> np.ndarray:
    """(count,) bool, the subnets that fly to the center, every member by itself: the aggregation phase (METHODS 3.3).

    All subnets are in it from t_wait on. A subnet begins earlier if its farthest member needs all the remaining steps
    but one to come within R/2 of the center. So all UAVs are there when the budget ends, and the network is one
    (docs/concepts.md has the proof).
    """
    mission, physics = views.mission, views.mission.physics
    if views.step * physics.stride_m >= aggregation_m(mission.width_m):
        return np.ones(views.count, dtype=bool)
    centers = views.centers[views.subnet]
    near_m = 0.0 if mission.arrive else physics.range_m / 2
    if mission.map is None:
        away = views.positions - centers
        far = np.hypot(away[:, 0], away[:, 1]) - near_m
    else:
        far = mission.map.ways(views.positions, centers)[1] - near_m
    # One step is kept in reserve: until the next decision the farthest UAV may fly outward. Rounding must not cost
    # another.
    remaining = mission.budget_steps - mission.lead_steps - views.step
    urgent = far > (remaining - 2) * (physics.stride_m * mission.pace) - ROUNDING * physics.range_m
    begun = np.zeros(views.count, dtype=bool)
    begun[views.subnet[urgent]] = True
    return begun


def aggregation_m(width_m: float) -> float:
    """t_wait on a map of this width, in meters flown at full speed."""
    return AGGREGATE_AFTER * width_m * (1.0 - ROUNDING)  # 0.55 * 400 is 220.00000000000003 in floating point


def aggregate(views: SubnetViews, commands: np.ndarray) -> tuple[np.ndarray, bool]:
    """The commands ((n, 2) m/s), those of aggregating subnets replaced; and whether any subnet aggregates."""
    begun = aggregating(views)
    if not begun.any():
        return commands, False
    to_center = go(views.positions, views.centers[views.subnet], views.mission.physics, views.mission.map)
    return np.where(begun[views.subnet][:, None], to_center, commands), True


@register
class Sidr(SubnetMethod):
    """v_i = u_S + rep_i with u_S = go(g_S -> c), g_S the subnet's centroid; at last v_i = go(p_i -> c) + rep_i."""

    name = "sidr"
    summary = "every subnet flies as a block toward the shared center (Chen et al. 2020)"
    talk = replace(HELLO, summed_bytes=PLACE_BYTES + ID_BYTES + NUMBER_BYTES)  # sum, count, farthest from the center

    def __init__(self, rng: np.random.Generator | None = None, *, rep: bool = True) -> None:
        super().__init__(rng)
        self.rep = rep

    def act(self, view: SubnetView) -> np.ndarray:
        return self.act_all(view.alone())

    def act_all(self, views: SubnetViews) -> np.ndarray:
        base, aggregated = aggregate(views, block(views))
        self.flag = AGGREGATED if aggregated else self.flag
        return base + self._repulsion(views)

    def act_imperfect(self, views: SubnetViews) -> np.ndarray:
        if views.news is None:
            return self.act_all(views)
        return decide_delayed(views, self.act_all, reckoned=self.dead_reckons)

    def _repulsion(self, view: SubnetViews) -> np.ndarray:
        if not self.rep:
            return np.zeros_like(view.positions)
        return repulsion(view.positions, view.pairs, view.lengths, view.members, view.mission.physics)
