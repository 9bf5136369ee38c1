"""The exact form of keeping links: the moves nearest to the wanted ones that let no edge of a forest outgrow its limit.

With every length in strides (the farthest a UAV flies in one step), positions p, wanted moves w and weights h:

    min  1/2 sum_i h_i |x_i - w_i|^2
    s.t. g_e(x) = (|p_i + x_i - p_j - x_j|^2 - L_e^2) / (2 L_e) <= 0   for every edge e = (i, j)
         f_i(x) = (|x_i|^2 - 1) / 2 <= 0                               for every UAV i

A convex program with an interior: everybody may fly a little toward the others. It is solved by a primal-dual interior
point method that starts in the interior and stays there, so whenever it stops, no limit is exceeded. The program falls
apart into one for each tree of the forest. All are solved together, but each has its own path parameter, step length
and end, so what one tree does never depends on another. Newton's matrix couples two UAVs only if an edge joins them:
ordered along the trees it is a narrow band.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpbsv
from scipy.sparse import coo_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from phygail.swarm.links import label_subnets

LIGHTEST = 1e-3  # weights below this share of the heaviest of a tree count as this: lighter ones yield no more
GAP = 1e-8  # mean of multiplier times slack at which a tree is done: the moves are right to a thousandth of a stride
FIRST_GAP = 0.1  # where the path begins
TO_THE_WALL = 0.99  # share of the way to the nearest limit that one iteration may go
CENTERING = (0.1, 0.02, 0.3)  # fall of the path parameter: at first and after a middling, after a long, a short step
MOST_ITERATIONS = 40  # 10 are usual, 15 the most seen; the moves are allowed after any number
SMALLEST_SLACK = 1e-14
SMALLEST = 1e-300  # divisor


@dataclass(frozen=True, eq=False)
class _Forest:
    """Trees whose nodes and edges are numbered tree by tree; complex numbers are plane vectors in strides.

    Attributes:
        first, second: (m,) int, ends of the edges. offset: (m,) complex, p_first - p_second. limit: (m,) L.
        wanted: (n,) complex. weight: (n,) at most 1.
        node_tree, edge_tree: (n,), (m,) int. node_starts, edge_starts: (trees,) int, the first of each tree.
        half: (2m,) int, edge ends (first ends, then second ends) ordered by node. half_starts: (n,) int.
        band: Half width of Newton's matrix. entries: (3n + 10m,) int, places of its parts in banded storage.
    """

    first: np.ndarray
    second: np.ndarray
    offset: np.ndarray
    limit: np.ndarray
    wanted: np.ndarray
    weight: np.ndarray
    node_tree: np.ndarray
    edge_tree: np.ndarray
    node_starts: np.ndarray
    edge_starts: np.ndarray
    half: np.ndarray
    half_starts: np.ndarray
    band: int
    entries: np.ndarray

    def scatter(self, per_edge: np.ndarray) -> np.ndarray:
        """(n,) sum over the edges of each node, with a minus at second ends: the transpose of `along`."""
        return np.add.reduceat(np.concatenate([per_edge, -per_edge])[self.half], self.half_starts)

    def along(self, per_node: np.ndarray) -> np.ndarray:
        """(m,) value at the first end minus value at the second."""
        return per_node[self.first] - per_node[self.second]

    def worst(self, per_edge: np.ndarray, per_node: np.ndarray) -> np.ndarray:
        """(trees,) the smallest value of each tree."""
        edges, nodes = np.minimum.reduceat(per_edge, self.edge_starts), np.minimum.reduceat(per_node, self.node_starts)
        return np.minimum(edges, nodes)

    def solve(self, node: tuple[np.ndarray, ...], edge: tuple[np.ndarray, ...], right: np.ndarray) -> np.ndarray:
        """(n,) complex: Newton's system, with 2x2 blocks (xx, xy, yy) on nodes and edges."""
        n, (a, b, c) = len(right), edge
        parts = np.concatenate([*node, a, b, c, a, b, c, -a, -b, -b, -c])
        size = (self.band + 1) * 2 * n
        matrix = np.bincount(self.entries, parts, size).reshape((self.band + 1, 2 * n), order="F")
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
    both_ways = np.concatenate([edges, edges[:, ::-1]]).T
    graph = coo_array((np.ones(2 * len(edges)), both_ways), shape=(len(wanted),) * 2)
    order = reverse_cuthill_mckee(graph.tocsr(), symmetric_mode=True)
    forest, places = _prepare(positions[order], wanted[order], weight[order], np.argsort(order)[edges], limits)
    moves = np.empty_like(wanted)
    moves[order] = _follow_path(forest, _contracted(forest, places)).view(float).reshape(-1, 2)
    return moves


def _prepare(
    positions: np.ndarray, wanted: np.ndarray, weight: np.ndarray, edges: np.ndarray, limits: np.ndarray
) -> tuple[_Forest, np.ndarray]:
    """The forest and the (n,) complex positions of its nodes, which come tree by tree."""
    n = len(wanted)
    label, count = label_subnets(n, edges)
    by_tree = np.argsort(label[edges[:, 0]], kind="stable")
    (first, second), limit = edges[by_tree].T, limits[by_tree]
    edge_tree = label[first]
    node_starts, edge_starts = (np.searchsorted(tree, np.arange(count)) for tree in (label, edge_tree))
    ends = np.concatenate([first, second])
    half = np.argsort(ends, kind="stable")
    low, high = np.minimum(first, second), np.maximum(first, second)
    band = 2 * int((high - low).max()) + 1
    stride, column, beside = band + 1, 2 * (band + 1), 2 * (high - low)

    def block(node: np.ndarray) -> list[np.ndarray]:
        return [node * column, node * column + 1, node * column + stride]

    corner = low * column + beside
    off_diagonal = [corner, corner + 1, corner + stride - 1, corner + stride]
    places = positions[:, 0] + 1j * positions[:, 1]
    forest = _Forest(
        first, second, places[first] - places[second], limit, wanted[:, 0] + 1j * wanted[:, 1],
        np.maximum(weight / np.maximum.reduceat(weight, node_starts)[label], LIGHTEST),
        label, edge_tree, node_starts, edge_starts, half, np.searchsorted(ends[half], np.arange(n)),
        band, np.concatenate([*block(np.arange(n)), *block(first), *block(second), *off_diagonal]),
    )  # fmt: skip
    return forest, places


def _contracted(forest: _Forest, places: np.ndarray) -> np.ndarray:
    """(n,) complex, a start inside all limits: every tree contracts toward its middle, at half a stride at most."""
    sizes = np.diff(forest.node_starts, append=len(places))
    away = places - (np.add.reduceat(places, forest.node_starts) / sizes)[forest.node_tree]
    return -0.5 * away / np.maximum.reduceat(np.abs(away), forest.node_starts)[forest.node_tree]


def _follow_path(forest: _Forest, x: np.ndarray) -> np.ndarray:
    """(n,) complex moves, from a start inside the limits to the optimum of every tree.

    Per iteration one Newton step for stationarity, h (x - w) + sum_e y_e grad g_e + z f_i' = 0, and y_e slack_e = z_i
    slack_i = tau; tau of a tree falls the faster, the farther its last step went.
    """
    h, wanted, limit = forest.weight, forest.wanted, forest.limit
    tree, edge_tree = forest.node_tree, forest.edge_tree
    counts = np.bincount(tree) + np.bincount(edge_tree)
    v = forest.offset + forest.along(x)
    slack, room = _slack(v, limit), _slack(x, 1.0)
    y, z = FIRST_GAP / slack, FIRST_GAP / room
    usual, fast, careful = CENTERING
    centering = np.full(len(counts), usual)
    for _ in range(MOST_ITERATIONS):
        gap = (np.add.reduceat(slack * y, forest.edge_starts) + np.add.reduceat(room * z, forest.node_starts)) / counts
        going = gap > GAP
        if not going.any():
            break
        tau = centering * gap
        unit = v / limit  # gradient of g at the first end
        pull, press = tau[edge_tree] / slack, tau[tree] / room
        stiff, tight, bend = y / slack, z / room, y / limit
        right = h * (wanted - x) - press * x - forest.scatter(pull * unit)
        node = (h + z + tight * x.real**2, tight * x.real * x.imag, h + z + tight * x.imag**2)
        edge = (bend + stiff * unit.real**2, stiff * unit.real * unit.imag, bend + stiff * unit.imag**2)
        dx = forest.solve(node, edge, right)
        dv = forest.along(dx)
        outward, across = _dot(unit, dv), _dot(x, dx)
        dy, dz = pull - y + stiff * outward, press - z + tight * across
        far = forest.worst(
            np.minimum(_way(slack, outward, _dot(dv, dv) / limit), _until_zero(y, dy)),
            np.minimum(_way(room, across, _dot(dx, dx)), _until_zero(z, dz)),
        )
        step = np.where(going, np.minimum(1.0, TO_THE_WALL * far), 0.0)
        x = x + step[tree] * dx
        y, z = y + step[edge_tree] * dy, z + step[tree] * dz
        v = forest.offset + forest.along(x)
        slack, room = _slack(v, limit), _slack(x, 1.0)
        centering = np.where(step > 0.9, fast, np.where(step > 0.5, usual, careful))
    return x


def _slack(vector: np.ndarray, limit: np.ndarray | float) -> np.ndarray:
    """(k,) (limit^2 - |vector|^2) / (2 limit), positive also where rounding says otherwise."""
    return np.maximum((limit * limit - _dot(vector, vector)) / (2.0 * limit), SMALLEST_SLACK)


def _way(slack: np.ndarray, slope: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """(k,) the a > 0 at which slope a + curve a^2 / 2 has used up the slack."""
    return 2.0 * slack / np.maximum(slope + np.sqrt(slope * slope + 2.0 * curve * slack), SMALLEST)


def _until_zero(value: np.ndarray, change: np.ndarray) -> np.ndarray:
    """(k,) how many changes a positive value bears."""
    return value / np.maximum(-change, SMALLEST)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Scalar products of plane vectors."""
    return a.real * b.real + a.imag * b.imag
