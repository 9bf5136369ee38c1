"""The contraction operator: MG-1 and MG-2, and its use until the network is one."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phygail.methods.planning import contract_until_connected, contraction, contraction_plan, operator_of
from phygail.rng import generator
from phygail.swarm.links import find_links
from phygail.swarm.scenario import draw_scenario


def points_of(seed: int, uavs: int = 50, ratio: float = 0.75) -> np.ndarray:
    return draw_scenario(uavs, ratio, generator(seed, "contraction")).spots


@given(st.integers(0, 10_000), st.sampled_from([0.25, 0.5, 0.9]))
@settings(max_examples=15, deadline=None)
def test_operator_is_stochastic_with_a_simple_eigenvalue_one_and_converges_to_the_centroid(seed, ratio):
    """MG-1."""
    points = points_of(seed, 20 if ratio < 0.9 else 50, ratio)
    h = contraction(points, 120.0).operator
    assert np.abs(h.sum(axis=1) - 1).max() < 1e-12
    assert h.min() >= 0
    eigenvalues = np.linalg.eigvalsh(h)
    assert np.isclose(eigenvalues[-1], 1.0)
    assert np.abs(eigenvalues[:-1]).max() < 1 - 1e-6
    settled = np.linalg.matrix_power(h, 1 << 14) @ points
    assert np.abs(settled - points.mean(axis=0)).max() < 1e-6


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_smallest_threshold_is_the_bottleneck_edge_or_the_range(seed):
    """MG-2, against networkx; the adjacency at d is connected and has a zero diagonal."""
    points = points_of(seed)
    distance = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    tree = nx.minimum_spanning_tree(nx.from_numpy_array(distance))
    bottleneck = max(data["weight"] for _, _, data in tree.edges(data=True))
    made = contraction(points, 120.0)
    assert made.d_min == pytest.approx(max(120.0, bottleneck))
    assert made.threshold == pytest.approx(made.d_min + 0.25 * (distance.max() - made.d_min))
    assert not made.adjacency.diagonal().any()
    assert nx.is_connected(nx.from_numpy_array(made.adjacency))


def test_operator_of_a_path_by_hand():
    adjacency = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
    operator, gain = operator_of(adjacency)
    assert gain == 0.495
    np.testing.assert_allclose(operator, [[0.505, 0.495, 0], [0.495, 0.01, 0.495], [0, 0.495, 0.505]])


def test_operator_of_a_graph_without_edges_is_the_identity():
    operator, gain = operator_of(np.zeros((3, 3), dtype=bool))
    assert gain == 0.0
    np.testing.assert_array_equal(operator, np.eye(3))


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_power_is_the_smallest_that_connects(seed):
    points = points_of(seed, 50, 0.9)
    h = contraction(points, 120.0).operator
    moved, power = contract_until_connected(points, h, 119.9)
    assert find_links(moved, 119.9).connected
    assert power >= 1
    before = np.linalg.matrix_power(h, power - 1) @ points
    assert not find_links(before, 119.9).connected
    np.testing.assert_allclose(h @ before, moved)


@pytest.mark.parametrize("seed", [1, 2])
def test_plan_is_the_first_power_connected_with_a_margin(seed):
    points = points_of(seed)
    expected = contract_until_connected(points, contraction(points, 120.0).operator, 119.9)[0]
    np.testing.assert_array_equal(contraction_plan(points, 120.0), expected)
    assert find_links(expected, 119.9).connected


def test_connected_points_stay():
    points = np.array([[0.0, 0.0], [100.0, 0.0]])
    moved, power = contract_until_connected(points, contraction(points, 120.0).operator, 119.9)
    assert power == 0
    np.testing.assert_array_equal(moved, points)


def test_an_operator_that_cannot_join_gives_the_centroid():
    points = np.array([[0.0, 0.0], [500.0, 0.0]])
    moved, power = contract_until_connected(points, np.eye(2), 119.9, largest_power=5)
    assert power == 5
    np.testing.assert_array_equal(moved, [[250.0, 0.0]] * 2)


@pytest.mark.parametrize("gap", [121.0, 5_000.0])
def test_two_alive_however_far_apart_are_joined(gap):
    points = np.array([[0.0, 0.0], [gap, 0.0]])
    moved, _ = contract_until_connected(points, contraction(points, 120.0).operator, 119.9)
    assert find_links(moved, 119.9).connected


def test_collinear_points_are_joined():
    points = np.stack([np.linspace(0, 3000, 12), np.zeros(12)], axis=1)
    moved, _ = contract_until_connected(points, contraction(points, 120.0).operator, 119.9)
    assert find_links(moved, 119.9).connected


def test_a_shift_changes_nothing():
    """G3."""
    points = points_of(5)
    np.testing.assert_allclose(
        contraction(points + np.array([1000.0, -300.0]), 120.0).operator,
        contraction(points, 120.0).operator,
        atol=1e-12,
    )
