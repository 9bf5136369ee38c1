"""WO-12: what every method of the registry must satisfy (METHODS 2.7), under each option of docs/worlds.md."""

from dataclasses import replace

import numpy as np
import pytest

from phygail.experiments.grid import Grid
from phygail.methods import METHODS
from phygail.methods.base import make_method, why_not
from phygail.methods.controller import controller, run_episode
from phygail.sensing.views import Scope
from phygail.swarm.recipe import parse_world, with_world
from phygail.swarm.scenario import D4, make_scenario, transform
from phygail.swarm.simulator import initial_state, step
from phygail.swarm.world import Event, Knowledge, LinkModel, Obstacle, Vehicle, World

SLOW = ("cr-mgc", "demd", "gdr-ts")  # they optimize for seconds; tests of their own fly them
EVERY = [name for name in METHODS if name not in SLOW and not why_not(name)]
DECENTRALIZED = [name for name in EVERY if METHODS.get(name).scope is not Scope.GLOBAL]
OPTIONS = (
    "waves=2:4:60", "trickle=0.3:10", "obstacles=2:15-25", "walls=1:60 shadow", "outages=0.3:1 hold=3",
    "links=rician:k=8,shadow=3 hold=3", "center-error=100", "no-center=roster roster-missing=0.3 roster-error=30",
    "no-center=own", "detect-false=0.3", "accel=3 lag=0.25", "wind=3", "altitude-spread=30", "altitude-spread=30 level",
)  # fmt: skip
WORLDS = {
    "losses": World(events=(Event(2, (1,)),), seed=8),
    "outages": World(links=LinkModel(outage_share=0.3, outage_s=0.3), seed=8),
    "fading": World(links=LinkModel("rician", 8.0, shadow_db=3.0), seed=8),
    "obstacles": World(obstacles=(Obstacle(((100.0, 150.0),), 40.0),), seed=8),
    "center": World(knowledge=Knowledge(center_error_m=60.0), seed=8),
    "roster": World(knowledge=Knowledge(center="roster", roster_missing=0.3, roster_error_m=40.0), seed=8),
    "inertia": World(vehicle=Vehicle(3.0, 0.25), seed=8),
    "wind": World(vehicle=Vehicle(wind_mps=(2.0, -1.0)), seed=8),
    "heights": World(altitude=(100.0, 130.0, 90.0, 100.0, 140.0, 100.0), seed=8),
}
PLACES = np.array([[0, 0], [90, 0], [180, 20], [0, 400], [90, 400], [3000, 3000]], dtype=float)


@pytest.mark.parametrize("spec", OPTIONS)
def test_every_method_keeps_speed_and_finite_numbers(spec):
    """G1 (over ground with wind) and G5, for 8 steps."""
    scenario = with_world(Grid((24,), (0.6,), 1, 771).scenario(0), parse_world(spec))
    scenario = replace(scenario, budget_steps=8)
    wind = np.hypot(*scenario.world.vehicle.wind_mps)
    for name in EVERY:
        for state in run_episode(scenario, name, safety=True, record=True).states:
            assert np.isfinite(state.positions).all(), name
            assert np.hypot(*state.velocities.T).max() <= 10.0 + wind + 1e-9, name


@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_no_command_tells_whether_a_stranger_lives(world):
    """G6: the last UAV, out of everybody's reach, is alive or damaged; the others fly the same."""
    for name in DECENTRALIZED:
        commands = []
        for damaged in ([], [5]):
            scenario = make_scenario("g6", PLACES, damaged, center=[100, 200], budget_steps=900, world=world)
            command, state = controller(make_method(name), scenario), initial_state(scenario)
            for _ in range(4):
                wanted = command(state)
                mine = state.members < 5
                commands.append(wanted[mine])
                state = step(state, wanted)
        for a, b in zip(commands[:4], commands[4:], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-4, err_msg=name)  # networks of single precision


@pytest.mark.parametrize("key", ["losses", "outages", "fading", "obstacles", "inertia", "wind", "heights"])
def test_a_world_turned_along_gives_the_turned_flight(key):
    """G3 and G4: obstacles, wind and places turn along, the draws of pairs follow the roster."""
    places = np.vstack([PLACES[:5], [[320, 260]]])
    scenario = make_scenario("turn", places, center=[103, 197], budget_steps=900, world=WORLDS[key])
    for name in ("sidr", "reach", "reach-evolved"):
        flown = []
        for case in (scenario, transform(scenario, 5)):
            command, state = controller(make_method(name), case), initial_state(case)
            for _ in range(6):
                state = step(state, command(state))
            flown.append(state.positions - case.center)
        np.testing.assert_allclose(flown[0] @ D4[5].T, flown[1], atol=1e-6, err_msg=name)
