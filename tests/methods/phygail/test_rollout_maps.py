"""Maps wider than the swarm's own: what a policy of 20 UAVs must meet to fly 500."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from phygail.learning.run import override
from phygail.methods.phygail.config import PROFILES
from phygail.methods.phygail.rollout import on_other_map, shift_center, widen_map
from phygail.swarm.scenario import make_scenario


def test_scale_one_changes_nothing_and_draws_nothing() -> None:
    rng = np.random.default_rng(0)
    widths = np.array([320.0, 500.0])
    assert widen_map(widths, 1.0, rng) is widths
    assert rng.random() == np.random.default_rng(0).random()


def test_factors_are_log_uniform_up_to_the_scale() -> None:
    factors = widen_map(np.ones(20_000), 5.0, np.random.default_rng(1))
    assert factors.min() >= 1.0
    assert factors.max() <= 5.0
    assert np.median(factors) == pytest.approx(np.sqrt(5.0), rel=0.03)  # the middle of a log-uniform range


def test_a_center_moves_within_its_share_of_the_width() -> None:
    center, width_m = np.tile([160.0, 160.0], (5000, 1)), np.full(5000, 320.0)
    rng = np.random.default_rng(2)
    assert shift_center(center, width_m, 0.0, rng) is center
    assert rng.random() == np.random.default_rng(2).random()
    moved = shift_center(center, width_m, 0.5, rng) - center
    assert np.abs(moved).max() <= 80.0
    assert np.abs(moved).max() > 79.0
    assert np.abs(moved.mean(axis=0)).max() < 3.0


def test_a_scenario_on_another_map_keeps_its_swarm() -> None:
    config = override(PROFILES.get("smoke"), ["map_scale=5", "map_shift=0.5"])
    case = make_scenario("case", np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0], [300.0, 0.0]]), [1], width_m=320.0)
    other = on_other_map(case, config, np.random.default_rng(3))
    assert np.array_equal(other.layout, case.layout)
    assert other.width_m > case.width_m
    assert not np.array_equal(other.center, case.center)
    assert other.budget_steps == 277 > case.budget_steps  # the way from (300, 0) to the moved center
    assert other.budget_steps == np.ceil(np.hypot(*(other.center - [300.0, 0.0])))
    same = on_other_map(case, override(config, ["map_shift=0"]), np.random.default_rng(3))
    assert same.budget_steps == case.budget_steps == 256
