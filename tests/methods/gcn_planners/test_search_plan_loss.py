"""The differentiable cost of a plan, by hand and against the numpy forms."""

import numpy as np
import pytest
import torch

from phygail.methods.gcn_planners.search import count_subnets, gap, largest_displacement
from phygail.swarm.tree import gap_m


def test_largest_displacement_and_its_gradient_by_hand():
    positions = torch.tensor([[0.0, 0.0], [10.0, 0.0]])
    targets = torch.tensor([[3.0, 4.0], [11.0, 0.0]], requires_grad=True)
    move = largest_displacement(targets, positions)
    move.backward()
    assert move.item() == 5.0
    torch.testing.assert_close(targets.grad, torch.tensor([[0.6, 0.8], [0.0, 0.0]]))


def test_a_plan_that_stays_has_a_finite_gradient():
    targets = torch.zeros(3, 2, requires_grad=True)
    (largest_displacement(targets, torch.zeros(3, 2)) + gap(targets, 120.0)).backward()
    assert torch.isfinite(targets.grad).all()


def test_gap_and_its_gradient_by_hand():
    targets = torch.tensor([[0.0, 0.0], [100.0, 0.0], [250.0, 0.0]], requires_grad=True)
    missing = gap(targets, 120.0)
    missing.backward()
    assert missing.item() == pytest.approx(30.0)
    torch.testing.assert_close(targets.grad, torch.tensor([[0.0, 0.0], [-1.0, 0.0], [1.0, 0.0]]))


def test_gap_equals_the_numpy_gap_and_is_zero_only_if_connected():
    rng = np.random.default_rng(0)
    for width in (150.0, 400.0, 900.0):
        points = rng.uniform(0, width, (30, 2))
        targets = torch.tensor(points)
        assert gap(targets, 120.0).item() == pytest.approx(gap_m(points, 120.0), abs=1e-9)
        assert (gap(targets, 120.0).item() == 0.0) == (count_subnets(targets, 120.0) == 1)
