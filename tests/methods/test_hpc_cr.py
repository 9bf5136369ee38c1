"""HPC-CR: the backup that costs the least coverage."""

import math
from dataclasses import replace

import numpy as np
import pytest

from phygail.config import InputError
from phygail.methods import run_episode
from phygail.methods.base import make_method
from phygail.methods.controller import controller
from phygail.methods.hpc_cr import WIDE, Repair
from phygail.sensing.views import Observer, Scope
from phygail.swarm.failures import watched_m2
from phygail.swarm.links import find_links
from phygail.swarm.scenario import make_scenario
from phygail.swarm.simulator import initial_state

CASES = range(8)


def repair_of(scenario, weight=0.25):
    return Repair(Observer(scenario).observe(initial_state(scenario), Scope.GLOBAL), weight)


def planned_with(scenario, **options):
    method = make_method("hpc-cr", **options)
    controller(method, scenario)(initial_state(scenario))
    return np.array(method.targets)


@pytest.mark.parametrize("case", CASES)
def test_a_single_failure_is_mended_and_nobody_moves_twice(case, single, planned):
    """HP-1, HP-2: as many moves as messages, each UAV at most one."""
    scenario = single(50, case)
    method, targets = planned("hpc-cr", scenario)
    assert find_links(targets, 120.0).connected
    assert method.messages == (targets != scenario.spots).any(axis=1).sum()


def lost(scenario, row, place):
    """Coverage lost by one move, counted from scratch, over a sensing disc."""
    targets = scenario.spots.copy()
    targets[row] = place
    areas = [
        watched_m2(points, scenario.layout, scenario.center, scenario.width_m, 120.0)
        for points in (scenario.spots, targets)
    ]
    return (areas[0] - areas[1]) / (math.pi * 60**2)


@pytest.mark.parametrize("case", CASES)
def test_the_chosen_backup_has_the_smallest_score(case, single, planned):
    """HP-3; the oracle counts the whole map anew for every option."""
    scenario = single(50, case)
    _, targets = planned("hpc-cr", scenario)
    spot = scenario.layout[scenario.damaged[0]]
    options = repair_of(scenario).options(spot, between=True)
    scores = []
    for (score, _), row, place in options:
        flight = np.hypot(*(place - scenario.spots[row]))
        assert score == pytest.approx(lost(scenario, row, place) + 0.25 * flight / 120, abs=1e-9)
        scores.append((score, row, place))
    _, row, place = min(scores, key=lambda entry: entry[0])
    np.testing.assert_allclose(targets[row], place)
    assert any(np.array_equal(place, spot) for _, _, place in options)


@pytest.mark.parametrize("case", CASES)
def test_the_weight_of_the_flight_decides_between_coverage_and_meters(case, single):
    """HP-4."""
    scenario = single(50, case)
    spot = scenario.layout[scenario.damaged[0]]
    options = repair_of(scenario).options(spot, between=True)
    careful, lazy = (planned_with(scenario, flight_weight=w) for w in (0.0, 1e6))
    (row,) = np.flatnonzero((careful != scenario.spots).any(axis=1))[:1]
    assert lost(scenario, row, careful[row]) == pytest.approx(min(lost(scenario, r, q) for _, r, q in options))
    way = np.hypot(*(lazy - scenario.spots).T)
    assert way[way > 0].min() == pytest.approx(min(np.hypot(*(q - scenario.spots[r])) for _, r, q in options))


@pytest.mark.parametrize("shift", [(1000.0, -250.0), (12.345, 6.789)])
def test_a_shifted_scene_has_the_shifted_plan(shift, single):
    """HP-5: here for every shift, because the cells are laid out from the middle of the map."""
    scenario = single(50, 2)
    moved = replace(scenario, layout=scenario.layout + shift, center=scenario.center + shift)
    np.testing.assert_allclose(planned_with(moved), planned_with(scenario) + shift, atol=1e-6)


def test_a_map_too_wide_for_a_grid_is_refused_with_a_flag():
    scenario = make_scenario("wide", [[0.0, 0.0], [110.0, 0.0], [220.0, 0.0], [50_000.0, 0.0]], [1], budget_steps=3)
    method = make_method("hpc-cr")
    run_episode(scenario, method)
    assert method.flag == WIDE
    assert np.array_equal(method.targets, scenario.spots)


def test_a_weight_below_zero_is_refused():
    with pytest.raises(InputError, match="flight_weight -1"):
        make_method("hpc-cr", flight_weight=-1.0)
