"""Scenarios in other worlds than the plain one: budgets and batteries, worked by hand."""

import numpy as np
import pytest

from phygail.config import InputError, Physics
from phygail.swarm.checks import LARGEST_BUDGET_STEPS
from phygail.swarm.scenario import budget_in, lead_steps, pace, scenario_from_json, way_steps
from phygail.swarm.world import Event, Knowledge, Obstacle, Vehicle, World

PHYSICS = Physics()  # 10 m/s in steps of 0.1 s: 1 m a step
SPOTS, CENTER = np.array([[0.0, 0.0], [200.0, 0.0]]), np.array([100.0, 0.0])


def budget(world: World, plain_steps: int = 100) -> int:
    return budget_in(world, plain_steps, SPOTS, CENTER, PHYSICS)


def test_every_part_of_a_budget_is_added():
    """4 m/s over ground against 6 m/s of wind: 250; turning at 3 m/s^2: 67; 12.5 m of error: 13; 30; 5 - 1."""
    against, turning = Vehicle(wind_mps=(0.0, -6.0)), Vehicle(3.0, wind_mps=(0.0, -6.0))
    late, wrong = (Event(30, (1,)),), Knowledge(center_error_m=12.5)
    assert budget(World()) == 100
    assert budget(World(vehicle=against)) == 250
    assert budget(World(vehicle=turning)) == 250 + 67
    assert budget(World(vehicle=turning, knowledge=wrong)) == 250 + 67 + 13
    assert budget(World(vehicle=turning, knowledge=wrong, events=late)) == 250 + 67 + 13 + 30
    assert budget(World(vehicle=turning, knowledge=wrong, events=late, hold_steps=5)) == 250 + 67 + 13 + 30 + 4


@pytest.mark.parametrize(("over", "steps"), [(0.0, 20), (0.5e-9, 20), (1.5e-9, 21), (1e-6, 21)])
def test_a_billionth_of_a_step_is_rounding_and_more_is_not(over, steps):
    """20 m at 1 m a step; ten steps against a wind that leaves half of the speed and a trifle less."""
    assert way_steps(20.0 + over, PHYSICS) == steps
    wind = Vehicle(wind_mps=(10.0 * (1.0 - 10.0 / (20.0 + over)), 0.0))
    assert budget(World(vehicle=wind), 10) == steps


@pytest.mark.parametrize(("wind_mps", "share"), [((0.0, 0.0), 1.0), ((3.0, -4.0), 0.5), ((-9.0, 0.0), 0.1)])
def test_the_pace_is_what_the_wind_leaves_of_the_speed(wind_mps, share):
    assert pace(World(vehicle=Vehicle(wind_mps=wind_mps)), PHYSICS) == pytest.approx(share)


def test_four_turns_around_every_known_obstacle_and_one_turning_are_lost():
    discs = (Obstacle(((100.0, 300.0),), 20.0), Obstacle(((100.0, -300.0),), 20.0))
    assert lead_steps(World(vehicle=Vehicle(3.0), obstacles=discs), PHYSICS) == 67 + 8
    assert lead_steps(World(obstacles=discs), PHYSICS) == 8
    assert lead_steps(World(vehicle=Vehicle(3.0), obstacles=discs, knowledge=Knowledge(map=False)), PHYSICS) == 67


def test_the_largest_budget_is_allowed_and_one_step_more_refused():
    assert budget(World(hold_steps=2), LARGEST_BUDGET_STEPS - 1) == LARGEST_BUDGET_STEPS
    with pytest.raises(InputError, match="needs 16,000,001 steps, more than 16,000,000"):
        budget(World(hold_steps=2), LARGEST_BUDGET_STEPS)


def test_a_battery_ends_only_who_is_not_lost_anyway():
    """UAV 1 is struck at step 5, so its battery, empty at step 10, is no event; those of 2 and 3 are."""
    entry = {
        "id": "b", "positions": [[100.0 * k, 0.0] for k in range(6)], "damaged": [0],
        "events": [{"step": 5, "uavs": [1]}], "battery_s": [0.1, 1.0, 2.0, 0.2, 99.0, 99.0],
    }  # fmt: skip
    assert scenario_from_json(entry, "x").world.events == (Event(2, (3,)), Event(5, (1,)), Event(20, (2,)))
