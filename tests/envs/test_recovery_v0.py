"""The PettingZoo environment: its contract, its numbers, and that it is the one world and nothing else."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

from phygail.config import InputError
from phygail.methods import run_episode
from phygail.rng import generator
from phygail.swarm.scenario import draw_scenario, make_scenario, save_scenarios
from phygail.swarm.tree import bound_steps

pytest.importorskip("pettingzoo")
from pettingzoo.test import parallel_api_test, parallel_seed_test

from phygail.envs import observation, recovery_v0

ROOT = Path(__file__).parents[2]
SMALL = {"uavs": 6, "damage": 0.34}
# Rows 0, 1, 3 are alive: 0 and 1 linked, 3 alone 180 m from 1; 2 is damaged and in range of 0 and 1.
HAND = make_scenario(
    "hand", np.array([[0.0, 0.0], [60.0, 0.0], [110.0, 0.0], [240.0, 0.0]]), [2], center=(150.0, 30.0), budget_steps=40
)
CONNECTED = make_scenario("whole", np.array([[0.0, 0.0], [60.0, 0.0], [110.0, 0.0]]), [2])


def everybody(env, action):
    return {agent: np.asarray(action, dtype=float) for agent in env.agents}


def random_actions(env, rng):
    return {agent: rng.uniform(-1, 1, 2).astype(np.float32) for agent in env.agents}


# --- contract --------------------------------------------------------------------------------------------------------


def test_it_passes_the_api_test_of_pettingzoo():
    env = recovery_v0.parallel_env(**SMALL)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parallel_api_test(env, num_cycles=200)
    messages = {str(w.message) for w in caught}
    # The damaged never take part, which PettingZoo remarks on; it has nothing else to say.
    assert messages <= {"No agents present but not all possible_agents are terminated or truncated"}


def test_it_passes_the_seed_test_of_pettingzoo():
    parallel_seed_test(lambda: recovery_v0.parallel_env(**SMALL), num_cycles=5)


def record(seed):
    """Everything that three episodes with fixed random actions show, as bytes and numbers."""
    env = recovery_v0.parallel_env(uavs=(5, 6), damage=(0.3, 0.5))
    rng = np.random.default_rng(5)
    seen = []
    for episode in range(3):
        observations, infos = env.reset(seed=seed if episode == 0 else None)
        seen.append((list(env.agents), {a: o.tobytes() for a, o in observations.items()}, infos))
        while env.agents:
            observations, *rest = env.step(random_actions(env, rng))
            seen.append(({a: o.tobytes() for a, o in observations.items()}, rest, env.state().tobytes()))
    return seen


def test_equal_seeds_and_actions_give_equal_episodes_from_the_first_to_the_last_step():
    first, again, other = record(3), record(3), record(4)
    assert len(first) > 6
    assert first == again
    assert first[0] != other[0]


def test_the_agents_are_the_alive_and_change_from_episode_to_episode():
    env = recovery_v0.parallel_env(uavs=(6, 9), damage=0.34)
    assert env.possible_agents == [f"uav_{k}" for k in range(9)]
    assert env.agents == []
    sets = set()
    for episode in range(8):
        observations, infos = env.reset(seed=1 if episode == 0 else None)
        assert list(observations) == list(infos) == env.agents
        assert len(env.agents) in (4, 6)
        sets.add(tuple(env.agents))
    assert len(sets) > 4
    assert {len(names) for names in sets} == {4, 6}


def test_names_are_places_in_the_roster():
    env = recovery_v0.parallel_env(scenarios=[HAND])
    env.reset(seed=0)
    assert env.agents == ["uav_0", "uav_1", "uav_3"]
    assert env.possible_agents == ["uav_0", "uav_1", "uav_2", "uav_3"]


def test_spaces_are_kept_per_agent():
    env = recovery_v0.parallel_env(**SMALL)
    assert env.action_space("uav_1") is env.action_space("uav_1")
    assert env.action_space("uav_1") is not env.action_space("uav_2")
    assert env.observation_space("uav_1").shape == (102,) == (observation.SIZE,)


def test_a_seed_restarts_the_scenarios_and_without_one_they_go_on():
    env = recovery_v0.parallel_env(**SMALL)

    def layout(seed=None):
        env.reset(seed=seed)
        return env.state()[: 2 * 6].tobytes()

    first, second = layout(7), layout()
    assert first != second
    assert (layout(7), layout()) == (first, second)
    assert layout(8) != first


def test_an_environment_travels_to_other_processes():
    env = recovery_v0.parallel_env(**SMALL)
    env.reset(seed=2)
    twin = pickle.loads(pickle.dumps(env))
    for each in (env, twin):
        each.step(everybody(each, (0.3, 0.4)))
    np.testing.assert_array_equal(env.state(), twin.state())


# --- end of an episode -----------------------------------------------------------------------------------------------


def test_two_uavs_that_fly_toward_each_other_terminate_after_the_bound():
    pair = make_scenario("pair", np.array([[0.0, 0.0], [75.0, 0.0], [151.0, 0.0]]), [1])
    env = recovery_v0.parallel_env(scenarios=[pair])
    _, infos = env.reset(seed=0)
    info = {"scenario": "pair", "steps": 0, "subnets": 2, "bound_steps": 16, "success": False, "alive": True}
    assert infos == {"uav_0": info, "uav_2": info}
    for t in range(1, 17):
        result = env.step({"uav_0": np.array([1.0, 0.0]), "uav_2": np.array([-1.0, 0.0])})
        assert result[2] == dict.fromkeys(("uav_0", "uav_2"), t == 16)
        assert result[3] == dict.fromkeys(("uav_0", "uav_2"), False)
    assert result[4]["uav_2"] == info | {"steps": 16, "subnets": 1, "success": True}
    assert list(result[0]) == ["uav_0", "uav_2"]
    assert env.agents == []


def test_the_budget_truncates_and_never_terminates():
    env = recovery_v0.parallel_env(scenarios=[HAND])
    env.reset(seed=0)
    for t in range(1, 41):
        _, _, terminated, truncated, infos = env.step(everybody(env, (0, 0)))
        assert not any(terminated.values())
        assert list(truncated.values()) == [t == 40] * 3
    assert infos["uav_0"]["success"] is False
    assert infos["uav_0"]["subnets"] == 2
    assert env.agents == []


def test_after_the_end_only_an_empty_step_is_possible_until_reset():
    env = recovery_v0.parallel_env(scenarios=[HAND])
    env.reset(seed=0)
    agents = env.agents
    while env.agents:
        env.step(everybody(env, (0, 0)))
    last = env.state()
    assert env.step({}) == ({}, {}, {}, {}, {})
    with pytest.raises(InputError, match="over: call reset"):
        env.step(dict.fromkeys(agents, np.zeros(2)))
    np.testing.assert_array_equal(env.state(), last)
    env.reset()
    assert env.agents == agents


# --- scenarios -------------------------------------------------------------------------------------------------------


def test_connected_swarms_are_never_flown():
    env = recovery_v0.parallel_env(uavs=4, damage=0.25)  # most damage leaves four UAVs connected
    for _ in range(10):
        _, infos = env.reset(seed=None)
        assert next(iter(infos.values()))["subnets"] > 1
    env = recovery_v0.parallel_env(scenarios=[CONNECTED, HAND])
    for k in range(10):
        assert env.reset(seed=k)[1]["uav_0"]["scenario"] == "hand"
    with pytest.raises(InputError, match="connected from the start"):
        env.reset(options={"scenario": CONNECTED})
    with pytest.raises(InputError, match="split"):
        recovery_v0.parallel_env(scenarios=[CONNECTED])


def test_a_scenario_file_is_drawn_from_and_replayed_by_id(tmp_path):
    cases = [draw_scenario(6, 0.34, generator(k), name=f"case-{k}") for k in range(3)]
    save_scenarios(tmp_path / "cases.json", cases)
    env = recovery_v0.parallel_env(scenarios=tmp_path / "cases.json")

    def flown(**how):
        return next(iter(env.reset(**how)[1].values()))["scenario"]

    assert {flown(seed=k) for k in range(20)} == {"case-0", "case-1", "case-2"}
    assert [flown(options={"scenario": name}) for name in ("case-2", "case-0")] == ["case-2", "case-0"]
    np.testing.assert_allclose(
        env.state()[:12].reshape(6, 2)[cases[0].alive], (cases[0].spots - cases[0].center) / 120.0, rtol=1e-6
    )
    with pytest.raises(InputError, match="no split scenario with this id"):
        flown(options={"scenario": "case-9"})


def test_a_given_scenario_is_flown_by_an_environment_that_draws():
    env = recovery_v0.parallel_env(**SMALL)
    env.reset(seed=0, options={"scenario": HAND})
    assert env.agents == ["uav_0", "uav_1", "uav_3"]


# --- global state -----------------------------------------------------------------------------------------------------


def test_the_state_holds_the_whole_world_by_roster():
    env = recovery_v0.parallel_env(scenarios=[HAND])
    env.reset(seed=0)
    env.step({"uav_0": np.array([1.0, 0.0]), "uav_1": np.zeros(2), "uav_3": np.array([0.0, -1.0])})
    state = env.state()
    assert env.state_space.contains(state)
    positions = np.array([[-149, -30], [-90, -30], [0, 0], [90, -31]]) / 120
    velocities = [[1, 0], [0, 0], [0, 0], [0, -1]]
    expected = [*positions.ravel(), *np.ravel(velocities), 1, 1, 0, 1, 150 / 120, 30 / 120, 240 / 120, 1 / 40]
    np.testing.assert_allclose(state, expected, atol=1e-6)


# --- the one world ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("safety", [False, True])
def test_flying_to_the_center_through_the_environment_is_center_fly(safety):
    scenario = draw_scenario(20, 0.6, generator(11))
    env = recovery_v0.parallel_env(scenarios=[scenario], safety=safety)
    observations, _ = env.reset(seed=0)
    while env.agents:  # 1000: full speed until the center is reached, as go() flies in the exact simulator
        actions = {agent: -row[:2] * 1000 for agent, row in observations.items()}
        observations, _, _, _, infos = env.step(actions)
    flown = run_episode(scenario, "center-fly", safety=safety)
    info = next(iter(infos.values()))
    assert (info["success"], info["steps"]) == (flown.terminated, flown.steps)
    assert info["bound_steps"] == bound_steps(scenario.spots, scenario.physics) <= flown.steps


def test_safety_keeps_uavs_apart_that_want_to_collide():
    layout = np.array([[0.0, 0.0], [11.0, 0.0], [300.0, 0.0]])
    scenario = make_scenario("push", layout, budget_steps=10)
    distances = {}
    for safety in (False, True):
        env = recovery_v0.parallel_env(scenarios=[scenario], safety=safety)
        env.reset(seed=0)
        while env.agents:
            observations, *_ = env.step(
                {"uav_0": np.array([0.3, 0]), "uav_1": np.array([-0.3, 0]), "uav_2": np.zeros(2)}
            )
        distances[safety] = 120 * observations["uav_0"][len(observation.OWN)]
    assert distances[False] == pytest.approx(5.0, abs=1e-3)
    assert distances[True] >= 10 - 1e-3


def test_commands_that_are_no_numbers_stand_still():
    env = recovery_v0.parallel_env(scenarios=[HAND])
    before, _ = env.reset(seed=0)
    after, *_ = env.step(everybody(env, (np.nan, np.inf)))
    np.testing.assert_array_equal(after["uav_0"][:5], before["uav_0"][:5])


# --- reward ----------------------------------------------------------------------------------------------------------


def test_rewards_are_those_of_the_states_and_can_be_replaced():
    env = recovery_v0.parallel_env(scenarios=[HAND])
    env.reset(seed=0)
    _, rewards, *_ = env.step(everybody(env, (0, 0)))
    assert rewards == pytest.approx(dict.fromkeys(env.agents, -0.125))
    for reward, expected in (
        (lambda before, after: after.step - before.step, [1.0, 1.0, 1.0]),
        (lambda before, after: after.velocities[:, 0], [0.0, 5.0, 10.0]),
    ):
        env = recovery_v0.parallel_env(scenarios=[HAND], reward=reward)
        env.reset(seed=0)
        _, rewards, *_ = env.step({"uav_0": np.zeros(2), "uav_1": np.array([0.5, 0.0]), "uav_3": np.array([1.0, 0.0])})
        assert rewards == pytest.approx(dict(zip(env.agents, expected, strict=True)))
        assert all(type(value) is float for value in rewards.values())


# --- pictures --------------------------------------------------------------------------------------------------------


def test_frames_show_the_flight_without_a_display(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    env = recovery_v0.parallel_env(scenarios=[HAND], render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    while env.agents:  # far out of the map
        env.step(everybody(env, (0, 1)))
    last = env.render()
    assert first.dtype == last.dtype == np.uint8
    assert first.shape == last.shape == (544, 512, 3)
    assert first.mean() > 200  # on white, not black
    assert len(np.unique(first.reshape(-1, 3), axis=0)) > 20
    assert (first != last).any()


def test_without_a_render_mode_nothing_is_drawn():
    env = recovery_v0.parallel_env(scenarios=[HAND])
    env.reset(seed=0)
    assert env.render() is None
