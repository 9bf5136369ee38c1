"""CIST: relays on lines and stars join the subnets."""

import numpy as np
import pytest

from phygail.config import Physics
from phygail.methods.cist import SHORT, backbone, fermat_point, relays
from phygail.rng import generator
from phygail.swarm.links import find_links
from phygail.swarm.scenario import draw_scenario, make_scenario
from phygail.swarm.tree import spanning_tree

PHYSICS = Physics()
DAMAGED = [(50, 0.1, 0), (50, 0.3, 1), (100, 0.3, 2), (100, 0.5, 3), (100, 0.4, 4), (20, 0.4, 5)]


def drawn(uavs, ratio, seed):
    return draw_scenario(uavs, ratio, generator(seed, "cist", uavs))


@pytest.mark.parametrize("setting", DAMAGED)
def test_a_plan_without_a_flag_is_connected_and_no_segment_is_torn(setting, planned):
    """CI-1, CI-4."""
    scenario = drawn(*setting)
    method, targets = planned("cist", scenario)
    if not method.flag:
        assert find_links(targets, 120.0).connected
    subnet = find_links(scenario.spots, 120.0).subnet
    stays = (targets == scenario.spots).all(axis=1)
    for label in range(subnet.max() + 1):
        assert find_links(scenario.spots[stays & (subnet == label)], 120.0).connected


@pytest.mark.parametrize("setting", DAMAGED)
def test_the_backbone_is_connected_touches_every_segment_and_saves_relays(setting):
    """CI-2, CI-3."""
    scenario = drawn(*setting)
    links = find_links(scenario.spots, 120.0)
    groups = backbone(scenario.spots, links.subnet, PHYSICS)
    spots = [group.spots for group in groups]
    whole = np.vstack([scenario.spots, *spots])
    assert find_links(whole, 120.0).connected
    assert {int(links.subnet[row]) for group in groups for row in group.ends} == set(range(links.count))
    for group in groups:  # every group holds together by itself, the segments it ties included
        tied = np.isin(links.subnet, links.subnet[list(group.ends)])
        assert find_links(np.vstack([scenario.spots[tied], group.spots]), 120.0).connected
    edges, lengths = spanning_tree(scenario.spots)
    joins = links.subnet[edges[:, 0]] != links.subnet[edges[:, 1]]
    assert sum(map(len, spots)) <= relays(lengths[joins], 120 - 1e-3).sum()


@pytest.mark.parametrize(("side", "count"), [(121.0, 1), (160.0, 1), (207.0, 1), (208.5, 2)])
def test_three_singletons_on_a_triangle_take_one_relay_at_the_centroid(side, count):
    """CI-5: up to a side of sqrt(3) R_plan = 207.84 m."""
    corners = side * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
    groups = backbone(corners, np.arange(3), PHYSICS)
    spots = np.vstack([group.spots for group in groups])
    assert len(spots) == count
    if count == 1:
        np.testing.assert_allclose(spots[0], corners.mean(axis=0), atol=1e-6)


def test_the_relay_of_a_triangle_is_drawn_from_the_segment_that_can_spare_it(planned):
    """CI-5 with spares: the corner at the origin has two more behind it; the nearest that is no end flies."""
    side = 180.0
    corners = side * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
    scenario = make_scenario(
        "triangle", np.vstack([corners, [[-60.0, 0.0], [-60.0, -60.0]], corners.mean(axis=0)]), [5]
    )
    method, targets = planned("cist", scenario)
    assert method.flag == ""
    np.testing.assert_allclose(targets[3], corners.mean(axis=0), atol=1e-6)
    assert np.array_equal(np.delete(targets, 3, axis=0), np.delete(scenario.spots, 3, axis=0))


@pytest.mark.parametrize(
    ("corners", "expected"),
    [
        ([[0, 0], [100, 0], [50, 5]], [50, 5]),  # wider than 120 degrees: the corner itself
        ([[0, 0], [120, 0], [60, 60 * np.sqrt(3)]], [60, 20 * np.sqrt(3)]),  # equilateral: the centroid
        ([[0, 0], [10, 0], [0, 0]], [0, 0]),  # two corners in one place
    ],
)
def test_fermat_points_by_hand(corners, expected):
    np.testing.assert_allclose(fermat_point(np.array(corners, dtype=float)), expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_no_point_nearby_has_a_smaller_sum_of_distances_than_the_fermat_point(seed):
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-100, 100, (3, 2))
    middle = fermat_point(corners)
    sums = [np.hypot(*(corners - q).T).sum() for q in middle + rng.normal(0, 1.0, (50, 2))]
    assert np.hypot(*(corners - middle).T).sum() <= min(sums) + 1e-9


def test_two_singletons_have_no_relay_to_spare(planned):
    scenario = make_scenario("two", [[0.0, 0.0], [110.0, 0.0], [220.0, 0.0]], [1])
    method, targets = planned("cist", scenario)
    assert method.flag == SHORT
    assert np.array_equal(targets, scenario.spots)
