"""Euclidean minimum spanning trees and the gap that they measure (METHODS 2.5)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial import Delaunay, QhullError

from phygail.swarm.links import link_lengths

SMALL = 24  # up to here Prim's algorithm is faster than a Delaunay triangulation


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


def gap_m(points: np.ndarray, range_m: float) -> float:
    """Sum over the tree's edges of max(0, length - range): zero if and only if the network is one."""
    return float(np.maximum(0.0, spanning_tree(points)[1] - range_m).sum())
