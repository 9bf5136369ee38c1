"""Checks RE-1 .. RE-5 of METHODS 8.4."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from phygail.methods.base import make_method
from phygail.methods.controller import controller, run_episode
from phygail.methods.reach import Reach, ReachConstants
from phygail.methods.sidr import Sidr, aggregating
from phygail.rng import generator
from phygail.sensing.views import Observer, Scope
from phygail.swarm.links import find_links
from phygail.swarm.scenario import Scenario, draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, initial_state, step


@given(distance=st.floats(120.5, 800.0), angle=st.floats(0, 2 * math.pi))
@example(distance=120.5, angle=1.0)
@example(distance=800.0, angle=4.0)
@settings(max_examples=6, deadline=None)
def test_two_singletons_meet_within_one_step_of_the_bound(distance: float, angle: float) -> None:
    """RE-1."""
    half = distance / 2 * np.array([math.cos(angle), math.sin(angle)])
    scenario = make_scenario("pair", np.array([half, -half]), width_m=None, center=[0.0, 0.0], budget_steps=1000)
    episode = run_episode(scenario, "reach")
    assert episode.terminated
    assert episode.steps <= math.ceil((distance - 120.0) / 2 - 1e-6) + 1


@pytest.mark.parametrize(("uavs", "ratio"), [(60, 0.5), (100, 0.75), (200, 0.6), (50, 0.9)])
def test_no_subnet_splits_before_the_aggregation_phase(uavs: int, ratio: float) -> None:
    """RE-2: whoever shares a subnet at one step shares it at the next."""
    scenario = draw_scenario(uavs, ratio, generator(770001, "re2", uavs))
    states = run_episode(scenario, "reach", record=True).states
    observer = Observer(scenario)
    assert len(states) > 2
    for now, then in itertools.pairwise(states):
        if not aggregating(observer.observe(now, Scope.SUBNET)).any():
            together = {tuple(p) for p in np.unique(np.stack([now.links.subnet, then.links.subnet], 1), axis=0)}
            assert len(together) == now.links.count


def test_without_pulls_it_is_sidr_without_repulsion() -> None:
    """RE-3: A = 0."""
    scenario = draw_scenario(80, 0.6, generator(770002, "re3"))
    still = run_episode(scenario, Reach(constants=ReachConstants(gain=0.0)), record=True)
    sidr = run_episode(scenario, Sidr(rep=False), record=True)
    assert still.steps == sidr.steps
    for a, b in zip(still.states, sidr.states, strict=True):
        np.testing.assert_allclose(a.positions, b.positions, atol=1e-9)


def _commands(scenario: Scenario, method: Reach, states: list[np.ndarray]) -> list[np.ndarray]:
    """Commands of `method` along given positions, one call per step."""
    command = controller(method, scenario)
    zero = np.zeros_like(states[0])
    return [command(SwarmState(scenario, p.copy(), zero, t)) for t, p in enumerate(states)]


def test_survivors_of_other_subnets_do_not_matter() -> None:
    """RE-4: a far survivor wandering about changes nothing for this subnet."""
    layout = np.array([[0.0, 0.0], [80.0, 0.0], [190.0, 0.0], [600.0, 0.0]])
    scenario = make_scenario("re4", layout, [2], center=[300.0, 0.0], budget_steps=900)
    near = layout[[0, 1]]
    calm = [np.vstack([near + np.array([t, 0.0]), [600.0, 0.0]]) for t in range(20)]
    wild = [np.vstack([near + np.array([t, 0.0]), [600.0 + 50 * math.sin(t), 30.0 * t]]) for t in range(20)]
    for a, b in zip(_commands(scenario, Reach(), calm), _commands(scenario, Reach(), wild), strict=True):
        np.testing.assert_array_equal(a[:2], b[:2])


def test_a_spot_once_silent_never_pulls_again() -> None:
    """RE-5: after passing a damaged teammate's spot the command is the base velocity again, also far away from it."""
    layout = np.array([[0.0, 0.0], [150.0, 0.0], [3000.0, 0.0]])
    scenario = make_scenario("re5", layout, [1], center=[0.0, 0.0], budget_steps=3000)
    far = np.array([3000.0, 0.0])
    command = controller(method := Reach(), scenario)

    def at(x: float, t: int) -> np.ndarray:
        return command(SwarmState(scenario, np.array([[x, 0.0], far]), np.zeros((2, 2)), t))[0]

    assert at(0.0, 0)[0] > 0  # the spot at 150 m is not ruled out: fly for it
    assert at(31.5, 1)[0] < 0  # 118.5 m away and silent: back toward the center
    assert method._ruled_out is not None
    assert method._ruled_out[0, 1]
    assert at(0.0, 2)[0] == pytest.approx(0.0)  # 150 m away again: ruled out for good


def test_silent_sets_are_united_on_a_merge_and_a_found_teammate_leaves_them() -> None:
    layout = np.array([[0.0, 0.0], [110.0, 200.0], [300.0, 0.0], [300.0, 400.0], [150.0, 600.0]])
    scenario = make_scenario("merge", layout, [1], center=[150.0, 0.0], budget_steps=900)
    method = Reach()
    command = controller(method, scenario)
    rows = layout[[0, 2, 3, 4]]
    command(SwarmState(scenario, rows.copy(), np.zeros((4, 2)), 0))
    assert method._ruled_out is not None
    moved = rows.copy()
    moved[0] = [110.0, 100.0]  # UAV 0 passes the damaged spot alone
    command(SwarmState(scenario, moved.copy(), np.zeros((4, 2)), 1))
    assert method._ruled_out[0, 1]
    assert not method._ruled_out[2, 1]
    moved[1] = [200.0, 100.0]  # UAV 2 comes within range of UAV 0
    command(SwarmState(scenario, moved.copy(), np.zeros((4, 2)), 2))
    assert method._ruled_out[2, 1]
    assert not method._ruled_out[0, 2]


def test_reach_reconnects_and_is_faster_than_sidr_at_moderate_damage() -> None:
    cases = [draw_scenario(100, 0.35, generator(770003, "speed", c)) for c in range(12)]
    steps = {m: sum(run_episode(s, m).scored_steps for s in cases) for m in ("sidr", "reach")}
    assert steps["reach"] * 1.3 < steps["sidr"]


def test_links_hold_within_a_hair_of_the_range() -> None:
    """A rigidly moved 120 m link does not break by rounding."""
    layout = np.array([[0.0, 0.0], [120.0, 0.0], [900.0, 333.0]])
    scenario = make_scenario("rigid", layout, center=[450.0, 200.0], budget_steps=900)
    state = initial_state(scenario)
    command = controller(make_method("reach"), scenario)
    for _ in range(50):
        state = step(state, command(state))
        assert find_links(state.positions[:2], 120.0).connected
