"""DEMD: DE-1, DE-2, DE-4 and the cases that go wrong (DE-3, DE-5: test_search_demd.py)."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

from phygail.config import InputError
from phygail.methods.base import make_method
from phygail.methods.controller import run_episode
from phygail.methods.gcn_planners import Demd, demd_case, hop_distances, hop_graph
from phygail.methods.gcn_planners import search as demd_model
from phygail.methods.gcn_planners.network import ConvolutionStack
from phygail.methods.gcn_planners.search import Found, raw_targets
from phygail.methods.planning import canonical_order, largest_move_m
from phygail.rng import generator
from phygail.sensing.views import Observer, Scope
from phygail.swarm.links import find_links
from phygail.swarm.scenario import Scenario, draw_scenario, make_scenario
from phygail.swarm.simulator import initial_state

R_PLAN = 119.9


def scenario_of(seed: int = 0, uavs: int = 50, ratio: float = 0.75) -> Scenario:
    return draw_scenario(uavs, ratio, generator(seed, "demd"))


def view_of(scenario: Scenario):
    return Observer(scenario).observe(initial_state(scenario), Scope.GLOBAL)


def case_of(scenario: Scenario):
    view = view_of(scenario)
    return demd_case(view, canonical_order(view.positions), centered=False)


def brute_hops(layout: np.ndarray, nodes: np.ndarray) -> dict[int, dict[int, int]]:
    graph = nx.Graph()
    graph.add_nodes_from(nodes.tolist())
    distance = np.hypot(*(layout[:, None] - layout[None]).transpose(2, 0, 1))
    graph.add_edges_from((i, j) for i in nodes for j in nodes if i < j and distance[i, j] <= 120.0)
    return dict(nx.all_pairs_shortest_path_length(graph))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_hop_graph_equals_breadth_first_search_through_the_damaged(seed):
    """DE-1."""
    scenario = scenario_of(seed)
    hops = hop_distances(scenario.layout, 120.0)
    adjacency, k = hop_graph(hops[np.ix_(scenario.alive, scenario.alive)], len(scenario.damaged))
    assert k >= 3
    full = brute_hops(scenario.layout, np.arange(scenario.uavs))
    without = brute_hops(scenario.layout, scenario.alive)
    expected = [[i != j and full[i].get(j, 99) <= k for j in scenario.alive] for i in scenario.alive]
    np.testing.assert_array_equal(adjacency, expected)
    cut = [[i != j and without[i].get(j, 99) <= k for j in scenario.alive] for i in scenario.alive]
    assert (adjacency != np.array(cut)).any()  # the damaged carry the paths


def test_k_grows_with_the_damage():
    """DE-1: k = 3 + floor(N_dmg / 50)."""
    line = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    assert hop_graph(line, 0)[1] == 3
    assert hop_graph(line, 99)[1] == 4
    assert hop_graph(line, 99, fewer_hops=1)[1] == 3


def test_only_a_graph_without_edges_gets_a_larger_k_and_is_then_connected():
    """DE-1: places on a line; hops are distances."""

    def graph_of(places):
        return hop_graph(np.abs(np.subtract.outer(places, places)), 0)

    adjacency, k = graph_of(np.array([0.0, 1.0, 8.0]))
    assert k == 3  # 0-1 is an edge: the piece at 8 stays apart
    np.testing.assert_array_equal(adjacency, [[False, True, False], [True, False, False], [False, False, False]])
    assert graph_of(np.array([0.0, 5.0, 10.0]))[1] == 5
    adjacency, k = graph_of(np.array([0.0, 5.0, 12.0]))
    assert k == 7  # at 5 there is an edge already, but two pieces
    assert nx.is_connected(nx.from_numpy_array(adjacency))


def test_a_layout_that_was_in_pieces_before_the_damage_is_handled():
    hops = np.array([[0, 1, np.inf], [1, 0, np.inf], [np.inf, np.inf, 0]])
    adjacency, _ = hop_graph(hops, 0)
    np.testing.assert_array_equal(adjacency, [[False, True, False], [True, False, False], [False, False, False]])


def test_moving_a_damaged_uav_within_its_links_changes_the_targets_through_the_embedding_only():
    """DE-2."""
    scenario = scenario_of(4)
    full = hop_distances(scenario.layout, 120.0)
    for victim in scenario.damaged:
        layout = scenario.layout.copy()
        layout[victim] += 0.01
        if (full[victim] == 1)[scenario.alive].any() and (hop_distances(layout, 120.0) == full).all():
            break
    moved = make_scenario("m", layout, scenario.damaged, width_m=scenario.width_m)
    network = ConvolutionStack(32, torch.Generator().manual_seed(0))
    one, two = case_of(scenario), case_of(moved)
    assert torch.equal(one.positions, two.positions)
    assert not torch.equal(raw_targets(network, one)[0], raw_targets(network, two)[0])
    for case in (one, two):
        case.embedding[:, len(scenario.alive) :] = 0.0
    assert torch.equal(raw_targets(network, one)[0], raw_targets(network, two)[0])


def test_embedding_is_the_pre_damage_adjacency_with_self_loops():
    scenario = make_scenario("c", [[0, 0], [100, 0], [200, 0], [300, 0]], [1])
    case = case_of(scenario)
    # Columns: alive 0, 2, 3, then damaged 1.
    np.testing.assert_array_equal(case.embedding.numpy(), [[1, 0, 0, 1], [0, 1, 1, 1], [0, 1, 1, 0]])
    assert case.box_center.tolist() == [150.0, 150.0]  # in meters from the corner of the 300 m square
    assert case.shares.sum().item() == pytest.approx(1.0)


@pytest.mark.parametrize(("profile", "iterations"), [("guarded", 20), ("faithful", 25)])
@pytest.mark.parametrize("ratio", [0.25, 0.9])
def test_plan_is_connected(profile, iterations, ratio):
    """DE-4."""
    method = Demd(profile=profile, iterations=iterations)
    targets = method.plan(view_of(scenario_of(5, 50, ratio)))
    assert find_links(targets, R_PLAN).connected
    assert method.flag == ""


def test_without_a_connected_iterate_the_contraction_plans_and_the_case_is_flagged(monkeypatch):
    """DE-4."""
    monkeypatch.setattr(demd_model, "count_subnets", lambda *_: 2)
    method = Demd(profile="faithful", iterations=2)
    targets = method.plan(view_of(scenario_of(6)))
    assert method.flag == "fallback:contraction"
    assert find_links(targets, R_PLAN).connected


def moves_of_tries(monkeypatch, scenario, offsets):
    """Largest displacement of the plan of the guarded profile when it tries k less each of `offsets`."""
    guarded = replace(demd_model.DEMD_PROFILES["guarded"], fewer_hops=offsets)
    monkeypatch.setitem(demd_model.DEMD_PROFILES, "guarded", guarded)
    return largest_move_m(scenario.spots, Demd(iterations=20).plan(view_of(scenario)))


@pytest.mark.parametrize("seed", [5, 8])
def test_the_better_plan_of_all_graphs_is_flown(seed, monkeypatch):
    """Starting from the same weights, trying both k gives the smaller of the two largest displacements."""
    scenario = scenario_of(seed)
    alone = [moves_of_tries(monkeypatch, scenario, (offset,)) for offset in (0, 1)]
    assert alone[0] != alone[1]
    assert moves_of_tries(monkeypatch, scenario, (0, 1)) == min(alone)
    assert moves_of_tries(monkeypatch, scenario, (1, 0)) == min(alone)


def test_a_graph_without_a_connected_plan_does_not_spoil_the_other(monkeypatch):
    search, calls = demd_model.search_demd, []

    def first_fails(*args):
        calls.append(1)
        return (Found(), np.empty((0, 2))) if len(calls) == 1 else search(*args)

    monkeypatch.setattr(demd_model, "search_demd", first_fails)
    method = Demd(iterations=20)
    assert find_links(method.plan(view_of(scenario_of(5))), R_PLAN).connected
    assert (len(calls), method.flag) == (2, "")


def test_equal_graphs_are_searched_once(monkeypatch):
    """A chain of four hops: k = 3 and k = 2 differ. Without its end all are two hops apart, and k does not matter."""
    search, calls = demd_model.search_demd, []
    monkeypatch.setattr(demd_model, "search_demd", lambda *args: calls.append(1) or search(*args))
    cluster = [[0, 0], [100, 0], [100, 60], [220, 0], [340, 0]]
    for layout, damaged, searches in ((cluster, [3], 2), (cluster[:4], [1], 1)):
        calls.clear()
        Demd(iterations=5).plan(view_of(make_scenario("few", np.array(layout, dtype=float), damaged)))
        assert len(calls) == searches


@pytest.mark.parametrize(
    ("layout", "damaged"),
    [
        ([[0, 0], [130, 0]], []),
        ([[0, 0], [5000, 3000]], []),
        ([[100 * k, 0] for k in range(20)], [1, 2, 3, 5, 6, 7, 9, 10, 11, 12]),
        ([[100 * k, 0] for k in range(20)], list(range(1, 19))),
    ],
    ids=["two alive", "one pair far apart, never linked", "collinear", "two ends of a line"],
)
def test_awkward_swarms_get_a_finite_connected_plan(layout, damaged):
    method = Demd(iterations=20)
    targets = method.plan(view_of(make_scenario("odd", np.array(layout, dtype=float), damaged)))
    assert np.isfinite(targets).all()
    assert find_links(targets, R_PLAN).connected


def test_same_seed_same_plan_and_renumbering_does_not_matter():
    """G2, G5, exactly."""
    scenario = scenario_of(7)
    plan = Demd(iterations=8).plan(view_of(scenario))
    np.testing.assert_array_equal(Demd(iterations=8).plan(view_of(scenario)), plan)
    order = np.random.default_rng(0).permutation(scenario.uavs)
    place = np.argsort(order)
    renumbered = make_scenario("r", scenario.layout[order], place[scenario.damaged], width_m=scenario.width_m)
    rows = np.searchsorted(renumbered.alive, place[scenario.alive])
    np.testing.assert_array_equal(Demd(iterations=8).plan(view_of(renumbered))[rows], plan)


def test_an_unknown_profile_is_a_clear_error():
    with pytest.raises(InputError, match="choose faithful or guarded"):
        make_method("demd", profile="fast")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_goal_on_fresh_cases_of_a_hundred():
    """At most 0.75 times center-fly's steps, every case reconnected, no fallback."""
    ours = straight = 0
    for ratio in (0.25, 0.5, 0.75, 0.9):
        for k in range(3):
            scenario = draw_scenario(100, ratio, generator(200_050 + k, "train", 100, round(ratio * 1e4)))
            method = Demd()
            episode = run_episode(scenario, method)
            assert episode.terminated
            assert not method.flag
            ours += episode.scored_steps
            straight += run_episode(scenario, "center-fly").scored_steps
    assert ours <= 0.75 * straight
