"""What the six classics share, and their agreement with an independent implementation."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from phygail.config import Physics
from phygail.experiments.failures import plan_measures
from phygail.methods import METHODS, run_episode
from phygail.methods.base import make_method
from phygail.methods.classic import follow, plan_range, project
from phygail.rng import generator
from phygail.swarm.failures import neighbor_lists
from phygail.swarm.links import find_links, near_pairs
from phygail.swarm.scenario import draw_scenario, make_scenario

CLASSICS = ("vcr", "ledir", "dcrmf", "rnfr", "cist", "hpc-cr")
REFERENCE = Path(__file__).parent.parent / "data" / "single-n100k1.csv"


def reference(name, cases):
    with REFERENCE.open() as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == name]
    return rows[:cases]


def check_against_reference(name, single, cases):
    """Steps, movers and messages equal; plan lengths to 0.01 m; coverage and paths to six digits."""
    for row in reference(name, cases):
        scenario = single(100, int(row["case"]))
        assert scenario.damaged.tolist() == [int(row["failed"])]
        method = make_method(name)
        episode = run_episode(scenario, method)
        plan = plan_measures(scenario, method)
        where = f"case {row['case']}"
        assert episode.terminated, where
        assert episode.steps == int(row["steps"]), where
        assert plan["plan_connected"] == 1, where
        assert plan["plan_max_m"] == pytest.approx(float(row["plan_max_m"]), abs=0.01), where
        assert plan["plan_total_m"] == pytest.approx(float(row["plan_total_m"]), abs=0.01), where
        assert plan["plan_moved"] == int(row["plan_moved"]), where
        assert plan["plan_lost_pct"] == pytest.approx(float(row["plan_lost_pct"]), abs=1e-6), where
        assert plan["plan_longer_pct"] == pytest.approx(float(row["plan_longer_pct"]), abs=1e-6), where
        assert method.messages == int(row["messages"]), where
        assert method.flag == "", where


@pytest.mark.parametrize("name", CLASSICS)
def test_plans_and_flights_are_those_of_an_independent_implementation(name, single):
    """METHODS 9.11, the first cases; SF-1: every single failure is mended."""
    check_against_reference(name, single, 10)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSICS)
def test_all_200_plans_and_flights_are_those_of_an_independent_implementation(name, single):
    """METHODS 9.11; SF-1, VC-3 and HP-1 on 200 cases."""
    check_against_reference(name, single, 200)


# --- project ---


def test_a_point_inside_all_discs_is_its_own_projection():
    point = np.array([3.0, 4.0])
    assert project(point, np.array([[0.0, 0.0], [6.0, 8.0]]), 5.0) is point


def test_a_point_outside_one_disc_goes_straight_to_its_rim():
    np.testing.assert_allclose(project(np.array([30.0, 40.0]), np.zeros((1, 2)), 5.0), [3.0, 4.0])


def test_where_two_rims_cross_is_the_nearest_point_of_a_lens():
    """Discs of radius 5 about (-3, 0) and (3, 0) cross at (0, 4) and (0, -4)."""
    found = project(np.array([0.0, 9.0]), np.array([[-3.0, 0.0], [3.0, 0.0]]), 5.0)
    np.testing.assert_allclose(found, [0.0, 4.0], atol=1e-12)


def test_discs_that_share_no_point_have_no_projection():
    assert project(np.array([0.0, 9.0]), np.array([[-6.0, 0.0], [6.0, 0.0]]), 5.0) is None


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_no_point_of_the_discs_is_nearer_than_the_projection(seed, count):
    """Oracle: a general optimizer."""
    rng = np.random.default_rng(seed)
    centers, point = rng.uniform(-4, 4, (count, 2)), rng.uniform(-30, 30, 2)
    found = project(point, centers, 10.0)
    assert found is not None  # all centers are within 10 of the origin
    assert np.hypot(*(centers - found).T).max() <= 10 + 1e-6
    best = minimize(
        lambda q: ((q - point) ** 2).sum(), np.zeros(2), method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda q, c=c: 100 - ((q - c) ** 2).sum()} for c in centers],
    )  # fmt: skip
    assert np.hypot(*(found - point)) <= np.hypot(*(best.x - point)) + 1e-4


# --- follow ---


def links_of(points, range_m=120.0):
    return neighbor_lists(len(points), near_pairs(points, range_m)[0])


def test_a_chain_is_drawn_along_just_far_enough():
    """Three UAVs 100 m apart; the first flies 50 m off: each comes within 120 m of the one before."""
    points = np.array([[0.0, 0.0], [100.0, 0.0], [200.0, 0.0]])
    targets = points.copy()
    targets[0] = [-50.0, 0.0]
    found, followers = follow(points, links_of(points), targets, [0], [], 120.0)
    np.testing.assert_allclose(found, [[-50.0, 0.0], [70.0, 0.0], [190.0, 0.0]])
    assert followers == [1, 2]
    targets[0] = [-15.0, 0.0]
    found, followers = follow(points, links_of(points), targets, [0], [], 120.0)
    np.testing.assert_allclose(found, [[-15.0, 0.0], [100.0, 0.0], [200.0, 0.0]])
    assert followers == []


def test_the_settled_do_not_follow():
    points = np.array([[0.0, 0.0], [100.0, 0.0]])
    targets = np.array([[-50.0, 0.0], [100.0, 0.0]])
    found, followers = follow(points, links_of(points), targets, [0], [1], 120.0)
    assert np.array_equal(found, targets)
    assert followers == []


def test_a_child_whose_parents_part_stays_with_the_nearer_one():
    points = np.array([[-90.0, 0.0], [0.0, 0.0], [90.0, 0.0]])
    targets = np.array([[-190.0, 0.0], [0.0, 0.0], [200.0, 0.0]])
    found, followers = follow(points, links_of(points), targets, [0, 2], [], 120.0)
    np.testing.assert_allclose(found[1], [-70.0, 0.0])
    assert followers == [1]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000))
def test_followers_of_one_leader_keep_the_subnet_together_and_its_neighbors_linked(seed):
    """Lemmas 9.3 and 9.4."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 400, (25, 2))
    subnet = find_links(points, 120.0).subnet
    points = points[subnet == np.bincount(subnet).argmax()]
    neighbors = links_of(points)
    leader = int(rng.integers(len(points)))
    targets = points.copy()
    targets[leader] += rng.uniform(-120, 120, 2)
    found, followers = follow(points, neighbors, targets, [leader], [], plan_range(Physics()))
    assert find_links(found, 120.0).connected
    stays = np.ones(len(points), dtype=bool)
    stays[[leader, *followers]] = False
    assert np.array_equal(found[stays], points[stays])
    for i in neighbors[leader]:
        for j in set(neighbors[i]) & set(neighbors[leader]):
            assert np.hypot(*(found[i] - found[j])) <= 120 + 1e-6


# --- plan once, then fly ---


@pytest.mark.parametrize("name", CLASSICS)
def test_who_is_planned_to_stay_gets_exactly_zero(name, single):
    scenario = single(50, 0)
    method = make_method(name)
    episode = run_episode(scenario, method, record=True)
    stays = (method.targets == scenario.spots).all(axis=1)
    assert 0 < stays.sum() < len(stays)
    for state in episode.states:
        assert not state.velocities[stays].any()
    assert episode.metrics.moved == (~stays).sum()


@pytest.mark.parametrize("name", CLASSICS)
def test_nobody_moves_for_a_failure_that_splits_nothing_for_whom_it_concerns(name):
    """Two islands that were never one: the failed UAV had no neighbor elsewhere, so the local ones stay."""
    layout = [[0.0, 0.0], [100.0, 0.0], [50.0, 80.0], [600.0, 0.0], [700.0, 0.0]]
    scenario = make_scenario("islands", layout, [2], budget_steps=5)
    method = make_method(name)
    run_episode(scenario, method)
    if name in ("vcr", "ledir", "dcrmf"):
        assert np.array_equal(method.targets, scenario.spots)
    assert np.isfinite(method.targets).all()


@pytest.mark.parametrize("name", CLASSICS)
@pytest.mark.parametrize(("uavs", "ratio"), [(20, 0.5), (50, 0.25), (100, 0.1), (100, 0.5), (100, 0.9)])
def test_damage_beyond_their_setting_ends_with_finite_targets(name, uavs, ratio, planned):
    """METHODS 9.8: they accept every scenario; hpc-cr needs no seconds at half the swarm."""
    scenario = draw_scenario(uavs, ratio, generator(5, "beyond", uavs, round(ratio * 100)))
    method, targets = planned(name, scenario)
    assert targets.shape == scenario.spots.shape
    assert np.isfinite(targets).all()
    assert method.flag in ("", "short", "no-spare")


@pytest.mark.parametrize("name", CLASSICS)
def test_every_system_of_table_one_is_registered(name):
    assert "after " in METHODS.get(name).summary
