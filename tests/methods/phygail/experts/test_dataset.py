"""Frames and scenarios of a database against direct computation."""

from __future__ import annotations

import numpy as np
import pytest

from phygail.config import InputError
from phygail.methods.controller import run_episode
from phygail.methods.phygail.experts.database import concatenate, pack, write_archive
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.experts.recipe import Recipe, demonstrate
from phygail.methods.phygail.graph import GRAPHS
from phygail.methods.phygail.graph_batch import perceive_batch
from phygail.rng import generator
from phygail.swarm.scenario import D4

pytest.importorskip("h5py")

RECIPE = Recipe("test", ("center-fly", "sidr"), damage=(0.25, 0.5, 0.85), cases=4)


@pytest.fixture(scope="module")
def demos():
    return [demonstrate(RECIPE, number) for number in range(len(RECIPE))]


@pytest.fixture(scope="module")
def path(demos, tmp_path_factory):
    path = tmp_path_factory.mktemp("experts") / "small.h5"
    write_archive(path, concatenate([pack(demo) for demo in demos]), RECIPE.config(), {}, "phygail experts")
    return path


@pytest.fixture(scope="module")
def experts(path):
    return ExpertSet.open(path, interval=1)


def test_scenarios_results_and_flights_survive_the_file(experts, demos):
    assert len(experts) == len(demos) == 12
    for k, demo in enumerate(demos):
        positions, velocities = experts.trajectory(k)
        np.testing.assert_array_equal(positions, demo.positions)
        np.testing.assert_array_equal(velocities, demo.velocities)
        read, made = experts.scenarios[k], demo.scenario
        np.testing.assert_array_equal(read.layout, made.layout)
        np.testing.assert_array_equal(read.damaged, made.damaged)
        assert (read.id, read.width_m, read.physics, read.budget_steps, read.seed) == (
            made.id, made.width_m, made.physics, made.budget_steps, made.seed,
        )  # fmt: skip
        assert experts.archive.moves[k].tolist() == [o.moves for o in demo.outcomes]
        assert experts.archive.winner[k] == demo.winner
        assert experts.expert_steps[k] == demo.outcomes[demo.winner].moves


def test_a_stored_scenario_can_be_flown_again(experts):
    k = int(experts.expert_steps.argmax())
    winner = experts.methods[experts.archive.winner[k]]
    assert run_episode(experts.scenarios[k], winner).steps == experts.expert_steps[k]


def test_no_frame_holds_its_own_action(experts):
    """PH-8, F7: the velocity feature is exactly zero at t = 0 and the previous velocity afterward."""
    batch = experts.frames(np.arange(experts.frame_count))
    assert not batch.velocities[batch.step == 0].any()
    features = batch.graph().features
    receivers = features[: batch.alive.sum(), 2:4].reshape(-1, 2)
    frame = np.nonzero(batch.alive)[0]
    assert not receivers[batch.step[frame] == 0].any()
    assert receivers[batch.step[frame] > 0].any()
    for f in range(experts.frame_count):
        s, t, n = batch.scenario[f], batch.step[f], batch.alive[f].sum()
        positions, velocities = experts.archive.trajectory(s)
        np.testing.assert_array_equal(batch.positions[f, :n], positions[t])
        np.testing.assert_array_equal(batch.actions[f, :n], velocities[t])
        if t > 0:
            np.testing.assert_array_equal(batch.velocities[f, :n], velocities[t - 1])


def test_the_interval_takes_every_second_frame(path, experts):
    second = ExpertSet.open(path)
    assert second.interval == 2
    assert second.frame_count == sum(-(-steps // 2) for steps in experts.expert_steps.tolist())
    batch = second.frames(np.arange(second.frame_count))
    for s in range(len(second)):
        assert batch.step[batch.scenario == s].tolist() == list(range(0, int(second.expert_steps[s]), 2))
    assert experts.frame_count == experts.expert_steps.sum()


def test_padding_is_zero_and_marked(experts):
    batch = experts.sample(generator(1, "sample"), 64)
    n, k = batch.alive.shape[1], batch.damaged.shape[1]
    assert batch.positions.shape == batch.velocities.shape == batch.actions.shape == (64, n, 2)
    assert batch.spots.shape == (64, k, 2)
    assert (batch.center.shape, batch.width_m.shape) == ((64, 2), (64,))
    for array in (batch.positions, batch.velocities, batch.actions):
        assert not array[~batch.alive].any()
    assert not batch.spots[~batch.damaged].any()
    assert (batch.alive.sum(axis=1) + batch.damaged.sum(axis=1) == 20).all()


def test_turned_frames_are_those_computed_one_by_one(experts):
    numbers = np.arange(0, experts.frame_count, 7)
    elements = np.arange(len(numbers)) % 8
    batch = experts.frames(numbers, elements)
    for f, element in enumerate(elements):
        s, t, n = int(batch.scenario[f]), int(batch.step[f]), int(batch.alive[f].sum())
        positions, velocities = experts.archive.trajectory(s)
        turn, center = D4[element], batch.center[f]
        wanted = np.array([turn @ (p - center) + center for p in positions[t]])
        np.testing.assert_allclose(batch.positions[f, :n], wanted, atol=1e-9)
        np.testing.assert_array_equal(batch.actions[f, :n], [turn @ v for v in velocities[t]])
        before = velocities[t - 1] if t else np.zeros_like(velocities[t])
        np.testing.assert_array_equal(batch.velocities[f, :n], [turn @ v for v in before])
        scenario = experts.archive.scenario(s)
        spots = [turn @ (scenario.layout[d] - center) + center for d in scenario.damaged]
        np.testing.assert_allclose(batch.spots[f, : len(spots)], spots, atol=1e-9)


def test_a_sample_is_turned_at_random_and_repeats_with_its_seed(experts):
    first, again = (experts.sample(generator(2, "sample"), 200) for _ in range(2))
    np.testing.assert_array_equal(first.positions, again.positions)
    plain = experts.sample(generator(2, "sample"), 200, augment=False)
    np.testing.assert_array_equal(plain.scenario, first.scenario)
    same = np.isclose(first.actions, plain.actions).all(axis=(1, 2))
    assert 0.02 < same.mean() < 0.4  # one element in eight changes nothing, and frames with axis-parallel flights more


@pytest.mark.parametrize("name", ["paper", "no-center-recentered"])
def test_the_graph_of_a_batch_is_that_of_its_frames_one_by_one(experts, name):
    batch = experts.sample(generator(3, "sample"), 6)
    together = batch.graph(GRAPHS[name])
    row = 0
    for f in range(6):
        n, k = batch.alive[f].sum(), batch.damaged[f].sum()
        subnet = batch._subnet()[f : f + 1, :n]
        alone = perceive_batch(
            batch.positions[f : f + 1, :n], batch.velocities[f : f + 1, :n], np.ones((1, n), dtype=bool),
            batch.spots[f : f + 1, :k], np.ones((1, k), dtype=bool), batch.center[f : f + 1],
            batch.width_m[f : f + 1], 120.0, 10.0, GRAPHS[name], subnet=subnet,
        )  # fmt: skip
        np.testing.assert_array_equal(together.features[row : row + n], alone.features[:n])
        np.testing.assert_array_equal(together.mask[row : row + n], alone.mask)
        row += n
    assert together.receivers == row == len(batch.commands)


def test_commands_are_executed_velocities_over_the_limit_by_receiver(experts):
    batch = experts.sample(generator(4, "sample"), 10)
    np.testing.assert_allclose(batch.commands, batch.actions[batch.alive] / 10.0, rtol=1e-6)
    assert np.linalg.norm(batch.commands, axis=1).max() <= 1 + 1e-6


def test_the_split_holds_out_the_first_case_of_every_ratio(experts):
    training, validation = experts.training, experts.held_out
    assert (len(training), len(validation)) == (9, 3)
    assert sorted(s.id[13:21] for s in validation.scenarios) == ["d0.250-c", "d0.500-c", "d0.850-c"]
    assert all("-c000-" in s.id for s in validation.scenarios)
    assert not {s.id for s in training.scenarios} & {s.id for s in validation.scenarios}
    assert training.frame_count + validation.frame_count == experts.frame_count
    assert set(training.sample(generator(5, "sample"), 300).scenario) <= set(training.members)


def test_cases_come_with_expert_steps_in_eight_positions(experts):
    plain, augmented = experts.cases(), experts.cases(augment=True)
    assert (len(plain), len(augmented)) == (12, 96)
    assert [c.expert_steps for c in augmented[::8]] == [c.expert_steps for c in plain]
    assert [c.scenario.id for c in augmented[8:10]] == [f"{plain[1].scenario.id}-g{k}" for k in range(2)]
    rng = generator(6, "cases")
    drawn = [experts.training.draw_case(rng) for _ in range(60)]
    known = {c.scenario.id: c.expert_steps for c in experts.training.cases(augment=True)}
    assert all(known[c.scenario.id] == c.expert_steps for c in drawn)
    assert len({c.scenario.id for c in drawn}) > 20


def test_mean_alive_per_frame(experts):
    batch = experts.frames(np.arange(experts.frame_count))
    assert experts.uavs_per_frame == pytest.approx(batch.alive.sum() / experts.frame_count)


def test_an_empty_set_and_a_bad_interval_say_so(experts, path):
    with pytest.raises(InputError, match="nothing to draw from"):
        experts.training.held_out.sample(generator(0, "none"), 3)
    with pytest.raises(InputError, match="frame interval 0"):
        ExpertSet.open(path, interval=0)
