"""Worlds beyond the paper's: losses in flight, what they leave of the rest, and the plain world as it was."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import phygail
from phygail.config import InputError, Physics
from phygail.experiments.grid import Grid
from phygail.methods import METHODS
from phygail.methods.base import make_method
from phygail.methods.controller import controller, fly_case, run_episode
from phygail.swarm.recipe import canonical, parse_world, with_world
from phygail.swarm.scenario import (
    in_world,
    load_scenarios,
    make_scenario,
    save_scenarios,
    scenario_from_json,
    scenario_to_json,
    transform,
)
from phygail.swarm.simulator import SwarmState, fly, initial_state, step
from phygail.swarm.tree import bound_for, bound_steps
from phygail.swarm.world import Event, LinkModel, Obstacle, Vehicle, World, draw, losses, turn_steps, wait_steps

FAST = ("sidr", "reach", "reach-evolved", "center-fly", "hero", "bridge", "convex", "cr-ma", "phygail-taught", "cist")
PACKAGE = Path(phygail.__file__).parent
LINE = [[0.0, 0.0], [100.0, 0.0], [200.0, 0.0]]


def drawn(spec, uavs=40, ratio=0.5, case=0, seed=770):
    return with_world(Grid((uavs,), (ratio,), case + 1, seed).scenario(case), parse_world(spec))


def test_the_default_world_is_plain_and_any_option_is_not():
    assert World().plain
    assert World(seed=7, text="x").plain
    assert not World(hold_steps=2).plain
    assert not World(events=(Event(3, (1,)),)).plain
    assert initial_state(make_scenario("a", LINE)).flight is None


def test_a_plain_step_calls_nothing_new():
    """WO-1: a step of the plain world calls what it did before there were others, and tests one attribute more."""

    class Watched(SwarmState):
        def __getattribute__(self, name):
            if name != "__class__":
                read.append(name)
            return super().__getattribute__(name)

    plain = initial_state(Grid((40,), (0.5,), 1, 5).scenario(0))
    read = []
    state = Watched(plain.scenario, plain.positions, plain.velocities, plain.step)
    called, commands = [], np.ones_like(plain.positions)
    read.clear()
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code) if event == "call" else None)
    try:
        after = step(state, commands)
    finally:
        sys.setprofile(None)
    ours = [code.co_qualname for code in called if code.co_filename.startswith(str(PACKAGE))]
    assert ours == ["step", "project_speed", "SwarmState.__post_init__"]
    assert read.count("flight") == 1
    assert set(read) == {"scenario", "positions", "step", "flight"}
    assert after.flight is None


def test_hold_of_one_step_and_no_event_flies_as_the_plain_world():
    """A flight under the world's own step, with nothing in it, is that of the plain world bit for bit."""
    for name in ("sidr", "reach", "reach-evolved", "convex"):
        plain = Grid((40,), (0.5,), 1, 6).scenario(0)
        other = replace(plain, world=World(hold_steps=2), budget_steps=plain.budget_steps + 1)
        one, two = run_episode(plain, name, record=True), run_episode(other, name, record=True)
        for a, b in zip(one.states, two.states, strict=False):
            assert np.array_equal(a.positions, b.positions)
        assert two.steps == one.steps + 1
        assert two.metrics.split_steps == one.steps


def test_event_removes_exactly_these_uavs_at_its_step():
    """WO-5: an event at step k removes exactly its UAVs at k; a strike of radius 0 kills one."""
    scenario = in_world(
        make_scenario("e", [*LINE, [300.0, 0.0]]), World(events=(Event(3, (1,)), Event(5, near_random=0.0)))
    )
    states = fly(scenario, lambda s: np.zeros_like(s.positions), record=True).states
    assert [len(s.members) for s in states[:6]] == [4, 4, 4, 3, 3, 2]
    assert states[3].members.tolist() == [0, 2, 3]
    assert states[-1].flight.died[1] == 3
    assert not states[-1].flight.spared


def test_strikes_hit_everybody_in_the_disc_and_spare_the_last_two():
    """WO-5: where fewer than two would be left, two are spared and the row says so."""
    scenario = make_scenario("e", LINE)
    places = scenario.layout
    world = World(events=(Event(1, strike=(0.0, 0.0, 100.0)),))
    lost = losses(world, 1, scenario.alive, places)[0].tolist()  # 0 and 1 are hit, which would leave one alone
    assert len(lost) == 1
    assert lost[0] in (0, 1)
    assert losses(world, 1, scenario.alive, places)[1]
    assert losses(world, 2, scenario.alive, places) == (pytest.approx(np.empty(0)), False)
    episode, _method = fly_case(in_world(scenario, world), "sidr")
    assert episode.spared
    assert episode.metrics.alive_end == 2


def test_three_in_a_line_lose_the_middle():
    """WO-6: subnets 1 -> 2 at step 5, one re-split, sidr is one network again at step 45 = 5 + (200 - 120) / 2."""
    scenario = in_world(make_scenario("line", LINE), World(events=(Event(5, (1,)),)))
    episode = run_episode(scenario, "sidr", record=True)
    assert [s.links.count for s in episode.states[:7]] == [1, 1, 1, 1, 1, 2, 2]
    metrics = episode.metrics
    assert (episode.terminated, episode.steps, metrics.resplits, metrics.split_steps) == (True, 45, 1, 40)
    assert metrics.first_step == 0
    assert metrics.alive_end == 2
    assert metrics.connected_share == pytest.approx(6 / 46)
    assert metrics.largest_share == pytest.approx((6 + 40 * 0.5) / 46)
    assert bound_for(scenario) == 40  # from t = 0 the ends could have met in 40 steps; the event comes earlier


def test_draws_are_pure_functions_of_their_key():
    """WO-4: the same (purpose, step, i, j) gives the same draw whatever the order of the rows or their number."""
    i, j = np.array([3, 1, 7]), np.array([5, 9, 8])
    whole = draw(42, "x", 7, i, j)
    assert draw(42, "x", 7, i[::-1], j[::-1])[::-1].tolist() == whole.tolist()
    assert float(draw(42, "x", 7, 1, 9)) == whole[1]
    assert not np.isclose(draw(42, "y", 7, i, j), whole).any()
    assert not np.isclose(draw(43, "x", 7, i, j), whole).any()
    many = draw(1, "u", 0, np.arange(100_000))
    assert abs(many.mean() - 0.5) < 3 * math.sqrt(1 / 12 / 1e5)
    assert ((many > 0) & (many < 1)).all()
    assert abs(np.corrcoef(many[1:], many[:-1])[0, 1]) < 0.02


def test_two_methods_meet_the_same_trickle():
    scenario = drawn("trickle=0.3:60")
    died = [run_episode(scenario, name, record=True).states[-1].flight.died for name in ("sidr", "reach")]
    assert np.array_equal(*died)
    assert (died[0] > 0).sum() == 6


@pytest.mark.parametrize("name", list(FAST))
@pytest.mark.parametrize("spec", ["waves=3:20:100 hold=3", "trickle=0.3:60"])
def test_every_method_survives_losses_in_flight(name, spec):
    """WO-12: G1 (speed), G5 (finite) for every method while UAVs are lost."""
    episode, method = fly_case(drawn(spec), name, safety=True, record=True)
    for state in episode.states:
        assert np.isfinite(state.positions).all()
        assert np.hypot(*state.velocities.T).max(initial=0.0) <= 10.0 + 1e-9
        assert len(state.positions) == len(state.members)
    if METHODS.get(name).scope == "global" and any(
        s.flight.lost_now(s.step) and not s.flight.whole for s in episode.states[1:-1]
    ):
        assert "replan" in method.flag


def test_a_shifted_and_turned_world_gives_the_shifted_and_turned_flight():
    """WO-12: G3 and G4 with events by place: what turns along, turns along."""
    scenario = make_scenario("t", np.array([*LINE, [260.0, 90.0], [60.0, 70.0]]), center=[120.0, 30.0])
    scenario = in_world(scenario, World(events=(Event(4, strike=(100.0, 0.0, 20.0)),), seed=3))
    plain = run_episode(scenario, "reach-evolved", record=True)
    turned = run_episode(transform(scenario, 5), "reach-evolved", record=True)
    assert plain.steps == turned.steps
    assert plain.metrics.resplits == turned.metrics.resplits
    mirrored = plain.states[-1].positions - scenario.center
    from phygail.swarm.scenario import D4

    assert np.allclose(mirrored @ D4[5].T + scenario.center, turned.states[-1].positions, atol=1e-6)


def test_commands_do_not_depend_on_a_uav_of_another_subnet():
    """WO-12: G6 under losses: whether somebody far away lives changes no command of the others."""
    places = np.array([[0, 0], [100, 0], [200, 0], [0, 400], [90, 400], [3000, 3000]], dtype=float)
    world = World(events=(Event(2, (1,)),))
    for name in ("sidr", "reach", "reach-evolved"):
        moves = []
        for damaged in ([], [5]):
            scenario = make_scenario("g6", places, damaged, center=[100.0, 200.0], budget_steps=900, world=world)
            command = controller(make_method(name), scenario)
            state = initial_state(scenario)
            for _ in range(6):
                wanted = command(state)
                moves.append(wanted[: 5 if state.step < 2 else 4])
                state = step(state, wanted)
        for a, b in zip(moves[:6], moves[6:], strict=True):
            assert np.allclose(a, b, atol=1e-9), name


def test_scenario_files_carry_their_world(tmp_path):
    for spec in ("waves=3:40:150 hold=10", "trickle=0.3:100", "battery=20:5"):
        scenario = drawn(spec)
        save_scenarios(tmp_path / "cases.json", [scenario])
        (again,) = load_scenarios(tmp_path / "cases.json")
        assert again.world == scenario.world
        assert again.budget_steps == scenario.budget_steps
        assert again.world.label() == spec == canonical(parse_world(spec))
        assert run_episode(again, "sidr").steps == run_episode(scenario, "sidr").steps
    plain = Grid((40,), (0.5,), 1, 770).scenario(0)
    assert set(scenario_to_json(plain)) == {"id", "width", "center", "positions", "damaged", "range_m", "speed_mps",
                                            "step_s", "contact_m", "budget_steps", "seed"}  # fmt: skip


def test_batteries_of_a_file_become_events():
    entry = {"id": "b", "positions": [*LINE, [300, 0]], "damaged": [0], "battery_s": [0, 1.0, 2.05, 99]}
    scenario = scenario_from_json(entry, "x")
    assert scenario.world.events == (Event(10, (1,)),)  # two hold on, whatever their charge


def test_bounds_by_option():
    """Bounds of WORLDS 3.4: events by name count the final survivors and the last event; drawn strikes have none."""
    pair = make_scenario("p", [[0, 0], [180, 0], [90, 10]], [2])
    assert bound_for(pair) == bound_steps(pair.spots, pair.physics) == 30
    assert bound_for(in_world(pair, World(hold_steps=5))) == 34
    three = make_scenario("q", [[0, 0], [180, 0], [90, 10]])
    assert bound_for(in_world(three, World(events=(Event(4, (2,)),)))) == 30
    assert bound_for(in_world(three, World(events=(Event(50, (2,)),)))) == 50
    assert bound_for(in_world(three, World(events=(Event(50, strike=(0, 0, 1)),)))) == 50
    assert bound_for(in_world(three, World(events=(Event(50, near_random=1.0),)))) is None


@pytest.mark.parametrize(("entry", "words"), [
    ({"events": [{"step": 0, "uavs": [1]}]}, "event 0: step 0"),
    ({"events": [{"step": 9999, "uavs": [1]}], "budget_steps": 50}, "budget of 50"),
    ({"events": [{"step": 2, "uavs": [3]}]}, "out of range"),
    ({"events": [{"step": 2, "uavs": [0]}], "damaged": [0]}, "lost already"),
    ({"events": [{"step": 2, "uavs": [1]}, {"step": 3, "uavs": [1]}]}, "lost already"),
    ({"events": [{"step": 2, "uavs": [0, 1]}]}, "at least 2 must stay alive"),
    ({"events": [{"step": 5, "strike": [100, 0, 105]}]}, "at least 2 must stay alive"),  # nobody can flee that far
    ({"events": [{"step": 2}]}, "one of uavs, strike, near_random"),
    ({"events": 3}, "give a list"),
    ({"hold_steps": 0}, "hold_steps 0"),
    ({"altitude": [1, 2]}, "2 altitudes for 3 positions"),
    ({"battery_s": [1]}, "1 values of battery_s"),
    ({"links": {"model": "laser"}}, "links.model 'laser': choose disc, rician"),
    ({"links": {"heard": [11, 10]}}, "heard [11, 10]"),
    ({"links": {"heard": [1, 0]}}, "heard [1, 0]"),
    ({"links": {"drop": 10}}, "drop 10"),
    ({"links": {"outage": 1}}, "outage 1"),
    ({"links": {"k_db": float("nan")}}, "k_db nan"),
    ({"links": {"shadow_s": 0}}, "shadow_s 0"),
    ({"links": {"outage_share": 1}}, "outage_share 1"),
    ({"links": {"speed": 1}}, "unknown key 'speed'"),
    ({"vehicle": {"accel_mps2": 0}}, "accel_mps2 0"),
    ({"vehicle": {"wind_mps": [10, 0]}}, "below the speed limit"),
    ({"knowledge": {"center": "moon"}}, "knowledge.center 'moon'"),
    ({"knowledge": {"center": "roster", "roster_missing": 1}}, "nobody knows where to meet"),
    ({"obstacles": [{"disc": [100, 0, 20]}]}, "obstacle 0 contains UAV 1"),
    ({"obstacles": [{"disc": [100, 60, 10]}], "center": [100, 60]}, "contains the center"),
    ({"obstacles": [{"polygon": [[0, 50], [10, 50]]}]}, "at least 3 corners"),
    ({"obstacles": [{"polygon": [[0, 50], [20, 50], [10, 55], [20, 70]]}]}, "split it"),
    ({"obstacles": [{"polygon": [[0, 50], [20, 70], [20, 50], [0, 70]]}]}, "split it"),
    ({"obstacles": [{"disc": [float("nan"), 0, 1]}]}, "finite number"),
    ({"obstacles": [{"wall": [-40, -40, 40, -40, 6]}, {"wall": [40, -40, 40, 40, 6]}, {"wall": [40, 40, -40, 40, 6]},
                    {"wall": [-40, 40, -40, -40, 6]}]}, "UAV 0 cannot leave"),
])  # fmt: skip
def test_bad_worlds_are_one_line(entry, words):
    """WORLDS 3.9: every bad input is one line that names it."""
    whole = {"id": "bad", "positions": LINE, "damaged": [], **entry}
    with pytest.raises(InputError) as error:
        scenario_from_json(whole, "f.json")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("spec", "words"), [
    ("waves=3:40", "write COUNT:EVERY:RADIUS"),
    ("waves=x:40:1", "'x' is not a number"),
    ("trickle=1:10", "from 0 to 0.999"),
    ("shadow=3", "write shadow alone"),
    ("obstacles=8:80-40", "the smallest radius 80 is above the largest 40"),
    ("shadow", "needs --obstacles or --walls"),
    ("level", "needs --altitude-spread"),
    ("no-center=x", "choose roster"),
    ("foo=1", "unknown option 'foo'"),
    ("hold=3 hold=4", "given twice"),
    ("links=laser", "choose disc or rician"),
    ("links=rician:q=3", "unknown part 'q'"),
    ("links=rician:heard=9", "no number"),
    ("hold", "write hold=STEPS"),
])  # fmt: skip
def test_bad_options_are_one_line(spec, words):
    with pytest.raises(InputError) as error:
        parse_world(spec)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_world_is_refused_in_a_batch_and_in_the_environment():
    from phygail.envs.recovery_v0 import parallel_env
    from phygail.swarm.batch import initial_batch

    scenario = drawn("hold=3")
    with pytest.raises(InputError, match="flies the plain world"):
        initial_batch([scenario])
    with pytest.raises(InputError, match="flies the plain world"):
        parallel_env(scenarios=[scenario]).reset(seed=1)


def test_other_radios_keep_their_worlds():
    scenario = with_world(Grid((30,), (0.5,), 1, 3, Physics(range_m=300.0)).scenario(0), parse_world("waves=2:30:300"))
    episode = run_episode(scenario, "reach-evolved")
    assert episode.terminated


def test_what_a_subnet_sees_does_not_depend_on_the_fading_of_another():
    """WO-11: views of one subnet are equal whatever fading does inside another."""
    from phygail.sensing.views import Scope
    from phygail.sensing.worlds import WorldObserver
    from phygail.swarm.world import LinkModel

    places = np.array([[0, 0], [60, 0], [110, 30], [2000, 0], [2080, 0], [2050, 60]], dtype=float)
    seen = []
    for moved in (0.0, 70.0):  # the far subnet fades in another place
        layout = places.copy()
        layout[3:] += [moved, moved / 2]
        world = World(links=LinkModel("rician", 8.0, shadow_db=3.0, outage_share=0.2), seed=6)
        scenario = make_scenario("f", layout, center=[0.0, 0.0], budget_steps=50, world=world)
        state = initial_state(scenario)
        for _ in range(5):
            state = step(state, np.zeros_like(state.positions))
        view = WorldObserver(scenario, state.flight).observe(state, Scope.SUBNET)
        mine = view.subnet[0]
        pairs = [pair for pair in view.pairs.tolist() if max(pair) < 3]
        seen.append((pairs, view.positions[view.subnet == mine].tolist(), view.subnet[:3].tolist()))
    assert seen[0] == seen[1]


def test_budgets_grow_by_what_a_world_takes():
    """Turning around at 3 m/s^2 loses 2 v / a = 6.67 s; the way around a wall is longer; a link must hold."""
    physics = Physics()
    assert turn_steps(Vehicle(), physics) == 0
    assert turn_steps(Vehicle(3.0), physics) == 67
    assert turn_steps(Vehicle(5.0, 0.25), physics) == 45
    assert wait_steps(LinkModel(), 10, 0.1) == 9
    assert wait_steps(LinkModel(outage_share=1e-9), 1, 0.1) == 41  # one attempt: two mean outages and the step
    # P = e^(-1/3): 1 + ln(1e-4 / (1 - 0.6 P)) / ln(1 - P) = 7.86 attempts of 4 s + 1 s
    assert wait_steps(LinkModel(outage_share=0.4), 10, 0.1) == 9 + 394
    places = np.array([[0.0, 0.0], [400.0, 0.0]])
    plain = make_scenario("b", places)
    wall = Obstacle(((100.0, -150.0), (100.0, 150.0)), 5.0)
    around = make_scenario("b", places, world=World(obstacles=(wall,)))
    way = 2 * math.hypot(100.0, 158.0) - 1.0  # a little longer than over the end of the wall itself
    assert plain.budget_steps == 320
    assert around.budget_steps >= way + 4
    assert make_scenario("b", places, world=World(vehicle=Vehicle(3.0))).budget_steps == 320 + 67
    assert make_scenario("b", places, world=World(vehicle=Vehicle(wind_mps=(6.0, 0.0)))).budget_steps == 800
    with pytest.raises(InputError, match="this world needs"):
        make_scenario("b", places, world=World(vehicle=Vehicle(1e-7)))


def test_where_links_fail_the_clock_runs_on():
    """A network that splits because a link is out is no new case; one that loses somebody is."""
    layout = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 60.0]])
    world = World(links=LinkModel(outage_share=0.5, outage_s=0.5), hold_steps=400, seed=3)
    state = initial_state(make_scenario("c", layout, world=world, budget_steps=500))
    bases = set()
    for _ in range(200):
        state = step(state, np.zeros_like(state.positions))
        bases.add(state.flight.base)
    assert bases == {0}
