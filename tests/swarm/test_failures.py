"""Critical UAVs against hand-drawn graphs and networkx; cases in which one of them fails."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phygail.config import InputError, Physics
from phygail.rng import generator
from phygail.swarm.failures import critical_uavs, draw_failures, neighbor_lists
from phygail.swarm.links import find_links


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


def test_neighbor_lists_are_ascending():
    assert neighbor_lists(4, np.array([[0, 2], [1, 2], [0, 1]])) == [[1, 2], [0, 2], [0, 1], []]


def test_the_first_ten_cases_are_those_of_the_reference():
    """METHODS 9.11."""
    cases = [draw_failures(100, 1, "single", generator(2011, "single", 100, 1, case)) for case in range(10)]
    assert [case.damaged.tolist() for case in cases] == [[f] for f in (44, 6, 85, 88, 30, 98, 21, 94, 49, 45)]


@pytest.mark.parametrize("kind", ["single", "region"])
@pytest.mark.parametrize("failures", [1, 2, 3])
def test_a_critical_uav_is_among_the_failed_and_the_rest_is_split(kind, failures):
    scenario = draw_failures(50, failures, kind, generator(1, kind, failures))
    assert len(scenario.damaged) == failures
    assert not find_links(scenario.spots, 120.0).connected
    critical = critical_uavs(50, find_links(scenario.layout, 120.0).pairs)
    assert set(critical) & set(scenario.damaged.tolist())
    if kind == "region":  # the nearest to one of them, itself included
        away = np.hypot(*(scenario.layout[:, None] - scenario.layout[None]).transpose(2, 0, 1))
        nearest = [set(np.argsort(away[f])[:failures].tolist()) for f in set(critical) & set(scenario.damaged.tolist())]
        assert set(scenario.damaged.tolist()) in nearest


def test_critical_is_who_is_critical_for_the_radio_at_hand():
    physics = Physics(range_m=60.0)
    scenario = draw_failures(40, 1, "single", generator(2, "short"), physics=physics, width_m=200.0)
    assert scenario.physics == physics
    assert not find_links(scenario.spots, 60.0).connected


@pytest.mark.parametrize(
    ("uavs", "failures", "kind", "named"),
    [(20, 0, "single", "0 failures"), (20, 19, "single", "from 1 to 18"), (20, 1, "sideways", "'sideways'"),
     (1, 1, "single", "1 UAVs")],
)  # fmt: skip
def test_what_cannot_fail_is_refused(uavs, failures, kind, named):
    with pytest.raises(InputError, match=named):
        draw_failures(uavs, failures, kind, generator(0))


def test_a_swarm_without_a_weak_spot_says_so(monkeypatch):
    monkeypatch.setattr("phygail.swarm.failures.REDRAWS", 100)
    with pytest.raises(InputError, match="no layout of 12 UAVs"):
        draw_failures(12, 1, "single", generator(0), width_m=60.0)
