"""Vehicles with inertia: how they follow, and that braking cells keep them apart in continuous time."""

import itertools
import math

import numpy as np
import pytest

from phygail.config import Physics
from phygail.experiments.grid import Grid
from phygail.methods.controller import run_episode
from phygail.methods.steering import go
from phygail.swarm.flight import Stopping, respond
from phygail.swarm.scenario import make_scenario
from phygail.swarm.simulator import fly
from phygail.swarm.soak import closest_m
from phygail.swarm.tree import bound_for
from phygail.swarm.world import Vehicle, World

PAIR = [[0.0, 0.0], [180.0, 0.0], [90.0, 10.0]]


@pytest.mark.parametrize("name", ["sidr", "reach-evolved", "center-fly"])
def test_two_uavs_reconnect_in_exactly_47_steps(name):
    """WO-2: gap 60 m, 3 m/s^2: 47 steps; a vehicle that follows at once needs 30."""
    slow = make_scenario("p", PAIR, [2], center=[90, 0], world=World(vehicle=Vehicle(3.0)))
    fast = make_scenario("p", PAIR, [2], center=[90, 0])
    assert (bound_for(slow), bound_for(fast)) == (47, 30)
    assert (run_episode(slow, name).steps, run_episode(fast, name).steps) == (47, 30)


def test_stopping_way_is_the_sum_over_its_steps():
    for accel, lag in ((3.0, 0.0), (5.0, 0.0), (3.0, 0.25), (math.inf, 0.25), (1.0, 1.0)):
        vehicle = Vehicle(accel, lag)
        stop = Stopping(vehicle, Physics())
        for speed in (0.0, 0.05, 0.3, 3.0, 7.77, 10.0):
            v, way = np.array([[speed, 0.0]]), 0.0
            for _ in range(3000):
                v = respond(vehicle, v, np.zeros((1, 2)), 0.1)
                way += v[0, 0] * 0.1
            assert float(stop.way_m(np.array(speed))) == pytest.approx(way, abs=1e-9)


def test_acceleration_and_lag_bound_every_change():
    vehicle = Vehicle(3.0, 0.25)
    before, wanted = np.random.default_rng(0).normal(size=(2, 500, 2)) * 6
    change = np.hypot(*(respond(vehicle, before, wanted, 0.1) - before).T)
    assert change.max() <= 0.3 + 1e-12
    assert respond(vehicle, wanted, wanted, 0.1) == pytest.approx(wanted)


@pytest.mark.parametrize("vehicle", [Vehicle(3.0), Vehicle(5.0), Vehicle(3.0, 0.25), Vehicle(5.0, 0.25)])
@pytest.mark.parametrize("seed", range(2))
def test_braking_cells_keep_everybody_apart_in_continuous_time(vehicle, seed):
    """METHODS 8.3 with inertia: whatever is asked for, no pair comes closer than min(10 m, its start)."""
    rng = np.random.default_rng(seed)
    layout = rng.uniform(0, 70, (14, 2))
    scenario = make_scenario("c", layout, budget_steps=200, world=World(vehicle=vehicle, hold_steps=200))
    aim = {}

    def wild(state):
        if state.step % 30 == 0:  # everybody at one point, or anywhere
            aim["goal"] = rng.uniform(0, 70, 2) if rng.random() < 0.5 else rng.uniform(-50, 120, state.positions.shape)
        return (aim["goal"] - state.positions) * 5

    states = fly(scenario, wild, record=True, safety=True).states
    i, j = np.triu_indices(len(layout), 1)
    start = np.hypot(*(layout[i] - layout[j]).T)
    positions = np.stack([s.positions for s in states])
    assert (closest_m(positions) >= np.minimum(10.0, start) - 1e-9).all()
    speeds = np.hypot(*np.stack([s.velocities for s in states]).T)
    assert speeds.max() <= 10.0 + 1e-9
    change = np.diff(np.stack([s.velocities for s in states]), axis=0)
    assert np.hypot(*change.T).max() <= vehicle.accel_mps2 * 0.1 + 1e-9


def test_the_filter_of_ideal_vehicles_would_not_do():
    """What the braking cells are for: without them a crowd of vehicles with inertia comes far closer than 10 m."""
    layout = 20.0 * np.stack(np.meshgrid(np.arange(5.0), np.arange(4.0)), axis=-1).reshape(-1, 2)
    scenario = make_scenario("c", layout, budget_steps=150, world=World(vehicle=Vehicle(3.0), hold_steps=150))
    closest = []
    for safety in (False, True):
        flown = fly(scenario, lambda s: go(s.positions, scenario.center, Physics()), record=True, safety=safety)
        closest.append(closest_m(np.stack([s.positions for s in flown.states])).min())
    assert closest[0] < 2.0
    assert closest[1] >= 10.0


def test_wind_carries_nobody_beyond_the_airspeed():
    wind = (4.0, -3.0)
    layout = [[0, 0], [60, 10], [30, 80], [300, 300]]
    scenario = make_scenario("w", layout, budget_steps=80, world=World(vehicle=Vehicle(wind_mps=wind), hold_steps=80))
    rng = np.random.default_rng(1)
    states = fly(scenario, lambda s: rng.normal(size=s.positions.shape) * 30, record=True, safety=True).states
    for state in states[1:]:
        assert np.hypot(*(state.velocities - wind).T).max() <= 10.0 + 1e-9
    still = fly(scenario, lambda s: np.zeros_like(s.positions), record=True).states
    assert np.array_equal(still[-1].positions, still[0].positions)  # a UAV can hover against the wind


def test_links_are_kept_by_what_a_vehicle_needs_to_stop():
    """A subnet of vehicles with inertia tears fewer links with the margin: at most as many as two in a flight."""
    scenario = Grid((60,), (0.5,), 1, 78, world="accel=3").scenario(0)
    counts = [s.links.count for s in run_episode(scenario, "reach-evolved", record=True).states]
    assert sum(b > a for a, b in itertools.pairwise(counts)) <= 2
