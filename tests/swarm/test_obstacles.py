"""Obstacles: nobody enters, whoever has the map flies around."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from phygail.config import Physics
from phygail.experiments.grid import Grid
from phygail.methods.controller import run_episode
from phygail.methods.steering import go
from phygail.swarm.obstacles import MAP_MARGIN, Map, Shapes, _no_ring, closed_in, map_of, shapes_of
from phygail.swarm.recipe import parse_world, with_world
from phygail.swarm.scenario import make_scenario
from phygail.swarm.simulator import fly
from phygail.swarm.soak import soak_case
from phygail.swarm.world import Knowledge, Obstacle, Vehicle, World

DISC = Obstacle(((100.0, 0.0),), 30.0)
SQUARE = Obstacle(((0.0, 0.0), (40.0, 0.0), (40.0, 40.0), (0.0, 40.0)))
WALL = Obstacle(((100.0, -125.0), (100.0, 125.0)), 5.0, radio=False)


def test_distances_to_all_kinds():
    shapes = Shapes.of((DISC, SQUARE, WALL))
    distance, away = shapes.nearest(np.array([[100.0, 80.0], [20.0, 60.0], [20.0, 20.0]]))
    assert distance[0, 0] == pytest.approx(50.0)
    assert distance[1, 1] == pytest.approx(20.0)
    assert distance[2, 1] == pytest.approx(-20.0)  # inside
    assert distance[1, 2] == pytest.approx(75.0)
    assert away[1, 1] == pytest.approx([0.0, 1.0])
    assert away[0, 0] == pytest.approx([0.0, 1.0])


def test_clear_ways_agree_with_points_along_them():
    """The distance of a way is that of its nearest point: 300 random ways against 400 points on each."""
    shapes, rng = Shapes.of((DISC, SQUARE, WALL)), np.random.default_rng(3)
    start, end = rng.uniform(-150, 250, (2, 300, 2))
    outside = (shapes.depth_m(start) < 0) & (shapes.depth_m(end) < 0)
    start, end = start[outside], end[outside]
    along = start[:, None] + np.linspace(0, 1, 400)[:, None] * (end - start)[:, None]
    nearest = -shapes.depth_m(along.reshape(-1, 2)).reshape(len(start), -1).max(axis=1)
    clear = shapes.clear(start, end, 2.0)
    sure = np.abs(nearest - 2.0) > 1.0
    assert np.array_equal(clear[sure], (nearest >= 2.0)[sure])


def test_the_way_around_a_disc_is_tangent_arc_tangent():
    """WO-7: nobody comes nearer to the disc's middle than r; the path is at least the geodesic and close to it."""
    world = World(obstacles=(Obstacle(((200.0, 0.0),), 60.0),))
    layout = [[0.0, 0.0], [400.0, 0.0], [200.0, 200.0]]
    scenario = make_scenario("d", layout, [2], center=[400.0, 0.0], world=world, budget_steps=600)
    flown = []

    def alone(state):
        flown.append(state.positions[0])
        wanted = np.zeros_like(state.positions)
        wanted[0] = go(state.positions[:1], np.array([[400.0, 0.0]]), scenario.physics, Map(world.obstacles, 3.0))[0]
        return wanted

    episode = fly(scenario, alone, record=True)
    path = np.array([s.positions[0] for s in episode.states])
    assert np.hypot(*(path - [200.0, 0.0]).T).min() >= 60.0
    goal = path[-1]
    length = np.hypot(*np.diff(path, axis=0).T).sum()
    assert length >= math.hypot(*(goal - path[0]))
    chord = 2 * math.sqrt(200**2 - 60**2) + 60 * (math.pi - 2 * math.acos(60 / 200))
    whole = length + math.hypot(*(goal - [400.0, 0.0]))
    assert chord - 1e-6 <= whole <= 1.03 * chord


def test_a_wall_between_two_that_face_each_other():
    """WO-8: behind a wall that blocks radio they stand still for ever; with the map they meet at its end."""
    pair = [[0.0, 0.0], [200.0, 0.0], [100.0, 300.0]]
    for known, met in ((False, False), (True, True)):
        world = World(obstacles=(WALL,), knowledge=Knowledge(map=known))
        scenario = make_scenario("w", pair, [2], center=[200.0, 0.0], world=world, budget_steps=500)
        episode = run_episode(scenario, "sidr", record=True)
        assert episode.terminated is met
        assert Shapes.of((WALL,)).depth_m(np.concatenate([s.positions for s in episode.states])).max() <= 0.0
    glass = World(obstacles=(Obstacle(WALL.corners, 5.0),))
    scenario = make_scenario("w", pair, [2], center=[200.0, 0.0], world=glass, budget_steps=500)
    assert run_episode(scenario, "sidr").steps <= episode.steps


@pytest.mark.parametrize("vehicle", [Vehicle(), Vehicle(3.0), Vehicle(5.0, 0.25), Vehicle(wind_mps=(3.0, 2.0))])
def test_nobody_enters_whatever_is_commanded(vehicle):
    """Random commands at full speed, also with inertia and wind: in continuous time nobody is inside."""
    obstacles = (DISC, SQUARE, Obstacle(((-60.0, 40.0), (-20.0, 120.0)), 4.0))
    layout = np.array([[-30.0, 0.0], [60.0, 60.0], [150.0, 20.0], [20.0, -40.0], [-80.0, 90.0], [60.0, 110.0]])
    scenario = make_scenario("r", layout, center=[200.0, 200.0], budget_steps=120,
                             world=World(obstacles=obstacles, vehicle=vehicle, hold_steps=120))  # fmt: skip
    rng, aim = np.random.default_rng(0), {}

    def wild(state):
        if state.step % 25 == 0:
            aim["v"] = rng.normal(size=state.positions.shape) * 20
        return aim["v"]

    states = fly(scenario, wild, record=True, safety=True).states
    shapes = Shapes.of(obstacles)
    for a, b in itertools.pairwise(states):
        for share in (0.25, 0.5, 0.75, 1.0):
            assert shapes.depth_m(a.positions + share * (b.positions - a.positions)).max() <= 0.0


def test_drawn_walls_leave_every_start_a_way():
    for spec in ("walls=5:250", "obstacles=6:30-60"):
        scenario = Grid((50,), (0.75,), 1, 31, world=spec).scenario(0)
        shapes = Shapes.of(scenario.world.obstacles)
        assert not len(closed_in(shapes, scenario.spots, scenario.center))
        assert shapes.depth_m(scenario.spots).max() < -10
        again = Grid((50,), (0.75,), 1, 31, world=spec).scenario(0)
        assert again.world == scenario.world


@pytest.mark.parametrize("name", ["reach-evolved", "reach", "sidr"])
def test_reconnects_among_walls(name):
    scenario = Grid((40,), (0.75,), 1, 32, world="walls=3:200").scenario(0)
    assert run_episode(scenario, name, safety=True).terminated


def test_go_without_a_map_is_straight():
    physics = Physics()
    here, there = np.array([[0.0, 0.0]]), np.array([[200.0, 0.0]])
    assert go(here, there, physics) == pytest.approx(np.array([[10.0, 0.0]]))
    around = go(here, there, physics, Map((DISC,), 3.0))
    assert abs(around[0, 1]) > 2.0
    assert go(here, np.array([[60.0, 0.0]]), physics, Map((DISC,), 3.0)) == pytest.approx(np.array([[10.0, 0.0]]))


def test_rings_of_obstacles_are_told_from_rows():
    """Four walls that touch in a ring may enclose; three of them, or four in a row, cannot."""
    corners = [(0.0, 0.0), (100.0, 0.0), (100.0, 100.0), (0.0, 100.0)]
    ring = tuple(Obstacle((a, b), 5.0) for a, b in zip(corners, corners[1:] + corners[:1], strict=True))
    assert not _no_ring(shapes_of(ring), 15.0)
    assert _no_ring(shapes_of(ring[:3]), 15.0)
    inside = np.array([[50.0, 50.0]])
    assert closed_in(shapes_of(ring), inside, np.array([300.0, 0.0])).tolist() == [0]
    assert closed_in(shapes_of(ring[:3]), inside, np.array([300.0, 0.0])).tolist() == []


def test_who_is_in_a_notch_backs_out():
    """Deep between two discs that touch no post is in sight: the way leads out, and counts the way around both."""
    discs = (Obstacle(((0.0, 0.0),), 40.0), Obstacle(((0.0, 80.0),), 40.0))
    chart = Map(discs, 3.0)
    goal, notch = np.array([[-300.0, 40.0]]), np.array([[0.5, 40.0]])
    (turn,), (length,) = chart.ways(notch, goal)
    assert turn[0] > 0.5
    assert turn[1] == pytest.approx(40.0)
    assert length == pytest.approx(300.5 + 2 * np.pi * 43.0)
    scenario = make_scenario("n", [[0.5, 40.0], [-300.0, 40.0]], center=[-300.0, 40.0], world=World(obstacles=discs))
    assert run_episode(scenario, "sidr").terminated


def test_a_gap_is_passed_if_it_is_the_only_way():
    """Four discs around the center: two touch, the widest gap has 4 m, less than two margins of 3 m."""
    places, radii = [(72.0, 0.0), (0.0, 72.0), (-72.0, 0.0), (0.0, -72.0)], (48.91, 48.91, 50.91, 50.91)
    discs = tuple(Obstacle((place,), radius) for place, radius in zip(places, radii, strict=True))
    start, center = np.array([[200.0, 200.0]]), np.array([[0.0, 0.0]])
    way = Map(discs, 3.0).ways(start, center)[1][0]
    assert 282.8 < way < 1.1 * 282.9
    (turn,) = Map(discs, 3.0).next_points(np.array([[36.0, 36.0]]), center)
    assert turn == pytest.approx([0.0, 0.0])


@pytest.mark.parametrize(("spec", "number"), [
    ("walls=3:200", 5150), ("walls=3:200", 5798), ("walls=3:200", 8113),
    ("obstacles=4:40-80", 1453), ("obstacles=4:40-80", 7786), ("obstacles=4:40-80", 8057),
    ("walls=3:200", 2), ("obstacles=4:40-80", 5),
])  # fmt: skip
def test_whoever_follows_a_way_comes_nearer_with_every_step(spec, number):
    """The length of the way falls by what is flown. In the first six a UAV stepped to and fro, or away, for ever:

    from a post the last leg of a way passed obstacles at any distance, from the air it had to keep the margin.
    """
    scenario = with_world(soak_case(2029, number), parse_world(spec))
    chart = map_of(scenario.world.obstacles, MAP_MARGIN * scenario.physics.contact_m)
    center, stride = scenario.center, scenario.physics.stride_m
    lengths = []

    def follow(state):
        lengths.append(chart.ways(state.positions, center)[1])
        return go(state.positions, center, scenario.physics, chart)

    world = replace(scenario.world, hold_steps=scenario.budget_steps)
    states = fly(replace(scenario, world=world), follow, record=True).states
    flown = np.array([np.hypot(*(b.positions - a.positions).T) for a, b in itertools.pairwise(states)])
    fall = -np.diff(lengths, axis=0)
    assert (fall >= flown[: len(fall)] - 1e-6 * stride).all()
    assert np.hypot(*(states[-1].positions - center).T).max() < 1e-6
