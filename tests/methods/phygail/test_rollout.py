import numpy as np
import pytest
import torch

from phygail.learning.run import override
from phygail.methods.phygail.config import PROFILES
from phygail.methods.phygail.experts.database import concatenate, pack
from phygail.methods.phygail.experts.dataset import ExpertSet
from phygail.methods.phygail.experts.recipe import Demonstration, fly_recorded, trajectory
from phygail.methods.phygail.gail import total_reward
from phygail.methods.phygail.learner import make_learner
from phygail.methods.phygail.network import to_tensors
from phygail.methods.phygail.rollout import collect, explore
from phygail.swarm.scenario import make_scenario

CONFIG = override(PROFILES.get("smoke"), ["worlds=3", "horizon=40", "initial_log_std=0.5", "width=8", "layers=1"])


def near_miss(case):
    """Two or three alive UAVs, a few meters out of range of each other, and a damaged one between them."""
    distance = 121.0 + 2.0 * (case % 4)
    alive = [[0.0, 0.0], [distance, 0.0], [0.0, 30.0]][: 2 + case % 2]
    scenario = make_scenario(f"near-{case}", np.array([*alive, [60.0, 60.0]]), [len(alive)], budget_steps=15)
    outcome, episode = fly_recorded(scenario, "center-fly")
    return Demonstration(scenario, 0.3, case, (outcome,), 0, *trajectory(episode))


@pytest.fixture(scope="module")
def experts():
    archive = concatenate([pack(near_miss(case)) for case in range(8)])
    return ExpertSet(archive, {}, np.arange(len(archive))).training


@pytest.fixture(scope="module")
def rollout(experts):
    return collect(make_learner(CONFIG).actor, experts, CONFIG, epoch=1)


def test_no_executed_velocity_exceeds_the_speed_limit(rollout):
    """PH-5: although tanh(u) does, in the corners of the square."""
    assert np.hypot(*np.tanh(rollout.u).T).max() > 1.1
    assert np.hypot(*rollout.command.T).max() <= 1.0 + 1e-6


def test_only_alive_uavs_are_nodes(rollout):
    assert rollout.nodes == rollout.graph.receivers == rollout.alive.sum() == len(rollout.log_prob)
    assert rollout.alive.shape[:2] == (40, 3)
    assert not rollout.alive.all()  # some rows are padding


def test_an_observation_holds_what_was_executed_the_step_before(rollout):
    """Unless an episode ended in between: then everybody is at rest."""
    features = np.zeros((*rollout.alive.shape, 2))
    features[rollout.alive] = rollout.graph.features[: rollout.nodes, 2:4]
    commands = np.zeros_like(features)
    commands[rollout.alive] = rollout.command
    goes_on = ~rollout.ended[:-1]
    np.testing.assert_allclose(features[1:][goes_on], commands[:-1][goes_on], atol=1e-6)
    assert (features[0] == 0).all()
    assert rollout.ended[:-1].any()
    assert (features[1:][~goes_on] == 0).all()


def test_every_ended_episode_is_counted_once(rollout):
    assert rollout.ended.sum() == len(rollout.flights) > 0
    assert all(flight.steps >= flight.bound_steps >= 1 for flight in rollout.flights)


def test_the_stored_density_is_that_of_the_stored_sample(rollout):
    """In double precision, from the actor's own mean and spread."""
    actor = make_learner(CONFIG).actor
    graph, rows = rollout.batch(np.arange(12))
    with torch.no_grad():
        belief = actor(graph)
    mean, spread = belief.mean.double(), belief.log_std.double().exp()
    expected = torch.distributions.Normal(mean, spread).log_prob(torch.from_numpy(rollout.u[rows]).double()).sum(dim=1)
    np.testing.assert_allclose(rollout.log_prob[rows], expected.numpy(), atol=1e-4)


def test_an_epoch_depends_on_its_number_and_nothing_else(rollout, experts):
    actor = make_learner(CONFIG).actor
    again, other = (collect(actor, experts, CONFIG, epoch) for epoch in (1, 2))
    np.testing.assert_array_equal(again.u, rollout.u)
    np.testing.assert_array_equal(again.environment, rollout.environment)
    assert other.nodes != rollout.nodes or not np.array_equal(other.u, rollout.u)


def test_total_rewards_are_scaled_clipped_and_zero_for_padding(rollout):
    imitation = np.full(rollout.nodes, 0.5)
    config = override(CONFIG, ["reward_limit=0.9", "absorbing=false"])
    rewards = total_reward(rollout, imitation, config)
    expected = np.clip((rollout.environment + 0.05) / 20, -0.9, 0.9)
    np.testing.assert_allclose(rewards[rollout.alive], expected[rollout.alive])
    assert rewards.max() == 0.9  # a success, clipped
    assert (rewards[~rollout.alive] == 0).all()


def test_the_absorbing_credit_reaches_every_alive_uav_of_a_success(rollout):
    imitation = np.full(rollout.nodes, 0.5)
    plain, credited = (
        total_reward(rollout, imitation, override(CONFIG, [f"absorbing={on}"])) for on in ("false", "true")
    )
    expected = np.where(rollout.alive, 0.05 * rollout.saved[:, :, None] / 20, 0.0)
    np.testing.assert_allclose(credited - plain, expected, atol=1e-12)
    assert (rollout.saved > 0).any()


def test_shared_noise_moves_the_members_of_a_subnet_alike_and_leaves_each_its_own_spread(rollout):
    """All of the noise shared: every member is off its mean by the same number of its standard deviations."""
    actor = make_learner(CONFIG).actor
    graph, n = rollout.graph, rollout.graph.receivers
    subnets = np.arange(n) // 2
    noise = torch.Generator().manual_seed(0)
    u, log_prob, _ = explore(actor, graph, noise, subnets, shared=1.0)
    with torch.no_grad():
        policy = actor(to_tensors(graph))
    off = (torch.from_numpy(u) - policy.mean) / policy.log_std.exp()
    pairs = off[: n // 2 * 2].reshape(-1, 2, 2)
    torch.testing.assert_close(pairs[:, 0], pairs[:, 1], atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(log_prob, policy.log_prob(torch.from_numpy(u)).numpy(), atol=1e-5)
    half = [explore(actor, graph, noise, subnets, shared=0.5)[0] for _ in range(200)]
    spread = torch.from_numpy(np.std(half, axis=0)) / policy.log_std.exp()
    assert spread.mean() == pytest.approx(1.0, abs=0.02)
