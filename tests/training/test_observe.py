"""Maps wider than the swarm's own: what a policy of 20 UAVs must meet to fly 500."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from phygail.training.observe import wider


def test_scale_one_changes_nothing_and_draws_nothing() -> None:
    rng = np.random.default_rng(0)
    widths = np.array([320.0, 500.0])
    assert wider(widths, 1.0, rng) is widths
    assert rng.random() == np.random.default_rng(0).random()


def test_factors_are_log_uniform_up_to_the_scale() -> None:
    factors = wider(np.ones(20_000), 5.0, np.random.default_rng(1))
    assert factors.min() >= 1.0
    assert factors.max() <= 5.0
    assert np.median(factors) == pytest.approx(np.sqrt(5.0), rel=0.03)  # the middle of a log-uniform range
