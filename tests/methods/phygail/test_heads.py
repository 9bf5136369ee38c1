import math

import numpy as np
import pytest
import torch

from phygail.learning.networks import parameter_count, seeded
from phygail.methods.phygail.graph import perceive
from phygail.methods.phygail.graph_batch import join
from phygail.methods.phygail.heads import Actor, Critic, Discriminator, Gaussian, velocities
from phygail.methods.phygail.network import to_tensors
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import initial_state, project_speed


def graph_of(scenario):
    return perceive(Observer(scenario).observe(initial_state(scenario), Scope.SUBNET))


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    return [graph_of(draw_scenario(20, ratio, rng)) for ratio in (0.3, 0.5, 0.75)]


@pytest.fixture(scope="module")
def actor():
    """Larger last gains than at the start of training, so that differences show."""
    with seeded(0):
        actor = Actor()
        torch.nn.init.orthogonal_(actor.mean[-1].weight, 1.0)
    return actor


@pytest.mark.parametrize(("network", "count"), [(Actor, 722_733), (Critic, 747_050), (Discriminator, 730_794)])
def test_parameter_counts_are_the_papers(network, count):
    """PH-1."""
    assert parameter_count(network()) == count


def test_equal_seeds_give_equal_weights_and_leave_the_global_generator_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    with seeded(3):
        one = Actor()
    with seeded(3):
        other = Actor()
    assert torch.rand(1) == expected
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_heads_start_orthogonal():
    head = Actor().mean
    torch.testing.assert_close(head[0].weight @ head[0].weight.T, 2 * torch.eye(128), atol=1e-4, rtol=0)
    torch.testing.assert_close(head[2].weight @ head[2].weight.T, 1e-4 * torch.eye(2), atol=1e-7, rtol=0)
    assert (head[2].bias == 0).all()


def test_mean_and_deviation_stay_within_their_clamps(graphs):
    with seeded(0):
        actor = Actor()
    with torch.no_grad():
        for head in (actor.mean, actor.log_std):
            head[-1].bias.copy_(torch.tensor([100.0, -100.0]))
    policy = actor(to_tensors(join(graphs)))
    assert policy.mean.unique(dim=0).tolist() == [[3.0, -3.0]]
    assert policy.log_std.unique(dim=0).tolist() == [[0.5, -2.0]]


def test_log_prob_and_entropy_are_those_of_torch():
    rng = torch.Generator().manual_seed(0)
    mean, log_std, u = (torch.randn(7, 2, generator=rng) for _ in range(3))
    policy, oracle = Gaussian(mean, log_std), torch.distributions.Normal(mean, log_std.exp())
    torch.testing.assert_close(policy.log_prob(u), oracle.log_prob(u).sum(dim=1))
    torch.testing.assert_close(policy.entropy(), oracle.entropy().sum(dim=1))


def test_samples_have_the_asked_mean_and_deviation():
    policy = Gaussian(torch.full((20_000, 2), 0.5), torch.full((20_000, 2), math.log(0.2)))
    u = policy.sample(torch.Generator().manual_seed(0))
    assert u.mean() == pytest.approx(0.5, abs=0.01)
    assert u.std() == pytest.approx(0.2, rel=0.02)


def test_velocities_are_tanh_on_the_speed_disc():
    """PH-5. u = (3, 3) asks for 14 m/s along the diagonal and gets 10."""
    u = torch.tensor([[3.0, 3.0], [0.1, -0.2], [0.0, 0.0]], dtype=torch.float64)
    v = velocities(u, 10.0)
    torch.testing.assert_close(v[0], torch.full((2,), 10 / math.sqrt(2), dtype=torch.float64))
    torch.testing.assert_close(v[1], 10 * torch.tanh(u[1]))
    np.testing.assert_allclose(v.numpy(), project_speed(10 * np.tanh(u.numpy()), 10.0), rtol=1e-12)


def test_execution_uses_the_mean(graphs, actor):
    inputs = to_tensors(graphs[0])
    torch.testing.assert_close(actor.mean_action(inputs), torch.tanh(actor(inputs).mean))


def test_moving_the_whole_scene_leaves_the_outputs_identical(actor):
    """PH-3."""
    scenario = draw_scenario(50, 0.5, np.random.default_rng(4))
    layout = np.round(scenario.layout)
    here = make_scenario("a", layout, scenario.damaged.tolist(), center=[256.0, 256.0])
    there = make_scenario("b", layout + np.array([1024.0, -512.0]), scenario.damaged.tolist(), center=[1280.0, -256.0])
    assert torch.equal(*(actor.mean_action(to_tensors(graph_of(s))) for s in (here, there)))


def test_the_critic_pools_over_its_own_world_only(graphs):
    with seeded(0):
        critic = Critic()
    together = critic(to_tensors(join(graphs)))
    apart = torch.cat([critic(to_tensors(g)) for g in graphs])
    torch.testing.assert_close(together, apart, atol=1e-5, rtol=1e-5)


def test_the_critic_reads_own_mean_and_max(graphs):
    with seeded(0):
        critic = Critic()
    inputs = to_tensors(graphs[1])
    h = critic.encoder(inputs)
    pooled = torch.cat([h.mean(dim=0), h.max(dim=0).values]).expand(len(h), -1)
    expected = critic.head(torch.cat([h, pooled], dim=1)).squeeze(1)
    torch.testing.assert_close(critic(inputs), expected)


def test_a_critic_without_the_pool_reads_its_own_embedding(graphs):
    critic = Critic(centralized=False, extra=2)
    inputs = to_tensors(graphs[0])
    values = critic(inputs, torch.zeros(inputs.receivers, 2))
    assert values.shape == (inputs.receivers,)
    assert critic.head[0].in_features == 130


def test_the_discriminator_gives_a_probability_that_depends_on_the_action(graphs):
    with seeded(0):
        judge = Discriminator()
    inputs = to_tensors(graphs[0])
    action = torch.zeros(inputs.receivers, 2)
    first, second = judge(inputs, action), judge(inputs, action + 0.5)
    assert ((first > 0) & (first < 1)).all()
    assert (first != second).all()
    torch.testing.assert_close(torch.logit(first), judge.logit_expert_is_high(inputs, action), atol=1e-5, rtol=1e-5)
