"""What every method of the registry must satisfy (METHODS 2.7, G1-G6), whoever wrote it."""

import importlib.util
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from phygail.methods import METHODS, make_method
from phygail.methods.base import SubnetMethod
from phygail.methods.controller import controller
from phygail.methods.planning import PlanMethod
from phygail.rng import generator
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import D4, Scenario, draw_scenario, make_scenario, transform
from phygail.swarm.simulator import SwarmState, fly, initial_state, step

TORCH = importlib.util.find_spec("torch") is not None
NAMES = [
    pytest.param(name, marks=pytest.mark.skipif(METHODS.get(name).extra == "learn" and not TORCH, reason="needs torch"))
    for name in METHODS
]
NOT_GLOBAL = [p for p in NAMES if METHODS.get(p.values[0]).scope is not Scope.GLOBAL]
SUBNET = [p for p in NAMES if issubclass(METHODS.get(p.values[0]), SubnetMethod)]
# Symmetry is exact only for rules; networks keep it approximately (METHODS 2.7, G4).
RULES = [p for p in NAMES if not METHODS.get(p.values[0]).learned]


def tolerance(name: str) -> float:
    """How far commands that should be equal may differ, m/s: by rounding, by single precision, by a solver's end."""
    cls = METHODS.get(name)
    return 1e-2 if cls.learned or cls.scope is Scope.GLOBAL else 1e-6


def trains_online(name: str) -> bool:
    """Planners of the extra `learn` run an optimizer over a network at t = 0.

    Each of its iterations multiplies the rounding of the first sum, so that symmetries hold for the rule they follow
    but not for the numbers; and it takes seconds, so that they fly the hard cases only in the slow tests.
    """
    cls = METHODS.get(name)
    return issubclass(cls, PlanMethod) and cls.extra == "learn"


def slow_if_trained_online(params: list) -> list:
    return [
        pytest.param(*p.values, marks=[*p.marks, pytest.mark.slow]) if trains_online(p.values[0]) else p for p in params
    ]


@cache
def case(uavs: int = 20, ratio: float = 0.4, seed: int = 0) -> Scenario:
    """A small case of 2 to 4 subnets, at least one of them with several members."""
    for attempt in range(1000):
        scenario = draw_scenario(uavs, ratio, generator(seed, "generic", attempt))
        if 2 <= initial_state(scenario).links.count <= 4:
            return scenario
    raise AssertionError("no such case")


# A shorter search follows the same rule in a fraction of the time.
SHORT_SEARCH = {"cr-mgc": {"iterations": 15}, "demd": {"iterations": 15}, "gdr-ts": {"updates": 10}}


def new_method(name: str):
    return make_method(name, generator(7, name), **SHORT_SEARCH.get(name, {}))


def first_command(name: str, scenario: Scenario) -> np.ndarray:
    return controller(new_method(name), scenario)(initial_state(scenario))


@cache
def flight(name: str, scenario: Scenario, steps: int, attempt: int = 0) -> list[SwarmState]:
    """The first states of an episode; another attempt is the same episode flown again."""
    return list(fly(replace(scenario, budget_steps=steps), controller(new_method(name), scenario), record=True).states)


# --- G1 ---


@pytest.mark.parametrize("name", NAMES)
def test_no_method_exceeds_the_speed_limit_or_moves_the_damaged(name):
    """G1."""
    scenario = case()
    spots = scenario.layout.copy()
    for state in flight(name, scenario, 40):
        assert np.hypot(*state.velocities.T).max() <= 10 + 1e-9
        assert state.positions.shape == (len(scenario.alive), 2)
    assert np.array_equal(scenario.layout, spots)


# --- G2, G3, G4: symmetries of the first command ---


def renumbered(scenario: Scenario, order: np.ndarray) -> Scenario:
    """The same scene with UAV order[k] called k."""
    damaged = np.flatnonzero(np.isin(order, scenario.damaged))
    return replace(scenario, layout=scenario.layout[order], damaged=damaged)


@pytest.mark.parametrize("name", [p for p in NAMES if not trains_online(p.values[0])])
@pytest.mark.parametrize("seed", [0, 1])
def test_renumbering_the_uavs_renumbers_the_commands(name, seed):
    """G2."""
    scenario = case(seed=seed)
    order = generator(seed, "order").permutation(scenario.uavs)
    commands = np.full((scenario.uavs, 2), np.nan)
    commands[scenario.alive] = first_command(name, scenario)
    other = renumbered(scenario, order)
    np.testing.assert_allclose(first_command(name, other), commands[order][other.alive], atol=tolerance(name))


@pytest.mark.parametrize("name", [p for p in NAMES if not trains_online(p.values[0])])
def test_shifting_the_scene_and_the_center_changes_nothing(name):
    """G3."""
    scenario = case()
    shift = np.array([1000.0, -250.0])
    other = replace(scenario, layout=scenario.layout + shift, center=scenario.center + shift)
    np.testing.assert_allclose(first_command(name, other), first_command(name, scenario), atol=tolerance(name))


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("element", range(1, 8))
def test_turning_the_scene_turns_the_commands(name, element):
    """G4."""
    scenario = case(seed=2)
    turned = first_command(name, transform(scenario, element))
    np.testing.assert_allclose(turned, first_command(name, scenario) @ D4[element].T, atol=1e-6)


# --- G5 ---


@pytest.mark.parametrize("name", slow_if_trained_online(NAMES))
def test_the_same_seed_flies_the_same_trajectory(name):
    """G5."""
    first, second = (flight(name, case(), 40, attempt) for attempt in range(2))
    assert len(first) == len(second)
    assert all(np.array_equal(a.positions, b.positions) for a, b in zip(first, second, strict=True))


# --- G6: scope invariance ---

HOME = np.array([[0, 0], [90, 20], [180, -10], [100, 110], [30, 90], [210, 80]], dtype=float) + 300
AWAY = np.array([[0, 0], [80, 0], [160, 10], [60, 90], [150, 100]], dtype=float) + np.array([900.0, 850.0])


def two_islands(removed: list[int]) -> Scenario:
    """Two subnets 600 m apart with damaged UAVs around them; `removed` of the far island are damaged as well."""
    wrecks = np.array([[380, 240], [420, 460], [560, 560], [700, 680], [820, 780], [240, 420]], dtype=float)
    layout = np.vstack([HOME, AWAY, wrecks])
    damaged = [*(len(HOME) + np.array(removed, dtype=int)).tolist(), *range(len(HOME) + len(AWAY), len(layout))]
    return make_scenario("islands", layout, damaged, width_m=1200.0)


def home_commands(name: str, removed: list[int], disturb: int, steps: int = 12) -> np.ndarray:
    """Commands of the home island over several steps while the far island is flown by somebody else.

    Args:
        name: The method.
        removed: Far UAVs that are damaged from the start.
        disturb: Seed of the far island's motion; 0 leaves it in place.
        steps: How long.
    """
    scenario = two_islands(removed)
    home = scenario.alive < len(HOME)
    rng = np.random.default_rng(disturb)
    state, fly_it = initial_state(scenario), controller(new_method(name), scenario)
    commands = []
    for _ in range(steps):
        velocity = fly_it(state)
        commands.append(velocity[home].copy())
        velocity = velocity.copy()
        velocity[~home] = rng.uniform(-10, 10, (int((~home).sum()), 2)) if disturb else 0.0
        state = step(state, velocity)
    return np.array(commands)


@pytest.mark.parametrize("name", NOT_GLOBAL)
@pytest.mark.parametrize(("removed", "disturb"), [([], 1), ([], 2), ([0], 0), ([1, 3], 3), ([0, 1, 2, 4], 4)])
def test_the_alive_of_another_subnet_do_not_matter(name, removed, disturb):
    """G6: moved, removed or (read backwards) added; who is lost stays the same. Several steps: methods have memory."""
    undisturbed = home_commands(name, [], 0)
    exact = 1e-5 if METHODS.get(name).learned else 1e-9  # a batched network rounds by the size of the batch
    np.testing.assert_allclose(home_commands(name, removed, disturb), undisturbed, rtol=0, atol=exact)


def test_the_scope_check_notices_a_method_that_peeks():
    """The check above must fail for a method that sees everybody."""

    class Peek(SubnetMethod):
        name, summary = "peek", "flies to the mean of all alive"

        def act(self, view):
            raise NotImplementedError

        def act_all(self, views):
            return views.positions.mean(axis=0) - views.positions

    METHODS._entries["peek"] = Peek
    try:
        assert not np.allclose(home_commands("peek", [0], 0), home_commands("peek", [], 0), atol=1e-3)
    finally:
        del METHODS._entries["peek"]


@pytest.mark.parametrize("name", SUBNET)
@pytest.mark.parametrize(("uavs", "ratio", "seed"), [(20, 0.4, 0), (20, 0.7, 1), (40, 0.75, 2)])
def test_the_rule_for_one_subnet_and_the_form_for_all_agree_over_an_episode(name, uavs, ratio, seed):
    """`act`, subnet by subnet, is the definition; `act_all` the fast form. Two instances, for methods with memory."""
    scenario = draw_scenario(uavs, ratio, generator(seed, "act-all"))
    together, one_by_one = new_method(name), new_method(name)
    assert isinstance(one_by_one, SubnetMethod)
    observer, state = Observer(scenario), initial_state(scenario)
    while not (state.terminated or state.truncated):
        views = observer.observe(state, Scope.SUBNET)
        velocity = together.act_all(views)
        each = SubnetMethod.act_all(one_by_one, views)
        exact = 1e-5 if METHODS.get(name).learned else 1e-9
        np.testing.assert_allclose(velocity, each, rtol=0, atol=exact, err_msg=f"step {state.step}")
        state = step(state, velocity)


# --- hard cases ---

HARD = {
    "two far apart": make_scenario("far", [[0.0, 0.0], [5000.0, 3.0]], budget_steps=20),
    "two left of three": make_scenario("three", [[0.0, 0.0], [110.0, 0.0], [220.0, 0.0]], [1]),
    "on a line": make_scenario("line", [[130.0 * k, 0.0] for k in range(8)], budget_steps=20),
    "on a diagonal, damaged between": make_scenario("diag", [[80.0 * k] * 2 for k in range(9)], [1, 3, 4, 6]),
    "two clumps of close UAVs": make_scenario(
        "clumps", [[0, 0], [1e-3, 0], [0, 1e-3], [400, 0], [400.001, 0], [400, 1e-7]], budget_steps=20
    ),
    "all on the center but one": make_scenario("mid", [[50.0, 50], [50, 51], [51, 50], [400, 400]], center=[50, 50]),
    "nobody damaged": make_scenario("none", [[0.0, 0.0], [100.0, 0.0], [300.0, 0.0], [410.0, 50.0]]),
    "95 % damage": draw_scenario(60, 0.95, np.random.default_rng(0)),
    "off-map center": make_scenario("off", [[0.0, 0.0], [200.0, 0.0], [400.0, 10.0]], center=[-3000.0, 9000.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", slow_if_trained_online(NAMES))
@pytest.mark.parametrize("hard", HARD)
def test_hard_cases_get_finite_commands(name, hard):
    """The simulator would turn a NaN into standing still; a method must not need that."""
    scenario = HARD[hard]
    state, command = initial_state(scenario), controller(new_method(name), scenario)
    for _ in range(5):
        if state.terminated:
            break
        velocity = command(state)
        assert velocity.shape == state.positions.shape
        assert np.isfinite(velocity).all()
        state = step(state, velocity)


@pytest.mark.parametrize("name", slow_if_trained_online(NAMES))
def test_coincident_uavs_get_finite_commands(name):
    """They cannot start so, but center-fly ends so, and a user may switch methods in flight."""
    scenario = make_scenario("pile", [[0.0, 0.0], [50.0, 0.0], [0.0, 50.0], [400.0, 0.0], [400.0, 60.0]])
    pile = np.array([[10.0, 10.0]] * 3 + [[400.0, 0.0]] * 2)
    velocity = controller(new_method(name), scenario)(SwarmState(scenario, pile, np.zeros((5, 2)), 0))
    assert np.isfinite(velocity).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_network_that_is_one_ends_at_once(name):
    scenario = make_scenario("one", [[0.0, 0.0], [100.0, 0.0], [200.0, 0.0]])
    episode = fly(scenario, controller(new_method(name), scenario))
    assert (episode.terminated, episode.steps) == (True, 0)


@pytest.mark.parametrize("name", NAMES)
def test_every_method_says_what_it_is(name):
    cls = METHODS.get(name)
    assert cls.name == name
    assert cls.summary
    assert "\n" not in cls.summary
    assert len(cls.summary) < 100
    assert cls.scope in Scope
    assert cls.extra in (None, "learn")
    assert cls.__doc__
