"""methods.convex.search: Clarabel called directly, against cvxpy and numbers worked by hand."""

import clarabel
import numpy as np
import pytest

from phygail.methods.convex.search import contraction, least_motion, repair, shortest_flight
from phygail.rng import generator
from phygail.swarm.tree import spanning_tree

pytestmark = pytest.mark.xdist_group("cones")  # cvxpy is imported once
R = 120.0


def random_case(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scattered points and a random tree (not the shortest one)."""
    rng = generator(seed, "cone")
    n = int(rng.integers(2, 12))
    points = rng.uniform(0, 800, (n, 2))
    return points, np.array([(rng.integers(0, k), k) for k in range(1, n)])


def longest_edge(points: np.ndarray, edges: np.ndarray) -> float:
    return float(np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1).max())


def constraints(cp, q, edges: np.ndarray) -> list:
    return [cp.norm(q[int(i)] - q[int(j)]) <= R for i, j in edges]


@pytest.mark.parametrize("seed", range(6))
def test_shortest_flight_equals_cvxpy(cp, seed):
    points, edges = random_case(seed)
    q, t = cp.Variable(points.shape), cp.Variable()
    cp.Problem(cp.Minimize(t), [*constraints(cp, q, edges), cp.norm(q - points, axis=1) <= t]).solve(solver=cp.CLARABEL)
    plan = shortest_flight(points, edges, R)
    assert plan.flight_m == pytest.approx(float(t.value), abs=1e-4)
    assert plan.flight_m == pytest.approx(np.linalg.norm(plan.targets - points, axis=1).max(), abs=1e-12)
    assert longest_edge(plan.targets, edges) <= R + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_least_motion_equals_cvxpy(cp, seed):
    points, edges = random_case(seed)
    best = shortest_flight(points, edges, R)
    limit = best.flight_m + 5.0
    q = cp.Variable(points.shape)
    moves = cp.norm(q - points, axis=1)
    problem = cp.Problem(cp.Minimize(cp.sum(moves)), [*constraints(cp, q, edges), moves <= limit])
    problem.solve(solver=cp.CLARABEL)
    plan = least_motion(points, best, R, limit, slack_m=1e-4)
    moved = np.linalg.norm(plan.targets - points, axis=1)
    assert moved.sum() == pytest.approx(problem.value, abs=1e-3)
    assert moved.max() <= limit * (1 + 1e-9)
    assert longest_edge(plan.targets, edges) <= R + 1e-4


def test_two_points_meet_half_way():
    plan = shortest_flight(np.array([[0.0, 0.0], [200.0, 0.0]]), np.array([[0, 1]]), R)
    np.testing.assert_allclose(plan.targets, [[40.0, 0.0], [160.0, 0.0]], atol=1e-5)
    assert plan.tension == pytest.approx([0.5], abs=1e-5)  # a meter of range saves half a meter of flight


def test_ends_of_a_chain_share_its_gaps():
    """0, 200, 400 m on a line: the ends must come within 240 m of each other, 80 m each."""
    plan = shortest_flight(np.array([[0.0, 0.0], [200.0, 0.0], [400.0, 0.0]]), np.array([[0, 1], [1, 2]]), R)
    assert plan.flight_m == pytest.approx(80.0, abs=1e-5)
    assert plan.tension.sum() == pytest.approx(1.0, abs=1e-5)


def test_tension_predicts_what_range_is_worth():
    points, edges = random_case(5)
    plan = shortest_flight(points, edges, R)
    longer = shortest_flight(points, edges, R + 0.01)
    assert plan.flight_m - longer.flight_m == pytest.approx(0.01 * plan.tension.sum(), rel=0.02)


def test_least_motion_moves_nobody_without_need():
    """Two linked UAVs and a third out of reach: only the two at the gap move."""
    points = np.array([[0.0, 0.0], [100.0, 0.0], [300.0, 0.0]])
    edges = np.array([[0, 1], [1, 2]])
    plan = least_motion(points, shortest_flight(points, edges, R), R, 60.0, slack_m=1e-4)
    moved = np.linalg.norm(plan.targets - points, axis=1)
    assert moved.sum() == pytest.approx(80.0, abs=1e-3)
    assert moved[0] == pytest.approx(0.0, abs=1e-3)


def test_forest_keeps_its_parts_apart():
    points = np.array([[0.0, 0.0], [200.0, 0.0], [5000.0, 0.0]])
    assert shortest_flight(points, np.array([[0, 1]]), R).flight_m == pytest.approx(40.0, abs=1e-5)
    assert shortest_flight(points, np.empty((0, 2), dtype=int), R).flight_m == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e5])
def test_flight_scales_with_the_map(scale):
    points, edges = random_case(2)
    flight = shortest_flight(points, edges, R).flight_m
    assert shortest_flight(points * scale, edges, R * scale).flight_m == pytest.approx(flight * scale, rel=1e-6)


def test_repair_makes_any_proposal_feasible():
    points, _ = random_case(4)
    edges, _ = spanning_tree(points)
    for proposal in (points, points * 50, np.full_like(points, np.nan)):
        assert longest_edge(repair(points, proposal, edges, R, 0.0), edges) <= R * (1 + 1e-12)


def test_plan_is_feasible_even_if_the_solver_fails(monkeypatch):
    points, edges = random_case(3)
    stopped = clarabel.DefaultSettings

    def impatient():
        settings = stopped()
        settings.max_iter = 1
        return settings

    monkeypatch.setattr(clarabel, "DefaultSettings", impatient)
    plan = shortest_flight(points, edges, R)
    assert longest_edge(plan.targets, edges) <= R * (1 + 1e-12)
    assert np.linalg.norm(plan.targets - points, axis=1).max() == pytest.approx(plan.flight_m)


def test_contraction_shrinks_about_the_middle():
    plan = contraction(np.array([[0.0, 0.0], [200.0, 0.0], [400.0, 0.0]]), np.array([[0, 1], [1, 2]]), R)
    np.testing.assert_allclose(plan.targets, [[80.0, 0.0], [200.0, 0.0], [320.0, 0.0]], atol=1e-9)
    assert plan.flight_m == pytest.approx(80.0)
