import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from phygail.config import InputError, Physics
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import initial_state, project_speed, step

anything = arrays(float, (4, 2), elements=st.floats(width=64))  # NaN, infinities, denormals and 1e308 included
speeds = st.floats(1e-6, 1e7)


def trio() -> np.ndarray:
    return np.array([[0.0, 0.0], [300.0, 0.0], [600.0, 0.0], [0.0, 500.0]])


def test_a_step_by_hand():
    state = initial_state(make_scenario("a", trio(), [3]))
    after = step(state, np.array([[3.0, 4.0], [30.0, 40.0], [0.0, -10.0]]))
    np.testing.assert_allclose(after.velocities, [[3.0, 4.0], [6.0, 8.0], [0.0, -10.0]], rtol=1e-14)
    np.testing.assert_allclose(after.positions, [[0.3, 0.4], [300.6, 0.8], [600.0, -1.0]], rtol=1e-14)
    assert after.step == 1


@given(anything, speeds)
def test_project_never_exceeds_the_limit_and_is_always_finite(velocities, limit):
    """G1, for every command that a float can express."""
    executed = project_speed(velocities, limit)
    assert np.isfinite(executed).all()
    assert (np.hypot(executed[:, 0], executed[:, 1]) <= limit).all()


@given(anything, speeds)
def test_projection_keeps_the_direction_and_leaves_slow_commands_alone(velocities, limit):
    executed = project_speed(velocities, limit)
    for wanted, got in zip(velocities, executed, strict=True):
        if not np.isfinite(wanted).all():
            assert got.tolist() == [0.0, 0.0]
        elif np.hypot(*(wanted / 4)) * 4 <= limit:  # a quarter: the norm of 1e308 twice overflows
            assert np.array_equal(got, wanted)
        else:
            unit = wanted / np.abs(wanted).max()
            np.testing.assert_allclose(got, limit * unit / np.hypot(*unit), rtol=1e-12, atol=1e-12 * limit)


@given(anything, speeds)
def test_projecting_twice_changes_nothing(velocities, limit):
    once = project_speed(velocities, limit)
    assert np.array_equal(project_speed(once, limit), once)


def test_one_component_that_is_no_number_stops_the_uav():
    commands = np.array([[np.nan, 5.0], [np.inf, 0.0], [1.0, -np.inf]])
    assert not project_speed(commands, 10.0).any()


def test_single_precision_commands_are_held_to_the_limit_in_double_precision():
    angles = np.linspace(0, 2 * np.pi, 5000)
    commands = (10 * np.stack([np.cos(angles), np.sin(angles)], axis=1)).astype(np.float32)
    executed = project_speed(commands, 10.0)
    assert executed.dtype == np.float64
    assert np.hypot(executed[:, 0], executed[:, 1]).max() <= 10.0


def test_projection_works_on_batches():
    batch = np.random.default_rng(0).normal(0, 20, (3, 5, 2))
    assert np.array_equal(project_speed(batch, 10.0)[1], project_speed(batch[1], 10.0))


def test_the_damaged_never_move():
    """G1: they have no row, and the roster is immutable."""
    scenario = draw_scenario(30, 0.5, np.random.default_rng(0))
    before = scenario.layout.copy()
    state = initial_state(scenario)
    for _ in range(20):
        state = step(state, np.random.default_rng(1).normal(0, 100, state.positions.shape))
    assert state.positions.shape == (15, 2)
    assert np.array_equal(scenario.layout, before)


def test_a_step_is_pure():
    state = initial_state(make_scenario("a", trio()))
    commands = np.array([[30.0, 40.0]] * 4)
    first, second = step(state, commands), step(state, commands)
    assert np.array_equal(first.positions, second.positions)
    assert state.step == 0
    assert np.array_equal(state.positions, trio())
    assert commands.tolist() == [[30.0, 40.0]] * 4
    commands[:] = 0.0  # the caller's array stays writable and apart
    assert first.velocities[0] == pytest.approx([6.0, 8.0])
    with pytest.raises(ValueError, match="read-only"):
        first.positions[0] = 0.0


def test_slow_commands_are_stored_apart_from_the_callers_array():
    state = initial_state(make_scenario("a", trio()))
    commands = np.ones((4, 2))
    after = step(state, commands)
    commands[:] = 9.0
    assert (after.velocities == 1.0).all()


def test_a_users_vehicle_flies_at_its_own_speed_and_step():
    state = initial_state(make_scenario("a", trio(), physics=Physics(speed_mps=20.0, step_s=0.5)))
    after = step(state, np.full((4, 2), [100.0, 0.0]))
    np.testing.assert_allclose(after.positions[:, 0] - trio()[:, 0], 10.0)


@pytest.mark.parametrize("commands", [np.zeros((3, 2)), np.zeros(8), np.zeros((4, 3)), None, [[0.0, 0.0]]])
def test_commands_of_the_wrong_shape_are_refused(commands):
    with pytest.raises(InputError, match=r"the swarm needs \(4, 2\)"):
        step(initial_state(make_scenario("a", trio())), commands)


def test_a_command_of_exactly_the_limit_is_flown_as_it_is():
    commands = np.array([[10.0, 0.0], [-6.0, 8.0], [0.0, -10.0]])
    assert np.array_equal(project_speed(commands, 10.0), commands)


def test_a_scaled_command_is_never_a_rounding_above_the_limit():
    """Scaling alone would be, for one direction in five or so."""
    angles = np.linspace(0, 2 * np.pi, 20_001)
    commands = 37.7 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    norm = np.hypot(*project_speed(commands, 10.0).T)
    assert norm.max() <= 10.0
    assert norm.min() >= 10.0 * (1 - 1e-14)


def test_the_filter_is_off_unless_asked_for():
    """10.5 m apart, head on at full speed: 8.5 m after the step, at least 10 m with the filter."""
    state = initial_state(make_scenario("a", np.array([[0.0, 0.0], [10.5, 0.0], [500.0, 0.0]])))
    toward = np.array([[10.0, 0.0], [-10.0, 0.0], [0.0, 0.0]])
    free, filtered = step(state, toward), step(state, toward, safety=True)
    assert free.positions[1, 0] - free.positions[0, 0] == pytest.approx(8.5)
    assert filtered.positions[1, 0] - filtered.positions[0, 0] == pytest.approx(10.001)
