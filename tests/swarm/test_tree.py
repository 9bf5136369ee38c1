"""swarm.tree: the fast tree against Prim's algorithm and networkx, on every shape that breaks triangulations."""

import networkx as nx
import numpy as np
import pytest
from scipy.spatial import Delaunay

from phygail.rng import generator
from phygail.swarm import tree
from phygail.swarm.tree import SMALL, dense_tree, gap_m, prim_tree, spanning_tree


def clouds() -> list:
    """Named point sets above and below the size where the algorithm changes."""
    rng = generator(3, "tree")
    grid = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), axis=-1).reshape(-1, 2) * 50
    line = rng.uniform(0, 900, (60, 1)) * [0.6, -0.8]
    clustered = rng.normal(0, 5, (90, 2)) + rng.uniform(0, 2000, (6, 2))[rng.integers(0, 6, 90)]
    twins = np.concatenate([clustered[:40], clustered[:25], clustered[:10]])
    sets = {f"random-{n}": rng.uniform(0, 1000, (n, 2)) for n in (2, 3, SMALL, SMALL + 1, 80, 300)}
    sets |= {"grid": grid, "collinear": line, "clustered": clustered, "coincident": twins, "shifted": clustered + 1e6}
    sets["all-coincident"] = np.full((40, 2), 7.0)
    return [pytest.param(points, id=name) for name, points in sets.items()]


def oracle_lengths(points: np.ndarray) -> np.ndarray:
    graph = nx.Graph()
    offset = points[:, None] - points[None]
    distance = np.hypot(offset[..., 0], offset[..., 1])
    graph.add_weighted_edges_from((i, j, distance[i, j]) for i in range(len(points)) for j in range(i))
    return np.sort([data["weight"] for _, _, data in nx.minimum_spanning_edges(graph)])


@pytest.mark.parametrize("points", clouds())
def test_fast_tree_spans_and_is_as_short_as_the_oracles(points):
    edges, lengths = spanning_tree(points)
    assert nx.is_tree(nx.Graph(edges.tolist()))
    assert len(edges) == len(points) - 1
    assert (edges[:, 0] < edges[:, 1]).all()
    np.testing.assert_allclose(lengths, np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1), atol=1e-9)
    # All minimum spanning trees have the same lengths, so total and bottleneck are compared in one go.
    np.testing.assert_allclose(np.sort(lengths), oracle_lengths(points), atol=1e-6)
    np.testing.assert_allclose(np.sort(prim_tree(points)[1]), oracle_lengths(points), atol=1e-6)


def test_tree_of_one_uav_has_no_edge():
    edges, lengths = spanning_tree(np.zeros((1, 2)))
    assert edges.shape == (0, 2)
    assert lengths.shape == (0,)


def test_gap_sums_what_the_tree_lacks():
    points = np.array([[0.0, 0.0], [150.0, 0.0], [150.0, 100.0], [150.0, 270.0]])
    assert gap_m(points, 120.0) == pytest.approx(30.0 + 50.0)
    assert gap_m(points, 170.0) == 0.0


def test_a_dense_tree_is_the_tree_of_its_weights():
    points = generator(3, "dense tree").uniform(0, 900, (30, 2))
    edges, lengths = dense_tree(np.linalg.norm(points[:, None] - points, axis=2))
    assert nx.is_tree(nx.Graph(edges.tolist()))
    np.testing.assert_allclose(np.sort(lengths), oracle_lengths(points), atol=1e-9)


def test_gap_at_heights_is_what_the_plane_lacks():
    """72-96-120: at dz = 72 a link is 96 m long in the plane; dz = 130 leaves no link, whatever the distance."""
    points = np.array([[0.0, 0.0], [150.0, 0.0], [150.0, 30.0]])
    assert gap_m(points, 120.0, np.array([0.0, 72.0, 72.0])) == pytest.approx(150 - 96)
    assert gap_m(points, 120.0, np.array([0.0, 130.0, 130.0])) == np.inf
    assert gap_m(points, 120.0, np.zeros(3)) == pytest.approx(gap_m(points, 120.0))


def no_prim(points):
    raise AssertionError("the triangulation was enough, and the slow way was taken")


@pytest.mark.parametrize("points", [p for p in clouds() if p.id in ("random-300", "grid", "clustered", "coincident")])
def test_a_triangulation_needs_no_help_of_the_slow_way(points, monkeypatch):
    """Coincident points included: they are tied to the vertex that stands for them."""
    monkeypatch.setattr(tree, "prim_tree", no_prim)
    edges, lengths = spanning_tree(points)
    assert nx.is_tree(nx.Graph(edges.tolist()))
    np.testing.assert_allclose(np.sort(lengths), oracle_lengths(points), atol=1e-6)


def test_a_tree_is_found_far_from_the_origin_of_the_map(monkeypatch):
    """Whole meters shifted by 2^40 m, exact in floating point: only a triangulation around the mean still tells them
    apart.
    """
    points = generator(4, "far").permutation(400 * 400)[:200]
    points = np.stack([points // 400, points % 400], axis=1).astype(float)
    near = spanning_tree(points)
    monkeypatch.setattr(tree, "prim_tree", no_prim)
    for shift in ([2.0**40, 0.0], [0.0, -(2.0**40)]):
        edges, lengths = spanning_tree(points + shift)
        assert nx.is_tree(nx.Graph(edges.tolist()))
        assert np.sort(lengths).tolist() == np.sort(near[1]).tolist()


def test_a_triangulation_torn_by_rounding_goes_the_slow_way(monkeypatch):
    """A mesh that lost its last point: the tree would not span."""
    points = generator(5, "torn").uniform(0, 500, (40, 2))

    class Torn:
        def __init__(self, given):
            whole = Delaunay(given)
            self.coplanar = whole.coplanar
            self.simplices = whole.simplices[(whole.simplices != 39).all(axis=1)]

    monkeypatch.setattr(tree, "Delaunay", Torn)
    edges, lengths = spanning_tree(points)
    assert nx.is_tree(nx.Graph(edges.tolist()))
    np.testing.assert_allclose(np.sort(lengths), oracle_lengths(points), atol=1e-6)


def test_prim_joins_the_nearest_first():
    """By hand, from row 0: 1 (3 m), then 3 (4 m from 1), then 2 (6 m from 3)."""
    points = np.array([[0.0, 0.0], [3.0, 0.0], [9.0, 4.0], [3.0, 4.0]])
    edges, lengths = prim_tree(points)
    assert edges.tolist() == [[0, 1], [1, 3], [2, 3]]
    assert lengths.tolist() == [3.0, 4.0, 6.0]
