"""DEMD's optimization: the balance of its two losses (DE-3), what it keeps (DE-4), one loss alone (DE-5)."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from phygail.methods.gcn_planners import demd_case
from phygail.methods.gcn_planners.network import ConvolutionStack
from phygail.methods.gcn_planners.search import (
    DEMD_PROFILES,
    DemdProfile,
    affordable,
    center_offset,
    count_subnets,
    largest_displacement,
    raw_targets,
    rebalanced,
    search_demd,
)
from phygail.methods.planning import canonical_order
from phygail.rng import generator
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import draw_scenario
from phygail.swarm.simulator import initial_state

SMALL = DemdProfile("faithful", width=32, iterations=60)


@pytest.fixture(scope="module")
def case():
    scenario = draw_scenario(50, 0.75, generator(3, "demd"))
    view = Observer(scenario).observe(initial_state(scenario), Scope.GLOBAL)
    return demd_case(view, canonical_order(view.positions), centered=False)


def network(width: int = 32) -> ConvolutionStack:
    return ConvolutionStack(width, torch.Generator().manual_seed(1))


positive = st.floats(1e-3, 1e3)


@given(st.floats(0.02, 1.98), positive, positive, positive, positive)
def test_loss_weights_sum_to_two_and_stay_positive(first, slope1, slope2, loss1, loss2):
    """DE-3."""
    weights = np.array([first, 2.0 - first])
    for _ in range(5):
        weights = rebalanced(weights, np.array([slope1, slope2]), np.array([loss1, loss2]), np.array([1.0, 2.0]))
        assert weights.sum() == pytest.approx(2.0, abs=1e-12)
        assert weights.min() >= 0.02 - 1e-12


def test_balance_by_hand():
    """The loss with the larger gradient loses 0.01, the other gains it; equal ones stay."""
    one = np.ones(2)
    np.testing.assert_allclose(rebalanced(one, np.array([3.0, 1.0]), one, one), [0.99, 1.01])
    np.testing.assert_allclose(rebalanced(one, np.array([2.0, 2.0]), one, one), [1.0, 1.0])


def test_search_uses_balanced_weights_at_all_iterations(case):
    """DE-3."""
    found, used = search_demd(network(), case, SMALL)
    assert len(used) == len(found.costs_m)
    np.testing.assert_allclose(used.sum(axis=1), 2.0)
    assert used.min() >= 0.02
    assert used[0].tolist() == [1.0, 1.0]
    assert np.abs(np.diff(used[:, 0])).max() <= 0.0201


def test_norms_of_the_balance_equal_gradients_of_the_last_layer(case):
    """(H X_7)^T dL/dQ is what autograd gives for the weights of the last layer."""
    net = network()
    targets, gathered = raw_targets(net, case)
    for part in (largest_displacement(targets, case.positions), center_offset(targets, case)):
        toward, direct = torch.autograd.grad(part, [targets, net.convolutions[-1].weight], retain_graph=True)
        torch.testing.assert_close(gathered.T @ toward, direct, rtol=1e-4, atol=1e-4)


def test_kept_plan_is_the_best_connected_iterate(case):
    """DE-4."""
    found, _ = search_demd(network(), case, SMALL)
    assert found.cost_m == min(found.costs_m)
    assert count_subnets(torch.tensor(found.targets), case.range_m) == 1


def test_with_the_second_weight_frozen_at_zero_the_cost_is_the_largest_displacement(case):
    """DE-5."""
    found, used = search_demd(network(), case, SMALL, 30, frozen=(1.0, 0.0))
    assert (used == [1.0, 0.0]).all()
    moved = np.hypot(*(found.targets - case.positions.numpy()).T).max()
    assert found.cost_m == pytest.approx(moved, abs=1e-2)
    optimizer_free = network()
    oracle = torch.optim.Adam(optimizer_free.parameters(), lr=1e-4)
    for expected in found.costs_m[:30]:
        targets, _ = raw_targets(optimizer_free, case)
        loss = largest_displacement(targets, case.positions)
        cost = loss.item() + 1000.0 * (count_subnets(targets, case.range_m) - 1)
        assert cost == pytest.approx(expected, rel=1e-4)
        oracle.zero_grad()
        loss.backward()
        oracle.step()


def test_five_splits_in_a_row_end_the_published_search(case, monkeypatch):
    from phygail.methods.gcn_planners import search as module

    counts = iter([1] * 55 + [2] * 1000)
    monkeypatch.setattr(module, "count_subnets", lambda *_: next(counts))
    found, _ = search_demd(network(), case, DemdProfile("faithful", width=32, iterations=200))
    limit = 0.6 * case.width_m
    assert (len(found.costs_m) == 60) == (found.cost_m < limit)


def test_faithful_profile_is_the_published_one():
    profile = DEMD_PROFILES["faithful"]
    assert (profile.width, profile.iterations, profile.rate) == (512, 1000, 1e-4)
    assert (profile.guard, profile.smooth, profile.pretrained, profile.patience) == (False, False, False, None)


def test_large_swarms_get_fewer_iterations():
    assert [affordable(300, n) for n in (10, 2_000, 4_000, 9_500)] == [300, 300, 75, 13]
    assert affordable(300, 100_000) == 10
    assert affordable(3, 100_000) == 3
