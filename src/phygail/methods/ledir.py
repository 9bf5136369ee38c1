"""LeDiR (METHODS 9.3, after Abbasi, Younis, Baroudi 2013): only the smallest block moves, behind one leader."""

from __future__ import annotations

import numpy as np

from phygail.methods.base import register
from phygail.methods.classic import Belief, SubnetPlan, distances, follow, plan_range, rounded


@register
class Ledir(SubnetPlan):
    """In the smallest block beside a failed UAV the neighbor nearest to its spot takes the spot; children follow.

    A subnet in charge of several spots takes only the spot whose leader is nearest: a second leader could tear the
    block.
    """

    name = "ledir"
    summary = "the smallest block's nearest UAV takes the failed spot, children follow (after Abbasi et al. 2013)"

    def plan(self, belief: Belief) -> np.ndarray:
        leaders = [(*nearest_hearer(belief, f), f) for f in belief.answered if in_charge(belief, f)]
        if not leaders:
            return belief.positions
        _, leader, failed = min(leaders)
        targets = belief.positions.copy()
        targets[leader] = belief.roster[failed]
        targets, followers = follow(
            belief.positions, belief.neighbors, targets, [leader], [], plan_range(belief.physics)
        )
        self.messages += 1 + len(followers)
        return targets


def nearest_hearer(belief: Belief, failed: int) -> tuple[float, int]:
    """(rounded m to the spot, row) of the member nearest to `failed`, one of its neighbors."""
    rows = belief.hearers(failed)
    away = rounded(belief.away(failed)[rows], belief.physics)
    return min(zip(away.tolist(), rows.tolist(), strict=True))


def in_charge(belief: Belief, failed: int) -> bool:
    """Whether this subnet is the smallest block beside `failed`, as far as it knows; in a tie the nearest decides."""
    beside = np.array([n for n in belief.before[failed] if belief.block[n] >= 0])
    away = rounded(distances(belief.roster[beside], belief.roster[failed]), belief.physics)
    sizes = np.bincount(belief.block[belief.block >= 0])
    keys = sorted(
        (int(sizes[belief.block[n]]), float(d), int(n)) for n, d in zip(beside.tolist(), away.tolist(), strict=True)
    )
    return keys[0][2] in belief.rows
