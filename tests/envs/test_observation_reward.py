"""The default reward of the environment, worked out by hand."""

import subprocess
import sys
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest

from phygail.config import Physics
from phygail.envs.observation import TeamReward
from phygail.methods import run_episode
from phygail.methods.phygail.rewards import environment_reward
from phygail.rng import generator
from phygail.swarm.batch import initial_batch, step_batch
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, initial_state

# Rows 0, 1, 3 are alive: 0 and 1 linked, 3 alone 180 m from 1; 2 is damaged and in range of 0 and 1.
HAND = make_scenario(
    "hand", np.array([[0.0, 0.0], [60.0, 0.0], [110.0, 0.0], [240.0, 0.0]]), [2], center=(150.0, 30.0), budget_steps=40
)


def test_the_default_reward_worked_out_by_hand():
    """METHODS 4.3 and 4.7: T_max = 40 in place of alpha T_E."""
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
    # eta = exp(1 - 20/40) = 1.6487 at half the budget, exp(0) = 1 at its end; success in the very last step is no
    # truncation.
    np.testing.assert_allclose(reward(start, SwarmState(HAND, whole, still, 20)), -0.125 + 20 + 20 * 1.6487212707)
    np.testing.assert_allclose(reward(start, SwarmState(HAND, whole, still, 40)), -0.125 + 20 + 20 * 1.0)


def test_the_safety_penalty_equals_the_double_sum():
    points = np.random.default_rng(0).uniform(0, 60, (25, 2))
    expected = [
        sum(max(0.0, 15 - np.hypot(*(p - q))) for j, q in enumerate(points) if j != i) for i, p in enumerate(points)
    ]
    scenario = make_scenario("crowd", points, budget_steps=10)
    earned = TeamReward(step_penalty=0.0, r_base=0.0, r_time=0.0)(
        initial_state(scenario), SwarmState(scenario, points, np.zeros((25, 2)), 1)
    )
    np.testing.assert_allclose(earned, -0.01 * np.array(expected), atol=1e-9)


def test_the_safe_distance_is_that_of_the_vehicle():
    """1.5 contact distances: 12 m apart with 10 m are 30 m apart with 25 m, 3/15 of the way into D_safe."""
    for factor, physics in (
        (1.0, Physics()),
        (2.5, Physics(range_m=300.0, contact_m=25.0)),
        (1.0, Physics(range_m=60.0)),
    ):
        points = factor * np.array([[0.0, 0.0], [12.0, 0.0], [240.0, 0.0]])
        scenario = make_scenario("s", points, physics=physics, budget_steps=40)
        earned = TeamReward()(initial_state(scenario), SwarmState(scenario, points, np.zeros((3, 2)), 1))
        np.testing.assert_allclose(earned, [-0.155, -0.155, -0.125], rtol=1e-12)


def test_the_environment_needs_no_torch():
    code = "import sys, phygail.envs.observation; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_environment_and_training_pay_the_same_without_expert_time():
    """SIDR flies a case to its end; every step earns every UAV the same in both."""
    profiles = pytest.importorskip("phygail.methods.phygail.config", reason="needs torch")
    config = profiles.TrainConfig(expert_time=False)
    scenario = draw_scenario(20, 0.6, generator(4))
    for case in (scenario, replace(scenario, budget_steps=7)):  # success, then the end of the budget
        batch, states = initial_batch([case]), run_episode(case, "sidr", record=True).states
        for before, after in pairwise(states):
            batch = step_batch(batch, after.velocities[None])
            paid = environment_reward(batch, np.array([5]), config)[0]
            np.testing.assert_allclose(paid, TeamReward()(before, after), rtol=1e-12)
        assert after.terminated == (case is scenario)


def test_the_numbers_of_the_environment_are_those_of_the_training():
    profiles = pytest.importorskip("phygail.methods.phygail.config", reason="needs torch")
    paper = profiles.TrainConfig()
    for field in fields(TeamReward):
        assert getattr(TeamReward(), field.name) == getattr(paper, field.name), field.name
