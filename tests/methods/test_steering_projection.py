"""The exact projection against a cone solver, by hand, and under every change of units, names and place."""

from unittest import mock

import clarabel
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from phygail.methods.steering import LIGHTEST, project_moves, tree_order


def cone_solution(positions, wanted, weight, edges, limits):
    """The same program by a general cone solver: the oracle."""
    n = len(wanted)
    pull_weight = np.maximum(weight / weight.max(), LIGHTEST)
    rows, columns, values, right, cones = [], [], [], [], []
    for (i, j), limit in zip(edges, limits, strict=True):
        row = len(right)
        right += [limit, *(positions[i] - positions[j])]
        for axis in (0, 1):
            rows += [row + 1 + axis] * 2
            columns += [2 * i + axis, 2 * j + axis]
            values += [-1.0, 1.0]
        cones.append(clarabel.SecondOrderConeT(3))
    for i in range(n):
        row = len(right)
        right += [1.0, 0.0, 0.0]
        rows += [row + 1, row + 2]
        columns += [2 * i, 2 * i + 1]
        values += [-1.0, -1.0]
        cones.append(clarabel.SecondOrderConeT(3))
    matrix = sparse.csc_matrix((values, (rows, columns)), shape=(len(right), 2 * n))
    settings_ = clarabel.DefaultSettings()
    settings_.verbose = False
    settings_.tol_gap_abs = settings_.tol_gap_rel = settings_.tol_feas = 1e-11
    weights = sparse.diags(np.repeat(pull_weight, 2)).tocsc()
    linear = -(pull_weight[:, None] * wanted).ravel()
    solution = clarabel.DefaultSolver(weights, linear, matrix, np.array(right), cones, settings_).solve()
    return np.array(solution.x).reshape(-1, 2)


def stretched_tree(seed, largest=24):
    """(positions, wanted, weight, edges, limits): a random tree whose edges are near, at or beyond 119 strides."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, largest))
    positions, edges = [np.zeros(2)], []
    for node in range(1, n):
        parent = int(rng.integers(max(0, node - 3), node))
        angle, length = rng.uniform(0, 2 * np.pi), rng.choice([117.2, 118.5, 119.0, 119.4, 120.0])
        positions.append(positions[parent] + length * np.array([np.cos(angle), np.sin(angle)]))
        edges.append((parent, node))
    positions, edges = np.array(positions), np.array(edges)
    lengths = np.hypot(*(positions[edges[:, 0]] - positions[edges[:, 1]]).T)
    wanted = rng.normal(0, 1, (n, 2))
    wanted /= np.maximum(np.hypot(*wanted.T), 1.0)[:, None]
    weight = np.exp(rng.uniform(-5, 2, n))
    return positions, wanted, weight, edges, np.maximum(lengths, 119.0)


def excess(positions, moves, edges, limits):
    ahead = positions + moves
    return np.hypot(*(ahead[edges[:, 0]] - ahead[edges[:, 1]]).T) - limits


@given(seed=st.integers(0, 100_000))
@example(seed=31174)  # the oracle stops early: its moves cost 4 % more
@settings(max_examples=60, deadline=None)
def test_the_moves_are_those_of_a_cone_solver(seed):
    """LI-1: as near to what was wanted as the oracle's, and the same moves as far as the oracle is exact.

    Half the weighted squared distance from the optimum is at most what allowed moves cost more.
    """
    case = stretched_tree(seed)
    ours, oracle = project_moves(*case), cone_solution(*case)
    pull_weight = np.maximum(case[2] / case[2].max(), LIGHTEST)

    def cost(moves):
        return 0.5 * (pull_weight * ((moves - case[1]) ** 2).sum(axis=1)).sum()

    assert cost(ours) <= cost(oracle) + 1e-6
    inexact = np.sqrt(2.0 * max(0.0, cost(oracle) - cost(ours)))
    assert (np.sqrt(pull_weight) * np.hypot(*(ours - oracle).T)).max() < 5e-3 + inexact


@given(seed=st.integers(0, 100_000))
@settings(max_examples=200, deadline=None)
def test_no_edge_outgrows_its_limit_and_nobody_flies_more_than_a_stride(seed):
    """LI-2."""
    positions, wanted, weight, edges, limits = stretched_tree(seed, largest=60)
    moves = project_moves(positions, wanted, weight, edges, limits)
    assert excess(positions, moves, edges, limits).max() <= 1e-9
    assert np.hypot(*moves.T).max() <= 1.0 + 1e-12


@pytest.mark.parametrize(
    ("weight", "common"), [((1.0, 1.0), 0.0), ((3.0, 1.0), -0.5), ((1.0, 3.0), 0.5), ((1e9, 1.0), -0.998)]
)
def test_the_two_ends_of_a_taut_edge_fly_their_weighted_mean(weight, common):
    """LI-3: ends at the limit that want to fly apart: both get the mean of -1 and 1, nearly."""
    moves = project_moves(
        np.array([[0.0, 0.0], [119.0, 0.0]]), np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array(weight),
        np.array([[0, 1]]), np.array([119.0]),
    )  # fmt: skip
    np.testing.assert_allclose(moves, [[common, 0.0], [common, 0.0]], atol=2e-3)


def test_an_edge_with_room_is_used_up_before_anybody_yields():
    """Half a stride of room, equal ends that want to part by two: each keeps a quarter."""
    moves = project_moves(
        np.array([[0.0, 0.0], [118.5, 0.0]]), np.array([[-1.0, 0.0], [1.0, 0.0]]), np.ones(2),
        np.array([[0, 1]]), np.array([119.0]),
    )  # fmt: skip
    np.testing.assert_allclose(moves, [[-0.25, 0.0], [0.25, 0.0]], atol=1e-3)


def test_a_whole_chain_follows_its_heavy_head():
    """Twenty taut edges: averaging along them would need hundreds of rounds."""
    n = 21
    positions = np.stack([np.arange(n) * 119.0, np.zeros(n)], axis=1)
    wanted = np.zeros((n, 2))
    wanted[-1] = (1.0, 0.0)
    weight = np.full(n, 0.01)
    weight[-1] = 100.0
    chain = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    moves = project_moves(positions, wanted, weight, chain, np.full(n - 1, 119.0))
    common = 1.0 / (1.0 + 20 * LIGHTEST)  # the weighted mean, light ones counted with the least weight
    np.testing.assert_allclose(moves, np.tile([common, 0.0], (n, 1)), atol=2e-3)


def test_a_follower_at_full_speed_holds_its_leader_back():
    """The follower wants to fly across: it turns as far as its speed allows, the leader yields the rest."""
    case = (
        np.array([[0.0, 0.0], [119.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones(2),
        np.array([[0, 1]]), np.array([119.0]),
    )  # fmt: skip
    moves = project_moves(*case)
    np.testing.assert_allclose(moves, cone_solution(*case), atol=2e-3)
    assert np.hypot(*moves[0]) == pytest.approx(1.0, abs=2e-3)
    assert moves[1, 0] == pytest.approx(moves[0, 0], abs=2e-2)  # up to the bow of the edge


@given(seed=st.integers(0, 100_000))
@settings(max_examples=25, deadline=None)
def test_other_trees_change_nothing(seed):
    """LI-4: solved together, a tree moves as it does alone."""
    one, other = stretched_tree(seed), stretched_tree(seed + 1, largest=40)
    n = len(one[1])
    joined = [np.concatenate([a, b]) for a, b in zip(one[:3], other[:3], strict=True)]
    edges = np.concatenate([one[3], other[3] + n])
    both = project_moves(*joined, edges, np.concatenate([one[4], other[4]]))
    np.testing.assert_allclose(both[:n], project_moves(*one), atol=1e-7)


@given(seed=st.integers(0, 100_000), angle=st.floats(0, 6.28))
@settings(max_examples=25, deadline=None)
def test_turned_shifted_and_renumbered_trees_move_alike(seed, angle):
    positions, wanted, weight, edges, limits = stretched_tree(seed)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    order = np.random.default_rng(seed).permutation(len(wanted))
    place = np.argsort(order)
    moves = project_moves(
        (positions @ turn.T + [1000.0, -300.0])[order], (wanted @ turn.T)[order], weight[order], place[edges], limits
    )
    np.testing.assert_allclose(
        moves[place], project_moves(positions, wanted, weight, edges, limits) @ turn.T, atol=1e-5
    )


@given(seed=st.integers(0, 100_000))
@settings(max_examples=25, deadline=None)
def test_a_common_factor_of_the_weights_changes_nothing(seed):
    positions, wanted, weight, edges, limits = stretched_tree(seed)
    np.testing.assert_allclose(
        project_moves(positions, wanted, 1e6 * weight, edges, limits),
        project_moves(positions, wanted, weight, edges, limits), atol=1e-7,
    )  # fmt: skip


@given(seed=st.integers(0, 100_000))
@settings(max_examples=15, deadline=None)
def test_small_and_large_forests_are_solved_alike(seed):
    """The loop that orders few nodes and the sparse matrix that orders many give the same moves."""
    case = stretched_tree(seed, largest=40)
    few = project_moves(*case)
    with mock.patch("phygail.methods.steering.FEW", -1):
        many = project_moves(*case)
    np.testing.assert_allclose(many, few, atol=1e-7)


def test_an_order_lists_every_node_once_tree_by_tree():
    """A chain 4-0-2 and a star 1, 3, 5 around 6."""
    order = tree_order(7, np.array([[0, 4], [0, 2], [1, 6], [6, 3], [5, 6]])).tolist()
    assert order == [1, 6, 3, 5, 2, 0, 4]
