"""RNFR: chains of moves fill the failed spots."""

from itertools import permutations

import numpy as np
import pytest

from phygail.config import Physics
from phygail.methods.rnfr import SHORT, fill_spots, replacement, spots_between
from phygail.rng import generator
from phygail.swarm.failures import critical_uavs
from phygail.swarm.links import find_links
from phygail.swarm.scenario import draw_scenario, make_scenario

PHYSICS = Physics()


@pytest.mark.parametrize("case", range(12))
def test_the_targets_are_the_layout_without_one_spot_that_was_not_critical(case, single, planned):
    """RN-1."""
    scenario = single(50, case)
    _, targets = planned("rnfr", scenario)
    kept = {tuple(place) for place in targets.tolist()}
    (empty,) = [uav for uav in range(50) if tuple(scenario.layout[uav].tolist()) not in kept]
    critical = critical_uavs(50, find_links(scenario.layout, 120.0).pairs)
    assert empty not in critical
    assert find_links(targets, 120.0).connected


def smallest_largest_move(places, spot):
    """Brute force: over all orders of all UAVs, a chain ends at the first redundant one."""
    points = np.vstack([places, spot])
    cut = set(critical_uavs(len(points), find_links(points, 120.0).pairs))
    hears = {int(k) for k in np.unique(find_links(points, 120.0).pairs)}
    redundant = {k for k in range(len(places)) if k in hears and k not in cut}
    best = np.inf
    for size in range(1, len(places) + 1):
        for chain in permutations(range(len(places)), size):
            if chain[-1] in redundant:
                stops = np.vstack([spot, places[list(chain)]])
                best = min(best, np.hypot(*np.diff(stops, axis=0).T).max())
    return best


@pytest.mark.parametrize("seed", range(8))
def test_no_chain_has_a_smaller_largest_move(seed):
    """RN-2, seven alive."""
    rng = np.random.default_rng(seed)
    places, spot = rng.uniform(0, 260, (6, 2)), rng.uniform(0, 260, 2)
    chain = replacement(places, spot, set(), PHYSICS)
    best = smallest_largest_move(places, spot)
    if not chain:
        assert best == np.inf
        return
    stops = np.vstack([spot, places[chain]])
    assert np.hypot(*np.diff(stops, axis=0).T).max() == pytest.approx(best)


def test_a_chain_moves_everybody_one_place_up():
    """A tail of three behind the spot: only its end can be spared, 80 m at a time instead of 240 m at once."""
    layout = np.array([[-100.0, 0.0], [0.0, 0.0], [80.0, 0.0], [160.0, 0.0], [240.0, 0.0]])
    alive = np.delete(layout, 1, axis=0)
    assert replacement(alive, layout[1], set(), PHYSICS) == [1, 2, 3]
    targets, short = fill_spots(alive, layout[[1]], PHYSICS)
    assert not short
    np.testing.assert_array_equal(targets, [[-100.0, 0.0], [0.0, 0.0], [80.0, 0.0], [160.0, 0.0]])


@pytest.mark.parametrize("case", range(12))
def test_the_largest_move_is_at_most_that_of_dcrmf(case, single, planned):
    """RN-3."""
    scenario = single(50, case)
    rnfr, dcrmf = (np.hypot(*(planned(name, scenario)[1] - scenario.spots).T).max() for name in ("rnfr", "dcrmf"))
    assert rnfr <= dcrmf + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_filling_a_spot_never_adds_a_subnet(seed):
    """RN-4."""
    scenario = draw_scenario(50, 0.3, generator(seed, "rn4"))
    places, placed = scenario.spots.copy(), set()
    count = find_links(places, 120.0).count
    for spot in scenario.layout[scenario.damaged]:
        chain = replacement(places, spot, placed, PHYSICS)
        if chain:
            places[chain] = np.vstack([spot, places[chain[:-1]]])
            placed.add(chain[0])
        now = find_links(places, 120.0).count
        assert now <= count + (not chain)
        count = now


def test_the_cheapest_chain_has_the_fewest_spots_then_the_fewest_meters():
    """Two islands 300 m apart: two spots on the straight line beat three nearer ones; of two pairs the shorter."""
    places = np.array([[0.0, 0.0], [300.0, 0.0]])
    three = np.array([[75.0, 90.0], [150.0, 90.0], [225.0, 90.0]])
    straight, bent = np.array([[100.0, 0.0], [200.0, 0.0]]), np.array([[100.0, 30.0], [200.0, 30.0]])
    spots = np.vstack([three, bent, straight])
    assert sorted(spots_between(places, spots, PHYSICS)) == [5, 6]
    assert spots_between(places, three[:1], PHYSICS) == []


def test_a_gap_that_no_spot_bridges_stays_and_says_so(planned):
    scenario = make_scenario("two", [[0.0, 0.0], [165.0, 0.0], [330.0, 0.0]], [1], budget_steps=3)
    method, targets = planned("rnfr", scenario)
    assert method.flag == SHORT
    assert np.array_equal(targets, scenario.spots)


def test_two_uavs_move_up_to_two_spots_between_them(planned):
    scenario = make_scenario("four", [[0.0, 0.0], [110.0, 0.0], [220.0, 0.0], [330.0, 0.0]], [1, 2])
    method, targets = planned("rnfr", scenario)
    assert method.flag == ""
    np.testing.assert_array_equal(targets, [[110.0, 0.0], [220.0, 0.0]])
