"""RNFR (METHODS 9.5, after Chouikhi et al. 2017): with everything known, a chain of moves fills each failed spot."""

from __future__ import annotations

import heapq

import numpy as np
from scipy.spatial import cKDTree

from phygail.config import LINK_TOLERANCE_M, Physics
from phygail.methods.base import register
from phygail.methods.classic import GlobalPlan, linked, rounded
from phygail.sensing.views import GlobalView
from phygail.swarm.failures import critical_uavs, neighbor_lists
from phygail.swarm.links import find_links, near_pairs
from phygail.swarm.tree import spanning_tree

SHORT = "short"  # flag: a spot for which no UAV could be spared
_ROUNDING = 1e-9  # relative: an edge that exceeds the bottleneck by less does not exceed it


@register
class Rnfr(GlobalPlan):
    """Until the network is one, the cheapest chain of failed spots between two subnets is filled, spot by spot.

    For each spot the largest single move is as small as possible; then the sum of meters is. In the chain
    f <- x1 <- ... <- u each UAV moves up one place, and the last one leaves a place whose loss splits nothing.
    """

    name = "rnfr"
    summary = "chains of moves fill the failed spots, the largest move the smallest (after Chouikhi et al. 2017)"

    def plan(self, view: GlobalView) -> np.ndarray:
        targets, short = fill_spots(view.positions, view.roster[view.damaged], view.mission.physics)
        if short:
            self.flag = SHORT
        moved = (targets != view.positions).any(axis=1)
        self.messages = len(targets) + int(moved.sum())  # reports and orders
        return targets


def fill_spots(positions: np.ndarray, spots: np.ndarray, physics: Physics) -> tuple[np.ndarray, bool]:
    """Targets of UAVs at `positions` ((n, 2) m) that fill `spots` ((k, 2) m) until the network is one.

    Returns:
        (n, 2) m; whether UAVs or spots ran short.
    """
    places, left, short = positions.copy(), list(range(len(spots))), False
    placed: set[int] = set()  # rows on a spot
    while not find_links(places, physics.range_m).connected:
        chain = [left[k] for k in spots_between(places, spots[left], physics)]
        if not chain:
            return places, True
        for spot in chain:
            left.remove(spot)
            moves = replacement(places, spots[spot], placed, physics)
            if moves:
                places[moves] = np.vstack([spots[spot], places[moves[:-1]]])
                placed.add(moves[0])
            else:
                short = True
    return places, short


def spots_between(places: np.ndarray, spots: np.ndarray, physics: Physics) -> list[int]:
    """The fewest `spots` ((k, 2) m) that, filled, would join two subnets of `places` ((n, 2) m); then the shortest.

    A Dijkstra search starts from all subnets at once; where two searches meet, their paths form a chain. The result is
    empty if there is no chain.
    """
    if not len(spots):
        return []
    n = len(places)
    subnet = find_links(places, physics.range_m).subnet
    pairs, lengths = near_pairs(np.vstack([places, spots]), physics.range_m + LINK_TOLERANCE_M)
    edges: list[list[tuple[int, float]]] = [[] for _ in range(n + len(spots))]
    for (a, b), length in zip(pairs.tolist(), rounded(lengths, physics).tolist(), strict=True):
        if b >= n:  # a link between two alive needs no spot
            edges[a].append((b, length))
            edges[b].append((a, length))
    cost: dict[int, tuple[int, float]] = dict.fromkeys(range(n), (0, 0.0))
    owner, back = dict(enumerate(subnet.tolist())), dict.fromkeys(range(n), -1)
    queue = [(0, 0.0, row) for row in range(n)]
    best: tuple[int, float, int, int] | None = None
    settled: set[int] = set()
    while queue:
        count, way, here = heapq.heappop(queue)
        if here in settled:
            continue
        settled.add(here)
        for there, length in edges[here]:
            step = (count + (there >= n), way + length)
            if there in settled:
                if owner[there] != owner[here]:
                    other = cost[there]
                    joined = (count + other[0], way + length + other[1], min(here, there), max(here, there))
                    best = min(best, joined) if best else joined
            elif there >= n and (there not in cost or step < cost[there]):
                cost[there], owner[there], back[there] = step, owner[here], here
                heapq.heappush(queue, (*step, there))
    if best is None:
        return []
    return [k - n for k in _walk(best[2], back) + _walk(best[3], back) if k >= n]


def _walk(node: int, back: dict[int, int]) -> list[int]:
    path = []
    while node >= 0:
        path.append(node)
        node = back[node]
    return path


def replacement(places: np.ndarray, spot: np.ndarray, placed: set[int], physics: Physics) -> list[int]:
    """Rows of the chain that fills `spot` ((2,) m), the one that takes it first; empty if nobody can be spared.

    A UAV is redundant if it is no cut vertex of the network with the spot filled, has a neighbor there and was not
    placed on a spot. The smallest largest move is that of the minimum spanning tree (its bottleneck property); among
    chains of moves up to that length the one with the fewest meters is chosen.
    """
    points = np.vstack([places, spot])
    last = len(places)
    hears = linked(points, physics)
    cut = set(critical_uavs(len(points), near_pairs(points, physics.range_m + LINK_TOLERANCE_M)[0]))
    redundant = {row for row in range(last) if hears[row] and row not in cut and row not in placed}
    if not redundant:
        return []
    edges, lengths = spanning_tree(points)
    bottleneck = _bottleneck(last, len(points), edges, lengths)
    limit = min(bottleneck[row] for row in redundant) * (1 + _ROUNDING)
    return _shortest(points, last, redundant, limit, physics)


def _bottleneck(start: int, count: int, edges: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(count,) m, the longest edge between `start` and every node along the tree."""
    neighbors = neighbor_lists(count, edges)
    length = {frozenset(pair): float(value) for pair, value in zip(edges.tolist(), lengths, strict=True)}
    longest = np.full(count, np.inf)
    longest[start] = 0.0
    stack = [(start, -1)]
    while stack:
        here, above = stack.pop()
        for there in neighbors[here]:
            if there != above:
                longest[there] = max(longest[here], length[frozenset((here, there))])
                stack.append((there, here))
    return longest


def _shortest(points: np.ndarray, start: int, goals: set[int], limit_m: float, physics: Physics) -> list[int]:
    """The path with the fewest meters from `start` to one of `goals` in moves of up to `limit_m`; without the start."""
    tree = cKDTree(points)
    queue: list[tuple[float, int, int]] = [(0.0, start, -1)]
    back: dict[int, int] = {}
    while queue:
        way, here, above = heapq.heappop(queue)
        if here in back:
            continue
        back[here] = above
        if here in goals:
            return _walk(here, back)[-2::-1]
        for there in tree.query_ball_point(points[here], limit_m):
            if there not in back:
                step = float(rounded(np.hypot(*(points[there] - points[here])), physics))
                heapq.heappush(queue, (way + step, there, here))
    raise AssertionError("the bottleneck of the tree reaches a goal")
