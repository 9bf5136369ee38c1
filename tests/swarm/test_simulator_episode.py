import numpy as np
import pytest

from phygail.config import Physics
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, fly, initial_state, step


def pair(distance: float, **options):
    return make_scenario("pair", [[0.0, 0.0], [distance, 0.0]], **options)


def approach(state):
    return np.array([[10.0, 0.0], [-10.0, 0.0]])


def hover(state):
    return np.zeros_like(state.positions)


def test_success_terminates_and_counts_executed_moves():
    episode = fly(pair(130.0), approach)  # 10 m to close, 2 m per step
    assert (episode.terminated, episode.truncated, episode.steps) == (True, False, 5)
    assert episode.scored_steps == 5
    assert episode.metrics.distance_m_per_uav == pytest.approx(5.0)


def test_the_budget_truncates_and_a_failure_is_scored_with_all_of_it():
    episode = fly(pair(500.0), hover)
    assert (episode.terminated, episode.truncated, episode.steps) == (False, True, 400)
    assert episode.scored_steps == 400


@pytest.mark.parametrize(("budget", "terminated"), [(4, False), (5, True), (6, True)])
def test_a_success_in_the_last_step_of_the_budget_is_a_success(budget, terminated):
    episode = fly(pair(130.0, budget_steps=budget), approach)
    assert episode.terminated is terminated
    assert episode.truncated is not terminated
    assert episode.steps == min(5, budget)


def test_a_network_that_is_already_one_ends_before_the_controller_is_asked():
    def never(state):
        raise AssertionError("asked")

    episode = fly(pair(120.0), never, record=True)
    assert (episode.terminated, episode.truncated, episode.steps) == (True, False, 0)
    assert episode.first_action_s == episode.solve_s == 0.0
    assert episode.metrics.contact_events_per_uav == 0
    assert len(episode.states) == 1


def test_the_step_order():
    """METHODS 2.3: view, command, projection, move, count; the executed velocity is what the next view shows."""
    seen = []

    def controller(state):
        seen.append((state.step, state.positions[0, 0], state.velocities[0].tolist()))
        return np.array([[30.0, 0.0], [np.nan, 0.0]])

    episode = fly(pair(122.5), controller, record=True)
    assert [s[0] for s in seen] == [0, 1, 2]
    assert [s[1] for s in seen] == pytest.approx([0.0, 1.0, 2.0])
    assert seen[0][2] == [0.0, 0.0]
    assert seen[1][2] == pytest.approx([10.0, 0.0])
    assert episode.steps == 3
    assert [s.step for s in episode.states] == [0, 1, 2, 3]
    assert episode.states[-1].positions[1].tolist() == [122.5, 0.0]  # NaN: did not move
    assert episode.metrics.max_speed_mps == pytest.approx(10.0)


def test_every_state_is_reported_once_and_none_is_kept_unless_asked_for():
    steps = []
    episode = fly(pair(130.0), approach, on_step=lambda state: steps.append(state.step))
    assert steps == [0, 1, 2, 3, 4, 5]
    assert episode.states == ()


def test_times_add_up():
    episode = fly(pair(130.0), approach)
    assert 0 < episode.first_action_s <= episode.solve_s


def test_the_clock_truncates_before_the_budget():
    episode = fly(pair(500.0), hover, timeout_s=0.0)
    assert (episode.terminated, episode.truncated) == (False, True)
    assert episode.steps < 400
    assert episode.scored_steps == 400


def test_terminated_and_truncated_exclude_each_other_in_every_state():
    for distance, budget in [(100.0, 1), (130.0, 1), (130.0, 400)]:
        for state in fly(pair(distance, budget_steps=budget), hover, record=True).states[-2:]:
            assert not (state.terminated and state.truncated)


def test_the_first_state_is_at_rest_at_the_spots_of_the_alive():
    scenario = make_scenario("a", [[0.0, 0.0], [200.0, 0.0], [400.0, 0.0]], [1])
    state = initial_state(scenario)
    assert state.positions.tolist() == [[0.0, 0.0], [400.0, 0.0]]
    assert not state.velocities.any()
    assert state.step == 0


def test_the_safety_filter_is_off_unless_asked_for():
    close = make_scenario("close", [[0.0, 0.0], [11.0, 0.0], [500.0, 0.0]], budget_steps=3)
    meet = lambda state: np.array([[10.0, 0.0], [-10.0, 0.0], [0.0, 0.0]])  # noqa: E731 - a controller in one line
    assert fly(close, meet).metrics.contact_events_per_uav == pytest.approx(1 / 3)
    assert fly(close, meet, safety=True).metrics.contact_events_per_uav == 0


@pytest.mark.parametrize(("command", "nonfinite"), [(np.nan, True), (np.inf, True), (1e308, False), (0.0, False)])
def test_commands_that_are_no_numbers_count_as_zero_and_are_told(command, nonfinite):
    episode = fly(pair(130.0, budget_steps=3), lambda state: np.full((2, 2), command))
    assert episode.nonfinite is nonfinite
    assert episode.metrics.distance_m_per_uav == pytest.approx(3.0 if command == 1e308 else 0.0)


def to_center(state):
    """Everybody to the center at full speed, stopping there."""
    physics, way = state.scenario.physics, state.scenario.center - state.positions
    distance = np.hypot(*way.T)[:, None]
    return way / np.maximum(distance, physics.stride_m) * physics.speed_mps


@pytest.mark.parametrize("safety", [False, True])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_all_lengths_and_the_speed_times_a_factor_give_the_same_flight(factor, safety):
    """Layout, map, range, speed and contact distance: equal steps, contacts and budget; positions times the factor."""
    scaled = Physics(range_m=120.0 * factor, speed_mps=10.0 * factor, contact_m=10.0 * factor)
    one = draw_scenario(50, 0.6, np.random.default_rng(8))
    other = make_scenario(
        "scaled", factor * one.layout, one.damaged, width_m=factor * one.width_m, physics=scaled,
    )  # fmt: skip
    flights = [fly(scenario, to_center, safety=safety, record=True) for scenario in (one, other)]
    assert flights[0].terminated
    assert flights[1].steps == flights[0].steps > 20
    assert other.budget_steps == one.budget_steps
    for before, after in zip(flights[0].states, flights[1].states, strict=True):
        np.testing.assert_allclose(after.positions, factor * before.positions, rtol=1e-12)
        assert np.array_equal(after.links.pairs, before.links.pairs)
        assert np.array_equal(after.links.contacts, before.links.contacts)
    assert flights[1].metrics.contact_events_per_uav == flights[0].metrics.contact_events_per_uav


@pytest.mark.parametrize(("speed", "step_s"), [(10.0, 0.1), (2.0, 0.1), (10.0, 0.02), (7.3, 0.13)])
def test_whoever_flies_straight_to_the_center_is_there_when_the_budget_ends(speed, step_s):
    """AUDIT R2, R3: any stride, any center, also one outside the map."""
    rng = np.random.default_rng(0)
    for center in ([400.0, 10.0], [-900.0, 250.0], [0.0, 0.0]):
        layout = rng.uniform(0, 400, (6, 2))
        physics = Physics(speed_mps=speed, step_s=step_s)
        scenario = make_scenario("a", layout, width_m=400, center=center, physics=physics)
        positions = scenario.spots
        for _ in range(scenario.budget_steps):
            state = SwarmState(scenario, positions.copy(), np.zeros_like(positions), 0)
            positions = step(state, to_center(state)).positions
        np.testing.assert_allclose(positions, np.tile(center, (6, 1)), atol=1e-6)
