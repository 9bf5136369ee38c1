"""swarm.tree: the fast tree against Prim's algorithm and networkx, on every shape that breaks triangulations."""

import networkx as nx
import numpy as np
import pytest

from phygail.rng import generator
from phygail.swarm.tree import SMALL, gap_m, prim_tree, spanning_tree


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
