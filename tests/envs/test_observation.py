"""What an agent observes, against numbers worked out by hand and a plain second implementation."""

import numpy as np
import pytest

from phygail.config import Physics
from phygail.rng import generator
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, initial_state

pytest.importorskip("pettingzoo")
from phygail.envs import observation, recovery_v0

# Rows 0, 1, 3 are alive: 0 and 1 linked, 3 alone 180 m from 1; 2 is damaged and in range of 0 and 1.
HAND = make_scenario(
    "hand", np.array([[0.0, 0.0], [60.0, 0.0], [110.0, 0.0], [240.0, 0.0]]), [2], center=(150.0, 30.0), budget_steps=40
)


def random_actions(env, rng):
    return {agent: rng.uniform(-1, 1, 2).astype(np.float32) for agent in env.agents}


def slot(row, number):
    width = len(observation.SLOT)
    start = len(observation.OWN) + number * width
    return row[start : start + width]


def test_an_observation_worked_out_by_hand():
    env = recovery_v0.parallel_env(scenarios=[HAND])
    env.reset(seed=0)
    actions = {"uav_0": (1.0, 0.0), "uav_1": (0.0, -0.5), "uav_3": (3.0, 4.0)}  # the last is projected onto the disc
    observations, *_ = env.step({agent: np.array(action) for agent, action in actions.items()})
    row = observations["uav_0"]  # now at (1, 0), its neighbor at (60, -0.5)
    own = [-149 / 120, -30 / 120, 1, 0, np.log(4) / np.log(13), 1 / 40]
    np.testing.assert_allclose(row[:6], own, rtol=1e-5)
    np.testing.assert_allclose(slot(row, 0), [59 / 120, -0.5 / 120, -1, -0.5, 1, 0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(slot(row, 8), [109 / 120, 0, -1, 0, 0, 1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(slot(row, 11), [149 / 120, 30 / 120, -1, 0, 0, 0, 1, 1], atol=1e-6)
    for empty in (*range(1, 8), 9, 10):
        assert not slot(row, empty).any()
    np.testing.assert_allclose(observations["uav_3"][2:4], [0.6, 0.8], rtol=1e-6)


def plain_observation(state, i):
    """The table of the documentation, one UAV at a time."""
    scenario = state.scenario
    reach, limit = scenario.physics.range_m, scenario.physics.speed_mps
    p, v = state.positions[i], state.velocities[i] / limit

    def nearest(places, velocities, kind, most, skip=None):
        near = sorted((np.hypot(*(q - p)), k) for k, q in enumerate(places) if k != skip)
        kept = [k for d, k in near if d <= reach + 1e-6][:most]
        filled = [[*(places[k] - p) / reach, *velocities[k] / limit - v, *kind, 1.0] for k in kept]
        return filled + [[0.0] * 8] * (most - len(filled))

    wrecks = scenario.layout[scenario.damaged]
    slots = nearest(state.positions, state.velocities, (1.0, 0.0, 0.0), 8, skip=i)
    slots += nearest(wrecks, np.zeros_like(wrecks), (0.0, 1.0, 0.0), 3)
    slots.append([*(scenario.center - p) / reach, *-v, 0.0, 0.0, 1.0, 1.0])
    degree = np.log1p(sum(s[-1] for s in slots)) / np.log(13)
    own = [*(p - scenario.center) / reach, *v, degree, state.step / scenario.budget_steps]
    return np.concatenate([own, np.ravel(slots)])


@pytest.mark.parametrize("physics", [Physics(), Physics(range_m=90.0, speed_mps=25.0, step_s=0.2)])
def test_observations_equal_the_plain_definition_and_stay_in_their_space(physics):
    env = recovery_v0.parallel_env(uavs=40, damage=0.4, width_m=320.0, physics=physics)
    states = []
    env._reward = lambda before, after: states.append(after) or 0.0
    observations, _ = env.reset(seed=0)
    states.append(env._running())
    rng = np.random.default_rng(1)
    for _ in range(6):
        for r, (agent, row) in enumerate(observations.items()):
            np.testing.assert_allclose(row, plain_observation(states[-1], r), atol=2e-6)
            assert env.observation_space(agent).contains(row)
        if not env.agents:
            break
        observations, *_ = env.step(random_actions(env, rng))
    assert len(states) > 3


def test_a_link_of_the_full_range_stays_in_the_space():
    layout = np.array([[1e4 + 0.3, 0.0], [1e4 + 0.3 + 120.0, 0.0], [1e4 + 0.3 + 120.0, 240.1]])
    env = recovery_v0.parallel_env(scenarios=[make_scenario("full", layout, center=(0.1, 0.7))])
    for agent, row in env.reset(seed=0)[0].items():
        assert env.observation_space(agent).contains(row)


def test_a_uav_observes_nothing_of_other_subnets():
    """G6: the scope of the observation is what the radio hears."""
    rng = np.random.default_rng(3)
    state = initial_state(draw_scenario(30, 0.6, generator(4)))
    others = state.links.subnet != 0
    moved = state.positions + np.where(others[:, None], state.positions - state.scenario.center, 0.0) * 20
    far = SwarmState(state.scenario, moved, np.where(others[:, None], rng.uniform(-5, 5, moved.shape), 0.0), 0)
    before, after = (
        observation.local_observations(Observer(state.scenario).observe(s, Scope.SUBNET)) for s in (state, far)
    )
    np.testing.assert_array_equal(before[~others], after[~others])
    assert not np.array_equal(before[others], after[others])
