import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from phygail.config import Physics
from phygail.methods.planning import largest_move_m
from phygail.methods.steering import go, link_keeping, repulsion
from phygail.swarm.links import find_links, near_pairs

PHYSICS = Physics()
points = arrays(float, (5, 2), elements=st.floats(-2000, 2000))


def pushed(positions, members=None, physics=PHYSICS):
    positions = np.array(positions, dtype=float)
    pairs, lengths = near_pairs(positions, 120.0)
    members = np.arange(len(positions)) if members is None else np.array(members)
    return repulsion(positions, pairs, lengths, members, physics)


def pulled(positions):
    positions = np.array(positions, dtype=float)
    links = find_links(positions, 120.0)
    return link_keeping(positions, links.pairs, links.lengths, PHYSICS)


# --- go ---


def test_go_by_hand():
    starts = np.array([[0.0, 0.0], [0.0, 0.0], [5.0, 5.0], [0.0, 0.0]])
    goals = np.array([[30.0, 40.0], [0.3, 0.4], [5.0, 5.0], [0.0, 5e-10]])
    np.testing.assert_allclose(go(starts, goals, PHYSICS), [[6, 8], [3, 4], [0, 0], [0, 0]], atol=1e-12)


@given(points, points)
def test_go_never_overshoots_and_never_exceeds_the_limit(starts, goals):
    velocity = go(starts, goals, PHYSICS)
    assert (np.hypot(*velocity.T) <= 10 + 1e-9).all()
    before = np.hypot(*(goals - starts).T)
    after = np.hypot(*(goals - (starts + velocity * 0.1)).T)
    np.testing.assert_allclose(after, np.maximum(0, before - 1.0), atol=1e-9)


@pytest.mark.parametrize("distance", [0.3, 1.0, 7.0, 12.3456])
def test_go_arrives_exactly_and_stays(distance):
    goal = np.array([[123.456, -9.87]])
    position = goal + distance * np.array([[0.6, -0.8]])
    for _ in range(int(np.ceil(distance))):
        position = position + go(position, goal, PHYSICS) * 0.1
    np.testing.assert_allclose(position, goal, atol=1e-12)
    assert np.abs(go(position, goal, PHYSICS)).max() < 1e-9


def test_go_broadcasts_one_goal_to_all():
    starts = np.array([[100.0, 0.0], [0.0, 100.0]])
    np.testing.assert_allclose(go(starts, np.zeros(2), PHYSICS), [[-10, 0], [0, -10]])


# --- repulsion ---


def test_repulsion_by_hand():
    # 5 m apart along x: 10 (1 - 5/15) = 20/3 m/s each, away from each other; the third is 15 m off and feels nothing.
    np.testing.assert_allclose(pushed([[0, 0], [5, 0], [20, 0]]), [[-20 / 3, 0], [20 / 3, 0], [0, 0]])
    # 3-4-5 triangle: direction (3, 4)/5.
    np.testing.assert_allclose(pushed([[0, 0], [3, 4]])[1], [4.0, 16 / 3])
    # In the middle between two the pushes cancel.
    np.testing.assert_allclose(pushed([[0, 0], [5, 0], [10, 0]])[1], [0, 0], atol=1e-12)
    np.testing.assert_allclose(
        pushed([[0, 0], [5, 0]], physics=Physics(speed_mps=1.0, contact_m=20 / 3)), [[-0.5, 0], [0.5, 0]]
    )


def test_nobody_near_means_no_push():
    assert pushed([[0, 0], [15, 0], [400, 0]]).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("offset", [0.0, 1e-9, 9e-7, 2e-6])
def test_coincident_uavs_are_pushed_apart_with_full_force(offset):
    force = pushed([[50.0, 50.0], [50.0 + offset, 50.0]], members=[3, 17])
    np.testing.assert_allclose(force[0], -force[1])
    np.testing.assert_allclose(np.hypot(*force.T), 10.0, rtol=1e-6)


def test_the_direction_of_a_coincident_pair_follows_from_the_roster_indices_alone():
    pair = pushed([[0, 0], [0, 0]], members=[3, 17])
    among = pushed([[-400, 0], [0, 0], [400, 0], [0, 0]], members=[1, 3, 4, 17])
    assert np.array_equal(pair, among[[1, 3]])
    assert not np.allclose(pair, pushed([[0, 0], [0, 0]], members=[3, 18]))


def test_three_coincident_uavs_part():
    force = pushed([[0, 0]] * 3, members=[0, 1, 2])
    assert np.isfinite(force).all()
    assert len({tuple(f) for f in force.round(9).tolist()}) == 3


@given(arrays(float, (8, 2), elements=st.floats(0, 40)))
def test_repulsion_and_link_keeping_are_opposite_forces_and_finite(positions):
    for force in (pushed(positions), pulled(positions * 10)):
        assert np.isfinite(force).all()
        np.testing.assert_allclose(force.sum(axis=0), 0, atol=1e-9)


# --- link keeping ---


def test_link_keeping_by_hand():
    # 114 m: halfway between 108 and 120, so 1.5 m/s toward each other; 120 m: 3 m/s; 108 m and below: nothing.
    np.testing.assert_allclose(pulled([[0, 0], [114, 0]]), [[1.5, 0], [-1.5, 0]])
    np.testing.assert_allclose(pulled([[0, 0], [0, 120]]), [[0, 3], [0, -3]])
    np.testing.assert_allclose(pulled([[0, 0], [108, 0]]), 0, atol=1e-12)
    assert not pulled([[0, 0], [100, 0]]).any()
    assert not pulled([[0, 0], [121, 0]]).any()


def test_the_largest_move_of_a_plan():
    assert largest_move_m(np.zeros((3, 2)), np.array([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0]])) == 5.0


def test_the_direction_of_a_coincident_pair_by_hand():
    """The golden angle times 7919 i + j: 2.399963 (3 x 7919 + 17)."""
    angle = 2.399963 * (3 * 7919 + 17)
    np.testing.assert_allclose(
        pushed([[0, 0], [0, 0]], members=[3, 17])[0], 10 * np.array([np.cos(angle), np.sin(angle)])
    )


def test_a_micrometer_decides_who_is_coincident():
    apart, together = (pushed([[0, 0], [x, 0]], members=[3, 17])[0] for x in (1.5e-6, 0.9e-6))
    np.testing.assert_allclose(apart, [-10.0, 0.0], atol=1e-5)
    assert abs(together[1]) > 1.0


def test_a_nanometer_decides_who_has_arrived():
    start = np.zeros((1, 2))
    for way_m in (1e-9, 1.5e-9):
        np.testing.assert_allclose(go(start, np.array([[0.0, way_m]]), PHYSICS), [[0.0, 10.0 * way_m]], rtol=1e-12)
    assert not go(start, np.array([[0.0, 0.9e-9]]), PHYSICS).any()
