"""Every subnet method flies with delayed news: each UAV by its own copy of the rule."""

import numpy as np
import pytest

from phygail.config import InputError
from phygail.methods import METHODS
from phygail.methods.base import Method, SubnetMethod, make_method, register
from phygail.methods.controller import sensed_controller
from phygail.rng import generator
from phygail.sensing.imperfect import Sensing
from phygail.sensing.views import Scope
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, initial_state, step

SUBNET_METHODS = [name for name in METHODS if METHODS.get(name).scope is Scope.SUBNET]
OWN_FORM = [name for name in SUBNET_METHODS if METHODS.get(name).act_imperfect is not SubnetMethod.act_imperfect]
BY_COPIES = ("reach", "bridge")  # where news is delayed they fly as every rule does
# Each layer of the network hears delayed news: another rule than a copy for every UAV.
BY_TWINS = ("phygail", "phygail-taught")


@pytest.mark.parametrize("name", SUBNET_METHODS)
def test_methods_fly_with_delayed_news(name):
    """The first commands are those of perfect sensing: at t = 0 nothing is old yet."""
    scenario = draw_scenario(20, 0.5, generator(700_001))
    delayed, plain = (
        sensed_controller(make_method(name), scenario, Sensing(delay_steps=steps), np.random.default_rng(0))
        for steps in (2, 0)
    )
    state = initial_state(scenario)
    assert delayed(state) == pytest.approx(plain(state), abs=1e-4)
    for _ in range(4):
        velocities = delayed(state)
        assert np.isfinite(velocities).all()
        state = step(state, velocities)


class Slowly:
    """Mixed into a rule: the form for imperfect sensing that every subnet method inherits."""

    act_imperfect = SubnetMethod.act_imperfect


def slow_form(name: str) -> Method:
    cls = METHODS.get(name)
    return type(cls.__name__, (Slowly, cls), {})()


@pytest.mark.parametrize("sensing", [Sensing(sigma_m=6.0), Sensing(bias_m=20.0)])
@pytest.mark.parametrize("name", OWN_FORM)
def test_all_subnets_at_once_fly_as_one_by_one_however_differently_they_read_the_center(name, sensing):
    """The oracle is the loop over subnets that every other rule flies with noise."""
    scenario = draw_scenario(60, 0.6, generator(700_005))
    together, apart = (
        sensed_controller(method, scenario, sensing, np.random.default_rng(0))
        for method in (make_method(name), slow_form(name))
    )
    state = initial_state(scenario)
    assert state.links.count > 3
    atol = 1e-4 if name in BY_TWINS else 1e-9  # their networks have single precision
    for _ in range(25):
        velocities = together(state)
        np.testing.assert_allclose(velocities, apart(state), atol=atol)
        state = step(state, velocities)


@pytest.mark.parametrize("name", [name for name in OWN_FORM if name not in BY_COPIES + BY_TWINS])
@pytest.mark.parametrize(("uavs", "damage", "sensing"), [
    (40, 0.6, Sensing(delay_steps=3)), (40, 0.6, Sensing(5.0, 2)), (40, 0.6, Sensing(0.0, 1, 20.0)),
    (40, 0.7, Sensing(delay_steps=1)),
])  # fmt: skip
def test_all_estimates_at_once_fly_as_a_copy_of_the_rule_for_every_uav(name, uavs, damage, sensing):
    """Beliefs, delayed news and links included; subnets meet on the way."""
    scenario = draw_scenario(uavs, damage, generator(700_006))
    at_once = sensed_controller(make_method(name), scenario, sensing, np.random.default_rng(0))
    copies = sensed_controller(slow_form(name), scenario, sensing, np.random.default_rng(0))
    state = initial_state(scenario)
    subnets = state.links.count
    for k in range(30):
        velocities = at_once(state)
        np.testing.assert_allclose(velocities, copies(state), atol=1e-9)
        state = step(state, velocities)
        if k >= 12 and state.links.count < subnets:
            return
    pytest.fail("nobody met")


SIGHTINGS: list[tuple[np.ndarray, np.ndarray]] = []


class Watcher(SubnetMethod):
    """Notes who it sees where."""

    name = "watcher"

    def act(self, view):
        SIGHTINGS.append((view.members, view.positions))
        return np.zeros_like(view.positions)


class Reckoner(Watcher):
    name = "reckoner"
    dead_reckons = True


@pytest.mark.parametrize(("watcher", "steps_behind"), [(Watcher, 2), (Reckoner, 0)])
def test_only_a_rule_that_reckons_sees_a_steady_swarm_where_it_is(watcher, steps_behind):
    scenario = draw_scenario(20, 0.2, generator(700_002))
    fly = sensed_controller(watcher(), scenario, Sensing(delay_steps=2), np.random.default_rng(0))
    state, steady = initial_state(scenario), np.tile([3.0, -2.0], (len(scenario.alive), 1))
    for _ in range(3):
        fly(state)
        state = step(state, steady)
    SIGHTINGS.clear()
    fly(state)  # at step 3: the news is from step 1, the first with a velocity
    assert len(SIGHTINGS) == len(scenario.alive)
    behind = steps_behind * scenario.physics.step_s * steady[0]
    for members, positions in SIGHTINGS:
        true = state.positions[np.searchsorted(scenario.alive, members)]
        off = np.linalg.norm(true - behind - positions, axis=1)
        assert (off < 1e-9).sum() >= len(members) - 1  # all but itself, who knows where it is


@pytest.mark.parametrize(("watcher", "error_m"), [(Watcher, 8.0), (Reckoner, 2.0)])
def test_only_a_rule_that_reckons_gets_the_mean_of_all_readings(watcher, error_m):
    """Sixteen readings with 8 m of noise: the mean is off by a fourth of it."""
    scenario = draw_scenario(100, 0.2, generator(700_003))
    fly = sensed_controller(watcher(), scenario, Sensing(sigma_m=8.0), np.random.default_rng(0))
    state, steady = initial_state(scenario), np.tile([3.0, -2.0], (len(scenario.alive), 1))
    for _ in range(16):
        SIGHTINGS.clear()
        fly(state)
        seen, state = state, step(state, steady)
    off = [positions - seen.positions[np.searchsorted(scenario.alive, members)] for members, positions in SIGHTINGS]
    assert np.concatenate(off).std() == pytest.approx(error_m, rel=0.2)


@pytest.mark.parametrize("name", ["reach-evolved", "reach"])
def test_subnets_that_meet_hear_what_the_other_knew_k_steps_ago(name):
    """A (0) knows that C is gone, B (1) does not. They meet at step 3, with news three steps old."""
    scenario = make_scenario(
        "line", [[0.0, 0.0], [300.0, 0.0], [70.0, 0.0]], [2], center=[150.0, 0.0], budget_steps=900
    )
    rules: list[SubnetMethod] = []

    class Spied(Slowly, METHODS.get(name)):
        def __deepcopy__(self, memo):
            rules.append(make_method(name))
            return rules[-1]

    fly = sensed_controller(Spied(), scenario, Sensing(delay_steps=3), np.random.default_rng(0))
    still = np.zeros((2, 2))
    for t in range(3):
        fly(SwarmState(scenario, scenario.spots.copy(), still, t))
    gone = rules[0].tell(0)[2]
    assert rules[1].tell(1)[2] < gone
    fly(SwarmState(scenario, np.array([[150.0, 300.0], [250.0, 300.0]]), still, 3))  # C's spot is far from both
    assert rules[1].tell(1)[2] == gone


@pytest.mark.parametrize(("hook", "now"), [("reckons", "dead_reckons"), ("act_late", "act_imperfect")])
def test_a_hook_of_version_0_1_is_refused_and_says_what_it_is_now(hook, now):
    old = type("Old", (Watcher,), {"name": "old-hooks", hook: True})
    with pytest.raises(InputError, match=f"'old-hooks' has '{hook}', which is {now} now"):
        register(old)
    assert "old-hooks" not in METHODS
