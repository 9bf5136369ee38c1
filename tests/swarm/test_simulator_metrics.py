"""Hand-worked contact figures (METHODS 2.6)."""

import numpy as np
import pytest

from phygail.config import Physics
from phygail.swarm.scenario import make_scenario
from phygail.swarm.simulator import Meter, SwarmState


def measure(*xs: list[float], contact_m: float = 10.0, velocities: list[np.ndarray] | None = None):
    """Meter a flight on a line: one list of x coordinates per state."""
    scenario = make_scenario(
        "a", np.array([[1000.0 * k, 0.0] for k in range(len(xs[0]))]), physics=Physics(contact_m=contact_m)
    )
    states = []
    for k, row in enumerate(xs):
        velocity = np.zeros((len(row), 2)) if velocities is None else velocities[k]
        states.append(SwarmState(scenario, np.array([[x, 0.0] for x in row]), velocity, k))
    meter = Meter(states[0])
    for state in states[1:]:
        meter.see(state)
    return meter.result()


def test_an_event_is_a_pair_that_comes_closer_than_ten_meters():
    # Three UAVs, four steps; pair (0, 1) enters at step 1, leaves at 3, enters again at 4; pair (1, 2) never.
    metrics = measure([0, 12, 50], [0, 9, 50], [0, 8, 50], [0, 10, 50], [0, 9.5, 50])
    assert metrics.contact_events_per_uav == pytest.approx(2 / 3)
    # Pairs in contact per step: 1, 1, 0, 1 -> mean 0.75, over 3 UAVs, over 0.1 s.
    assert metrics.contact_rate_raw == pytest.approx(0.75 / 3 / 0.1)
    assert metrics.contact_rate_capped == 2.0


def test_the_contact_distance_is_that_of_the_vehicle():
    """The flight above: with 8.5 m the pair enters at step 2 only; with 11 m at 1, and stays to the end."""
    flight = [0, 12, 50], [0, 9, 50], [0, 8, 50], [0, 10, 50], [0, 9.5, 50]
    short, long = measure(*flight, contact_m=8.5), measure(*flight, contact_m=11.0)
    assert (short.contact_events_per_uav, long.contact_events_per_uav) == pytest.approx((1 / 3, 1 / 3))
    assert (short.contact_rate_raw, long.contact_rate_raw) == pytest.approx((0.25 / 3 / 0.1, 1.0 / 3 / 0.1))


def test_a_pair_that_starts_close_is_no_event_but_counts_in_the_rate():
    metrics = measure([0, 5, 100, 300], [0, 5, 100, 300], [0, 11, 100, 300])
    assert metrics.contact_events_per_uav == 0
    assert metrics.contact_rate_raw == metrics.contact_rate_capped == pytest.approx(0.5 / 4 / 0.1)


def test_the_state_before_the_first_step_is_not_part_of_the_mean():
    assert measure([0, 5, 300], [0, 50, 300]).contact_rate_raw == 0


def test_three_in_a_heap_are_three_pairs():
    metrics = measure([0, 20, 40], [0, 1, 2])
    assert metrics.contact_events_per_uav == 1.0
    assert metrics.contact_rate_raw == pytest.approx(3 / 3 / 0.1)


def test_the_contact_passes_from_pair_to_pair():
    metrics = measure([0, 9, 30], [0, 15, 21], [0, 9, 30])  # (0,1) at the start, then (1,2), then (0,1) again
    assert metrics.contact_events_per_uav == pytest.approx(2 / 3)


def test_exactly_ten_meters_is_no_contact():
    assert measure([0, 20, 300], [0, 10, 300], [0, 10 - 1e-7, 300]).contact_rate_raw == 0


def test_distance_and_speed_are_those_of_the_executed_velocities():
    flown = [np.zeros((2, 2)), np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([[6.0, 8.0], [0.0, 1.0]])]
    metrics = measure([0, 200], [0.5, 200], [1.5, 200], velocities=flown)
    assert metrics.distance_m_per_uav == pytest.approx((0.5 + 1.0 + 0.1) / 2)
    assert metrics.max_speed_mps == 10.0


def test_an_episode_without_a_step_has_zeros():
    metrics = measure([0, 5])
    assert metrics == type(metrics)(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, alive_end=2)


def test_pairs_that_share_a_uav_are_told_apart():
    # (0, 1) at the start, then (0, 2), then (1, 2): two events.
    metrics = measure([0, 9, 50], [0, 50, 9], [100, 50, 59])
    assert metrics.contact_events_per_uav == pytest.approx(2 / 3)


def test_the_longest_path_and_who_moved_at_all():
    """Three steps at 10 m/s, back and forth; a UAV that creeps 9 mm has not moved, one that goes 11 mm has."""
    there = np.array([[10.0, 0.0], [0.03, 0.0], [0.0, 0.0], [0.037, 0.0]])
    metrics = measure(*[[0, 50, 100, 150]] * 4, velocities=[np.zeros((4, 2)), there, -there, there])
    assert metrics.longest_m == pytest.approx(3.0)
    assert metrics.moved == 2
    assert metrics.distance_m_per_uav == pytest.approx((3.0 + 0.009 + 0.0111) / 4)
