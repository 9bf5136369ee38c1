"""Motion that several methods share: flying to a point, repulsion, keeping links (METHODS 2.5).

With every length in strides (the farthest a UAV flies in one step), positions p, wanted moves w and weights h:

    min  1/2 sum_i h_i |x_i - w_i|^2
    s.t. g_e(x) = (|p_i + x_i - p_j - x_j|^2 - L_e^2) / (2 L_e) <= 0   for every edge e = (i, j)
         f_i(x) = (|x_i|^2 - 1) / 2 <= 0                               for every UAV i

The program is convex and has an interior: UAVs may fly a little toward each other. A primal-dual interior point method
solves it. The method starts in the interior and stays there, so no limit is exceeded whenever it stops. The program
splits into one for each tree of the forest. All are solved together, but each has its own path parameter, step length
and end, so what one tree does never depends on another. Newton's matrix couples two UAVs only if an edge joins them:
ordered along the trees it is a narrow band. The limit of a speed is treated as that of an edge from the UAV's move to
a fixed point, so one formula serves both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpbsv
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree, reverse_cuthill_mckee

from phygail.config import Physics
from phygail.sensing.views import SubnetViews
from phygail.swarm.links import FEW, group_sums, join_sets, label_subnets, link_lengths
from phygail.swarm.obstacles import Map

REPULSION = 1.0  # k_rep, of v_max: 10 m/s
REPULSION_RADIUS = 1.5  # d_s, of the contact distance: 15 m, the paper's training margin
LINK_PULL = 0.3  # k_link, of v_max: 3 m/s
LINK_PULL_START = 0.9  # of the radio range, where the pull begins
_COINCIDENT_M = 1e-6  # at a range of 120 m: closer pairs get a direction from their indices
_ARRIVED_M = 1e-9  # at a range of 120 m

LIGHTEST = 1e-3  # share of the heaviest weight of a tree; lighter weights are raised to it
GAP = 1e-8  # mean of multiplier times slack at which a tree is done: the moves are right to a thousandth of a stride
FIRST_GAP = 0.1  # where the path begins
TO_THE_WALL = 0.99  # share of the distance to the nearest limit that one iteration may go
CENTERING = (0.1, 0.02, 0.3)  # factor of the path parameter: at first or after a medium step, a long one, a short one
MOST_ITERATIONS = 40  # 10 are usual, 15 the most seen; the moves are allowed after any number
SMALLEST_SLACK = 1e-14
SMALLEST = 1e-300  # divisor

MARGIN = 1.0 / 120.0  # of the radio range, by which tree edges are held below it
GROWTH = 1e-6 / 120.0  # of the radio range: less than this beyond the limit is rounding


def link_rules() -> np.ndarray:
    """(11,) the constants of link keeping as its compiled form (`swarm.compiled.keep_links`) takes them."""
    end = (MOST_ITERATIONS, SMALLEST_SLACK, SMALLEST)
    return np.array([GROWTH, LIGHTEST, GAP, FIRST_GAP, TO_THE_WALL, *CENTERING, *end], dtype=float)


def go(positions: np.ndarray, targets: np.ndarray, physics: Physics, around: Map | None = None) -> np.ndarray:
    """Velocities ((n, 2) m/s) to the targets: full speed, exact arrival, never an overshoot.

    UAVs fly straight, or on the shortest way around obstacles that the map knows.
    """
    if around is not None:
        targets = around.next_points(positions, targets)
    offset = targets - positions
    distance = np.hypot(offset[..., 0], offset[..., 1])[..., None]
    speed = np.minimum(physics.speed_mps, distance / physics.step_s)
    arrived = _ARRIVED_M * physics.unit
    return np.where(distance < arrived, 0.0, offset / np.maximum(distance, arrived) * speed)


def block(views: SubnetViews) -> np.ndarray:
    """(n, 2) m/s: every subnet flies as a block, its centroid to the center.

    Members whose straight way to the center is blocked by an obstacle of the map take their own way around it.
    """
    mission = views.mission
    together = go(views.means(views.positions), views.centers, mission.physics)[views.subnet]
    if mission.map is None:
        return together
    centers = views.centers[views.subnet]
    turns = mission.map.next_points(views.positions, centers)
    blocked = (turns != centers).any(axis=1)
    return np.where(blocked[:, None], go(views.positions, turns, mission.physics), together)


def repulsion(
    positions: np.ndarray,
    pairs: np.ndarray,
    lengths: np.ndarray,
    members: np.ndarray,
    physics: Physics,
) -> np.ndarray:
    """rep_i = k_rep sum over d_ij < d_s of (1 - d_ij/d_s) (p_i - p_j)/d_ij, (n, 2) m/s.

    Both constants belong to the vehicle: k_rep is its full speed, d_s 1.5 times its contact distance.

    Args:
        positions: (n, 2) m.
        pairs: (m, 2) int, links with i < j as rows. lengths: (m,) m.
        members: (n,) int, roster indices; coincident pairs are parted along a direction derived from them.
        physics: Radio and vehicle.
    """
    gain_mps, radius_m = REPULSION * physics.speed_mps, REPULSION_RADIUS * physics.contact_m
    coincident = _COINCIDENT_M * physics.unit
    close = lengths < radius_m
    i, j = pairs[close].T
    distance = lengths[close][:, None]
    away = (positions[i] - positions[j]) / np.maximum(distance, coincident)
    # Golden angle: pairs of neighboring indices are pushed apart in well-spread directions.
    angle = 2.399963 * (members[i] * 7919.0 + members[j])
    fixed = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    push = gain_mps * (1 - distance / radius_m) * np.where(distance < coincident, fixed, away)
    return _accumulate(len(positions), i, j, push)


def link_keeping(positions: np.ndarray, pairs: np.ndarray, lengths: np.ndarray, physics: Physics) -> np.ndarray:
    """link_i = k_link sum over 0.9 R <= d_ij <= R of ((d_ij - 0.9 R)/(0.1 R)) (p_j - p_i)/d_ij, (n, 2) m/s."""
    range_m = physics.range_m
    far = lengths >= LINK_PULL_START * range_m
    i, j = pairs[far].T
    distance = lengths[far][:, None]
    strain = (distance - LINK_PULL_START * range_m) / ((1 - LINK_PULL_START) * range_m)
    gain_mps, coincident = LINK_PULL * physics.speed_mps, _COINCIDENT_M * physics.unit
    pull = gain_mps * strain * (positions[j] - positions[i]) / np.maximum(distance, coincident)
    return _accumulate(len(positions), i, j, pull)


def _accumulate(n: int, i: np.ndarray, j: np.ndarray, force_on_i: np.ndarray) -> np.ndarray:
    """Sum pair forces per row: `force_on_i` acts on i, its opposite on j."""
    rows = np.concatenate([i, j])
    force = np.concatenate([force_on_i, -force_on_i])
    return group_sums(rows, force, n)


@dataclass(frozen=True, eq=False)
class _Forest:
    """Trees whose nodes come one tree after the other; complex numbers are plane vectors in strides.

    The k = m + n constraints |offset + x_first - x_second| <= limit are those of the edges, then those of the speeds,
    whose second end is the fixed point n. They are ordered by tree.

    Attributes:
        wanted: (n,) complex. weight: (n,) at most 1. places: (n,) complex, positions.
        first, second: (k,) int. offset: (k,) complex. limit: (k,).
        tree: (k,) int. node_tree: (n,) int. starts, node_starts: (trees,) int, where each begins.
        ends: (k + m,) int, constraints seen from their ends, ordered by node. signs: (k + m,). end_starts: (n,) int.
        edges: (m,) int, which constraints are edges.
        band: Half width of Newton's matrix. entries: Places of its parts in banded storage.
    """

    wanted: np.ndarray
    weight: np.ndarray
    places: np.ndarray
    first: np.ndarray
    second: np.ndarray
    offset: np.ndarray
    limit: np.ndarray
    tree: np.ndarray
    node_tree: np.ndarray
    starts: np.ndarray
    node_starts: np.ndarray
    ends: np.ndarray
    signs: np.ndarray
    end_starts: np.ndarray
    edges: np.ndarray
    band: int
    entries: np.ndarray

    def along(self, per_node: np.ndarray) -> np.ndarray:
        """(k,) value at the first end minus value at the second."""
        fixed = np.append(per_node, 0.0)
        return fixed[self.first] - fixed[self.second]

    def scatter(self, per_constraint: np.ndarray) -> np.ndarray:
        """(n,) sum over the constraints of each node, with a minus at second ends: the transpose of `along`."""
        return np.add.reduceat(self.signs * per_constraint[self.ends], self.end_starts)

    def solve(self, xx: np.ndarray, xy: np.ndarray, yy: np.ndarray, right: np.ndarray) -> np.ndarray:
        """(n,) complex: Newton's system, with the 2x2 blocks of the constraints and the weights on the diagonal."""
        a, b, c = xx[self.edges], xy[self.edges], yy[self.edges]
        parts = np.concatenate([self.weight, self.weight, xx, xy, yy, a, b, c, -a, -b, -b, -c])
        size = (self.band + 1) * 2 * len(right)
        matrix = np.bincount(self.entries, parts, size).reshape((self.band + 1, -1), order="F")
        _, solution, failed = dpbsv(matrix, right.view(float), lower=1, overwrite_ab=1)
        return solution.view(complex) if failed == 0 else np.zeros_like(right)


def project_moves(
    positions: np.ndarray, wanted: np.ndarray, weight: np.ndarray, edges: np.ndarray, limits: np.ndarray
) -> np.ndarray:
    """(n, 2) strides, the solution x of the program above.

    Args:
        positions: (n, 2) strides, of UAVs that each have an edge. wanted: (n, 2) strides, at most 1 long.
        weight: (n,) positive.
        edges: (m, 2) int, a forest. limits: (m,) strides, not shorter than the edges.
    """
    order = tree_order(len(wanted), edges)
    forest = _prepare(positions[order], wanted[order], weight[order], np.argsort(order)[edges], limits)
    moves = np.empty_like(wanted)
    moves[order] = _follow_path(forest, _contracted(forest)).view(float).reshape(-1, 2)
    return moves


def tree_order(n: int, edges: np.ndarray) -> np.ndarray:
    """(n,) int, the nodes of a forest tree by tree, breadth first from a leaf: neighbors are near each other."""
    if n > FEW:
        both_ways = np.concatenate([edges, edges[:, ::-1]]).T
        graph = coo_array((np.ones(2 * len(edges)), both_ways), shape=(n, n))
        return reverse_cuthill_mckee(graph.tocsr(), symmetric_mode=True)
    neighbors: list[list[int]] = [[] for _ in range(n)]
    for a, b in edges.tolist():
        neighbors[a].append(b)
        neighbors[b].append(a)
    order: list[int] = []
    seen = [False] * n
    for leaf in range(n):
        if seen[leaf] or len(neighbors[leaf]) > 1:
            continue
        seen[leaf] = True
        done = len(order)
        order.append(leaf)
        while done < len(order):
            for node in neighbors[order[done]]:
                if not seen[node]:
                    seen[node] = True
                    order.append(node)
            done += 1
    return np.array(order)


def _prepare(
    positions: np.ndarray, wanted: np.ndarray, weight: np.ndarray, edges: np.ndarray, limits: np.ndarray
) -> _Forest:
    """The forest of nodes that come tree by tree."""
    n, m = len(wanted), len(edges)
    nodes = np.arange(n)
    label, count = label_subnets(n, edges)
    first, second = np.concatenate([edges[:, 0], nodes]), np.concatenate([edges[:, 1], np.full(n, n)])
    by_tree = np.argsort(label[first], kind="stable")
    first, second, limit = first[by_tree], second[by_tree], np.concatenate([limits, np.ones(n)])[by_tree]
    joined = np.flatnonzero(second < n)
    owner = np.concatenate([first, second[joined]])
    by_node = np.argsort(owner, kind="stable")
    low, high = np.minimum(first[joined], second[joined]), np.maximum(first[joined], second[joined])
    band = 2 * int((high - low).max()) + 1
    stride, column = band + 1, 2 * (band + 1)

    def block(node: np.ndarray) -> list[np.ndarray]:
        return [node * column, node * column + 1, node * column + stride]

    corner = low * column + 2 * (high - low)
    off_diagonal = [corner, corner + 1, corner + stride - 1, corner + stride]
    diagonal = [nodes * column, nodes * column + stride]
    places = positions[:, 0] + 1j * positions[:, 1]
    offset = np.zeros(n + m, dtype=complex)
    offset[joined] = places[first[joined]] - places[second[joined]]
    starts, node_starts = (np.searchsorted(tree, np.arange(count)) for tree in (label[first], label))
    return _Forest(
        wanted[:, 0] + 1j * wanted[:, 1],
        np.maximum(weight / np.maximum.reduceat(weight, node_starts)[label], LIGHTEST),
        places, first, second, offset, limit, label[first], label, starts, node_starts,
        np.concatenate([np.arange(n + m), joined])[by_node], np.repeat([1.0, -1.0], [n + m, m])[by_node],
        np.searchsorted(owner[by_node], nodes), joined,
        band, np.concatenate([*diagonal, *block(first), *block(second[joined]), *off_diagonal]),
    )  # fmt: skip


def _contracted(forest: _Forest) -> np.ndarray:
    """(n,) complex, a start inside all limits: every tree contracts toward its middle, at half a stride at most."""
    places, starts = forest.places, forest.node_starts
    sizes = np.diff(starts, append=len(places))
    away = places - (np.add.reduceat(places, starts) / sizes)[forest.node_tree]
    return -0.5 * away / np.maximum.reduceat(np.abs(away), starts)[forest.node_tree]


def _follow_path(forest: _Forest, x: np.ndarray) -> np.ndarray:
    """(n,) complex moves, from a start inside the limits to the optimum of every tree.

    Per iteration one Newton step for stationarity, h (x - w) + sum of y grad g = 0, and y slack = tau for every
    constraint; tau of a tree falls the faster, the farther its last step went.
    """
    h, limit, tree = forest.weight, forest.limit, forest.tree
    counts = np.bincount(tree)
    usual, fast, careful = CENTERING
    centering = np.full(len(counts), usual)
    v = forest.offset + forest.along(x)
    slack = _slack(v, limit)
    y = FIRST_GAP / slack
    for _ in range(MOST_ITERATIONS):
        gap = np.add.reduceat(slack * y, forest.starts) / counts
        going = gap > GAP
        if not going.any():
            break
        unit = v / limit  # gradient of g at the first end
        pull = (centering * gap)[tree] / slack
        stiff, bend = y / slack, y / limit
        right = h * (forest.wanted - x) - forest.scatter(pull * unit)
        along_x, along_y = unit.real, unit.imag
        push = stiff * along_x
        dx = forest.solve(bend + push * along_x, push * along_y, bend + stiff * along_y * along_y, right)
        dv = forest.along(dx)
        outward = along_x * dv.real + along_y * dv.imag
        dy = pull - y + stiff * outward
        far = np.minimum(_way(slack, outward, _square(dv) / limit), y / np.maximum(-dy, SMALLEST))
        step = np.where(going, np.minimum(1.0, TO_THE_WALL * np.minimum.reduceat(far, forest.starts)), 0.0)
        per_constraint = step[tree]
        x = x + step[forest.node_tree] * dx
        y = y + per_constraint * dy
        v = v + per_constraint * dv
        slack = _slack(v, limit)
        centering = np.where(step > 0.9, fast, np.where(step > 0.5, usual, careful))
    return x


def _slack(vector: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """(k,) -g = (limit^2 - |vector|^2) / (2 limit), positive also where rounding says otherwise."""
    return np.maximum(0.5 * (limit - _square(vector) / limit), SMALLEST_SLACK)


def _way(slack: np.ndarray, slope: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """(k,) the a > 0 at which slope a + curve a^2 / 2 has used up the slack."""
    return 2.0 * slack / np.maximum(slope + np.sqrt(slope * slope + 2.0 * curve * slack), SMALLEST)


def _square(vector: np.ndarray) -> np.ndarray:
    """Squared lengths of plane vectors."""
    return vector.real**2 + vector.imag**2


def keep_links(
    views: SubnetViews,
    wanted: np.ndarray,
    weight: np.ndarray | None = None,
    *,
    margin: float = MARGIN,
    only: np.ndarray | None = None,
) -> np.ndarray:
    """(n, 2) m/s, the velocities nearest to `wanted` that keep every edge of the subnets' minimum spanning trees.

    Nearest in the sum of weight times squared difference. An edge may grow up to the radio range less the margin; a
    longer one may not grow. A vehicle with inertia keeps its stopping distance in reserve. (With noisy positions a link
    may look longer than the range.) Where news is delayed, the slack grows by the distance that a UAV may have flown
    since. UAVs that no long edge joins to a strained one fly as they want.

    Args:
        views: All subnets. wanted: (n, 2) m/s, within the speed limit.
        weight: (n,) positive; the lighter end of a strained edge yields more. None: all alike.
        margin: Share of the radio range. only: (n,) bool, rows that are asked for; others may come out as wanted.
    """
    physics = views.mission.physics
    stride, limit = physics.stride_m, limit_m(physics, margin, views.age_s) - views.mission.coast_m
    tree = _strained_trees(views, wanted, limit)
    now = link_lengths(views.positions, tree)
    long = now > limit - 2.0 * stride  # others cannot outgrow the limit in one step
    tree, now = tree[long], now[long]
    most = np.maximum(limit, now)
    then = _next_lengths(views.positions, wanted, tree[:, 0], tree[:, 1], physics.step_s)
    strained = then > most + GROWTH * physics.range_m
    if not strained.any():
        return wanted
    group, count = label_subnets(len(wanted), tree)
    solved = np.zeros(count, dtype=bool)
    solved[group[tree[strained, 0]]] = True
    if only is not None:
        asked = np.zeros(count, dtype=bool)
        asked[group[only]] = True
        solved &= asked
    inside = solved[group[tree[:, 0]]]
    if not inside.any():
        return wanted
    rows, ends = np.unique(tree[inside], return_inverse=True)
    pull_weight = np.ones(len(rows)) if weight is None else weight[rows]
    moves = project_moves(
        views.positions[rows] / stride, wanted[rows] / physics.speed_mps, pull_weight, ends.reshape(-1, 2),
        most[inside] / stride,
    )  # fmt: skip
    kept = wanted.copy()
    kept[rows] = moves * physics.speed_mps
    return kept


def limit_m(physics: Physics, margin: float = MARGIN, age_s: float = 0.0) -> float:
    """How long a tree edge may become, m."""
    return physics.range_m - margin * physics.range_m - physics.speed_mps * age_s


def _strained_trees(views: SubnetViews, wanted: np.ndarray, limit: float) -> np.ndarray:
    """(k, 2) int, the trees of subnets in which an edge would outgrow its limit; the others keep theirs anyway."""
    i, j = views.pairs.T
    then = _next_lengths(views.positions, wanted, i, j, views.mission.physics.step_s)
    strained = (then > limit) & (then > views.lengths)
    of_strained = np.isin(views.subnet[i], views.subnet[i[strained]])
    return minimum_tree(len(wanted), views.pairs[of_strained], views.lengths[of_strained])


def minimum_tree(n: int, pairs: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(k, 2) int, sorted: the shortest links that connect n UAVs as all `pairs` ((m, 2), sorted) do."""
    if len(pairs) <= FEW:
        by_length = np.argsort(lengths, kind="stable")
        return pairs[np.sort(by_length[join_sets(n, pairs[by_length])[1]])]  # Kruskal
    # One is added because a sparse zero (two coincident UAVs) would mean "no link"; it does not change the tree.
    graph = coo_array((lengths + 1.0, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    tree = minimum_spanning_tree(graph.tocsr()).tocoo()
    return np.stack([tree.row, tree.col], axis=1)


def _next_lengths(positions: np.ndarray, velocities: np.ndarray, i: np.ndarray, j: np.ndarray, dt: float) -> np.ndarray:
    """(m,) m, lengths of the edges after one step."""
    ahead = positions + velocities * dt
    return np.hypot(*(ahead[i] - ahead[j]).T)
