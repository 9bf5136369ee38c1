import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phygail.methods.phygail.mappo import estimate_advantages, normalize

REWARDS, VALUES = (np.array(x)[:, None, None] for x in ([1.0, 2.0, 3.0], [0.5, 0.4, 0.3]))
AFTER = np.ones((1, 1))


def ended(*flags):
    return np.array(flags)[:, None]


def test_a_finished_episode_of_three_steps():
    """PH-10: delta = 0.86, 1.87, 2.7 with gamma 0.9; gamma lambda = 0.72. The value after the end is not read."""
    advantages, targets = estimate_advantages(REWARDS, VALUES, AFTER * np.nan, ended(0, 0, 1) == 1, 0.9, 0.8)
    np.testing.assert_allclose(advantages.ravel(), [3.60608, 3.814, 2.7])
    np.testing.assert_allclose(targets.ravel(), [4.10608, 4.214, 3.0])


def test_the_cut_at_the_horizon_bootstraps():
    """PH-10: the last delta is 3 + 0.9 x 1 - 0.3 = 3.6."""
    advantages, _ = estimate_advantages(REWARDS, VALUES, AFTER, ended(0, 0, 0) == 1, 0.9, 0.8)
    np.testing.assert_allclose(advantages.ravel(), [4.07264, 4.462, 3.6])


def test_nothing_flows_back_over_the_end_of_an_episode():
    """The first step ends an episode; what follows is another scenario."""
    advantages, _ = estimate_advantages(REWARDS, VALUES, AFTER, ended(1, 0, 0) == 1, 0.9, 0.8)
    assert advantages[0, 0, 0] == pytest.approx(0.5)


@given(st.integers(0, 2**32 - 1))
def test_with_lambda_one_the_targets_are_discounted_returns(seed):
    rng = np.random.default_rng(seed)
    rewards, values = rng.normal(size=(2, 5, 3, 2))
    after, over = rng.normal(size=(3, 2)), rng.random((5, 3)) < 0.3
    expected, following = np.zeros_like(rewards), after
    for t in reversed(range(5)):
        following = rewards[t] + 0.9 * np.where(over[t][:, None], 0.0, following)
        expected[t] = following
    np.testing.assert_allclose(estimate_advantages(rewards, values, after, over, 0.9, 1.0)[1], expected)


def test_normalized_advantages_have_mean_zero_and_deviation_one():
    x = normalize(np.array([1.0, 2.0, 3.0, 6.0]))
    assert x.mean() == pytest.approx(0.0, abs=1e-12)
    assert x.std() == pytest.approx(1.0)
