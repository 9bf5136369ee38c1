"""The two cone programs behind `convex` (METHODS 8.2): assembled with numpy, solved by Clarabel, never trusted blindly.

Both choose displacements d of the UAVs so that every edge of a fixed tree is at most R long afterwards:

    shortest flight   min t            s.t.  |d_i| <= t,          |p_i + d_i - p_j - d_j| <= R
    least motion      min sum_i s_i    s.t.  |d_i| <= s_i <= t,   |p_i + d_i - p_j - d_j| <= R

An interior-point solver returns a point that is feasible up to its tolerance, or stops early on hard numbers. So what
it returns is only a proposal: `repair` makes it feasible, and the duration of a plan is measured on the repaired plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy.sparse import csc_matrix

ACCURACY = 1e-8  # relative, Clarabel's default


@dataclass(frozen=True)
class Plan:
    """Targets that make the swarm one network.

    Attributes:
        targets: (n, 2) m.
        flight_m: Longest displacement, the duration of the plan in meters of flight.
        edges: (m, 2) int, the tree (or forest) whose edges are kept within range.
        tension: (m,) dual of each edge's length limit: the flight saved per meter that this edge might be longer.
    """

    targets: np.ndarray
    flight_m: float
    edges: np.ndarray
    tension: np.ndarray


def shortest_flight(
    positions: np.ndarray, edges: np.ndarray, range_m: float, *, slack_m: float = 0.0, accuracy: float = ACCURACY
) -> Plan:
    """The plan along a fixed tree whose longest displacement is smallest.

    Args:
        positions: (n, 2) m.
        edges: (m, 2) int, a spanning tree, or a forest for the plan that leaves its parts apart.
        range_m: Longest edge in the program.
        slack_m: By how much the solver's inaccuracy may lengthen an edge.
        accuracy: Relative tolerance of the solver.
    """
    n, m = len(positions), len(edges)
    unit = _unit(positions, edges, range_m)
    rows, columns, values, limits = _edge_cones(positions / unit, edges, range_m / unit, first_row=3 * n)
    each = np.arange(n)
    # Cone i holds (t, d_i); t is the last variable.
    rows = np.concatenate([3 * each, 3 * each + 1, 3 * each + 2, rows])
    columns = np.concatenate([np.full(n, 2 * n), 2 * each, 2 * each + 1, columns])
    values = np.concatenate([np.full(3 * n, -1.0), values])
    matrix = csc_matrix((values, (rows, columns)), shape=(3 * (n + m), 2 * n + 1))
    cost = np.zeros(2 * n + 1)
    cost[-1] = 1.0
    cones = [clarabel.SecondOrderConeT(3)] * (n + m)
    x, duals = _solve(cost, matrix, np.concatenate([np.zeros(3 * n), limits]), cones, accuracy)
    targets = repair(positions, positions + unit * x[: 2 * n].reshape(n, 2), edges, range_m, slack_m)
    return Plan(targets, _longest(targets - positions), edges, np.maximum(0.0, duals[3 * n :: 3]))


def least_motion(positions: np.ndarray, plan: Plan, range_m: float, flight_m: float, *, slack_m: float = 0.0) -> Plan:
    """The plan along the same tree with the smallest sum of displacements, none longer than `flight_m`.

    The plan given is returned where the solver finds nothing better.
    """
    n, m = len(positions), len(plan.edges)
    unit = _unit(positions, plan.edges, range_m)
    rows, columns, values, limits = _edge_cones(positions / unit, plan.edges, range_m / unit, first_row=4 * n)
    each = np.arange(n)
    # Rows 0..n-1 hold s_i <= t; cone i after them (s_i, d_i); s_i are the last n variables.
    rows = np.concatenate([each, n + 3 * each, n + 3 * each + 1, n + 3 * each + 2, rows])
    columns = np.concatenate([2 * n + each, 2 * n + each, 2 * each, 2 * each + 1, columns])
    values = np.concatenate([np.ones(n), np.full(3 * n, -1.0), values])
    matrix = csc_matrix((values, (rows, columns)), shape=(4 * n + 3 * m, 3 * n))
    cost = np.concatenate([np.zeros(2 * n), np.ones(n)])
    cones = [clarabel.NonnegativeConeT(n)] + [clarabel.SecondOrderConeT(3)] * (n + m)
    right = np.concatenate([np.full(n, flight_m / unit), np.zeros(3 * n), limits])
    x, _ = _solve(cost, matrix, right, cones, ACCURACY)
    moves = unit * x[: 2 * n].reshape(n, 2)
    moves *= np.minimum(1.0, flight_m / np.maximum(_lengths(moves), 1e-12))[:, None]
    targets = repair(positions, positions + moves, plan.edges, range_m, slack_m)
    motion, reach = _lengths(targets - positions), _longest(targets - positions)
    limit = max(flight_m * (1 + 1e-9), plan.flight_m)
    if reach > limit or motion.sum() >= _lengths(plan.targets - positions).sum():
        return plan
    return Plan(targets, reach, plan.edges, plan.tension)


def contraction(positions: np.ndarray, edges: np.ndarray, range_m: float) -> Plan:
    """The plan that needs no solver: the whole swarm shrinks about the middle of its bounding box."""
    targets = repair(positions, positions, edges, range_m, 0.0)  # staying, made feasible
    return Plan(targets, _longest(targets - positions), edges, np.zeros(len(edges)))


def repair(positions: np.ndarray, targets: np.ndarray, edges: np.ndarray, range_m: float, slack_m: float) -> np.ndarray:
    """Shrink a proposal until every edge is within range (plus slack); numbers that are not finite count as "stay".

    Shrinking scales all edges alike, so it always succeeds, and a proposal that is off by a relative error e moves
    its UAVs by e times their distance from the middle at most.
    """
    if not np.isfinite(targets).all():
        targets = positions
    longest = _longest(targets[edges[:, 0]] - targets[edges[:, 1]])
    if longest <= range_m + slack_m:
        return targets
    middle = (targets.min(axis=0) + targets.max(axis=0)) / 2
    return middle + (targets - middle) * (range_m / longest)


def _edge_cones(
    positions: np.ndarray, edges: np.ndarray, range_: float, first_row: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns, values and right-hand side of the cones (R, p_i + d_i - p_j - d_j), one per edge."""
    m = len(edges)
    i, j = edges.T
    row = first_row + 3 * np.arange(m)
    rows = np.concatenate([row + 1, row + 2, row + 1, row + 2])
    columns = np.concatenate([2 * i, 2 * i + 1, 2 * j, 2 * j + 1])
    values = np.concatenate([np.full(2 * m, -1.0), np.full(2 * m, 1.0)])
    limits = np.empty((m, 3))
    limits[:, 0] = range_
    limits[:, 1:] = positions[i] - positions[j]
    return rows, columns, values, limits.ravel()


def _solve(
    cost: np.ndarray, matrix: csc_matrix, right: np.ndarray, cones: list, accuracy: float
) -> tuple[np.ndarray, np.ndarray]:
    """Primal and dual point where the solver stopped, of min cost.x with right - matrix x in the cones."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1  # same sums in the same order: rows do not depend on the machine's cores
    settings.presolve_enable = False
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = accuracy
    quadratic = csc_matrix((len(cost), len(cost)))
    solution = clarabel.DefaultSolver(quadratic, cost, matrix, right, cones, settings).solve()
    return np.asarray(solution.x), np.nan_to_num(np.asarray(solution.z))


def _unit(positions: np.ndarray, edges: np.ndarray, range_m: float) -> float:
    """Length that brings the numbers of a program to the order of one."""
    return max(range_m, _longest(positions[edges[:, 0]] - positions[edges[:, 1]]) / 2)


def _lengths(offsets: np.ndarray) -> np.ndarray:
    return np.hypot(offsets[:, 0], offsets[:, 1])


def _longest(offsets: np.ndarray) -> float:
    return float(_lengths(offsets).max(initial=0.0))
