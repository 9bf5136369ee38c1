"""swarm.tree (METHODS 8.1)."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from phygail.config import Physics
from phygail.swarm.links import find_links
from phygail.swarm.tree import bound_steps


def brute_force(positions: np.ndarray, physics: Physics) -> int:
    """The smallest range that joins the swarm, tried among all pair distances in turn."""
    offset = positions[:, None] - positions[None]
    distance = np.hypot(offset[..., 0], offset[..., 1])
    for longest in np.unique(distance):
        graph = nx.from_numpy_array((distance <= longest).astype(int))
        if nx.is_connected(graph):
            break
    return max(0, math.ceil(max(0.0, longest - physics.range_m) / (2 * physics.stride_m) - 1e-6))


@pytest.mark.parametrize(
    ("distance_m", "steps"),
    [(50.0, 0), (120.0, 0), (120.0 + 1e-6, 0), (120.1, 1), (122.0, 1), (122.0 + 1e-6, 1), (122.1, 2), (200.0, 40)],
)
def test_two_uavs_close_their_gap_at_twice_the_speed(distance_m, steps):
    assert bound_steps(np.array([[0.0, 0.0], [0.0, distance_m]]), Physics()) == steps


def test_only_the_longest_edge_of_the_tree_counts():
    line = np.array([[0.0, 0.0], [150.0, 0.0], [340.0, 0.0], [500.0, 0.0]])  # edges 150, 190, 160
    assert bound_steps(line, Physics()) == 35


def test_bound_follows_the_users_radio_and_vehicle():
    pair = np.array([[0.0, 0.0], [100.0, 0.0]])
    assert bound_steps(pair, Physics(range_m=60.0, speed_mps=5.0, step_s=0.2)) == 20
    assert bound_steps(pair, Physics(range_m=60.0, speed_mps=20.0, step_s=0.2)) == 5


def test_one_uav_is_connected():
    assert bound_steps(np.zeros((1, 2)), Physics()) == 0


def test_connected_slow_swarm_has_bound_zero():
    """A link at the edge of its tolerance is a link, even where the tolerance is a large part of a step."""
    slow = Physics(speed_mps=1e-4)
    pair = np.array([[0.0, 0.0], [120.0 + 0.9e-6, 0.0]])
    assert find_links(pair, slow.range_m).connected
    assert bound_steps(pair, slow) == 0


points = hnp.arrays(float, st.tuples(st.integers(2, 12), st.just(2)), elements=st.floats(0, 1500, width=32))


@given(points, st.sampled_from([Physics(), Physics(range_m=300.0, speed_mps=3.0, step_s=0.5)]))
def test_bound_equals_the_brute_force_threshold(positions, physics):
    assert bound_steps(positions, physics) == brute_force(positions, physics)


@given(points)
def test_bound_is_zero_exactly_for_one_network(positions):
    assert (bound_steps(positions, Physics()) == 0) == find_links(positions, 120.0).connected
