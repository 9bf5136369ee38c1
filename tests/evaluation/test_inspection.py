"""Critical UAVs against hand-drawn graphs and networkx; the outlook on layouts whose fate is known."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phygail.evaluation.inspection import critical_uavs, inspect_layout


def test_the_inner_uavs_of_a_chain_are_critical():
    assert critical_uavs(5, np.array([[0, 1], [1, 2], [2, 3], [3, 4]])) == [1, 2, 3]


def test_nobody_in_a_ring_is_critical_and_the_hub_of_a_star_is():
    assert critical_uavs(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]])) == []
    assert critical_uavs(4, np.array([[0, 1], [0, 2], [0, 3]])) == [0]


@given(st.integers(2, 14), st.data())
def test_critical_uavs_are_the_articulation_points_of_networkx(uavs, data):
    every = [(i, j) for i in range(uavs) for j in range(i + 1, uavs)]
    chosen = data.draw(st.lists(st.sampled_from(every), unique=True, max_size=2 * uavs))
    graph = nx.Graph(chosen)
    graph.add_nodes_from(range(uavs))
    pairs = np.array(chosen, dtype=np.intp).reshape(-1, 2)
    assert critical_uavs(uavs, pairs) == sorted(nx.articulation_points(graph))


def test_a_long_chain_needs_no_recursion():
    chain = np.stack([np.arange(4999), np.arange(1, 5000)], axis=1)
    assert critical_uavs(5000, chain) == list(range(1, 4999))


def test_facts_of_a_chain_of_three():
    found = inspect_layout(np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0]]))
    assert (found.uavs, found.links, found.subnets, found.critical) == (3, 2, 1, (1,))
    assert found.mean_degree == pytest.approx(4 / 3)
    assert found.separation_m == pytest.approx(100.0)


def test_one_lost_of_a_chain_of_three_splits_it_in_a_third_of_the_draws():
    layout = np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0]])
    (half,) = inspect_layout(layout, draws=2000, ratios=(0.5,)).outlook
    assert half.damaged == 1
    assert half.split == pytest.approx(1 / 3, abs=0.05)
    assert half.subnets == pytest.approx(4 / 3, abs=0.05)
    assert half.largest == pytest.approx(5 / 6, abs=0.03)


def test_a_cluster_never_splits_and_equal_seeds_agree():
    layout = np.random.default_rng(1).uniform(0, 60, (30, 2))
    assert all(o.split == 0 for o in inspect_layout(layout, draws=20).outlook)
    assert inspect_layout(layout * 8, seed=2, draws=20) == inspect_layout(layout * 8, seed=2, draws=20)
