"""The outlook on layouts whose fate is known, and what the loss of a critical UAV costs."""

from __future__ import annotations

import numpy as np
import pytest

from phygail.experiments.failures import FailureCost, inspect_layout


def test_facts_of_a_chain_of_three():
    found = inspect_layout(np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0]]))
    assert (found.uavs, found.links, found.subnets, found.critical) == (3, 2, 1, (1,))
    assert found.mean_degree == pytest.approx(4 / 3)
    assert found.separation_m == pytest.approx(100.0)


def test_one_lost_of_a_chain_of_three_splits_it_in_a_third_of_the_draws():
    layout = np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0]])
    (half,) = inspect_layout(layout, draws=2000, ratios=(0.5,)).outlook
    assert half.damaged == 1
    assert half.split == pytest.approx(1 / 3, abs=0.05)
    assert half.subnets == pytest.approx(4 / 3, abs=0.05)
    assert half.largest == pytest.approx(5 / 6, abs=0.03)


def test_a_cluster_never_splits_and_equal_seeds_agree():
    layout = np.random.default_rng(1).uniform(0, 60, (30, 2))
    assert all(o.split == 0 for o in inspect_layout(layout, draws=20).outlook)
    assert inspect_layout(layout * 8, seed=2, draws=20) == inspect_layout(layout * 8, seed=2, draws=20)


def test_the_loss_of_the_middle_of_a_chain_costs_one_stand_in():
    """80 m are missing: 40 steps if both fly; one of them moves 100 m to the empty place."""
    found = inspect_layout(np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0]]), draws=2)
    assert found.failures == (FailureCost(1, 2, 1, 4.0, 100.0, 1),)


def test_a_layout_that_is_split_already_has_no_costs():
    chain = np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0], [900.0, 0.0]])
    found = inspect_layout(chain, draws=2)
    assert found.critical == (1,)
    assert found.failures == ()
