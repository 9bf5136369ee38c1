"""Links, subnets and the Laplacian of the alive; sums and means by subnet.

A link is d <= range (inclusive, 1e-6 m tolerance). Subnets are found by graph search on the links, never by
"not (d > range)" tests, which would turn a NaN into a link.

`listen` finds the links where they are not a plain disc: heights, radio shadows, outages, fading (docs/worlds.md).
Every draw belongs to a pair of roster indices and a step. One number u per pair and step drives the two-state chain of
outages: u < p sets the link out, u > 1 - q sets it up, any other u leaves it. That has the right transition
probabilities. The state follows from the last number that set it, so it does not matter since when a pair is watched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from phygail.config import CONTACT_M, CONTACT_TOLERANCE_M, LINK_TOLERANCE_M, Physics
from phygail.swarm.obstacles import shapes_of
from phygail.swarm.world import LinkModel, World, draw, draw_normal

FEW = 300  # nodes and pairs together: up to here a loop is faster than a sparse matrix


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
    # The tree's own order depends on every UAV. With sorted pairs, sums over the links of one subnet do not: not even
    # the last bit of a command may tell where the other subnets are.
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
        For every row a row of its set that is not higher (the lowest row has itself); the pairs that joined two sets.
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


# --- links that are not a plain disc ---------------------------------------------------------------------------------

FARTHEST = 3.0  # radio ranges: fading links beyond are not drawn
LONG_AGO = 1 << 20  # added to steps: draws look back before t = 0
UNSET = 20.0  # mean sojourns to look back for the number that set a link; without one, in e^-20 of the cases, it is up
KNOTS = 1.5  # correlation times between independent values of the shadowing, interpolated in between


@dataclass(frozen=True, eq=False)
class Memory:
    """What the radio remembers of the pairs it watches.

    Attributes:
        codes: (m,) int, i N + j by roster index, sorted. out: (m,) bool, in an outage.
        bits: (m,) uint64, the last hellos, the newest lowest. up: (m,) bool, whether the link is up.
    """

    codes: np.ndarray
    out: np.ndarray
    bits: np.ndarray
    up: np.ndarray


def listen(
    world: World,
    physics: Physics,
    positions: np.ndarray,
    members: np.ndarray,
    heights: np.ndarray | None,
    step: int,
    memory: object,
) -> tuple[Links, Memory]:
    """The network of UAVs at `positions` ((n, 2) m) and `heights` ((n,) m), and what is remembered of it.

    Args:
        world: Link model, obstacles, key of the draws. physics: Radio.
        members: (n,) int, roster indices, ascending. step: t. memory: Of the step before; None at t = 0.
    """
    before = memory if isinstance(memory, Memory) else None
    model, fading = world.links, world.links.model == "rician"
    pairs, flat = near_pairs(positions, max(physics.range_m * (FARTHEST if fading else 1.0), physics.contact_m) + 1e-3)
    rise = np.zeros(len(pairs)) if heights is None else heights[pairs[:, 0]] - heights[pairs[:, 1]]
    lengths = np.hypot(flat, rise)
    contacts = pairs[lengths < physics.contact_m - CONTACT_TOLERANCE_M]
    i, j = members[pairs[:, 0]], members[pairs[:, 1]]
    codes = i * (1 << 31) + j
    bits, up = np.zeros(len(pairs), dtype=np.uint64), lengths <= physics.range_m + LINK_TOLERANCE_M
    if fading:
        bits, up = _faded(world, physics, (i, j), lengths, step, codes, before)
    out = _outages(model, world.seed, physics.step_s, (i, j), step, codes, before)
    linked = up & ~out
    if any(not obstacle.radio for obstacle in world.obstacles):
        shapes = shapes_of(world.obstacles)
        rows = np.flatnonzero(linked)
        seen = shapes.clear(positions[pairs[rows, 0]], positions[pairs[rows, 1]], 0.0, dark_only=True)
        linked[rows[~seen]] = False
    subnet, count = label_subnets(len(positions), pairs[linked])
    return Links(pairs[linked], lengths[linked], subnet, count, contacts), Memory(codes, out, bits, up)


# --- outages ---------------------------------------------------------------------------------------------------------


def outage_rates(model: LinkModel, step_s: float) -> tuple[float, float]:
    """(p, q): chances per step that a link goes out and comes back; steps are independent if p + q would exceed 1."""
    share = model.outage_share
    q = step_s / model.outage_s
    p = q * share / (1.0 - share)
    return (p, q) if p + q <= 1.0 else (share, 1.0 - share)


def _outages(
    model: LinkModel, seed: int, step_s: float, ends: tuple[np.ndarray, np.ndarray], step: int, codes: np.ndarray,
    before: Memory | None,
) -> np.ndarray:  # fmt: skip
    """(m,) bool, the pairs that are in an outage."""
    if model.outage_share == 0:
        return np.zeros(len(codes), dtype=bool)
    p, q = outage_rates(model, step_s)
    number = draw(seed, "outage", step + LONG_AGO, *ends)
    out, open_pairs = number < p, (number >= p) & (number <= 1.0 - q)
    known, at = _find(codes, before)
    if before is not None:
        kept = open_pairs & known
        out[kept] = before.out[at[kept]]
        open_pairs &= ~known
    rows = np.flatnonzero(open_pairs)
    for back in range(1, math.ceil(UNSET / (p + q)) + 1):
        if not len(rows):
            break
        number = draw(seed, "outage", step + LONG_AGO - back, ends[0][rows], ends[1][rows])
        out[rows[number < p]] = True
        rows = rows[(number >= p) & (number <= 1.0 - q)]
    return out


def _find(codes: np.ndarray, before: Memory | None) -> tuple[np.ndarray, np.ndarray]:
    """((m,) bool whether a pair was watched before, (m,) int where)."""
    if before is None or not len(before.codes):
        return np.zeros(len(codes), dtype=bool), np.zeros(len(codes), dtype=np.intp)
    at = np.minimum(np.searchsorted(before.codes, codes), len(before.codes) - 1)
    return before.codes[at] == codes, at


# --- fading ----------------------------------------------------------------------------------------------------------


def threshold(model: LinkModel) -> float:
    """theta: the power gain below which a hello at the radio range is lost, P(|h|^2 < theta) = outage.

    2 (K + 1) |h|^2 is noncentral chi-square with two degrees of freedom and noncentrality 2 K.
    """
    from scipy.stats import ncx2  # slow to import, and the plain world needs none of it

    k = 10.0 ** (model.k_db / 10.0)
    return float(ncx2.ppf(model.outage, 2, 2 * k)) / (2 * (k + 1))


def heard_probability(model: LinkModel, ranges: float | np.ndarray) -> np.ndarray:
    """P(a hello over so many radio ranges is heard) = Q1(sqrt(2 K), sqrt(2 (K + 1) theta) d / R), without shadowing."""
    from scipy.stats import ncx2

    k = 10.0 ** (model.k_db / 10.0)
    return ncx2.sf(2 * (k + 1) * threshold(model) * np.square(ranges), 2, 2 * k)


def power_gains(model: LinkModel, seed: int, step: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """(m,) |h|^2 of this step, mean 1. The Doppler at 10 m/s and 2.4 GHz is 80 Hz: steps of 0.1 s are independent."""
    k = 10.0 ** (model.k_db / 10.0)
    spread = math.sqrt(1.0 / (2 * (k + 1)))
    real = math.sqrt(k / (k + 1)) + spread * draw_normal(seed, "fading x", step + LONG_AGO, i, j)
    return real**2 + (spread * draw_normal(seed, "fading y", step + LONG_AGO, i, j)) ** 2


def shadowing_db(model: LinkModel, seed: int, step: int, step_s: float, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """(m,) dB, slow shadowing of each pair: independent normal values every 1.5 correlation times, interpolated."""
    if model.shadow_db == 0:
        return np.zeros(len(i))
    clock = (step + LONG_AGO) * step_s / (KNOTS * model.shadow_s) + draw(seed, "shadow phase", 0, i, j)
    knot = np.floor(clock)
    share = clock - knot
    first, second = (draw_normal(seed, "shadow", knot + k, i, j) for k in (0, 1))
    return model.shadow_db * ((1 - share) * first + share * second) / np.sqrt((1 - share) ** 2 + share**2)


def _heard(
    world: World, physics: Physics, ends: tuple[np.ndarray, np.ndarray], lengths: np.ndarray, step: int
) -> np.ndarray:
    """(m,) bool, whether hello and answer of this step came through: Friis, fading, shadowing, the deafer end."""
    model, seed = world.links, world.seed
    gain_db = shadowing_db(model, seed, step, physics.step_s, *ends)
    if model.asymmetry_db:
        deaf = [model.asymmetry_db * draw_normal(seed, "deaf", 0, end) for end in ends]
        gain_db = gain_db - np.maximum(*deaf)
    gain = power_gains(model, seed, step, *ends) * 10.0 ** (gain_db / 10.0)
    return gain >= threshold(model) * (lengths / physics.range_m) ** 2


def _faded(
    world: World, physics: Physics, ends: tuple[np.ndarray, np.ndarray], lengths: np.ndarray, step: int,
    codes: np.ndarray, before: Memory | None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """((m,) uint64 last hellos, (m,) bool which links are up); at t = 0 as if all UAVs had hovered before."""
    least, window = world.links.heard
    mask = np.uint64((1 << window) - 1)
    bits, up = np.zeros(len(codes), dtype=np.uint64), np.zeros(len(codes), dtype=bool)
    if before is None:
        for back in range(window - 1, 0, -1):
            bits = (bits << np.uint64(1)) | _heard(world, physics, ends, lengths, step - back).astype(np.uint64)
    else:
        known, at = _find(codes, before)
        bits[known], up[known] = before.bits[at[known]], before.up[at[known]]
    bits = ((bits << np.uint64(1)) | _heard(world, physics, ends, lengths, step).astype(np.uint64)) & mask
    count = np.bitwise_count(bits)
    return bits, np.where(up, count >= max(world.links.drop, 1), count >= least)


def calibration(model: LinkModel, physics: Physics) -> str:
    """One line that says what a fading model means; readers of a table with fading need it."""
    if model.model != "rician":
        return ""
    from scipy.stats import binom

    ranges = np.linspace(0.01, 6.0, 4000)
    heard = heard_probability(model, ranges)
    least, window = model.heard

    def farthest_m(share: np.ndarray, level: float) -> float:
        return float(ranges[np.flatnonzero(share >= level).max(initial=0)]) * physics.range_m

    linked = binom.sf(least - 1, window, heard)
    degree = float(np.sum(2 * ranges * heard) * (ranges[1] - ranges[0]))
    shown = ", ".join(f"{level:g} at {farthest_m(heard, level):.0f} m" for level in (0.99, 0.9, 0.5, 0.1))
    return (
        f"Rician K {model.k_db:g} dB, a hello at {physics.range_m:g} m is lost with probability {model.outage:g}: "
        f"heard with probability {shown}; a link ({least} of {window}) comes up with probability 0.5 at "
        f"{farthest_m(linked, 0.5):.0f} m; mean degree {degree:.2f} of the disc's; shadowing {model.shadow_db:g} dB"
    )
