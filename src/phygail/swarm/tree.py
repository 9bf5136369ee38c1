"""Spanning trees, the gap that they measure and the lower bound on recovery time (METHODS 2.5, 8.1)."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import Delaunay, QhullError
from scipy.spatial.distance import cdist

from phygail.config import LINK_TOLERANCE_M, Physics
from phygail.swarm.links import link_lengths
from phygail.swarm.scenario import Scenario

SMALL = 24  # up to here Prim's algorithm is faster than a Delaunay triangulation

_STEP_SLACK = 1e-6  # of a step: rounding must not push the bound above a reachable optimum


def spanning_tree(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Euclidean minimum spanning tree of n points in O(n log n).

    The tree is a subset of the Delaunay triangulation. Coincident points, which the triangulation drops, are tied to
    the vertex that stands for them; point sets without a triangulation (all on a line) go to Prim's algorithm.

    Args:
        points: (n, 2) m, finite.

    Returns:
        (n-1, 2) int edges with i < j, and their (n-1,) lengths in m.
    """
    if len(points) <= SMALL:
        return prim_tree(points)
    try:
        # Relative to the mean, so that a shift of the whole swarm changes nothing.
        mesh = Delaunay(points - points.mean(axis=0))
    except QhullError:
        return prim_tree(points)
    corners = mesh.simplices
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]], mesh.coplanar[:, [0, 2]]])
    edges = np.unique(np.sort(edges, axis=1), axis=0)
    lengths = link_lengths(points, edges)
    # One is added because a sparse zero (two coincident points) would mean "no edge"; it does not change the tree.
    graph = coo_array((lengths + 1.0, (edges[:, 0], edges[:, 1])), shape=(len(points), len(points)))
    tree = minimum_spanning_tree(graph.tocsr()).tocoo()
    kept = np.sort(np.stack([tree.row, tree.col], axis=1), axis=1).astype(np.intp)
    if len(kept) < len(points) - 1:  # a triangulation torn by rounding
        return prim_tree(points)
    return kept, link_lengths(points, kept)


def prim_tree(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same tree by Prim's algorithm, O(n^2): for small or degenerate sets, and the oracle of the tests."""
    n = len(points)
    edges = np.empty((max(0, n - 1), 2), dtype=np.intp)
    lengths = np.empty(max(0, n - 1))
    outside = np.ones(n, dtype=bool)
    distance = np.full(n, np.inf)
    parent = np.zeros(n, dtype=np.intp)
    newest = 0
    for k in range(n - 1):
        outside[newest] = False
        offset = points - points[newest]
        fresh = np.hypot(offset[:, 0], offset[:, 1])
        closer = outside & (fresh < distance)
        distance[closer], parent[closer] = fresh[closer], newest
        newest = int(np.argmin(np.where(outside, distance, np.inf)))
        edges[k] = sorted((parent[newest], newest))
        lengths[k] = distance[newest]
    return edges, lengths


def dense_tree(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The minimum spanning tree of a full graph ((n, n), symmetric) by Prim's algorithm: edges and their weights."""
    n = len(weights)
    edges, lengths = np.empty((n - 1, 2), dtype=np.intp), np.empty(n - 1)
    outside, nearest, parent = np.arange(1, n), weights[0, 1:], np.zeros(n - 1, dtype=np.intp)
    for k in range(n - 1):
        best = int(np.argmin(nearest))
        newest = int(outside[best])
        edges[k], lengths[k] = sorted((int(parent[best]), newest)), nearest[best]
        outside, nearest, parent = (np.delete(values, best) for values in (outside, nearest, parent))
        fresh = weights[newest, outside]
        nearest, parent = np.minimum(nearest, fresh), np.where(fresh < nearest, newest, parent)
    return edges, lengths


def level_range_m(heights: np.ndarray, edges: np.ndarray, range_m: float) -> np.ndarray:
    """(m,) m, how far apart in the plane the ends of `edges` ((m, 2) int) may be and hear each other: sqrt(R^2 - dz^2).

    Zero where they are more than R apart in height, and never hear each other (`excess_m` tells).
    """
    return _level(heights[edges[:, 0]] - heights[edges[:, 1]], range_m)


def _level(apart: np.ndarray, range_m: float) -> np.ndarray:
    return np.sqrt(np.maximum(range_m**2 - apart**2, 0.0))


def excess_m(points: np.ndarray, heights: np.ndarray, range_m: float) -> np.ndarray:
    """(n, n) m, by how much each two are too far apart in the plane, negative if linked; inf if they never are."""
    apart = np.abs(heights[:, None] - heights)
    return np.where(apart <= range_m + LINK_TOLERANCE_M, cdist(points, points) - _level(apart, range_m), np.inf)


def tree_excess_m(points: np.ndarray, range_m: float, heights: np.ndarray | None = None) -> np.ndarray:
    """(n-1,) m, by how much the edges of the spanning tree are longer than the range; at heights the plane counts."""
    if heights is None:
        return np.maximum(0.0, spanning_tree(points)[1] - range_m)
    return np.maximum(0.0, dense_tree(excess_m(points, heights, range_m))[1])


def gap_m(points: np.ndarray, range_m: float, heights: np.ndarray | None = None) -> float:
    """Sum over the tree's edges of max(0, length - range): zero if and only if the network is one."""
    return float(tree_excess_m(points, range_m, heights).sum())


def bound_steps(positions: np.ndarray, physics: Physics) -> int:
    """ceil((w - R) / (2 v_max dt)), w the longest edge of the Euclidean minimum spanning tree; 0 if connected.

    w is the smallest range at which the swarm would be one network (the bottleneck property of minimum spanning
    trees). A step shortens any distance by at most 2 v_max dt, so w falls no faster, and it must fall to R.

    Args:
        positions: (n, 2) m, the alive.
        physics: Radio and vehicle.
    """
    return steps_to_close(float(tree_excess_m(positions, physics.range_m).max(initial=0.0)), physics)


def steps_to_close(gap: float, physics: Physics) -> int:
    """Steps in which two UAVs come closer by `gap` m at full speed."""
    closing = 2 * physics.stride_m
    # A UAV so slow that the link tolerance is more than 1e-6 of its step gets the tolerance itself as slack.
    return max(0, math.ceil(gap / closing - max(_STEP_SLACK, LINK_TOLERANCE_M / closing)))


def bound_for(scenario: Scenario) -> int | None:
    """A number of steps below which no method can stay in this scenario's world; None where there is no bound.

    Obstacles, outages, wind, a lag and wrong knowledge only take paths and links away, so the plain bound holds. The
    network must hold the UAVs that survive every event, and the episode lasts until the last event. The victims of a
    strike depend on the flight: a strike leaves the step of the last event as the only bound, and a strike around a
    drawn UAV leaves none. With fading a link of any length has a positive probability, so there is no bound.
    """
    world = scenario.world
    if world.plain:
        return bound_steps(scenario.spots, scenario.physics)
    if world.links.model != "disc" or any(event.near_random is not None for event in world.events):
        return None
    lost = {uav for event in world.events for uav in event.uavs}
    final = np.array([uav for uav in scenario.alive if uav not in lost])
    gap = 0.0 if any(event.strike for event in world.events) else _longest_gap_m(scenario, final)
    if not math.isfinite(gap):
        return None
    return max(_closing_steps(gap, scenario), world.last_event) + world.hold_steps - 1


def _longest_gap_m(scenario: Scenario, final: np.ndarray) -> float:
    """The least by which the distance of some pair must shrink: the bottleneck of a spanning tree of what is missing.

    At heights that stay as they are only the horizontal part shrinks; inf if they keep the swarm split for ever.
    """
    world = scenario.world
    heights = None if world.altitude is None or world.level else np.array(world.altitude)[final]
    return float(tree_excess_m(scenario.layout[final], scenario.physics.range_m, heights).max(initial=0.0))


def _closing_steps(gap: float, scenario: Scenario) -> int:
    """Steps in which two UAVs from rest can come closer by `gap` m.

    With an acceleration a the speed after k steps is at most k a dt, and the step uses the new velocity. The distance
    is the discrete sum s(k) = dt sum of min(i a dt, v_max), not a t^2 / 2, which would be above a reachable optimum.
    """
    physics, accel = scenario.physics, scenario.world.vehicle.accel_mps2
    if not math.isfinite(accel):
        return steps_to_close(gap, physics)
    slack = max(_STEP_SLACK, LINK_TOLERANCE_M / (2 * physics.stride_m))
    needed, way, steps = gap / 2 - slack * physics.stride_m, 0.0, 0
    while way < needed and steps * accel * physics.step_s < physics.speed_mps:
        steps += 1
        way += physics.step_s * min(steps * accel * physics.step_s, physics.speed_mps)
    return steps + max(0, math.ceil((needed - way) / physics.stride_m))
