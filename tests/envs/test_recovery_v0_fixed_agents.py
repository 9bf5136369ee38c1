"""The environment for libraries that want the same agents in every episode, and PettingZoo's other entry points."""

import importlib.util
import warnings

import numpy as np
import pytest

from phygail.config import InputError

pytest.importorskip("pettingzoo")
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test

from phygail.envs import recovery_v0
from phygail.swarm.scenario import make_scenario

SMALL = {"uavs": (6, 8), "damage": 0.34}
# Rows 0, 1, 3 are alive; 2 is damaged.
HAND = make_scenario(
    "hand", np.array([[0.0, 0.0], [60.0, 0.0], [110.0, 0.0], [240.0, 0.0]]), [2], center=(150.0, 30.0), budget_steps=40
)


def actions_for(env, rng):
    return {agent: rng.uniform(-1, 1, 2).astype(np.float32) for agent in env.agents}


def test_it_passes_the_tests_of_pettingzoo_without_any_remark():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parallel_api_test(recovery_v0.parallel_env(**SMALL, fixed_agents=True), num_cycles=200)
    parallel_seed_test(lambda: recovery_v0.parallel_env(**SMALL, fixed_agents=True), num_cycles=5)


def test_everybody_stays_to_the_end_and_the_same_flight_is_flown():
    """Padding changes nothing for who flies: the same observations, rewards and ends as without it."""
    padded, bare = (recovery_v0.parallel_env(scenarios=[HAND], fixed_agents=fixed) for fixed in (True, False))
    seen, infos = padded.reset(seed=0)
    own, _ = bare.reset(seed=0)
    rng = np.random.default_rng(0)
    while bare.agents:
        assert padded.agents == padded.possible_agents == list(seen) == list(infos)
        assert all(np.array_equal(seen[agent], own[agent]) for agent in own)
        actions = actions_for(padded, rng)
        seen, rewards, ends, cuts, infos = padded.step(actions)
        own, paid, ended, cut, told = bare.step({agent: actions[agent] for agent in bare.agents})
        assert {agent: rewards[agent] for agent in paid} == paid
        assert set(ends.values()) == set(ended.values())
        assert set(cuts.values()) == set(cut.values())
        assert infos["uav_0"] == told["uav_0"]
    assert padded.agents == []


def test_who_does_not_fly_observes_zeros_is_paid_nothing_and_has_no_effect():
    env = recovery_v0.parallel_env(scenarios=[HAND], fixed_agents=True)

    def fly(dead_action):
        env.reset(seed=0)
        actions = {agent: np.array([0.3, 0.1]) for agent in env.agents} | {"uav_2": np.asarray(dead_action)}
        return env.step(actions), env.state()

    (seen, rewards, _, _, infos), state = fly([0.0, 0.0])
    assert not seen["uav_2"].any()
    assert rewards["uav_2"] == 0.0
    assert rewards["uav_0"] != 0.0
    assert {agent: info["alive"] for agent, info in infos.items()} == {
        "uav_0": True, "uav_1": True, "uav_2": False, "uav_3": True,
    }  # fmt: skip
    for wild in ([1.0, -1.0], [np.nan, np.inf]):
        (again, *_), moved = fly(wild)
        assert np.array_equal(state, moved)
        assert all(np.array_equal(seen[agent], again[agent]) for agent in seen)


def test_the_last_number_of_an_observation_is_the_mask():
    env = recovery_v0.parallel_env(**SMALL, fixed_agents=True)
    for seed in range(5):
        observations, infos = env.reset(seed=seed)
        assert {agent: bool(row[-1]) for agent, row in observations.items()} == {
            agent: info["alive"] for agent, info in infos.items()
        }
        assert all(env.observation_space(agent).contains(row) for agent, row in observations.items())
        size = len(env.possible_agents)
        assert env.state()[4 * size : 5 * size].astype(bool).tolist() == [i["alive"] for i in infos.values()]


def test_every_agent_needs_an_action_also_those_that_do_not_fly():
    env = recovery_v0.parallel_env(scenarios=[HAND], fixed_agents=True)
    env.reset(seed=0)
    actions = {agent: np.zeros(2) for agent in env.agents}
    del actions["uav_2"]
    with pytest.raises(InputError, match="uav_2 has no action"):
        env.step(actions)


@pytest.mark.parametrize(("cycles", "steps"), [(7, 7), (40, 40), (90, 90)])
def test_max_cycles_is_the_budget_of_every_episode(cycles, steps):
    env = recovery_v0.parallel_env(scenarios=[HAND], max_cycles=cycles)
    observations, infos = env.reset(seed=0)
    count = 0
    while env.agents:
        count += 1
        observations, rewards, ends, cuts, infos = env.step({agent: np.zeros(2) for agent in env.agents})
        assert observations["uav_0"][5] == pytest.approx(count / cycles)
    assert (count, infos["uav_0"]["steps"], cuts["uav_0"], ends["uav_0"]) == (steps, steps, True, False)
    assert rewards["uav_0"] == pytest.approx(-5 / cycles - 5 * 2)  # two subnets are left


@pytest.mark.parametrize("cycles", [0, -1, 1.5, True, "9", 10**9])
def test_max_cycles_that_make_no_sense_are_refused(cycles):
    with pytest.raises(InputError, match="max_cycles"):
        recovery_v0.parallel_env(max_cycles=cycles)


@pytest.mark.parametrize("fixed", [False, True])
def test_the_one_after_the_other_form_passes_the_api_test(fixed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it remarks on agents that are missing: the damaged
        api_test(recovery_v0.env(uavs=6, damage=0.34, fixed_agents=fixed), num_cycles=60)


def test_the_one_after_the_other_form_flies_the_same_episode():
    parallel, serial = recovery_v0.parallel_env(scenarios=[HAND]), recovery_v0.raw_env(scenarios=[HAND])
    parallel.reset(seed=0)
    serial.reset(seed=0)
    rng = np.random.default_rng(1)
    while parallel.agents:
        actions = actions_for(parallel, rng)
        observations, *_ = parallel.step(actions)
        for agent, action in actions.items():
            assert serial.agent_selection == agent
            serial.step(action)
        assert all(np.array_equal(serial.observe(agent), row) for agent, row in observations.items())


def test_calls_in_a_wrong_order_are_refused_by_env_only():
    with pytest.raises(Exception, match=r"reset\(\) needs to be called"):
        recovery_v0.env(**SMALL).step(None)


@pytest.mark.skipif(importlib.util.find_spec("supersuit") is None, reason="SuperSuit is not installed")
def test_supersuit_takes_the_environment_and_resets_it_by_itself():
    import supersuit

    env = recovery_v0.parallel_env(scenarios=[HAND], fixed_agents=True, max_cycles=3)
    worlds = supersuit.concat_vec_envs_v1(supersuit.pettingzoo_env_to_vec_env_v1(env), 2, num_cpus=0)
    observations, _ = worlds.reset(seed=0)
    assert observations.shape == (2 * 4, 102)
    assert observations[:, -1].tolist() == [1, 1, 0, 1] * 2
    for step in range(1, 7):
        observations, rewards, ends, cuts, _ = worlds.step(np.zeros((8, 2), dtype=np.float32))
        assert cuts.astype(bool).tolist() == [step % 3 == 0] * 8
        assert not ends.any()
        assert (rewards[[2, 6]] == 0).all()
        assert observations[0, 5] == pytest.approx(step % 3 / 3)  # a new episode begins at once
