"""CIST (METHODS 9.6, after Senel, Younis 2011): relays on Steiner points join the subnets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from phygail.config import LINK_TOLERANCE_M, Physics
from phygail.methods.base import register
from phygail.methods.classic import GlobalPlan, distances, plan_range, rounded
from phygail.sensing.views import GlobalView
from phygail.swarm.failures import critical_uavs
from phygail.swarm.links import near_pairs
from phygail.swarm.tree import spanning_tree

SHORT = "short"  # flag: a relay spot for which no UAV could be spared
STAR_ROUNDS = 20  # of moving a star's middle
_WIDE = -0.5  # cosine of 120 degrees: a corner at least that wide is its own Fermat point


@dataclass(frozen=True, eq=False)
class Group:
    """Relays that join two segments along a straight line, or three by a star.

    Attributes:
        ends: Rows of the UAVs it is tied to. spots: (r, 2) m, where relays are needed. length_m: Of its pieces.
    """

    ends: tuple[int, ...]
    spots: np.ndarray
    length_m: float


@register
class Cist(GlobalPlan):
    """Subnets are joined by the fewest relays, which are UAVs that can be spared.

    Relays form straight chains along the minimum spanning tree of the subnets. Three subnets are tied to a star about
    their Fermat point where that saves relays.
    """

    name = "cist"
    summary = "spare UAVs become relays on lines and stars between the subnets (after Senel, Younis 2011)"

    def plan(self, view: GlobalView) -> np.ndarray:
        physics, positions = view.mission.physics, view.positions
        groups = backbone(positions, view.links.subnet, physics)
        spots, drawn = self._draw(positions, groups, physics)
        targets = positions.copy()
        if drawn:
            cost = (positions[drawn][:, None] - np.array(spots)[None]) ** 2
            from scipy.optimize import linear_sum_assignment  # a tenth of a second: only when it is needed

            rows, places = linear_sum_assignment(cost.sum(axis=2))
            targets[np.array(drawn)[rows]] = np.array(spots)[places]
        self.messages = len(positions) + len(drawn)  # reports and orders
        return targets

    def _draw(self, positions: np.ndarray, groups: list[Group], physics: Physics) -> tuple[list[np.ndarray], list[int]]:
        """(served spots, rows drawn): for every spot the nearest UAV that its segment can spare."""
        ends = {row for group in groups for row in group.ends}
        left = np.ones(len(positions), dtype=bool)
        served: list[np.ndarray] = []
        drawn: list[int] = []
        for group in sorted(groups, key=lambda g: (len(g.spots), float(rounded(g.length_m, physics)))):
            for spot in group.spots:
                spare = [row for row in _spare(positions, left, physics) if row not in ends]
                if not spare:
                    self.flag = SHORT
                    continue
                away = rounded(distances(positions[spare], spot), physics)
                row = spare[int(away.argmin())]
                left[row] = False
                served.append(spot)
                drawn.append(row)
        return served, drawn


def _spare(positions: np.ndarray, left: np.ndarray, physics: Physics) -> list[int]:
    """Rows among those `left` ((n,) bool) that have a neighbor and are no cut vertex."""
    rows = np.flatnonzero(left)
    pairs, _ = near_pairs(positions[rows], physics.range_m + LINK_TOLERANCE_M)
    cut = set(critical_uavs(len(rows), pairs))
    return [int(rows[k]) for k in np.unique(pairs) if k not in cut]


def relays(length_m: float | np.ndarray, range_m: float) -> np.ndarray:
    """How many relays a straight piece needs."""
    return np.maximum(0, np.ceil(np.asarray(length_m) / range_m - 1e-9).astype(int) - 1)


def backbone(positions: np.ndarray, subnet: np.ndarray, physics: Physics) -> list[Group]:
    """Lines and stars that join all subnets ((n,) labels) of `positions` ((n, 2) m).

    Kruskal's algorithm on the closest pairs of the subnets, by relays and then by length, gives those edges of the
    minimum spanning tree that join two subnets, because a longer edge never needs fewer relays.
    """
    range_m = plan_range(physics)
    edges, lengths = spanning_tree(positions)
    joins = subnet[edges[:, 0]] != subnet[edges[:, 1]]
    edges, need = edges[joins], relays(lengths[joins], range_m)
    stars = []
    for a in range(len(edges)):
        for b in range(a):
            three = set(subnet[edges[[a, b]].ravel()].tolist())
            if len(three) == 3:
                star = fermat_star(
                    positions, subnet, sorted(three), positions[edges[[a, b]].ravel()].mean(axis=0), range_m
                )
                saving = int(need[a] + need[b]) - len(star.spots)
                if saving > 0:
                    stars.append((-saving, float(rounded(star.length_m, physics)), a, b, star))
    groups: list[Group] = []
    used: set[int] = set()
    for _, _, a, b, star in sorted(stars, key=lambda entry: entry[:4]):
        if not used & {a, b}:
            used |= {a, b}
            groups.append(star)
    lengths = lengths[joins]
    return groups + [
        Group((i, j), _along(positions[i], positions[j], range_m), float(lengths[k]))
        for k, (i, j) in enumerate(edges.tolist())
        if k not in used
    ]


def fermat_star(
    positions: np.ndarray, subnet: np.ndarray, three: list[int], start: np.ndarray, range_m: float
) -> Group:
    """The star that ties three subnets to one middle: nearest members and Fermat point, in turn."""
    rows = [np.flatnonzero(subnet == label) for label in three]
    middle = start
    ends: tuple[int, ...] = ()
    for _ in range(STAR_ROUNDS):
        nearest = tuple(int(part[distances(positions[part], middle).argmin()]) for part in rows)
        if nearest == ends:
            break
        ends, middle = nearest, fermat_point(positions[list(nearest)])
    pieces = [_along(middle, positions[row], range_m) for row in ends]
    return Group(ends, np.vstack([middle, *pieces]), float(distances(positions[list(ends)], middle).sum()))


def _along(start: np.ndarray, end: np.ndarray, range_m: float) -> np.ndarray:
    """(r, 2) m, relays at equal distances between two points."""
    count = int(relays(math.hypot(*(end - start)), range_m))
    share = np.arange(1, count + 1)[:, None] / (count + 1)
    return start + share * (end - start)


def fermat_point(corners: np.ndarray) -> np.ndarray:
    """(2,) m, the point with the smallest sum of distances to three `corners` ((3, 2) m).

    It is a corner whose angle is at least 120 degrees, or else the point that sees every side under 120 degrees, with
    barycentric coordinates side / sin(angle + 60 degrees).
    """
    weights = []
    for k in range(3):
        here, left, right = corners[k], corners[k - 1], corners[k - 2]
        a, b = left - here, right - here
        size = math.hypot(*a) * math.hypot(*b)
        cosine = float(a @ b) / size if size > 0 else -1.0
        if cosine <= _WIDE:
            return here
        angle = math.acos(min(1.0, cosine))
        weights.append(math.hypot(*(left - right)) / math.sin(angle + math.pi / 3))
    return np.asarray(weights) @ corners / sum(weights)
