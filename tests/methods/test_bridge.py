"""bridge: the ends of missing links fly; everybody only if that is not enough."""

import math

import numpy as np
import pytest

from phygail.methods import run_episode
from phygail.methods.base import make_method
from phygail.methods.bridge import Bridge, make_plan, missing_links
from phygail.methods.controller import controller
from phygail.rng import generator
from phygail.sensing.views import Observer, Scope
from phygail.swarm.links import find_links
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import initial_state, step
from phygail.swarm.tree import bound_steps


def views_of(scenario):
    return list(Observer(scenario).observe(initial_state(scenario), Scope.SUBNET))


def gone_of(scenario):
    gone = np.zeros(scenario.uavs, dtype=bool)
    gone[scenario.damaged] = True
    return gone


@pytest.mark.parametrize("case", range(20))
def test_a_single_failure_is_mended_in_the_fewest_steps_by_few(case, single):
    """BR-1: the lower bound, and at most a fifth of the swarm moves; 200 cases in results/single-failure."""
    scenario = single(50, case, seed=2012)
    episode = run_episode(scenario, "bridge")
    assert episode.terminated
    assert episode.steps <= bound_steps(scenario.spots, scenario.physics) + 1
    assert episode.metrics.moved <= 0.2 * len(scenario.alive)


@pytest.mark.parametrize("apart", [121.0, 150.5, 200.0, 239.0])
def test_two_singletons_meet_at_the_lower_bound(apart):
    """BR-2."""
    scenario = make_scenario("two", [[0.0, 0.0], [apart / 2, 0.0], [apart, 0.0]], [1])
    assert run_episode(scenario, "bridge").steps == math.ceil((apart - 120) / 2)


def test_both_sides_of_a_single_failure_plan_the_same_links(single):
    """BR-3 (Lemma 9.2): the end that one subnet expects is the one that the other sends."""
    for case in range(10):
        scenario = single(50, case)
        pairs = []
        for view in views_of(scenario):
            for row, end, _ in missing_links(view, gone_of(scenario), 119.999):
                pairs.append((int(view.members[row]), end))
        assert {(b, a) for a, b in pairs} == set(pairs)


@pytest.mark.parametrize("case", range(8))
def test_no_subnet_is_torn_while_it_is_calm(case):
    """BR-4: whoever was together stays together in every step of a plan."""
    scenario = draw_scenario(50, 0.1, generator(31, "bridge", case))
    method = make_method("bridge")
    assert isinstance(method, Bridge)
    state, command = initial_state(scenario), controller(method, scenario)
    while not (state.terminated or method._roused):
        velocities = command(state)
        if method._roused:
            break
        after = step(state, velocities)
        for label in range(state.links.count):
            assert len(set(after.links.subnet[state.links.subnet == label].tolist())) == 1
        state = after


def test_a_plan_moves_the_end_halfway_and_its_chain_along():
    """Of a gap of 160 m 40 m are missing: each side flies 20 m (and half a millimeter), its neighbor follows."""
    layout = [[0.0, 0.0], [100.0, 0.0], [180.0, 0.0], [260.0, 0.0], [380.0, 0.0]]
    scenario = make_scenario("gap", layout, [2])
    left, right = views_of(scenario)
    plan = make_plan(left, gone_of(scenario))
    np.testing.assert_allclose(plan.targets, [[0.0015, 0.0], [120.0005, 0.0]], atol=1e-9)
    assert (plan.steps, plan.ends) == (21, (3,))  # 20.0005 m
    plan = make_plan(right, gone_of(scenario))
    np.testing.assert_allclose(plan.targets, [[239.9995, 0.0], [359.9985, 0.0]], atol=1e-9)


def test_whoever_does_not_come_is_doubted_and_then_the_subnet_is_roused():
    """BR-5: 0 and 1 hear that 2 is silent; 3, which they expect then, cannot be seen and does not come."""
    layout = [[0.0, 0.0], [90.0, 0.0], [190.0, 0.0], [290.0, 0.0], [390.0, 0.0], [480.0, 0.0]]
    scenario = make_scenario("region", layout, [2, 3], width_m=500.0)
    method = make_method("bridge")
    assert isinstance(method, Bridge)
    episode = run_episode(scenario, method)
    assert episode.terminated
    assert method._doubted[0] == {3}
    assert method._roused == {0, 1, 4, 5}


def test_mass_damage_rouses_everybody_at_once():
    """BR-6: with half the swarm lost every command is that of reach."""
    scenario = draw_scenario(60, 0.5, generator(32, "bridge"))
    bridge, reach = (controller(make_method(name), scenario) for name in ("bridge", "reach"))
    state = initial_state(scenario)
    small = np.bincount(state.links.subnet)[state.links.subnet] < 3  # who sees at most one failure may be calm
    np.testing.assert_array_equal(bridge(state)[~small], reach(state)[~small])


def test_two_ends_that_would_tear_their_subnet_do_not_fly_both():
    """A chain of three links at 119 m between two gaps: only the end of the shorter gap flies."""
    layout = [[0.0, 0.0], [75.0, 0.0], [150.0, 0.0], [269.0, 0.0], [388.0, 0.0], [470.0, 0.0], [551.0, 0.0]]
    scenario = make_scenario("two gaps", layout, [1, 5])
    middle = views_of(scenario)[1]
    plan = make_plan(middle, gone_of(scenario))
    assert find_links(plan.targets, 120.0).connected
    assert plan.targets[0, 0] < 150.0
    assert plan.ends == (0,)
