"""VCR (METHODS 9.2, after Imran et al. 2010): the neighbors of the failed volunteer and close in on its spot."""

from __future__ import annotations

import numpy as np

from phygail.methods.base import register
from phygail.methods.classic import Belief, SubnetPlan, distances, follow, plan_range, rounded

RING_SHARE = 1 / 2  # of R_plan: any two volunteers this close to the spot hear each other


@register
class Vcr(SubnetPlan):
    """Every member with a failed neighbor flies so close to that spot that all volunteers hear each other.

    q_i = P_f + (P_i - P_f) (R_plan / 2) / |P_i - P_f| for volunteers farther than R_plan / 2 from the nearest failed f
    that the subnet answers; nearer ones stay. UAVs that would lose their parent follow.
    """

    name = "vcr"
    summary = "neighbors of the failed volunteer: all close in on its spot (after Imran et al. 2010)"

    def plan(self, belief: Belief) -> np.ndarray:
        ring = RING_SHARE * plan_range(belief.physics)
        targets, movers, settled = belief.positions.copy(), [], []
        for row, failed in volunteers(belief).items():
            spot = belief.roster[failed]
            offset = belief.positions[row] - spot
            away = float(np.hypot(*offset))
            if away > ring:
                targets[row] = spot + offset * (ring / away)
                movers.append(row)
            else:
                settled.append(row)
        targets, followers = follow(
            belief.positions, belief.neighbors, targets, movers, settled, plan_range(belief.physics)
        )
        self.messages += len(movers) + len(settled) + len(followers)
        return targets


def volunteers(belief: Belief) -> dict[int, int]:
    """Row of each member with a failed neighbor that the subnet answers -> the nearest such neighbor."""
    chosen: dict[int, int] = {}
    spots = belief.roster[belief.answered]
    hears = {(int(row), failed) for failed in belief.answered for row in belief.hearers(failed)}
    for row in sorted({row for row, _ in hears}):
        away = rounded(distances(spots, belief.positions[row]), belief.physics) if len(spots) else np.empty(0)
        known = [(float(away[k]), f) for k, f in enumerate(belief.answered) if (row, f) in hears]
        chosen[row] = min(known)[1]
    return chosen
