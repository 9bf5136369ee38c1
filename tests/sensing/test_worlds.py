"""What is known in other worlds: centers and rosters that are wrong, missing or drawn for each subnet; detection."""

from dataclasses import replace

import numpy as np
import pytest

from phygail.config import Physics
from phygail.experiments.grid import Grid
from phygail.methods.base import make_method
from phygail.methods.controller import controller, run_episode
from phygail.methods.phygail.graph import DAMAGED, perceive
from phygail.sensing.beliefs import NEVER, SURE
from phygail.sensing.views import Scope
from phygail.sensing.worlds import RebasedBeliefs, WorldObserver, coast_m, unproved
from phygail.swarm.scenario import in_world, make_scenario
from phygail.swarm.simulator import initial_state, step
from phygail.swarm.world import Event, Knowledge, LinkModel, Obstacle, Vehicle, World

PLACES = np.array([[0, 0], [100, 0], [200, 0], [0, 400], [90, 400], [600, 100]], dtype=float)


def views(knowledge, places=PLACES, damaged=(1,), seed=5):
    scenario = make_scenario("k", places, damaged, world=World(knowledge=knowledge, seed=seed, hold_steps=2))
    state = initial_state(scenario)
    return WorldObserver(scenario, state.flight).observe(state, Scope.SUBNET), scenario


def test_the_centroid_of_a_complete_roster_is_the_center_of_every_subnet():
    """WO-9: `center: roster` with a complete roster equals the centroid for every subnet."""
    seen, scenario = views(Knowledge(center="roster"))
    assert seen.count > 1
    assert seen.centers == pytest.approx(np.tile(PLACES.mean(axis=0), (seen.count, 1)))
    assert np.array_equal(seen.roster, scenario.layout)


@pytest.mark.parametrize("name", ["sidr", "reach", "reach-evolved"])
def test_commands_do_not_tell_whether_a_stranger_lives(name):
    """WO-9: G6 holds where centers and rosters are each subnet's own."""
    world = World(knowledge=Knowledge(center="roster", roster_missing=0.3, roster_error_m=40.0), seed=8, hold_steps=2)
    commands = []
    for damaged in ([1], [1, 5]):
        scenario = make_scenario("g6", PLACES, damaged, center=[200, 200], budget_steps=600, world=world)
        command, state = controller(make_method(name), scenario), initial_state(scenario)
        for _ in range(3):
            wanted = command(state)
            state = step(state, wanted)
        commands.append(wanted[:4])
    assert np.array_equal(*commands)


def test_every_copy_of_the_center_is_off_by_the_same_length_in_its_own_direction():
    seen, scenario = views(Knowledge(center_error_m=100.0))
    off = seen.centers - scenario.center
    assert np.hypot(*off.T) == pytest.approx(np.full(seen.count, 100.0))
    assert len(np.unique(off.round(6), axis=0)) == seen.count


def test_a_roster_lacks_entries_and_puts_them_where_the_subnet_meets():
    seen, _scenario = views(Knowledge(roster_hops=1), damaged=(1,))
    for label, view in enumerate(seen):
        known = {0: {0, 1}, 1: {2, 1}, 2: {3, 4}, 3: {5}}[label]
        for uav in range(6):
            if uav in known:
                assert np.array_equal(view.roster[uav], PLACES[uav])
            else:
                assert np.array_equal(view.roster[uav], view.mission.center)


def test_roster_errors_have_their_spread_and_are_the_same_in_every_step():
    places = np.random.default_rng(0).uniform(0, 3000, (400, 2))
    seen, _ = views(Knowledge(roster_error_m=50.0), places, damaged=(), seed=3)
    own = next(iter(seen))
    off = (own.roster - places)[own.lost]
    assert off.std() == pytest.approx(50.0, rel=0.1)
    again, _ = views(Knowledge(roster_error_m=50.0), places, damaged=(), seed=3)
    assert np.array_equal(next(iter(again)).roster, own.roster)


def test_detection_misses_and_false_alarms():
    places = np.stack([np.arange(40) * 40.0, np.zeros(40)], axis=1)
    damaged = [k for k in range(40) if k % 8 >= 4]
    exact, _ = views(Knowledge(), places, damaged)
    missed, _ = views(Knowledge(detect_miss=0.5), places, damaged)
    false, _ = views(Knowledge(detect_false=0.5), places, damaged)
    known = set(exact.damaged_in_range[:, 1].tolist())
    assert set(missed.damaged_in_range[:, 1].tolist()) < known
    added = set(false.damaged_in_range[:, 1].tolist()) - known
    assert added
    assert not added & set(damaged)
    subnet_of = dict(zip(exact.members.tolist(), exact.subnet.tolist(), strict=True))
    for row, who in false.damaged_in_range.tolist():
        assert who in damaged or subnet_of[who] != exact.subnet[row]


def test_a_reconnected_swarm_is_a_new_roster_and_a_new_clock():
    """WORLDS 3.3: after one network, roster, clock and budget count from the step of the next split."""
    scenario = in_world(make_scenario("line", [[0, 0], [100, 0], [200, 0]]), World(events=(Event(5, (1,)),)))
    episode = run_episode(scenario, "sidr", record=True)
    state = episode.states[7]
    assert state.flight.base == 5
    view = WorldObserver(scenario, state.flight).observe(state, Scope.SUBNET)
    assert view.step == 2
    assert view.mission.budget_steps == scenario.budget_steps - 5
    assert np.array_equal(view.roster, episode.states[4].positions)  # everybody hovered until then
    assert view.mission.losses


def test_who_falls_silent_in_our_midst_is_gone_at_once_where_silence_proves_it():
    """Beliefs start at the last known place: a member lost near others is ruled out, one lost far off is not."""
    places = np.array([[0, 0], [100, 0], [200, 0], [100, 80], [900, 900], [300, 0]], dtype=float)
    half = make_method("reach-evolved").policy.belief.depth_half
    for links, depth in ((LinkModel(), SURE), (LinkModel(outage_share=1e-9), np.float32(half))):
        world = World(events=(Event(3, (3, 5)),), links=links)
        scenario = make_scenario("m", places, center=[100, 0], world=world, budget_steps=900)
        method = make_method("reach-evolved")
        command, state = controller(method, scenario), initial_state(scenario)
        for _ in range(4):
            state = step(state, command(state))
        assert isinstance(method._beliefs, RebasedBeliefs)
        (known,) = [k for g, k in method._beliefs._known.items() if g == method._beliefs._group[0]]
        assert known.depths[3] == depth
        assert known.depths[4] == NEVER or known.depths[4] < depth


def test_who_is_lost_in_flight_is_recognized_where_it_fell():
    """A network that reads the damaged in range reads them at that place, not at their spots of the roster."""
    world = World(events=(Event(2, (2,)),))
    state = initial_state(make_scenario("f", PLACES, (1,), world=world))
    observer, move = WorldObserver(state.scenario, state.flight), np.array([0.0, 10.0])
    for _ in range(2):
        state = step(state, np.tile(move, (len(state.positions), 1)))
    near = state.flight.places[2] - [30.0, 0.0]
    state = replace(state, positions=np.vstack([near, state.positions[1:]]))
    graph = perceive(observer.observe(state, Scope.SUBNET), dtype=np.float64)
    fallen = graph.features[graph.types == DAMAGED][:, :2] * observer.mission.width_m / 2 + observer.mission.center
    assert fallen == pytest.approx(np.array([[100.0, 0.0], [200.0, 2.0]]))


def test_links_have_the_way_to_stop_in_hand():
    assert coast_m(Vehicle(3.0), 10.0) == pytest.approx(100 / 6)
    assert coast_m(Vehicle(5.0, 0.1), 10.0) == pytest.approx(11.0)
    assert coast_m(Vehicle(), 10.0) == 0.0


def test_redundant_networks_end_without_a_critical_uav():
    """Redundancy: the flight goes on until no single UAV would split the network."""
    scenario = Grid((30,), (0.5,), 1, 12, world="redundant").scenario(0)
    episode = run_episode(scenario, "reach-evolved", record=True)
    assert episode.terminated
    assert not episode.states[-1].flight.critical
    plain = run_episode(
        replace(scenario, world=replace(scenario.world, redundant=False, hold_steps=2)), "reach-evolved"
    )
    assert plain.metrics.first_step == episode.metrics.first_step


def test_conditions_of_the_argument():
    """Each condition of docs/worlds.md, met and not met."""
    places = np.array([[0.0, 0.0], [200.0, 0.0], [60.0, 50.0]])
    wall = Obstacle(((140.0, 20.0), (140.0, 60.0)), 5.0)

    def why(world, **settings):
        return unproved(make_scenario("u", places, world=world, **settings))

    assert why(World(hold_steps=2)) == why(World(obstacles=(wall,))) == ""
    assert why(World(obstacles=(wall,), knowledge=Knowledge(map=False))) == "nobody knows the obstacles"
    assert "stride" in why(World(obstacles=(wall,)), physics=Physics(speed_mps=40.0))
    assert why(World(vehicle=Vehicle(3.0))) == ""
    assert "stopping" in why(World(vehicle=Vehicle(1.0)))
    assert why(World(knowledge=Knowledge(center_error_m=50.0))) == ""
    assert "farther apart" in why(World(knowledge=Knowledge(center="none")))
    assert why(World(altitude=(0.0, 100.0, 200.0))) == ""
    assert "heights" in why(World(altitude=(0.0, 100.0, 230.0)))
