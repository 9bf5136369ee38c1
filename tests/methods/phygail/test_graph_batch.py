import numpy as np
import pytest

from phygail.config import Physics
from phygail.methods.phygail.graph import GRAPHS, perceive
from phygail.methods.phygail.graph_batch import join, perceive_batch, pick
from phygail.sensing.views import Observer, Scope
from phygail.swarm.links import find_links
from phygail.swarm.scenario import draw_scenario
from phygail.swarm.simulator import SwarmState

FIELDS = ("features", "types", "index", "mask", "kinds", "world")


@pytest.fixture(scope="module")
def worlds():
    rng = np.random.default_rng(0)
    sizes = [(20, 0.25), (50, 0.5), (20, 0.8), (100, 0.9), (20, 0.5)]
    physics = [Physics(), Physics(), Physics(range_m=90.0, speed_mps=6.0), Physics(), Physics()]
    scenarios = [draw_scenario(*size, rng, physics=p) for size, p in zip(sizes, physics, strict=True)]
    return [
        SwarmState(s, s.spots + rng.normal(0, 15, s.spots.shape), rng.uniform(-6, 6, s.spots.shape), 2)
        for s in scenarios
    ]


def padded(arrays, width):
    table = np.zeros((len(arrays), width, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
    for row, array in zip(table, arrays, strict=True):
        row[: len(array)] = array
    return table


def batch_of(states, spec):
    scenarios = [s.scenario for s in states]
    n, k = max(len(s.positions) for s in states) + 2, max(len(s.damaged) for s in scenarios) + 1
    labels = [find_links(s.positions, s.scenario.physics.range_m).subnet for s in states]
    return perceive_batch(
        padded([s.positions for s in states], n), padded([s.velocities for s in states], n),
        padded([np.ones(len(s.positions), dtype=bool) for s in states], n),
        padded([s.layout[s.damaged] for s in scenarios], k),
        padded([np.ones(len(s.damaged), dtype=bool) for s in scenarios], k),
        np.stack([s.center for s in scenarios]), np.array([s.width_m for s in scenarios]),
        np.array([s.physics.range_m for s in scenarios]), np.array([s.physics.speed_mps for s in scenarios]),
        spec, subnet=padded(labels, n),
    )  # fmt: skip


def single(state, spec):
    return perceive(Observer(state.scenario).observe(state, Scope.SUBNET), spec)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_batch_holds_exactly_the_single_graphs(worlds, name):
    spec = GRAPHS[name]
    batch = batch_of(worlds, spec)
    assert batch.count == len(worlds)
    for number, state in enumerate(worlds):
        alone, (mine, _) = single(state, spec), pick(batch, np.array([number]))
        for field in FIELDS:
            assert np.array_equal(getattr(mine, field), getattr(alone, field)), field


def test_joining_single_graphs_gives_the_batch_up_to_the_order_of_nodes(worlds):
    joined, batch = join([single(s, GRAPHS["paper"]) for s in worlds]), batch_of(worlds, GRAPHS["paper"])
    assert np.array_equal(joined.mask, batch.mask)
    for graph in (joined, batch):
        assert (graph.world[graph.index[graph.mask]] == graph.world[graph.edges.receiver]).all()
    seen = [graph.features[graph.index][graph.mask] for graph in (joined, batch)]
    assert np.array_equal(*seen)


def test_picking_keeps_the_rows_of_the_chosen_worlds(worlds):
    batch = batch_of(worlds, GRAPHS["paper"])
    some, rows = pick(batch, np.array([3, 1]))
    assert some.count == 2
    assert np.array_equal(np.unique(batch.world[rows]), [1, 3])
    assert np.array_equal(some.features[: some.receivers], batch.features[rows])
    assert np.array_equal(some.world[: some.receivers], np.searchsorted([1, 3], batch.world[rows]))
    assert np.array_equal(some.features[some.index][some.mask], batch.features[batch.index[rows]][batch.mask[rows]])


def test_known_links_are_not_searched_again(worlds):
    state = worlds[0]
    linked = np.zeros((1, len(state.positions), len(state.positions)), dtype=bool)
    spots = state.scenario.layout[state.scenario.damaged]
    graph = perceive_batch(
        state.positions[None], state.velocities[None], np.ones((1, len(state.positions)), dtype=bool), spots[None],
        np.ones((1, len(spots)), dtype=bool), state.scenario.center[None], np.array([320.0]), 120.0, 10.0,
        linked=linked,
    )  # fmt: skip
    assert not graph.mask[:, :8].any()


def test_recentering_needs_labels(worlds):
    spots = np.zeros((1, 1, 2))
    with pytest.raises(ValueError, match="labels"):
        perceive_batch(
            spots, spots, np.ones((1, 1), dtype=bool), spots, np.zeros((1, 1), dtype=bool), np.zeros((1, 2)),
            np.ones(1), 120.0, 10.0, GRAPHS["no-center-recentered"],
        )  # fmt: skip
