"""The search for the tree that `convex` plans along, and its two cone programs (METHODS 8.2).

Both choose displacements d of the UAVs so that every edge of a fixed tree is at most R long afterwards:

    shortest flight   min t            s.t.  |d_i| <= t,          |p_i + d_i - p_j - d_j| <= R
    least motion      min sum_i s_i    s.t.  |d_i| <= s_i <= t,   |p_i + d_i - p_j - d_j| <= R

An interior-point solver returns a point that is feasible up to its tolerance, or stops early on hard numbers. So what
it returns is only a proposal: `repair` makes it feasible, and the duration of a plan is measured on the repaired plan.

A plan along the minimum spanning tree is often optimal. Where its flight stays above the lower bound, edges are
exchanged. The duals of the cone program say where: edges with tension carry the forces that keep the plan from being
shorter, so a shorter plan must lack one of them. Removing such an edge cuts the tree in two; the plan without it
shows where the two parts could go, and the pairs that come closest there are tried in its place. Random
exchanges leave local optima (iterated local search). The budget counts solves, never seconds: a row does not depend on
the speed of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csc_matrix
from scipy.sparse.csgraph import breadth_first_order
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from phygail.swarm.links import label_subnets
from phygail.swarm.tree import dense_tree, excess_m, level_range_m, spanning_tree

Range = float | np.ndarray  # m, the longest that edges may be: one number, or (m,) one for each

ACCURACY = 1e-8  # relative, Clarabel's default
SHORTEST_M = 1e-300  # an edge of no length is not shrunk

SOLVE_BUDGET = 40_000  # solves times (n + 20): about a second, for 10 UAVs as for 200
SOLVE_OVERHEAD = 20  # the fixed cost of a solve, in UAVs
FEWEST_SOLVES = 8
TRIALS = 6  # replacements tried for an edge
NEAREST = 12  # crossing pairs considered per UAV
KICK_POOL = 24  # crossing pairs a random exchange chooses from
MOST_KICKS = 3  # exchanges between two descents
PATIENCE = 60  # descents without a better plan before the search ends
STRAINED = 1e-3  # share of the largest tension; an edge with less carries none
SCREENED = 400  # up to this many UAVs a test of hops sorts trials out; its tables are (n, n)


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
    positions: np.ndarray, edges: np.ndarray, range_m: Range, *, slack_m: float = 0.0, accuracy: float = ACCURACY
) -> Plan:
    """The plan along a fixed tree whose longest displacement is smallest.

    Args:
        positions: (n, 2) m.
        edges: (m, 2) int, a spanning tree, or a forest for the plan that leaves its parts apart.
        range_m: Longest edge in the program, one for all or one for each.
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
    right = np.concatenate([np.zeros(3 * n), limits])
    x, duals = _solve(cost, matrix, right, (0, n + m), accuracy)
    targets = repair(positions, positions + unit * x[: 2 * n].reshape(n, 2), edges, range_m, slack_m)
    return Plan(targets, _longest(targets - positions), edges, np.maximum(0.0, duals[3 * n :: 3]))


def least_motion(positions: np.ndarray, plan: Plan, range_m: Range, flight_m: float, *, slack_m: float = 0.0) -> Plan:
    """The plan along the same tree with the smallest sum of displacements, none longer than `flight_m`.

    If the solver finds nothing better, `plan` is returned.
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
    right = np.concatenate([np.full(n, flight_m / unit), np.zeros(3 * n), limits])
    x, _ = _solve(cost, matrix, right, (n, n + m), ACCURACY)
    moves = unit * x[: 2 * n].reshape(n, 2)
    moves *= np.minimum(1.0, flight_m / np.maximum(_lengths(moves), 1e-12))[:, None]
    targets = repair(positions, positions + moves, plan.edges, range_m, slack_m)
    motion, longest = _lengths(targets - positions), _longest(targets - positions)
    limit = max(flight_m * (1 + 1e-9), plan.flight_m)
    if longest > limit or motion.sum() >= _lengths(plan.targets - positions).sum():
        return plan
    return Plan(targets, longest, plan.edges, plan.tension)


def contraction(positions: np.ndarray, edges: np.ndarray, range_m: Range) -> Plan:
    """A plan that needs no solver: the whole swarm shrinks about the middle of its bounding box."""
    targets = repair(positions, positions, edges, range_m, 0.0)  # UAVs stay; `repair` makes that feasible
    return Plan(targets, _longest(targets - positions), edges, np.zeros(len(edges)))


def repair(positions: np.ndarray, targets: np.ndarray, edges: np.ndarray, range_m: Range, slack_m: float) -> np.ndarray:
    """Shrink a proposal until every edge is within range (plus slack); numbers that are not finite count as "stay".

    Shrinking scales all edges alike, so it always succeeds, and a proposal with a relative error e moves its
    UAVs by at most e times their distance from the middle.
    """
    if not np.isfinite(targets).all():
        targets = positions
    lengths = _lengths(targets[edges[:, 0]] - targets[edges[:, 1]])
    if (lengths <= range_m + slack_m).all():
        return targets
    middle = (targets.min(axis=0) + targets.max(axis=0)) / 2
    return middle + (targets - middle) * (range_m / np.maximum(lengths, SHORTEST_M)).min()


def edge_ranges_m(edges: np.ndarray, range_m: float, heights: np.ndarray | None) -> Range:
    """How long these edges may be in the plane."""
    return range_m if heights is None else level_range_m(heights, edges, range_m)


def _edge_cones(
    positions: np.ndarray, edges: np.ndarray, range_: Range, first_row: int
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
    cost: np.ndarray, matrix: csc_matrix, right: np.ndarray, cones: tuple[int, int], accuracy: float
) -> tuple[np.ndarray, np.ndarray]:
    """The primal and dual points at which the solver of min cost.x with right - matrix x in the cones stopped.

    `cones` counts the rows that must not be negative and, after them, the cones |(x, y)| <= t of three rows each.
    """
    import clarabel  # here, because most methods need no solver

    kinds = [clarabel.NonnegativeConeT(cones[0])] if cones[0] else []
    kinds += [clarabel.SecondOrderConeT(3)] * cones[1]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1  # same sums in the same order: rows do not depend on the machine's cores
    settings.presolve_enable = False
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = accuracy
    quadratic = csc_matrix((len(cost), len(cost)))
    solution = clarabel.DefaultSolver(quadratic, cost, matrix, right, kinds, settings).solve()
    return np.asarray(solution.x), np.nan_to_num(np.asarray(solution.z))


def _unit(positions: np.ndarray, edges: np.ndarray, range_m: Range) -> float:
    """Length that brings the numbers of a program to the order of one; without edges any will do."""
    longest_m = _longest(positions[edges[:, 0]] - positions[edges[:, 1]])
    return max(float(np.max(range_m, initial=0.0)), longest_m / 2) or 1.0


def _lengths(offsets: np.ndarray) -> np.ndarray:
    return np.hypot(offsets[:, 0], offsets[:, 1])


def _longest(offsets: np.ndarray) -> float:
    return float(_lengths(offsets).max(initial=0.0))


class TreeSearch:
    """Looks for a spanning tree with a short plan; `best` is the shortest plan so far.

    Args:
        positions: (n, 2) m.
        range_m: Longest allowed edge of the plan.
        slack_m: By how much the solver's inaccuracy may lengthen an edge.
        enough_m: Flight that ends the search: the lower bound.
        gain_m: Gains below this are rounding.
        effort: Multiplies the budget of solves.
        heights: (n,) m; None in one layer. At heights an edge may be sqrt(R^2 - dz^2) long in the plane.
    """

    def __init__(
        self,
        positions: np.ndarray,
        range_m: float,
        *,
        slack_m: float,
        enough_m: float,
        gain_m: float,
        effort: float = 1.0,
        heights: np.ndarray | None = None,
    ) -> None:
        self._positions = positions
        self._heights = heights
        self._range_m = range_m
        self._slack_m = slack_m
        self._enough_m = enough_m
        self._gain_m = gain_m
        self._budget = max(FEWEST_SOLVES, int(effort * SOLVE_BUDGET / (len(positions) + SOLVE_OVERHEAD)))
        self._rng = np.random.default_rng(0)  # fixed: a plan is a function of the positions alone
        self._known: dict[bytes, Plan] = {}
        self._screen = cdist(positions, positions) if len(positions) <= SCREENED else None
        self.solves = 0
        self.best = self._solve(self._tree(positions))

    def run(self) -> Plan:
        """Settle and descend from the minimum spanning tree, then kick and descend again within the budget."""
        plan = self._descend(self._settle(self.best))
        idle = 0
        while self._open and idle < PATIENCE:
            trial = self._descend(self._settle(self._solve(self._kicked(plan))))
            idle = 0 if self._better(trial, plan) else idle + 1
            if trial.flight_m <= plan.flight_m + self._gain_m:
                plan = trial
        return self.best

    @property
    def _open(self) -> bool:
        return self.solves < self._budget and self.best.flight_m > self._enough_m

    def _better(self, trial: Plan, plan: Plan) -> bool:
        return trial.flight_m < plan.flight_m - self._gain_m

    def _solve(self, edges: np.ndarray, *, spanning: bool = True) -> Plan:
        """The plan along these edges; a tree met before costs nothing."""
        edges = np.sort(edges, axis=1)
        edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
        key = edges.tobytes()
        if key not in self._known:
            self.solves += 1
            ranges = edge_ranges_m(edges, self._range_m, self._heights)
            self._known[key] = shortest_flight(self._positions, edges, ranges, slack_m=self._slack_m)
        plan = self._known[key]
        if spanning and (self.solves == 1 or plan.flight_m < self.best.flight_m):
            self.best = plan
        return plan

    def _tree(self, points: np.ndarray) -> np.ndarray:
        """(n-1, 2) int, the spanning tree that lacks the least to be a network."""
        if self._heights is None:
            return spanning_tree(points)[0]
        return dense_tree(excess_m(points, self._heights, self._range_m))[0]

    def _pairs(self, points: np.ndarray, inside: np.ndarray) -> np.ndarray:
        """(k, 2) int, pairs across a cut that can be linked, the closest first."""
        pairs = crossing_pairs(points, inside)
        if self._heights is None:
            return pairs
        return pairs[level_range_m(self._heights, pairs, self._range_m) > 0]

    def _settle(self, plan: Plan) -> Plan:
        """Compute the tree of the targets and solve again from the start positions until nothing is gained.

        The minimum spanning tree of the targets has no edge above the range, so the next plan is never longer.
        """
        while self._open:
            trial = self._solve(self._tree(plan.targets))
            if not self._better(trial, plan):
                break
            plan = trial
        return plan

    def _descend(self, plan: Plan) -> Plan:
        """Exchange one edge at a time as long as the plan gets shorter."""
        while self._open and (better := self._first_better(plan)) is not None:
            plan = self._settle(better)
        return plan

    def _first_better(self, plan: Plan) -> Plan | None:
        hops = tree_hops(plan.edges) if self._screen is not None else None
        for k in np.argsort(-plan.tension, kind="stable"):
            if plan.tension[k] < STRAINED * plan.tension.max():
                break
            for edge in self._replacements(plan, k, hops):
                if not self._open:
                    return None
                edges = plan.edges.copy()
                edges[k] = edge
                trial = self._solve(edges)
                if self._better(trial, plan):
                    return trial
        return None

    def _replacements(self, plan: Plan, k: int, hops: np.ndarray | None) -> Iterator[np.ndarray]:
        """Promising edges (rows i, j) in place of edge k, the best first."""
        forest = np.delete(plan.edges, k, axis=0)
        without = self._solve(forest, spanning=False)
        if not self._better(without, plan):  # another part of the tree is as long
            return
        inside = one_side(len(self._positions), forest, plan.edges[k, 0])
        pairs = self._pairs(without.targets, inside)
        trials = 0
        for pair in pairs[: 10 * TRIALS]:
            if set(pair) == set(plan.edges[k]) or self._hopeless(pair, inside, hops, plan.flight_m):
                continue
            yield pair
            trials += 1
            if trials == TRIALS:
                return

    def _hopeless(self, pair: np.ndarray, inside: np.ndarray, hops: np.ndarray | None, flight_m: float) -> bool:
        """Whether the tree with this new edge cannot beat `flight_m`.

        UAVs that are k hops apart in the tree end at most k R apart, so they must fly (d - k R)/2 at least.
        """
        if hops is None or self._screen is None:
            return False
        a, b = pair if inside[pair[0]] else pair[::-1]
        across = hops[inside, a][:, None] + 1 + hops[b, ~inside]
        least = (self._screen[np.ix_(inside, ~inside)] - across * self._range_m).max() / 2
        return bool(least > flight_m - self._gain_m)

    def _kicked(self, plan: Plan) -> np.ndarray:
        """The tree of a plan after a few random exchanges of edges under tension."""
        edges = plan.edges.copy()
        total = plan.tension.sum()
        chance = plan.tension / total if total > 0 else np.full(len(edges), 1 / len(edges))
        for _ in range(self._rng.integers(1, MOST_KICKS + 1)):
            k = self._rng.choice(len(edges), p=chance)
            inside = one_side(len(self._positions), np.delete(edges, k, axis=0), edges[k, 0])
            pairs = self._pairs(plan.targets, inside)
            if len(pairs):
                edges[k] = self._rng.choice(pairs[:KICK_POOL])
        return edges


def one_side(n: int, forest: np.ndarray, root: int) -> np.ndarray:
    """(n,) bool: the nodes that `forest` ((m, 2) edges) joins to `root`."""
    part, _ = label_subnets(n, forest)
    return part == part[root]


def crossing_pairs(points: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """(k, 2) int: pairs on different sides, the closest first; NEAREST partners per point of the smaller side."""
    few, many = sorted((np.flatnonzero(inside), np.flatnonzero(~inside)), key=len)
    nearest = min(NEAREST, len(many))
    distance, partner = cKDTree(points[many]).query(points[few], k=nearest)
    order = np.argsort(distance, axis=None, kind="stable")
    return np.stack([np.repeat(few, nearest)[order], many[partner.ravel()[order]]], axis=1)


def tree_hops(edges: np.ndarray) -> np.ndarray:
    """(n, n) int: number of edges between any two nodes of a spanning tree."""
    n = len(edges) + 1
    graph = coo_array((np.ones(n - 1), (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()
    order, parent = breadth_first_order(graph, 0, directed=False)
    hops = np.zeros((n, n), dtype=np.int64)
    for k in range(1, n):  # a node is one hop farther than its parent from all nodes seen before
        node, seen = order[k], order[:k]
        hops[node, seen] = hops[seen, node] = hops[parent[node], seen] + 1
    return hops
