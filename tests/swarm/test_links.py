import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse.csgraph import connected_components

from phygail.swarm.links import (
    FEW,
    find_links,
    group_means,
    group_sums,
    join_sets,
    label_subnets,
    laplacian,
    laplacian_spectrum,
    near_pairs,
)

R = 120.0
# A grid of whole meters makes exact distances, ties and coincident UAVs common.
swarms = st.integers(0, 30).flatmap(
    lambda n: arrays(float, (n, 2), elements=st.one_of(st.integers(0, 400).map(float), st.floats(0, 400)))
)


@pytest.mark.parametrize(("more", "calls"), [(0, 0), (1, 1)])
def test_few_nodes_are_joined_here_and_many_by_scipy(monkeypatch, more, calls):
    """A pair of three nodes or so takes SciPy a hundred times as long as a loop."""
    asked = []
    known = connected_components
    monkeypatch.setattr(
        "phygail.swarm.links.connected_components", lambda graph, **given: asked.append(1) or known(graph, **given)
    )
    n = FEW - 1 + more
    labels, count = label_subnets(n, np.array([[0, n - 1]]))
    assert (count, labels[n - 1], len(asked)) == (n - 1, labels[0], calls)


def line(*xs: float) -> np.ndarray:
    return np.array([[x, 0.0] for x in xs])


def oracle(positions: np.ndarray, reach: float) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(len(positions)))
    for i in range(len(positions)):
        for j in range(i + 1, len(positions)):
            d = np.hypot(*(positions[i] - positions[j]))
            if d <= reach + 1e-6:
                graph.add_edge(i, j, length=d)
    return graph


def test_a_hand_drawn_network():
    links = find_links(line(0, 100, 350, 220, 500), R)  # 0-1, 1-3 (120), 3-2 (130: no), 2-4 (150: no)
    assert links.pairs.tolist() == [[0, 1], [1, 3]]
    assert links.lengths.tolist() == [100.0, 120.0]
    assert links.subnet.tolist() == [0, 0, 1, 0, 2]
    assert links.count == 3
    assert not links.connected


@pytest.mark.parametrize(
    ("distance", "linked"), [(120.0, True), (120.0 + 9e-7, True), (120.0 + 1.1e-6, False), (120.1, False), (0.0, True)]
)
def test_a_link_includes_the_range_and_a_micrometer(distance, linked):
    assert find_links(line(0, distance), R).connected is linked


def test_a_rigidly_moved_link_of_exactly_the_range_holds():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 500)
    start = rng.uniform(0, 1e4, (500, 2))
    ends = start + R * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for a, b, shift in zip(start, ends, rng.uniform(-1e4, 1e4, (500, 2)), strict=True):
        assert find_links(np.array([a, b]) + shift, R).connected


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_position_that_is_no_number_never_links(bad):
    positions = np.array([[0.0, 0.0], [bad, 0.0], [1.0, 0.0], [bad, bad], [0.0, bad]])
    links = find_links(positions, R)
    assert links.pairs.tolist() == [[0, 2]]
    assert links.contacts.tolist() == [[0, 2]]
    assert links.count == 4
    assert find_links(np.full((3, 2), bad), R).count == 3


@pytest.mark.parametrize(
    ("distance", "touching"), [(10.0, False), (10 - 9e-7, False), (10 - 1.1e-6, True), (9.0, True), (0.0, True)]
)
def test_a_contact_is_closer_than_ten_meters_by_more_than_a_micrometer(distance, touching):
    assert bool(len(find_links(line(0, distance), R).contacts)) is touching


def test_the_contact_distance_may_be_another():
    assert find_links(line(0, 3, 9), R, 4.0).contacts.tolist() == [[0, 1]]
    assert find_links(line(0, 3, 9), R, 7.0).contacts.tolist() == [[0, 1], [1, 2]]
    farther = find_links(line(0, 3, 9), 4.0, 20.0)  # contacts beyond the radio range make no links
    assert farther.contacts.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert farther.pairs.tolist() == [[0, 1]]


def test_contacts_are_counted_beyond_a_radio_range_below_ten_meters():
    links = find_links(line(0, 8, 12), 5.0)
    assert links.pairs.tolist() == [[1, 2]]
    assert links.contacts.tolist() == [[0, 1], [1, 2]]


@given(swarms)
@settings(max_examples=60, deadline=None)
def test_links_and_subnets_agree_with_networkx(positions):
    links, graph = find_links(positions, R), oracle(positions, R)
    assert [tuple(p) for p in links.pairs.tolist()] == sorted(tuple(sorted(e)) for e in graph.edges)
    assert links.lengths == pytest.approx([graph.edges[i, j]["length"] for i, j in links.pairs.tolist()])
    expected = sorted(nx.connected_components(graph), key=min)  # labels in the order of the lowest rows
    assert links.count == len(expected)
    assert [set(np.flatnonzero(links.subnet == k).tolist()) for k in range(links.count)] == expected
    close = [tuple(sorted(e)) for e in graph.edges if graph.edges[e]["length"] < 10 - 1e-6]
    assert [tuple(p) for p in links.contacts.tolist()] == sorted(close)


@given(swarms.filter(len))
@settings(max_examples=40, deadline=None)
def test_lambda_2_is_positive_exactly_for_one_network_and_zeros_count_the_subnets(positions):
    """Constraint C1 of the paper."""
    links = find_links(positions, R)
    lambda_2, zeros = laplacian_spectrum(len(positions), links.pairs)
    assert zeros == links.count
    assert (lambda_2 > 0) == (links.connected and len(positions) > 1)


def test_the_laplacian_of_a_path_of_three():
    pairs = np.array([[0, 1], [1, 2]])
    assert laplacian(3, pairs).tolist() == [[1, -1, 0], [-1, 2, -1], [0, -1, 1]]
    assert laplacian_spectrum(3, pairs) == (pytest.approx(1.0), 1)  # eigenvalues 0, 1, 3
    assert laplacian_spectrum(3, pairs[:1]) == (0.0, 2)
    assert laplacian_spectrum(0, pairs[:0]) == (0.0, 0)
    assert laplacian_spectrum(1, pairs[:0]) == (0.0, 1)


def test_a_long_path_is_one_network_for_the_spectrum_too():
    n = 200
    pairs = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    lambda_2, zeros = laplacian_spectrum(n, pairs)
    assert zeros == 1
    assert lambda_2 == pytest.approx(2 - 2 * np.cos(np.pi / n))


def test_a_network_in_which_everybody_hears_everybody_is_one_for_the_spectrum_too():
    """Eigenvalues 0 and n: that of 0 is off by more than 1e-12 / n, and 9 UAVs more alone are 9 zeros more."""
    n = 300
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    assert laplacian_spectrum(n, pairs) == (pytest.approx(n), 1)
    assert laplacian_spectrum(n + 9, pairs) == (0.0, 10)


def test_a_single_uav_has_no_pairs_of_the_right_shape():
    for few in (0, 1):
        pairs, lengths = near_pairs(np.zeros((few, 2)), R)
        assert (pairs.shape, pairs.dtype, lengths.shape) == ((0, 2), np.intp, (0,))


def test_the_order_of_the_links_of_a_subnet_does_not_depend_on_other_subnets():
    """Not even the last bit of a sum over links may tell where the others are (METHODS 2.4)."""
    rng = np.random.default_rng(1)
    mine = rng.uniform(0, 300, (40, 2))
    alone = near_pairs(mine, R)
    for _ in range(5):
        others = rng.uniform(5000, 9000, (200, 2))
        pairs, lengths = near_pairs(np.vstack([mine, others]), R)
        here = pairs[:, 0] < 40
        assert np.array_equal(pairs[here], alone[0])
        assert np.array_equal(lengths[here], alone[1])


def test_links_are_immutable():
    links = find_links(line(0, 5), R)
    for array in (links.pairs, links.lengths, links.subnet, links.contacts):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_nodes_without_links_are_their_own_subnets():
    labels, count = label_subnets(3, np.empty((0, 2), dtype=int))
    assert labels.tolist() == [0, 1, 2]
    assert count == 3


@given(st.data())
def test_subnets_of_few_and_of_many_are_those_of_graph_search(data):
    """Both ways of `label_subnets` against scipy, labels and all."""
    n = data.draw(st.integers(1, 40))
    pairs = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=2 * n))
    idle = data.draw(st.sampled_from([0, FEW]))  # nodes without links: above FEW the other way is taken
    edges = np.array(pairs, dtype=int).reshape(-1, 2)
    dense = np.zeros((n + idle, n + idle), dtype=bool)
    dense[edges[:, 0], edges[:, 1]] = True
    expected_count, expected = connected_components(dense, directed=False)
    labels, count = label_subnets(n + idle, edges)
    assert labels.tolist() == expected.tolist()
    assert labels.dtype == expected.dtype
    assert count == expected_count


def test_joining_sets_tells_which_pairs_joined():
    """3-1 and 4-3 join, 1-4 closes a ring, 2-0 joins, 0-4 joins the two."""
    root, joined = join_sets(6, np.array([[3, 1], [4, 3], [1, 4], [2, 0], [0, 4]]))
    assert joined == [0, 1, 3, 4]
    assert root == [0, 0, 0, 1, 1, 5]


# --- sums by group ---


def test_sums_and_means_by_hand():
    group, vectors = np.array([2, 0, 2]), np.array([[1.0, 2.0], [5.0, 5.0], [3.0, -2.0]])
    assert group_sums(group, vectors, 4).tolist() == [[5, 5], [0, 0], [4, 0], [0, 0]]
    assert group_means(group, vectors, 4).tolist() == [[5, 5], [0, 0], [2, 0], [0, 0]]


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), max_size=30))
def test_every_group_alone_has_the_same_sum_and_mean(items):
    group = np.array([item[0] for item in items], dtype=np.intp)
    vectors = np.array([item[1:] for item in items]).reshape(-1, 2)
    sums, means = group_sums(group, vectors, 5), group_means(group, vectors, 5)
    for label in range(5):
        mine = vectors[group == label]
        assert sums[label] == pytest.approx(mine.sum(axis=0), abs=1e-9)
        assert means[label] == pytest.approx(mine.mean(axis=0) if len(mine) else [0.0, 0.0], abs=1e-9)
