"""The plan policy of GDR-TS: features, decoding, judgment, gradient."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from phygail.config import Physics
from phygail.methods.gdr_ts import make_task
from phygail.methods.gdr_ts.policy import (
    PlanPolicy,
    PlanTask,
    advantages,
    decode,
    descend,
    judge,
    plan_trees,
    sample_plans,
)
from phygail.rng import generator
from phygail.swarm.links import find_links
from phygail.swarm.scenario import draw_scenario
from phygail.swarm.tree import spanning_tree


def hand_task(positions: list[list[float]], warm: list[list[float]]) -> PlanTask:
    n = len(positions)
    places, start = np.array(positions, dtype=float), np.array(warm, dtype=float)
    return PlanTask(places, start, torch.ones(n, n, dtype=torch.bool), 200.0, 120.0, 119.9)


def drawn_task(seed: int = 0, uavs: int = 50) -> PlanTask:
    scenario = draw_scenario(uavs, 0.5, generator(200_000, "test-gdr-ts", seed))
    return make_task(scenario.spots - scenario.center, scenario.width_m / 2, scenario.physics)[0]


def stirred_policy(seed: int = 1) -> PlanPolicy:
    """A policy whose head is not zero."""
    policy = PlanPolicy(seed)
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        policy.head[-1].weight.copy_(0.1 * torch.randn(3, 64, generator=source))
    return policy


def test_features_of_a_hand_worked_pair() -> None:
    task = hand_task([[-100, 0], [100, 50]], [[-60, 0], [70, 10]])
    expected = [[-0.5, 0, -0.3, 0, 0.2, 0.6, 0.8], [0.5, 0.25, 0.35, 0.05, 0.25, 0.6, 1.0]]
    np.testing.assert_allclose(task.features.numpy(), expected, atol=1e-6)


def test_a_zero_action_is_the_warm_start_and_a_full_return_the_own_place() -> None:
    task = drawn_task()
    action = np.zeros((len(task.warm), 3))
    np.testing.assert_array_equal(decode(task, action), task.warm)
    action[:, 0] = 7.0  # clipped to 1
    np.testing.assert_allclose(decode(task, action), task.positions, atol=1e-9)
    action[:, 0] = -3.0  # clipped to 0
    action[:, 1] = 50.0
    np.testing.assert_allclose(decode(task, action) - task.warm, np.tile([30.0, 0.0], (len(action), 1)), atol=1e-9)


def test_an_untrained_policy_plans_the_warm_start() -> None:
    """GD-2, at the level of the policy."""
    task = drawn_task()
    mean = PlanPolicy(3)(task.features, task.attends)
    assert (mean == 0).all()


def test_judgment_of_hand_worked_plans() -> None:
    """A connected plan pays its flight; a split one also 0.5 per extra subnet and twice the gap."""
    task = hand_task([[-100, 0], [100, 0]], [[-50, 0], [50, 0]])
    judgment = judge(task, np.array([[[-50.0, 0], [50, 0]], [[-100, 0], [100, 0]], [[-100, 0], [19.9, 0]]]))
    np.testing.assert_array_equal(judgment.subnets, [1, 2, 1])
    np.testing.assert_allclose(judgment.largest_m, [50, 0, 80.1])
    flight = -(80.1 + 0.2 * 40.05) / 200
    np.testing.assert_allclose(judgment.reward, [-60 / 200, -0.5 - 2 * 80.1 / 200, flight])


def test_own_parts_of_a_hand_worked_plan() -> None:
    """Three UAVs on a line, the middle one far from the right one: both ends of the long edge answer for it."""
    task = hand_task([[0, 0], [100, 0], [300, 0]], [[0, 0], [100, 0], [200, 0]])
    judgment = judge(task, np.array([[[0.0, 0], [100, 0], [259.9, 0]]]))
    edge, flight = 2 * 40 / 200 + 0.5, 40.1 / 200 * (1 + 0.2 / 3)
    np.testing.assert_allclose(judgment.own, [[0, -edge, -edge - flight]])
    np.testing.assert_allclose(judgment.reward, [-edge - flight])


def test_advantages_are_centered_and_single_out_the_one_who_paid() -> None:
    own = np.array([[-1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    weight = advantages(own.sum(axis=1), own)
    np.testing.assert_allclose(weight.mean(axis=0), 0, atol=1e-9)
    assert weight[0, 0] < weight[0, 1] < 0


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 40), count=st.integers(1, 5), width=st.floats(1.0, 800.0))
def test_trees_of_all_plans_equal_the_tree_of_each(seed: int, n: int, count: int, width: float) -> None:
    plans = generator(seed, "plans").uniform(0, width, size=(count, n, 2))
    lengths = plan_trees(plans)[1]
    for row, plan in zip(lengths, plans, strict=True):
        np.testing.assert_allclose(np.sort(row), np.sort(spanning_tree(plan)[1]), atol=1e-9)
        assert 1 + (row > 100.0).sum() == find_links(plan, 100.0).count


def test_trees_of_coincident_and_collinear_plans_are_exact() -> None:
    plans = np.array([[[0.0, 0], [0, 0], [0, 0]], [[0, 0], [30, 0], [10, 0]]])
    np.testing.assert_allclose(np.sort(plan_trees(plans)[1]), [[0, 0], [10, 20]])


def test_tree_weight_agrees_with_networkx() -> None:
    plan = generator(5, "nx").uniform(0, 300, size=(30, 2))
    graph = nx.Graph()
    for i in range(30):
        for j in range(i):
            graph.add_edge(i, j, weight=float(np.hypot(*(plan[i] - plan[j]))))
    expected = nx.minimum_spanning_tree(graph).size(weight="weight")
    assert plan_trees(plan[None])[1].sum() == pytest.approx(expected)


def test_policy_mean_follows_a_renumbering() -> None:
    """GD-4."""
    task, policy = drawn_task(), stirred_policy()
    order = generator(1, "order").permutation(len(task.warm))
    turned = replace(
        task, positions=task.positions[order], warm=task.warm[order], attends=task.attends[order][:, order]
    )
    mean = policy(task.features, task.attends)
    assert mean.abs().max() > 0.01
    torch.testing.assert_close(policy(turned.features, turned.attends), mean[order], atol=1e-5, rtol=1e-4)


def test_policy_gradient_agrees_with_torch_distributions() -> None:
    """The loss is REINFORCE with the log-probability of torch's Gaussian."""
    task, policy = drawn_task(uavs=20), stirred_policy()
    sampled = sample_plans(policy, task, 8, torch.Generator().manual_seed(4))
    sampled.loss.backward()
    gradient = policy.log_std.grad.clone()
    policy.zero_grad()
    mean = policy(task.features, task.attends)
    action = mean.detach() + policy.log_std.exp().detach() * torch.randn(
        (8, *mean.shape), generator=torch.Generator().manual_seed(4)
    )
    weight = torch.tensor(advantages(sampled.judgment.reward[:8], sampled.judgment.own[:8]), dtype=torch.float32)
    density = torch.distributions.Normal(mean, policy.log_std.exp()).log_prob(action).sum(-1)
    (-(weight * density).mean()).backward()
    torch.testing.assert_close(policy.log_std.grad, gradient, atol=1e-5, rtol=1e-4)


def test_policy_gradient_solves_two_uavs() -> None:
    """A trivial task: two UAVs 300 m apart and a warm start that is too close. The best plan pays -0.54, Y -0.84."""
    task = hand_task([[-150, 0], [150, 0]], [[-10, 0], [10, 0]])
    policy = PlanPolicy(0)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    noise = torch.Generator().manual_seed(0)
    planned = []
    for _ in range(40):
        sampled = sample_plans(policy, task, 128, noise)
        planned.append(sampled.judgment.reward[-1])  # of the policy's mean
        descend(policy, optimizer, sampled.loss)
    assert planned[0] == pytest.approx(-0.84)
    assert np.mean(planned[-10:]) > -0.72


def test_two_alive_uavs_are_a_task() -> None:
    task, power = make_task(np.array([[-200.0, 0.0], [200.0, 0.0]]), 300.0, Physics())
    assert power >= 1
    assert judge(task, task.warm[None]).subnets[0] == 1
