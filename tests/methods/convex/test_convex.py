"""convex (METHODS 8.2): plans against the bound, flights against the plan, with and without the safety filter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phygail.config import InputError, Physics
from phygail.methods import make_method, run_episode
from phygail.methods.controller import controller
from phygail.methods.convex import Convex, plan_flight
from phygail.methods.convex import search as cone
from phygail.rng import generator
from phygail.swarm.links import find_links
from phygail.swarm.recipe import parse_world, with_world
from phygail.swarm.scenario import D4, Scenario, draw_scenario, make_scenario
from phygail.swarm.simulator import initial_state, step
from phygail.swarm.tree import bound_for, bound_steps, spanning_tree
from phygail.swarm.world import World

SEED = 900_100  # seeds up to 1000 are kept for reporting
QUICK = 0.05  # effort: the tree search is not under test here


def drawn(uavs: int, ratio: float, case: int = 0) -> Scenario:
    return draw_scenario(uavs, ratio, generator(SEED, "convex", uavs, case))


def flown(scenario: Scenario, *, safety: bool = False, effort: float = QUICK):
    method = Convex(effort=effort)
    return run_episode(scenario, method, safety=safety), method


@pytest.mark.parametrize(("distance_m", "steps"), [(121.0, 1), (199.0, 40), (200.0, 40), (200.1, 41)])
def test_two_uavs_fly_exactly_the_bound(distance_m, steps):
    """Also where the gap is a whole number of steps: the margin of 1 mm must not cost one."""
    episode, method = flown(make_scenario("pair", np.array([[0.0, 0.0], [0.0, distance_m]])))
    assert (episode.steps, method.planned_steps, method.bound_steps) == (steps, steps, steps)
    assert method.ratio == 1.0
    assert method.flag == ""


def test_three_on_a_line_need_the_ends_to_close_both_gaps():
    episode, method = flown(make_scenario("line", np.array([[0.0, 0.0], [200.0, 0.0], [400.0, 0.0]])))
    assert (episode.steps, method.planned_steps, method.bound_steps) == (80, 80, 40)


def test_at_heights_the_plan_closes_what_is_missing_in_the_plane():
    """With dz = 72 two UAVs hear each other up to 96 m apart: (180 - 96) / 2 = 42 steps, exactly the bound."""
    world = World(altitude=(0.0, 72.0, 0.0))
    episode, method = flown(make_scenario("h", [[0, 0], [180, 0], [50, 50]], [2], world=world))
    assert (episode.steps, method.planned_steps, method.bound_steps) == (42, 42, 42)


def test_at_heights_it_links_to_the_layer_in_between():
    """Low and high are 130 m apart in height and never linked; who flies between hears both up to 100.9 m away."""
    world = World(altitude=(0.0, 130.0, 65.0))
    scenario = make_scenario("h", [[0, 0], [40, 0], [20, 160]], world=world)
    episode, method = flown(scenario)
    assert episode.terminated
    assert episode.steps == method.planned_steps == method.bound_steps == bound_for(scenario)


@pytest.mark.parametrize("case", range(2))
def test_plans_at_drawn_heights_are_flown_as_planned(case):
    scenario = with_world(drawn(60, 0.7, case), parse_world("altitude-spread=40"))
    episode, method = flown(scenario)
    assert episode.terminated
    assert bound_for(scenario) == method.bound_steps <= episode.steps <= method.planned_steps
    assert method.flag == ""


def test_heights_that_keep_a_swarm_split_for_ever_leave_a_plan_of_one_layer():
    flight = plan_flight(np.array([[0.0, 0.0], [180.0, 0.0]]), Physics(), QUICK, np.array([0.0, 130.0]))
    assert flight.steps == flight.bound_steps == 30


@pytest.mark.parametrize(("uavs", "ratio"), [(20, 0.5), (50, 0.8), (100, 0.9), (200, 0.6)])
def test_plan_is_connected_and_reachable_in_its_time(uavs, ratio):
    scenario = drawn(uavs, ratio)
    flight = plan_flight(scenario.spots, scenario.physics, QUICK)
    moved = np.linalg.norm(flight.targets - scenario.spots, axis=1)
    assert moved.max() <= flight.steps * scenario.physics.stride_m + 2e-4
    assert find_links(flight.targets, scenario.physics.range_m).connected
    assert flight.steps >= flight.bound_steps


@pytest.mark.parametrize("case", range(4))
@pytest.mark.parametrize(("uavs", "ratio"), [(50, 0.5), (100, 0.75), (200, 0.9)])
def test_flight_never_takes_longer_than_planned_nor_less_than_the_bound(uavs, ratio, case):
    episode, method = flown(drawn(uavs, ratio, case))
    assert episode.terminated
    assert method.bound_steps <= episode.steps <= method.planned_steps
    assert episode.metrics.max_speed_mps <= 10.0 + 1e-9
    assert method.flag == ""


def test_light_damage_is_reconnected_in_the_time_of_the_bound():
    """The certificate of optimality; 97 % of the cases at damage up to 0.5."""
    results = [flown(drawn(uavs, ratio, 9)) for uavs in (100, 200) for ratio in (0.1, 0.2, 0.3, 0.4)]
    assert [e.steps for e, _ in results] == [p.bound_steps for _, p in results]
    assert all(p.ratio == 1.0 for _, p in results)


def test_search_beats_the_bare_tree_at_heavy_damage():
    cases = [drawn(200, 0.9, case) for case in range(3)]
    trees = [(s.spots, spanning_tree(s.spots)[0]) for s in cases]
    bare = sum(cone.shortest_flight(points, tree, 120.0).flight_m for points, tree in trees)
    searched = sum(plan_flight(s.spots, s.physics, 0.1).steps for s in cases)
    assert searched < 0.95 * bare


@pytest.mark.parametrize("case", range(3))
@pytest.mark.parametrize(("uavs", "ratio"), [(20, 0.75), (50, 0.75), (100, 0.5), (200, 0.9)])
def test_reconnects_under_the_safety_filter_without_contacts(uavs, ratio, case):
    episode, method = flown(drawn(uavs, ratio, case), safety=True)
    assert episode.terminated
    assert episode.steps >= method.bound_steps
    assert episode.metrics.contact_events_per_uav == 0.0


def test_flights_without_progress_gather_at_last():
    """A plan that has closed no gap when its time is over gives way to gathering in the middle."""
    scenario = make_scenario("pair", np.array([[0.0, 0.0], [200.0, 0.0]]), budget_steps=400)
    method = Convex(effort=QUICK)
    command = controller(method, scenario)
    state = initial_state(scenario)
    for _ in range(60):
        command(state)
        state = step(state, np.zeros((2, 2)))
    assert method.flag == "fallback:gather"
    while not (state.terminated or state.truncated):
        state = step(state, command(state))
    assert state.terminated


def test_late_flight_is_planned_again_from_where_everybody_is():
    """Held in place half way for 30 steps, the pair makes a second plan and flies it."""
    scenario = make_scenario("pair", np.array([[0.0, 0.0], [200.0, 0.0]]), budget_steps=400)
    method = Convex(effort=QUICK)
    command, state = controller(method, scenario), initial_state(scenario)
    while not (state.terminated or state.truncated):
        held = 20 <= state.step < 50
        wanted = command(state)
        state = step(state, np.zeros((2, 2)) if held else wanted)
    assert state.terminated
    assert state.step == 50 + 20  # 20 steps were flown, 20 are left
    assert method.flag == ""
    assert method.planned_steps == 40


@pytest.mark.parametrize(
    "layout",
    [
        [[0, 0], [200, 0], [400, 0], [600, 0], [800, 0]],
        [[0, 0], [1e-9, 0], [300, 0], [300, 1e-9]],
        [[0, 0], [300, 0], [0, 300], [300, 300]],
        [[0, 0], [120.0000005, 0], [120.000002, 120.000003]],
        [[1e6, 1e6], [1e6 + 500, 1e6], [1e6, 1e6 + 900]],
    ],
    ids=["line", "almost coincident", "square", "at the edge of range", "far from the origin"],
)
def test_degenerate_swarms_reconnect(layout):
    episode, method = flown(make_scenario("odd", np.array(layout, dtype=float), budget_steps=100_000))
    assert episode.terminated
    assert method.bound_steps <= episode.steps <= method.planned_steps


def test_pair_far_apart_reconnects_in_the_time_of_the_bound():
    fast = Physics(speed_mps=1000.0)
    scenario = make_scenario("far", np.array([[0.0, 0.0], [0.0, 1e5]]), physics=fast)
    episode, method = flown(scenario)
    assert episode.terminated
    assert episode.steps == method.planned_steps == method.bound_steps == 500
    assert plan_flight(scenario.spots, Physics()).steps == 49_940


def test_coincident_uavs_get_a_plan():
    flight = plan_flight(np.array([[0.0, 0.0]] * 3 + [[500.0, 0.0]] * 2), Physics(), QUICK)
    assert flight.steps == 190
    assert find_links(flight.targets, 120.0).connected


def test_connected_swarm_stays():
    flight = plan_flight(np.array([[0.0, 0.0], [100.0, 0.0]]), Physics())
    assert (flight.steps, flight.bound_steps) == (0, 0)
    episode, method = flown(make_scenario("one", np.array([[0.0, 0.0], [100.0, 0.0]])))
    assert (episode.steps, method.ratio) == (0, 1.0)


def test_radio_and_vehicle_of_the_user_are_respected():
    physics = Physics(range_m=50.0, speed_mps=4.0, step_s=0.5)
    scenario = make_scenario("own", np.array([[0.0, 0.0], [151.0, 0.0], [151.0, 90.0]]), physics=physics)
    episode, method = flown(scenario)
    assert method.bound_steps == bound_steps(scenario.spots, physics) == 26
    assert episode.terminated
    assert episode.steps <= method.planned_steps
    assert episode.metrics.max_speed_mps <= 4.0 + 1e-9


@pytest.mark.parametrize("element", range(8))
def test_plan_turns_mirrors_shifts_and_renumbers_with_the_swarm(element):
    """G2, G3, G4."""
    points = drawn(50, 0.75, 1).spots
    plan = plan_flight(points, Physics(), QUICK)
    order = generator(SEED, "order", element).permutation(len(points))
    other = plan_flight(points[order] @ D4[element].T + [700.0, -300.0], Physics(), QUICK)
    assert other.steps == plan.steps
    np.testing.assert_allclose(other.targets, plan.targets[order] @ D4[element].T + [700.0, -300.0], atol=0.01)


def test_same_case_gives_the_same_plan_whatever_the_rng():
    scenario = drawn(50, 0.8)
    first, second = (run_episode(scenario, make_method("convex", generator(k)), record=True) for k in (1, 2))
    assert first.steps == second.steps
    assert all(np.array_equal(a.positions, b.positions) for a, b in zip(first.states, second.states, strict=True))


def test_solver_failure_is_flagged_and_still_reconnects(monkeypatch):
    """A solver that returns nothing useful leaves the contraction of the swarm."""
    monkeypatch.setattr(
        cone, "_solve", lambda cost, matrix, right, cones, accuracy: (np.full(len(cost), 9.0), np.zeros(len(right)))
    )
    layout = np.array([[0.0, 0.0], [200.0, 0.0], [420.0, 50.0], [100.0, 300.0]])
    episode, method = flown(make_scenario("broken", layout))
    assert episode.terminated
    assert method.flag == "fallback:contraction"
    assert episode.steps <= method.planned_steps


def test_negative_effort_is_refused():
    with pytest.raises(InputError, match="effort -1"):
        Convex(effort=-1)


swarms = st.lists(
    st.tuples(st.integers(0, 450), st.integers(0, 450)), min_size=2, max_size=6, unique=True
).map(lambda p: np.array(p, dtype=float))  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(swarms, st.booleans())
def test_any_small_swarm_reconnects_and_never_below_the_bound(layout, safety):
    episode, method = flown(make_scenario("any", layout, budget_steps=3000), safety=safety)
    assert episode.terminated
    assert episode.steps >= method.bound_steps == bound_steps(layout, Physics())
    if not safety:
        assert episode.steps <= method.planned_steps
