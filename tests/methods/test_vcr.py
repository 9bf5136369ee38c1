"""VCR: volunteers close in on the failed spot."""

import math

import numpy as np
import pytest

from phygail.methods import run_episode
from phygail.methods.classic import linked
from phygail.swarm.links import find_links
from phygail.swarm.scenario import make_scenario

CASES = range(12)


def around(scenario):
    """Rows of the alive that had the failed one in range, and their distances to its spot."""
    away = np.hypot(*(scenario.spots - scenario.layout[scenario.damaged[0]]).T)
    return np.flatnonzero(away <= 120 + 1e-6), away


@pytest.mark.parametrize("case", CASES)
def test_volunteers_end_within_half_a_range_of_the_spot(case, single, planned):
    """VC-1, VC-2: who was near enough does not move; nobody else flies farther than R/2 + 1 mm."""
    scenario = single(50, case)
    _, targets = planned("vcr", scenario)
    rows, away = around(scenario)
    spot = scenario.layout[scenario.damaged[0]]
    assert np.hypot(*(targets[rows] - spot).T).max() <= 60 + 1e-6
    near = rows[away[rows] <= 59.99]
    assert np.array_equal(targets[near], scenario.spots[near])
    assert np.hypot(*(targets[rows] - scenario.spots[rows]).T).max() <= 60 + 1e-3 + 1e-9


@pytest.mark.parametrize("case", CASES)
def test_a_single_failure_is_mended_at_the_targets(case, single, planned):
    """VC-3; all 200 cases of N = 100 in test_classic."""
    assert find_links(planned("vcr", single(50, case))[1], 120.0).connected


@pytest.mark.parametrize(("apart", "steps"), [(121.0, 1), (150.5, 16), (200.0, 40), (239.0, 60)])
def test_two_singletons_meet_at_the_lower_bound(apart, steps):
    """VC-4: ceil((D - R) / 2) steps."""
    scenario = make_scenario("two", [[0.0, 0.0], [apart / 2, 0.0], [apart, 0.0]], [1])
    assert steps == math.ceil((apart - 120) / 2)
    assert run_episode(scenario, "vcr").steps == steps


@pytest.mark.parametrize("case", range(6))
def test_what_is_far_from_the_failure_changes_no_target(case, single, planned):
    """VC-5: a UAV more than L + 1 hops from the failed one may as well be elsewhere, L the levels of followers."""
    scenario = single(100, case)
    _, targets = planned("vcr", scenario)
    hops = hops_from(scenario, int(scenario.damaged[0]))
    moved = scenario.alive[(targets != scenario.spots).any(axis=1)]
    far = [uav for uav in scenario.alive.tolist() if hops[uav] > hops[moved].max() + 1]
    layout = scenario.layout.copy()
    layout[far] += 1000.0 * np.arange(1, len(far) + 1)[:, None]  # scattered: each alone, far away
    other = make_scenario("far", layout, scenario.damaged.tolist())
    near = ~np.isin(scenario.alive, far)
    _, others = planned("vcr", other)
    assert near.sum() < len(near)
    np.testing.assert_array_equal(others[near], targets[near])


def hops_from(scenario, start):
    """(N,) hops in the network before the failure."""
    neighbors = linked(scenario.layout, scenario.physics)
    hops = np.full(scenario.uavs, np.iinfo(np.int32).max)
    hops[start], edge = 0, [start]
    while edge:
        fresh = sorted({n for uav in edge for n in neighbors[uav] if hops[n] > hops[uav] + 1})
        for n in fresh:
            hops[n] = hops[edge[0]] + 1
        edge = fresh
    return hops
