"""No method knows a meter or a second: the same swarm in other units, with a radio to match, flies the same flight.

Every method of the registry is flown on the same cases with all lengths (positions, map, range, contact distance,
meters per second) multiplied by a factor. Factors 2 and 1/2 are exact in floating point, so the number of steps must be
equal; 2.5 rounds, so it may differ by one. A UAV twice as fast that decides twice as often flies the same way.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from phygail.config import Physics
from phygail.methods import METHODS, make_method, run_episode
from phygail.methods.planning import at_reference_range, plan_range_m
from phygail.methods.steering import go, link_keeping, repulsion
from phygail.rng import generator
from phygail.sensing.views import GlobalView, Observer, Scope
from phygail.swarm.scenario import Scenario, draw_scenario
from phygail.swarm.simulator import Episode, initial_state

TORCH = importlib.util.find_spec("torch") is not None
# Planners that search or learn per case: a shorter search follows the same rule in a fraction of the time.
OPTIONS: dict[str, dict[str, Any]] = {
    "cr-mgc": {"iterations": 5},
    "demd": {"iterations": 5},
    "gdr-ts": {"updates": 4},
    "convex": {"effort": 0.1},
}
# Methods whose flights may differ by a step at factors that are exact, with the fixed tolerance that decides. Of the
# world's own (links 1e-6 m, contacts 1e-6 m) none does in these cases: every flight is equal to the last bit.
ONE_STEP_AT_EXACT: dict[str, str] = {}
SIZES = [(12, 0.5, 0), (20, 0.4, 1), (40, 0.6, 2)]
BUDGET_STEPS = 150  # enough for all but hero, which cannot reconnect every case


def marked(name: str) -> Any:
    marks = []
    if METHODS.get(name).extra == "learn" and not TORCH:
        marks.append(pytest.mark.skip(reason="needs torch"))
    return pytest.param(name, marks=marks)


NAMES = [marked(name) for name in METHODS]


@cache
def cases() -> tuple[Scenario, ...]:
    drawn = (draw_scenario(n, ratio, generator(seed, "scale", n), name=f"s{n}") for n, ratio, seed in SIZES)
    return tuple(replace(scenario, budget_steps=BUDGET_STEPS) for scenario in drawn)


def in_units(scenario: Scenario, factor: float) -> Scenario:
    """The same case with every length multiplied."""
    physics = scenario.physics
    return replace(
        scenario,
        layout=scenario.layout * factor,
        center=scenario.center * factor,
        width_m=scenario.width_m * factor,
        physics=replace(
            physics,
            range_m=physics.range_m * factor,
            speed_mps=physics.speed_mps * factor,
            contact_m=physics.contact_m * factor,
        ),
    )


def hurried(scenario: Scenario, factor: float) -> Scenario:
    """The same case with a shorter clock: as many meters per step."""
    physics = scenario.physics
    return replace(
        scenario,
        physics=replace(physics, speed_mps=physics.speed_mps * factor, step_s=physics.step_s / factor),
    )


def flown(name: str, scenario: Scenario) -> Episode:
    return run_episode(scenario, make_method(name, **OPTIONS.get(name, {})), record=True)


@cache
def as_drawn(name: str) -> list[Episode]:
    return [flown(name, scenario) for scenario in cases()]


def assert_same_flights(name: str, episodes: list[Episode], factor: float, steps: int, atol_m: float) -> None:
    """As many steps as in the cases as drawn, but for `steps`; where they are equal, the same places at the end."""
    for first, second in zip(as_drawn(name), episodes, strict=True):
        assert abs(first.scored_steps - second.scored_steps) <= steps, first.scenario.id
        if first.steps == second.steps:
            places = second.states[-1].positions / factor
            np.testing.assert_allclose(places, first.states[-1].positions, rtol=0, atol=atol_m)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_other_units_give_equal_steps_and_places(name, factor):
    episodes = [flown(name, in_units(scenario, factor)) for scenario in cases()]
    assert_same_flights(name, episodes, factor, int(name in ONE_STEP_AT_EXACT), 1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_units_that_round_give_the_same_steps_within_one(name):
    """Places within a centimeter: the solver of `convex` ends a little elsewhere, all others agree to 1e-11 m."""
    episodes = [flown(name, in_units(scenario, 2.5)) for scenario in cases()]
    assert_same_flights(name, episodes, 2.5, 1, 1e-2)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_twice_the_speed_at_twice_the_rate_gives_equal_steps_and_places(name, factor):
    episodes = [flown(name, hurried(scenario, factor)) for scenario in cases()]
    assert_same_flights(name, episodes, 1.0, 0, 1e-9)


# --- the parts, by hand ---

WIDE = Physics(range_m=300.0, speed_mps=25.0, step_s=0.1, contact_m=25.0)  # everything times 2.5


@pytest.mark.parametrize(
    ("physics", "unit", "steps"),
    [
        (Physics(), 1.0, 4),
        (WIDE, 2.5, 4),
        (Physics(speed_mps=2.0), 1.0, 20),  # strides of 0.2 m
        (Physics(speed_mps=20.0, step_s=0.05), 1.0, 4),
        (Physics(range_m=60.0), 0.5, 2),
        (Physics(range_m=6.0), 0.05, 1),  # 0.2 strides: at least one step
    ],
)
def test_four_meters_at_the_papers_radio_are_so_many_steps_at_others(physics, unit, steps):
    assert physics.unit == unit
    assert physics.steps_to_fly(4.0) == steps


def test_the_repulsion_belongs_to_the_vehicle():
    """d_s = 1.5 contact distances and k_rep = v_max: at d = d_s/3 the push is 2/3 of the full speed."""
    pairs, members = np.array([[0, 1]]), np.arange(2)
    for physics, apart in ((Physics(), 5.0), (WIDE, 12.5), (Physics(contact_m=2.0), 1.0)):
        places = np.array([[0.0, 0.0], [apart, 0.0]])
        push = repulsion(places, pairs, np.array([apart]), members, physics)
        np.testing.assert_allclose(push, np.array([[-2.0, 0.0], [2.0, 0.0]]) / 3 * physics.speed_mps)
    # The radio has no say: 14 m apart at a range of 300 m pushes just as at 120 m.
    places, length = np.array([[0.0, 0.0], [14.0, 0.0]]), np.array([14.0])
    far = repulsion(places, pairs, length, members, Physics(range_m=300.0))
    np.testing.assert_array_equal(far, repulsion(places, pairs, length, members, Physics()))


def test_the_pull_of_a_link_is_three_tenths_of_the_full_speed_at_the_range():
    pull = link_keeping(np.array([[0.0, 0.0], [300.0, 0.0]]), np.array([[0, 1]]), np.array([300.0]), WIDE)
    np.testing.assert_allclose(pull, [[7.5, 0.0], [-7.5, 0.0]])


def test_arrival_is_a_share_of_the_range():
    """2e-9 m is a way to go at 120 m and none at 300 m, where 2.5e-9 m count as arrived."""
    start, goal = np.zeros((1, 2)), np.array([[2e-9, 0.0]])
    assert go(start, goal, Physics()).any()
    assert not go(start, goal, WIDE).any()


@pytest.mark.parametrize(("range_m", "planned"), [(120.0, 119.9), (240.0, 239.8), (300.0, 299.75), (12.0, 11.99)])
def test_plans_leave_the_same_share_of_every_range(range_m, planned):
    assert plan_range_m(range_m) == planned


def test_a_planner_sees_the_papers_radio_whatever_the_units():
    first, second = (view_of(scenario) for scenario in (cases()[1], in_units(cases()[1], 2.0)))
    seen = at_reference_range(second)
    assert seen.mission.physics == Physics()
    assert seen.mission.width_m == first.mission.width_m
    for part in ("positions", "roster", "velocities"):
        np.testing.assert_array_equal(getattr(seen, part), getattr(first, part))
    np.testing.assert_array_equal(seen.links.lengths, first.links.lengths)
    np.testing.assert_array_equal(seen.mission.center, first.mission.center)


def test_a_planner_at_the_papers_radio_sees_the_view_itself():
    view = view_of(cases()[0])
    seen = at_reference_range(view)
    assert seen.mission.physics == view.mission.physics
    np.testing.assert_array_equal(seen.positions, view.positions)


def view_of(scenario: Scenario) -> GlobalView:
    view = Observer(scenario).observe(initial_state(scenario), Scope.GLOBAL)
    assert isinstance(view, GlobalView)
    return view
