"""The default reward of the environment, worked out by hand."""

import numpy as np

from phygail.envs.reward import TeamReward, closeness_m
from phygail.swarm.scenario import make_scenario
from phygail.swarm.state import SwarmState, initial_state

# Rows 0, 1, 3 are alive: 0 and 1 linked, 3 alone 180 m from 1; 2 is damaged and in range of 0 and 1.
HAND = make_scenario(
    "hand", np.array([[0.0, 0.0], [60.0, 0.0], [110.0, 0.0], [240.0, 0.0]]), [2], center=(150.0, 30.0), budget_steps=40
)


def test_the_default_reward_worked_out_by_hand():
    """METHODS 4.3 with T_max = 40 in place of the expert's time."""
    spots, still = HAND.spots, np.zeros((3, 2))
    reward = TeamReward()
    start = initial_state(HAND)
    np.testing.assert_allclose(reward(start, SwarmState(HAND, spots, still, 1)), -5 / 40)
    np.testing.assert_allclose(reward(start, SwarmState(HAND, spots, still, 40)), -5 / 40 - 5 * 2)
    close = np.array([[0.0, 0.0], [12.0, 0.0], [240.0, 0.0]])
    np.testing.assert_allclose(
        reward(start, SwarmState(HAND, close, still, 1)), [-0.125 - 0.03, -0.125 - 0.03, -0.125], rtol=1e-12
    )
    whole = np.array([[0.0, 0.0], [60.0, 0.0], [180.0, 0.0]])
    success = -0.125 + 20 + 20 * np.exp(1 - 0.5 / 1.2)
    np.testing.assert_allclose(reward(start, SwarmState(HAND, whole, still, 20)), success)
    # Success in the very last step is no truncation.
    np.testing.assert_allclose(reward(start, SwarmState(HAND, whole, still, 40)), -0.125 + 20 + 20 * np.exp(1 / 6))


def test_the_safety_penalty_equals_the_double_sum():
    points = np.random.default_rng(0).uniform(0, 60, (25, 2))
    expected = [
        sum(max(0.0, 15 - np.hypot(*(p - q))) for j, q in enumerate(points) if j != i) for i, p in enumerate(points)
    ]
    np.testing.assert_allclose(closeness_m(points, 15.0), expected, atol=1e-9)
