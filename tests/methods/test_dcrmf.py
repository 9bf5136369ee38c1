"""DCRMF: a non-critical UAV stands in for the failed."""

import networkx as nx
import numpy as np
import pytest

from phygail.config import Physics
from phygail.methods import run_episode
from phygail.methods.base import make_method
from phygail.methods.classic import linked
from phygail.methods.dcrmf import NO_SPARE, dominating_set
from phygail.rng import generator
from phygail.swarm.failures import critical_uavs
from phygail.swarm.layout import draw_layout
from phygail.swarm.links import find_links
from phygail.swarm.scenario import make_scenario

PHYSICS = Physics()
CASES = range(12)


def critical_set(layout):
    return dominating_set(layout, linked(layout, PHYSICS), PHYSICS)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("uavs", [20, 60])
def test_the_critical_set_is_connected_and_dominates(uavs, seed):
    """DC-1; and every cut vertex is in it."""
    layout = draw_layout(uavs, generator(seed, "cds"))
    graph = nx.Graph([(a, b) for a, others in enumerate(linked(layout, PHYSICS)) for b in others])
    chosen = critical_set(layout)
    assert nx.is_connected(graph.subgraph(chosen))
    assert nx.is_dominating_set(graph, chosen)
    assert set(critical_uavs(uavs, find_links(layout, 120.0).pairs)) <= chosen
    assert len(chosen) < uavs


def test_the_critical_set_of_a_path_is_its_inside_and_of_a_clique_nobody():
    assert critical_set(np.array([[100.0 * k, 0.0] for k in range(5)])) == {1, 2, 3}
    assert critical_set(np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [50.0, 50.0]])) == set()


@pytest.mark.parametrize("case", CASES)
def test_exactly_one_uav_moves_to_the_spot(case, single, planned):
    """DC-2, DC-5: the targets are the layout without the old spot of one UAV, which one subnet alone sends."""
    scenario = single(50, case)
    _, targets = planned("dcrmf", scenario)
    (mover,) = np.flatnonzero((targets != scenario.spots).any(axis=1))
    assert np.array_equal(targets[mover], scenario.layout[scenario.damaged[0]])
    left = np.delete(scenario.layout, scenario.alive[mover], axis=0)
    assert np.array_equal(np.sort(targets, axis=0), np.sort(left, axis=0))
    assert find_links(targets, 120.0).connected


def test_the_failure_of_a_non_critical_uav_moves_nobody():
    """DC-3: the swarm is split already, so that the episode begins."""
    layout = np.vstack([draw_layout(30, generator(1, "dc3")), [[2000.0, 2000.0]]])
    spare = sorted(set(range(30)) - critical_set(layout))
    scenario = make_scenario("spare", layout, [spare[0]], budget_steps=3)
    method = make_method("dcrmf")
    run_episode(scenario, method)
    assert np.array_equal(method.targets, scenario.spots)


@pytest.mark.parametrize("seed", range(6))
def test_membership_depends_on_two_hops_only(seed):
    """DC-4: everything farther than two hops from a UAV is scattered."""
    layout = draw_layout(60, generator(seed, "dc4"))
    neighbors = linked(layout, PHYSICS)
    uav = seed * 7
    near = {uav, *neighbors[uav], *(n for other in neighbors[uav] for n in neighbors[other])}
    moved = layout.copy()
    far = [k for k in range(60) if k not in near]
    moved[far] += 5000.0 * np.arange(1, len(far) + 1)[:, None]
    assert (uav in critical_set(moved)) == (uav in critical_set(layout))


def test_a_ring_has_nobody_to_spare():
    """METHODS 9.4: everybody in a ring is critical, so a second failure beside the first finds no stand-in."""
    angles = np.arange(12) * 2 * np.pi / 12
    layout = 1000 + 220 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert critical_set(layout) == set(range(12))
    scenario = make_scenario("ring", layout, [0, 6], budget_steps=3)
    method = make_method("dcrmf")
    run_episode(scenario, method)
    assert np.array_equal(method.targets, scenario.spots)
    assert method.flag == NO_SPARE
