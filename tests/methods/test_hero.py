from itertools import pairwise

import numpy as np
import pytest

from phygail.config import InputError
from phygail.methods.controller import controller, run_episode
from phygail.methods.hero import Hero
from phygail.sensing.views import Observer, Scope
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.simulator import SwarmState, initial_state, step

FAR = [5000.0, 5000.0]  # one UAV that keeps the swarm split


def fly_on(scenario, method, steps):
    """All states of a flight that does not stop at the reconnection."""
    states = [initial_state(scenario)]
    fly = controller(method, scenario)
    for _ in range(steps):
        states.append(step(states[-1], fly(states[-1])))
    return states


def commands(method, scenario, positions, t=0):
    state = SwarmState(scenario, np.array(positions, dtype=float), np.zeros((len(positions), 2)), t)
    return method.velocities(Observer(scenario).observe(state, Scope.SUBNET))


def plain(**options):
    return Hero(rep=False, link=False, **options)


STAR = [[500.0, 500.0], [600.0, 500.0], [500.0, 610.0], [440.0, 420.0], FAR]


def test_every_neighbor_of_a_single_failure_ends_exactly_at_its_place():
    """HE-1, rep and link off."""
    state = fly_on(make_scenario("star", STAR, [0]), plain(), 130)[-1]
    np.testing.assert_allclose(state.positions[:3], np.tile(STAR[0], (3, 1)), atol=1e-9)
    assert state.positions[3].tolist() == FAR


def test_with_repulsion_they_end_around_its_place():
    """HE-1, up to the repulsion equilibrium."""
    state = fly_on(make_scenario("star", STAR, [0]), Hero(), 300)[-1]
    assert np.linalg.norm(state.positions[:3] - STAR[0], axis=1).max() < 15


def test_a_leader_of_two_failures_flies_to_their_mean():
    layout = [[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], FAR]
    velocity = commands(plain(), make_scenario("a", layout, [1, 2]), [[0.0, 0.0], FAR])
    np.testing.assert_allclose(velocity[0], 10 * np.array([1, 1]) / np.sqrt(2))


CHAIN = [[0.0, 0.0], [100.0, 0.0], [200.0, 0.0], [300.0, 0.0], FAR]  # 3 fails, 2 leads, 1 and 0 follow


def test_a_follower_with_resting_neighbors_rests():
    """HE-2."""
    velocity = commands(plain(), make_scenario("chain", CHAIN, [3]), [*CHAIN[:3], FAR])
    np.testing.assert_allclose(velocity, [[0, 0], [0, 0], [10, 0], [0, 0]], atol=1e-12)


def test_a_follower_moves_by_the_displacement_of_its_only_neighbor():
    """HE-2: UAV 1 displaced by (0.3, 0.4): the target of UAV 0 moves by that."""
    method, scenario = plain(), make_scenario("chain", CHAIN, [3])
    commands(method, scenario, [*CHAIN[:3], FAR])
    velocity = commands(method, scenario, [[0, 0], [100.3, 0.4], [200, 0], FAR], t=1)
    np.testing.assert_allclose(velocity[0], [3.0, 4.0])
    # UAV 1: mean displacement of UAVs 0 and 2 is zero, so back to its place.
    np.testing.assert_allclose(velocity[1], [-3.0, -4.0])


def test_a_neighbor_that_left_the_subnet_counts_with_what_was_last_heard():
    method, scenario = plain(), make_scenario("chain", CHAIN, [3])
    commands(method, scenario, [*CHAIN[:3], FAR])
    commands(method, scenario, [[0, 0], [100, 0.5], [200, 0], FAR], t=1)
    for gone in ([100, 900], [4000, 3000]):  # out of range, wherever: UAV 0 only knows the 0.5 m
        velocity = commands(method, scenario, [[0, 0], gone, [200, 0], FAR], t=2)
        np.testing.assert_allclose(velocity[0], [0.0, 5.0])
    velocity = commands(method, scenario, [[0, 0], [100, -0.7], [200, 0], FAR], t=3)  # heard again
    np.testing.assert_allclose(velocity[0], [0.0, -7.0])


def test_a_uav_that_never_had_neighbors_stays():
    velocity = commands(plain(), make_scenario("a", [[0, 0], [300, 0], [600, 0]], []), [[1, 0], [300, 0], [600, 0]])
    np.testing.assert_allclose(velocity, [[-10, 0], [0, 0], [0, 0]], atol=1e-12)


@pytest.mark.parametrize("responder", ["all", "closest"])
@pytest.mark.parametrize("seed", range(4))
def test_nobody_leaves_its_place_by_more_than_the_range(responder, seed):
    """HE-3."""
    scenario = draw_scenario(50, 0.4, np.random.default_rng(seed))
    for state in fly_on(scenario, plain(responder=responder), 250):
        assert np.linalg.norm(state.positions - scenario.spots, axis=1).max() <= 120 + 1e-6


def test_the_center_does_not_matter_without_the_mixture():
    """HE-4."""
    here = draw_scenario(50, 0.4, np.random.default_rng(1))
    there = make_scenario("there", here.layout, here.damaged.tolist(), width_m=here.width_m, center=[-900.0, 7.0])
    for a, b in zip(fly_on(here, Hero(), 60), fly_on(there, Hero(), 60), strict=True):
        assert np.array_equal(a.positions, b.positions)


def test_the_mixture_by_hand():
    # UAV 2 leads: 0.8 (10, 0) + 0.2 go to the center (200, 300) = (0, 10).
    scenario = make_scenario("chain", CHAIN, [3], center=[200.0, 300.0])
    velocity = commands(plain(center_mix=0.2), scenario, [*CHAIN[:3], FAR])
    np.testing.assert_allclose(velocity[2], [8.0, 2.0], atol=1e-12)


def test_the_closest_neighbor_answers_and_the_others_follow():
    # UAV 0 fails; 1 (80 m) is closer than 2 (100 m); 2 hears of 1 and follows its displacement.
    layout = [[0.0, 0.0], [80.0, 0.0], [100.0, 10.0], FAR]
    states = fly_on(make_scenario("a", layout, [0]), plain(responder="closest"), 120)
    np.testing.assert_allclose(states[1].positions[0], [79.0, 0.0])
    np.testing.assert_allclose(states[1].positions[1], [100.0, 10.0])
    np.testing.assert_allclose(states[-1].positions[:2], [[0.0, 0.0], [20.0, 10.0]], atol=1e-9)


def test_each_subnet_sends_its_own_closest_neighbor():
    # UAV 1 fails between 0 and 2, which cannot hear each other nor know of each other's life.
    velocity = commands(
        plain(responder="closest"), make_scenario("a", [[0, 0], [100, 0], [210, 0]], [1]), [[0, 0], [210, 0]]
    )
    np.testing.assert_allclose(velocity, [[10, 0], [-10, 0]])


def test_one_that_is_closest_to_several_failures_flies_to_their_mean():
    layout = [[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], [-30.0, -30.0], FAR]
    velocity = commands(plain(responder="closest"), make_scenario("a", layout, [1, 2]), [layout[0], layout[3], FAR])
    np.testing.assert_allclose(velocity[0], 10 * np.array([1, 1]) / np.sqrt(2))
    np.testing.assert_allclose(velocity[1], [0, 0])


def test_equal_distances_go_to_the_lower_index():
    layout = [[0.0, 0.0], [50.0, 0.0], [-50.0, 0.0], FAR]
    velocity = commands(plain(responder="closest"), make_scenario("a", layout, [0]), [*layout[1:3], FAR])
    np.testing.assert_allclose(velocity, [[-10, 0], [0, 0], [0, 0]])


def slow_targets(scenario, positions, heard):
    """T_i by the words of METHODS 3.2; `heard` (i, j) -> displacement of j when i's subnet last had it."""
    layout, alive = scenario.layout, scenario.alive.tolist()
    state = SwarmState(scenario, positions, np.zeros_like(positions), 1)
    targets = []
    for row, i in enumerate(alive):
        near = [k for k in range(len(layout)) if k != i and np.linalg.norm(layout[k] - layout[i]) <= 120 + 1e-6]
        failed = [k for k in near if k not in alive]
        for j in set(near) - set(failed):
            if state.links.subnet[row] == state.links.subnet[alive.index(j)]:
                heard[i, j] = positions[alive.index(j)] - layout[j]
        if failed:
            targets.append(layout[failed].mean(axis=0))
        else:
            targets.append(layout[i] + (np.mean([heard[i, j] for j in near], axis=0) if near else 0.0))
    return np.array(targets)


@pytest.mark.parametrize("seed", range(3))
def test_a_whole_flight_agrees_with_the_rule_written_as_loops(seed):
    scenario = draw_scenario(40, 0.15, np.random.default_rng(seed))
    heard: dict = {}
    states = fly_on(scenario, plain(), 60)
    for now, after in pairwise(states):
        aim = slow_targets(scenario, now.positions, heard) - now.positions
        distance = np.linalg.norm(aim, axis=1, keepdims=True)
        expected = now.positions + aim / np.maximum(distance, 1e-12) * np.minimum(1.0, distance)
        np.testing.assert_allclose(after.positions, expected, atol=1e-8)


def test_hero_works_for_small_damage_and_fails_for_large():
    """METHODS 3.2, expected."""
    ends = {
        ratio: [run_episode(draw_scenario(50, ratio, np.random.default_rng(s)), Hero()).terminated for s in range(4)]
        for ratio in (0.05, 0.75)
    }
    assert np.mean(ends[0.05]) > 0.6
    assert np.mean(ends[0.75]) < 0.2


@pytest.mark.parametrize(
    ("options", "message"), [({"responder": "some"}, "responder 'some'"), ({"center_mix": 2}, "2")]
)
def test_unknown_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Hero(**options)
