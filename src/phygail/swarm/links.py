"""Links, subnets and the Laplacian of the alive; sums and means by subnet.

A link is d <= range (inclusive, 1e-6 m tolerance). Subnets are found by graph search on the links, never by
"not (d > range)" tests, which would turn a NaN into a link.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from phygail.config import CONTACT_M, CONTACT_TOLERANCE_M, LINK_TOLERANCE_M

FEW = 300  # nodes and pairs together: up to here a loop is done before a sparse matrix is made


@dataclass(frozen=True)
class Links:
    """The radio network of n UAVs at one instant.

    Attributes:
        pairs: (m, 2) int, row indices i < j of every link.
        lengths: (m,) m, length of every link.
        subnet: (n,) int, label of each UAV's subnet, 0..count-1 in the order of their lowest rows.
        count: Number of subnets N_s.
        contacts: (k, 2) int, pairs i < j closer than the contact distance.
    """

    pairs: np.ndarray
    lengths: np.ndarray
    subnet: np.ndarray
    count: int
    contacts: np.ndarray

    def __post_init__(self) -> None:
        for array in (self.pairs, self.lengths, self.subnet, self.contacts):
            array.setflags(write=False)

    @property
    def connected(self) -> bool:
        """Whether the network is one."""
        return self.count == 1


def near_pairs(positions: np.ndarray, radius_m: float) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of rows at most `radius_m` apart: ((m, 2) int, i < j, sorted; (m,) m). Rows not finite have none."""
    finite = np.isfinite(positions).all(axis=1)
    if not finite.all():
        rows = np.flatnonzero(finite)
        pairs, lengths = near_pairs(positions[rows], radius_m)
        return rows[pairs], lengths
    if len(positions) < 2:
        return np.empty((0, 2), dtype=np.intp), np.empty(0)
    # Sliding midpoint needs no median search: twice as fast to build for points that spread evenly, as UAVs do.
    tree = cKDTree(positions, balanced_tree=False, compact_nodes=False)
    pairs = tree.query_pairs(radius_m, output_type="ndarray")
    # The tree's own order depends on every UAV. Sorted, sums over the links of one subnet do not: not even the last bit
    # of a command may tell where the others are.
    pairs = pairs[np.argsort(pairs[:, 0] * len(positions) + pairs[:, 1])]
    return pairs, link_lengths(positions, pairs)


def link_lengths(positions: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """(m,) m, distance between the two rows of every pair ((m, 2))."""
    offsets = positions[pairs[:, 0]] - positions[pairs[:, 1]]
    return np.hypot(offsets[:, 0], offsets[:, 1])


def find_links(positions: np.ndarray, range_m: float, contact_m: float = CONTACT_M) -> Links:
    """The links, subnets and contacts of UAVs at `positions` ((n, 2) m) (eq. 2, eq. 9)."""
    limit_m = range_m + LINK_TOLERANCE_M
    pairs, lengths = near_pairs(positions, max(limit_m, contact_m))
    contacts = pairs[lengths < contact_m - CONTACT_TOLERANCE_M]
    if limit_m < contact_m:
        linked = lengths <= limit_m
        pairs, lengths = pairs[linked], lengths[linked]
    subnet, count = label_subnets(len(positions), pairs)
    return Links(pairs, lengths, subnet, count, contacts)


def label_subnets(n: int, pairs: np.ndarray) -> tuple[np.ndarray, int]:
    """Connected components of n nodes joined by `pairs` ((m, 2)): ((n,) labels by lowest row, count)."""
    if n + len(pairs) <= FEW:
        return _join_few(n, pairs)
    graph = coo_array((np.ones(len(pairs), dtype=np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    count, subnet = connected_components(graph.tocsr(), directed=False)
    return subnet, int(count)


def _join_few(n: int, pairs: np.ndarray) -> tuple[np.ndarray, int]:
    """`label_subnets` by joining sets one pair at a time."""
    root, _ = join_sets(n, pairs)
    label, count = [0] * n, 0
    for row, upper in enumerate(root):
        if upper == row:
            label[row], count = count, count + 1
        else:
            label[row] = label[upper]
    return np.array(label, dtype=np.int32), count


def join_sets(n: int, pairs: np.ndarray) -> tuple[list[int], list[int]]:
    """Join n rows pair by pair, in the order of `pairs` ((m, 2)).

    Returns:
        For every row one of its set that is not higher, itself for the lowest; the pairs that joined two sets.
    """
    root, joined = list(range(n)), []
    for number, (a, b) in enumerate(pairs.tolist()):
        while root[a] != a:
            a = root[a]
        while root[b] != b:
            b = root[b]
        if a != b:
            root[max(a, b)] = min(a, b)
            joined.append(number)
    return root, joined


def laplacian(n: int, pairs: np.ndarray) -> np.ndarray:
    """L = D - A of n nodes joined by `pairs`, dense (n, n) (eq. 6)."""
    adjacency = np.zeros((n, n))
    adjacency[pairs[:, 0], pairs[:, 1]] = 1.0
    adjacency[pairs[:, 1], pairs[:, 0]] = 1.0
    return np.diag(adjacency.sum(axis=1)) - adjacency


def laplacian_spectrum(n: int, pairs: np.ndarray) -> tuple[float, int]:
    """(lambda_2, multiplicity of the eigenvalue 0) of the Laplacian.

    Constraint C1 of the paper: the network is one if and only if lambda_2 > 0; the multiplicity of 0 is the number of
    subnets. Definition and test oracle: the simulator uses graph search, which is exact and O(n).
    """
    if n == 0:
        return 0.0, 0
    eigenvalues = np.linalg.eigvalsh(laplacian(n, pairs))
    # Eigenvalues are at most n, so rounding stays below n times this; the smallest true lambda_2, that of a path, is
    # about (pi/n)^2 and stays above it for every n that a dense matrix allows.
    zeros = int(np.sum(eigenvalues < 1e-12 * n))
    return (float(eigenvalues[1]) if zeros == 1 and n > 1 else 0.0), zeros


def group_sums(group: np.ndarray, vectors: np.ndarray, count: int) -> np.ndarray:
    """(count, 2) sum of the vectors ((k, 2)) of each group ((k,) int)."""
    return np.stack([np.bincount(group, weights=vectors[:, axis], minlength=count) for axis in (0, 1)], axis=1)


def group_means(group: np.ndarray, vectors: np.ndarray, count: int) -> np.ndarray:
    """(count, 2) mean of the vectors of each group; zero for an empty one."""
    return group_sums(group, vectors, count) / np.maximum(np.bincount(group, minlength=count), 1)[:, None]
