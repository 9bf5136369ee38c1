"""DCRMF (METHODS 9.4, after Zhang, Wang, Hao 2018): a non-critical UAV nearby stands in for the failed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from phygail.config import LINK_TOLERANCE_M, Physics
from phygail.methods.base import register
from phygail.methods.classic import Belief, Neighbors, SubnetPlan, distances, rounded
from phygail.swarm.failures import critical_uavs
from phygail.swarm.links import near_pairs

NO_SPARE = "no-spare"  # flag: no UAV could be spared for a spot


@register
class Dcrmf(SubnetPlan):
    """UAVs outside the connected dominating set of the network are spare; the nearest in hops takes the failed spot.

    All UAVs know the set from before the damage, so each subnet finds the same stand-in. The subnet that has it as a
    member sends it; the others leave the spot to that subnet.
    """

    name = "dcrmf"
    summary = "the nearest non-critical UAV replaces the failed (after Zhang, Wang, Hao 2018)"

    def __init__(self, rng: np.random.Generator | None = None) -> None:
        super().__init__(rng)
        self._critical: tuple[Neighbors, set[int]] | None = None

    def plan(self, belief: Belief) -> np.ndarray:
        critical = self._dominating_set(belief)
        spots = [f for f in belief.answered if f in critical]
        targets = belief.positions.copy()
        assigned = _Assignment(belief)
        for _, _, failed, uav, ring in _by_hops(belief, spots, critical):
            if failed in assigned.filled or uav in assigned.taken or not assigned.can_spare(uav, failed):
                continue
            assigned.take(uav, failed)
            self.messages += len(ring & set(belief.rows))  # the UAVs asked
            if uav in belief.rows:
                targets[belief.rows[uav]] = belief.roster[failed]
                self.messages += 1
            if len(assigned.filled) == len(spots):
                break
        if len(assigned.filled) < len(spots):
            self.flag = NO_SPARE
        return targets

    def _dominating_set(self, belief: Belief) -> set[int]:
        if self._critical is None or self._critical[0] is not belief.before:
            self._critical = belief.before, dominating_set(belief.roster, belief.before, belief.physics)
        return self._critical[1]


class _Assignment:
    """The UAVs that were sent, the spots that they fill, and whether one more can be spared."""

    def __init__(self, belief: Belief) -> None:
        self._belief = belief
        self.filled: set[int] = set()  # spots
        self.taken: set[int] = set()  # roster indices of stand-ins

    def take(self, uav: int, failed: int) -> None:
        self.filled.add(failed)
        self.taken.add(uav)

    def can_spare(self, uav: int, failed: int) -> bool:
        """Whether the subnet stays together without `uav`, given the UAVs sent and the spots that they fill."""
        belief = self._belief
        if uav not in belief.rows:
            return True
        rows = [row for member, row in belief.rows.items() if member not in self.taken]
        places = np.vstack([belief.positions[rows], belief.roster[[failed, *sorted(self.filled)]]])
        pairs, _ = near_pairs(places, belief.physics.range_m + LINK_TOLERANCE_M)
        return rows.index(belief.rows[uav]) not in critical_uavs(len(places), pairs)


def _by_hops(belief: Belief, spots: list[int], critical: set[int]) -> Iterator[tuple[int, float, int, int, set[int]]]:
    """(hops, rounded m, spot, spare UAV, all within these hops of the spot), nearest first: a widening ring search."""
    failed = set(belief.failed)
    rings = {f: {f} for f in spots}
    edge = {f: {f} for f in spots}
    hops = 0
    while any(edge.values()):
        hops += 1
        found = []
        for f in spots:
            edge[f] = {n for uav in edge[f] for n in belief.before[uav]} - rings[f]
            rings[f] = rings[f] | edge[f]
            spare = sorted(edge[f] - failed - critical)
            away = rounded(distances(belief.roster[spare], belief.roster[f]), belief.physics).tolist() if spare else []
            found += [(hops, d, f, uav, rings[f]) for uav, d in zip(spare, away, strict=True)]
        yield from sorted(found, key=lambda entry: entry[:4])


def dominating_set(layout: np.ndarray, neighbors: Neighbors, physics: Physics) -> set[int]:
    """A connected dominating set that every UAV finds from its 2-hop table (Wu and Li's marking, Dai and Wu's rule k).

    A UAV is marked if two of its neighbors have no link to each other. A marked UAV is dropped again if its marked
    neighbors of higher priority (more links; then the smaller sum of their lengths) include a connected group that
    covers its neighborhood.

    Args:
        layout: (N, 2) m. neighbors: Its links. physics: Radio.
    """
    heard = [set(others) for others in neighbors]
    marked = {v for v, others in enumerate(heard) if any(not others <= heard[u] | {u} for u in others)}
    strain = [
        float(rounded(distances(layout[others], layout[v]).sum(), physics)) if others else 0.0
        for v, others in enumerate(neighbors)
    ]
    rank = {v: (-len(heard[v]), strain[v], v) for v in marked}

    def covered(v: int) -> bool:
        rest = {u for u in heard[v] & marked if rank[u] < rank[v]}
        while rest:
            group, edge = set(), {rest.pop()}
            while edge:
                group |= edge
                edge = {u for w in edge for u in heard[w]} & rest
                rest -= edge
            if heard[v] <= group.union(*(heard[u] for u in group)):
                return True
        return False

    return {v for v in marked if not covered(v)}
