import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phygail.config import InputError
from phygail.methods.phygail.graph import ACTIVE, CENTER, DAMAGED, GRAPHS, NODE_FEATURES, PAPER, GraphSpec, perceive
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, initial_state


def views_of(scenario, positions=None, velocities=None):
    state = initial_state(scenario)
    if positions is not None:
        state = SwarmState(scenario, positions, np.zeros_like(positions) if velocities is None else velocities, 3)
    return Observer(scenario).observe(state, Scope.SUBNET)


def moved(scenario, seed):
    """The scenario in flight: everybody somewhere near its spot, with some velocity."""
    rng = np.random.default_rng(seed)
    return scenario.spots + rng.normal(0, 20, scenario.spots.shape), rng.uniform(-7, 7, scenario.spots.shape)


def slow_senders(views, spec):
    """METHODS 4.1 literally, one UAV after the other: per receiver the senders as (type, row or roster index)."""
    reach = views.mission.physics.range_m + 1e-6
    alive, lists = set(views.members.tolist()), []
    for i, p in enumerate(views.positions):
        near = sorted((math.hypot(*(q - p)), j) for j, q in enumerate(views.positions) if j != i)
        wrecks = sorted((math.hypot(*(q - p)), k) for k, q in enumerate(views.roster) if k not in alive)
        senders = [(ACTIVE, j) for d, j in near if d <= reach][: spec.k_act]
        senders += [(DAMAGED, k) for d, k in wrecks if d <= reach][: spec.k_dmg]
        lists.append(senders + ([(CENTER, 0)] if spec.center else []))
    return lists


def named_senders(graph, views, spec):
    """The slots of a graph in the same words; damaged nodes are recognized by their place."""
    scale = spec.scale_m or views.mission.width_m / 2
    places = graph.features[:, :2].astype(float) * scale + views.mission.center
    lists = []
    for row in range(graph.receivers):
        senders = []
        for column in np.flatnonzero(graph.mask[row]):
            node, kind = graph.index[row, column], graph.kind[row, column]
            assert graph.types[node] == kind
            spot = np.abs(views.roster - places[node]).sum(axis=1).argmin()
            senders.append((int(kind), int({ACTIVE: node, DAMAGED: spot, CENTER: 0}[int(kind)])))
        lists.append(senders)
    return lists


def test_a_hand_worked_graph():
    """Three alive in a row, one damaged beside the first, one alive far away; c = (160, 160), W/2 = 160 m."""
    layout = np.array([[60.0, 160.0], [160.0, 160.0], [240.0, 160.0], [60.0, 240.0], [20.0, 0.0]])
    scenario = make_scenario("a", layout, [3], width_m=320.0)
    velocities = np.array([[5.0, 0.0], [0.0, -10.0], [0.0, 0.0], [2.5, 2.5]])
    graph = perceive(views_of(scenario, scenario.spots, velocities))
    assert graph.types.tolist() == [0, 0, 0, 0, 1, 2]
    assert graph.kinds.tolist() == [0] * 8 + [1] * 3 + [2]
    filled = [graph.index[row][graph.mask[row]].tolist() for row in range(4)]
    assert filled == [[1, 4, 5], [2, 0, 5], [1, 5], [5]]  # the nearest first; the damaged one is 128 m from UAV 1
    degree = [math.log(1 + k) / math.log(13) for k in (3, 3, 2, 1)]
    expected = [
        [-0.625, 0, 0.5, 0, degree[0]], [0, 0, 0, -1, degree[1]], [0.5, 0, 0, 0, degree[2]],
        [-0.875, -1, 0.25, 0.25, degree[3]], [-0.625, 0.5, 0, 0, 0], [0, 0, 0, 0, 0],
    ]  # fmt: skip
    np.testing.assert_allclose(graph.features, expected, atol=1e-7)


def test_ties_go_to_the_lower_index():
    angles = np.arange(12) * (math.pi / 2)
    directions = np.round(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    rings = directions * np.repeat([40.0, 60.0, 80.0], 4)[:, None]
    layout = np.vstack([rings, [[0.0, 0.0]]]) + 500
    graph = perceive(views_of(make_scenario("a", layout, width_m=1000.0)))
    assert graph.index[12][:8].tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([(20, 0.3), (50, 0.5), (100, 0.25), (100, 0.9)]),
    st.sampled_from([name for name, spec in GRAPHS.items() if not spec.recenter]),
)
def test_the_slots_are_those_of_the_slow_definition(seed, size, name):
    spec = GRAPHS[name]
    scenario = draw_scenario(*size, np.random.default_rng(seed))
    views = views_of(scenario, *moved(scenario, seed))
    assert named_senders(perceive(views, spec), views, spec) == slow_senders(views, spec)


@pytest.mark.parametrize("name", GRAPHS)
def test_degree_is_bounded_and_nothing_points_at_damaged_or_center(name):
    """PH-2."""
    scenario = draw_scenario(200, 0.5, np.random.default_rng(3))
    views, spec = views_of(scenario), GRAPHS[name]
    graph = perceive(views, spec)
    assert graph.index.shape == (len(scenario.alive), spec.slots)
    assert graph.mask.sum(axis=1).max() <= spec.slots
    assert (graph.types[: graph.receivers] == ACTIVE).all()
    assert (graph.types[graph.receivers :] != ACTIVE).all()
    receiver, sender = graph.edges.receiver, graph.edges.sender
    peers = graph.types[sender] == ACTIVE
    assert (views.subnet[receiver[peers]] == views.subnet[sender[peers]]).all()
    assert (receiver[peers] != sender[peers]).all()


def test_the_paper_allows_twelve_edges():
    """PH-2."""
    assert PAPER.slots == 12


def test_edges_list_the_filled_slots():
    scenario = draw_scenario(50, 0.4, np.random.default_rng(1))
    graph = perceive(views_of(scenario))
    edges = graph.edges
    assert len(edges.receiver) == graph.mask.sum()
    assert (edges.place[graph.mask] == np.arange(len(edges.receiver))).all()
    assert (edges.place[~graph.mask] == len(edges.receiver)).all()
    assert (edges.sender == graph.index[graph.mask]).all()
    assert (np.diff(edges.receiver) >= 0).all()


def test_velocity_features_are_zero_at_the_start():
    """PH-8: no graph may contain the velocity that is being decided."""
    graph = perceive(views_of(draw_scenario(50, 0.5, np.random.default_rng(2))))
    names = [feature.name for feature in NODE_FEATURES]
    assert (graph.features[:, [names.index("vx"), names.index("vy")]] == 0).all()


def test_moving_everything_with_the_center_changes_nothing():
    """PH-3: a shift by whole numbers of meters is exact in binary for these positions."""
    scenario = draw_scenario(50, 0.5, np.random.default_rng(4))
    layout = np.round(scenario.layout)
    here = make_scenario("a", layout, scenario.damaged.tolist(), center=[256.0, 256.0])
    there = make_scenario("b", layout + np.array([1024.0, -512.0]), scenario.damaged.tolist(), center=[1280.0, -256.0])
    a, b = perceive(views_of(here)), perceive(views_of(there))
    assert (a.features == b.features).all()
    assert (a.index == b.index).all()


def test_one_subnet_alone_has_the_rows_it_has_among_all():
    """PH-11, PH-3: what a UAV attends to does not depend on other subnets."""
    scenario = draw_scenario(200, 0.6, np.random.default_rng(5))
    views = views_of(scenario, *moved(scenario, 5))
    for spec in GRAPHS.values():
        together = perceive(views, spec)
        for rows, view in zip(views.rows, views, strict=True):
            alone = perceive(view, spec)
            assert (alone.mask == together.mask[rows]).all()
            assert (alone.features[: len(rows)] == together.features[rows]).all()
            mine, all_ = alone.features[alone.index], together.features[together.index[rows]]
            assert (mine[alone.mask] == all_[alone.mask]).all()


def test_recentered_positions_have_mean_zero_per_subnet():
    scenario = draw_scenario(100, 0.5, np.random.default_rng(6))
    views = views_of(scenario)
    graph = perceive(views, GRAPHS["no-center-recentered"])
    np.testing.assert_allclose(views.means(graph.features[: graph.receivers, :2]), 0, atol=1e-6)
    assert CENTER not in graph.types


def test_fixed_scale_reads_a_link_of_120_m_as_three_quarters():
    layout = np.array([[100.0, 100.0], [220.0, 100.0], [900.0, 900.0]])
    graph = perceive(views_of(make_scenario("a", layout, width_m=1000.0)), GRAPHS["fixed-scale"])
    assert graph.features[1, 0] - graph.features[0, 0] == pytest.approx(0.75)


def test_an_impossible_spec_is_refused():
    with pytest.raises(InputError, match="k_act 0"):
        GraphSpec(k_act=0)
    with pytest.raises(InputError, match="scale_m -1"):
        GraphSpec(scale_m=-1.0)
