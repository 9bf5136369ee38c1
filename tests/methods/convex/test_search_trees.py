"""methods.convex.search: the tree that a plan is made along."""

from itertools import product

import networkx as nx
import numpy as np
import pytest

from phygail.methods.convex.search import TreeSearch, crossing_pairs, one_side, shortest_flight, tree_hops
from phygail.rng import generator
from phygail.swarm.tree import spanning_tree

R = 120.0


def search(points: np.ndarray, effort: float = 1.0) -> TreeSearch:
    return TreeSearch(points, R, slack_m=1e-4, enough_m=0.0, gain_m=0.01, effort=effort)


def cloud(n: int, seed: int) -> np.ndarray:
    return generator(seed, "tree search").uniform(0, 250 * np.sqrt(n), (n, 2))


@pytest.mark.parametrize("seed", range(3))
def test_search_finds_the_best_of_all_trees_of_five(seed):
    """There are 5^3 = 125 labeled trees (Cayley); all are solved as the oracle."""
    points = cloud(5, seed)
    trees = [np.array(nx.from_prufer_sequence(list(code)).edges) for code in product(range(5), repeat=3)]
    best = min(shortest_flight(points, tree, R).flight_m for tree in trees)
    assert search(points).run().flight_m == pytest.approx(best, abs=0.02)


def test_more_effort_is_never_worse_than_the_minimum_spanning_tree():
    points = cloud(15, 1)
    bare = shortest_flight(points, spanning_tree(points)[0], R).flight_m
    some, more = (search(points, effort).run().flight_m for effort in (0.02, 0.2))
    assert more <= some + 1e-6
    assert some <= bare + 1e-6
    assert more < bare - 1.0


def test_budget_counts_solves():
    trial = search(cloud(40, 2), 0.1)
    trial.run()
    assert trial.solves == 40_000 // 10 // (40 + 20) or trial.solves == 40_000 // 10 // (40 + 20) + 1


def test_search_stops_at_the_bound():
    pair = np.array([[0.0, 0.0], [200.0, 0.0], [210.0, 50.0]])
    trial = TreeSearch(pair, R, slack_m=1e-4, enough_m=40.001, gain_m=0.01)
    assert trial.run().flight_m == pytest.approx(40.0, abs=1e-4)
    assert trial.solves == 1


def test_hops_equal_networkx():
    edges, _ = spanning_tree(cloud(30, 3))
    expected = dict(nx.all_pairs_shortest_path_length(nx.Graph(edges.tolist())))
    hops = tree_hops(edges)
    assert all(hops[i, j] == expected[i][j] for i in range(30) for j in range(30))


def test_crossing_pairs_come_closest_first_and_cross():
    points = cloud(20, 4)
    inside = np.arange(20) < 7
    pairs = crossing_pairs(points, inside)
    assert (inside[pairs[:, 0]] != inside[pairs[:, 1]]).all()
    distance = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    assert (np.diff(distance) >= 0).all()
    offset = points[inside][:, None] - points[~inside][None]
    assert distance[0] == pytest.approx(np.hypot(offset[..., 0], offset[..., 1]).min())


def test_one_side_holds_what_the_forest_joins_to_the_root():
    assert one_side(5, np.array([[0, 1], [2, 3]]), 3).tolist() == [False, False, True, True, False]
