"""The batched world against the one simulator."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phygail.config import InputError, Physics
from phygail.rng import generator
from phygail.swarm.batch import BatchWorld, initial_batch, lowest_rows, replace_worlds, step_batch
from phygail.swarm.links import label_subnets
from phygail.swarm.scenario import make_scenario
from phygail.swarm.simulator import initial_state, step

SEEDS = st.integers(0, 2**32 - 1)


def random_scenario(rng, name="drawn"):
    """Any size, width, radio and vehicle; dense enough for contacts, short enough to be truncated."""
    uavs = int(rng.integers(2, 41))
    width = float(rng.uniform(30, 60) * np.sqrt(uavs))
    physics = Physics(
        range_m=float(rng.choice([5.0, 40.0, 60.0, 120.0])),
        speed_mps=float(rng.choice([3.0, 10.0, 31.0])),
        step_s=float(rng.choice([0.1, 0.07, 0.5])),
        contact_m=float(rng.choice([1.5, 10.0, 50.0])),
    )
    damaged = rng.choice(uavs, size=int(rng.integers(0, uavs - 1)), replace=False)
    layout = rng.uniform(0, width, (uavs, 2))
    return make_scenario(name, layout, damaged.tolist(), width_m=width, physics=physics, budget_steps=6)


def pair():
    """Two UAVs 121 m apart that may fly 1 m per step each: one step toward each other joins them."""
    return make_scenario("pair", np.array([[0.0, 0.0], [121.0, 0.0]]), width_m=200.0, budget_steps=3)


def wild_commands(rng, shape):
    """Commands within, beyond and far beyond every limit, some of them no numbers."""
    commands = rng.normal(0, 20.0, shape)
    commands[rng.random(shape[:-1]) < 0.05] = np.nan
    commands[rng.random(shape[:-1]) < 0.05] = 1e200
    return commands


def assert_equal_worlds(batch, singles):
    for b, single in enumerate(singles):
        n = len(single.positions)
        np.testing.assert_array_equal(batch.positions[b, :n], single.positions)
        np.testing.assert_array_equal(batch.velocities[b, :n], single.velocities)
        assert not batch.positions[b, n:].any()
        assert not batch.velocities[b, n:].any()
        np.testing.assert_array_equal(batch.mask[b], np.arange(batch.rows) < n)
        links = single.links
        np.testing.assert_array_equal(np.argwhere(np.triu(batch.adjacency[b])), links.pairs)
        np.testing.assert_array_equal(batch.adjacency[b], batch.adjacency[b].T)
        np.testing.assert_allclose(batch.distances[b][tuple(links.pairs.T)], links.lengths, rtol=1e-14)
        np.testing.assert_array_equal(batch.subnet[b, :n], links.subnet)
        assert (batch.subnet[b, n:] == -1).all()
        assert batch.count[b] == links.count
        assert batch.contacts[b] == len(links.contacts)
        assert batch.steps[b] == single.step
        assert batch.terminated[b] == single.terminated
        assert batch.truncated[b] == single.truncated
        assert batch.scenarios[b] is single.scenario


@given(seed=SEEDS, worlds=st.integers(1, 6), safety=st.booleans())
@settings(max_examples=25, deadline=None)
def test_every_world_of_a_batch_flies_as_it_does_alone(seed, worlds, safety):
    rng = np.random.default_rng(seed)
    scenarios = [random_scenario(rng) for _ in range(worlds)]
    batch, singles = initial_batch(scenarios), [initial_state(s) for s in scenarios]
    assert_equal_worlds(batch, singles)
    for _ in range(8):
        commands = wild_commands(rng, batch.positions.shape)
        batch = step_batch(batch, commands, safety=safety)
        singles = [
            step(s, commands[b, : len(s.positions)], safety=safety) for b, s in enumerate(singles)
        ]  # flown on after the end of an episode: the arithmetic is the same
        assert_equal_worlds(batch, singles)


@given(seed=SEEDS, worlds=st.integers(1, 5), safety=st.booleans(), least_rows=st.sampled_from([0, 45]))
@settings(max_examples=12, deadline=None)
def test_ended_episodes_are_reported_and_replaced_by_the_next_scenario(seed, worlds, safety, least_rows):
    """A queue of single worlds, reset by hand, is the oracle."""
    rng = np.random.default_rng(seed)
    drawn = (random_scenario(np.random.default_rng([seed, k]), f"s{k}") for k in itertools.count())
    source, copy = itertools.tee(s for s in drawn if not initial_state(s).terminated)
    world = BatchWorld(copy, worlds, safety=safety, least_rows=least_rows)
    singles = [initial_state(next(source)) for _ in range(worlds)]
    for _ in range(15):
        commands = wild_commands(rng, world.state.positions.shape)
        result = world.step(commands)
        singles = [step(s, commands[b, : len(s.positions)], safety=safety) for b, s in enumerate(singles)]
        assert_equal_worlds(result.flown, singles)
        np.testing.assert_array_equal(result.terminated, [s.terminated for s in singles])
        np.testing.assert_array_equal(result.truncated, [s.truncated for s in singles])
        singles = [initial_state(next(source)) if s.terminated or s.truncated else s for s in singles]
        assert result.state is world.state
        assert_equal_worlds(world.state, singles)
        assert world.state.rows == max(least_rows, *(len(s.positions) for s in singles))


def test_two_uavs_terminate_after_one_step_and_start_again():
    """121 m, then 119 m: one network; the final positions stay readable beside the new start."""
    world = BatchWorld(pair, 2)
    toward, away = [[10.0, 0.0], [-10.0, 0.0]], [[-10.0, 0.0], [10.0, 0.0]]
    result = world.step(np.array([toward, away]))
    assert result.terminated.tolist() == [True, False]
    assert result.truncated.tolist() == [False, False]
    np.testing.assert_allclose(result.flown.positions[0], [[1.0, 0.0], [120.0, 0.0]], atol=1e-12)
    assert result.flown.steps.tolist() == [1, 1]
    assert result.state.steps.tolist() == [0, 1]
    np.testing.assert_array_equal(result.state.positions[0], [[0.0, 0.0], [121.0, 0.0]])
    for _ in range(2):
        result = world.step(np.array([away, away]))
    assert result.truncated.tolist() == [False, True], "world 1 has used its budget of 3 steps"
    assert result.terminated.tolist() == [False, False]
    assert result.flown.steps.tolist() == [2, 3]


def test_the_cost_follows_the_alive_not_the_swarm():
    rng = generator(0, "rows")
    layout = rng.uniform(0, 1000, (200, 2))
    batch = initial_batch([make_scenario("big", layout, range(20, 200), width_m=1000.0)])
    assert batch.rows == 20


def test_scenarios_connected_from_the_start_are_passed_over():
    joined = make_scenario("joined", np.array([[0.0, 0.0], [100.0, 0.0]]), width_m=200.0)
    world = BatchWorld([joined, pair(), joined, joined, pair()], 2)
    assert [s.id for s in world.state.scenarios] == ["pair", "pair"]


def test_a_source_that_never_splits_or_ends_is_named():
    joined = make_scenario("joined", np.array([[0.0, 0.0], [100.0, 0.0]]), width_m=200.0)
    with pytest.raises(InputError, match="connected"):
        BatchWorld(lambda: joined, 2)
    with pytest.raises(InputError, match="no scenarios left"):
        BatchWorld([pair()], 2)


def test_commands_of_a_wrong_shape_are_refused():
    with pytest.raises(InputError, match=r"\(1, 3, 2\).*\(1, 2, 2\)"):
        step_batch(initial_batch([pair()]), np.zeros((1, 3, 2)))


def test_states_cannot_be_written_to():
    batch = initial_batch([pair()])
    for array in (batch.positions, batch.velocities, batch.steps):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_replacing_worlds_leaves_the_old_batch_as_it_was():
    rng = np.random.default_rng(3)
    old = initial_batch([random_scenario(rng) for _ in range(3)])
    before = old.positions.copy(), old.subnet.copy(), old.mask.copy()
    replace_worlds(old, np.array([1]), initial_batch([random_scenario(rng)], old.rows))
    for array, kept in zip((old.positions, old.subnet, old.mask), before, strict=True):
        np.testing.assert_array_equal(array, kept)


def test_one_world_by_itself_is_its_single_state():
    rng = np.random.default_rng(4)
    scenarios = [random_scenario(rng) for _ in range(3)]
    batch = step_batch(initial_batch(scenarios), rng.normal(0, 5, initial_batch(scenarios).positions.shape))
    assert_equal_worlds(batch, [batch.world(b) for b in range(3)])


@pytest.mark.parametrize("n", [1, 2, 64, 255, 256, 257])
def test_labels_of_a_shuffled_chain_and_of_nobody(n):
    """The longest paths there are, in the worst order, beside a world without any link."""
    order = np.random.default_rng(n).permutation(n)
    linked = np.zeros((n, n, 2), dtype=bool)
    linked[order[:-1], order[1:], 0] = linked[order[1:], order[:-1], 0] = True
    lowest = lowest_rows(linked)
    assert not lowest[:, 0].any()
    np.testing.assert_array_equal(lowest[:, 1], np.arange(n))


@given(seed=SEEDS, n=st.integers(1, 70))
@settings(max_examples=20, deadline=None)
def test_labels_equal_graph_search(seed, n):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < rng.uniform(0, 3) / n, k=1)
    lowest = lowest_rows((upper | upper.T)[:, :, None])[:, 0]
    subnet, _ = label_subnets(n, np.argwhere(upper))
    np.testing.assert_array_equal(np.unique(lowest, return_inverse=True)[1], subnet)
