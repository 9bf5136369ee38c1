"""World, links, tree and link keeping as compiled loops, for trainings and long trials. Needs Numba (extra `learn`).

A compiled flight is made of these and a loop of its own. Every number that a rule may change is an argument, so an
edited constant never meets a kernel that was compiled with the old one. Numba caches a kernel beside its file
(`__pycache__`) and compiles it anew when *that* file changes. A kernel of another file that calls kernels of this one
is made by `kernel`, so that it is compiled anew when this file changes, too. Every kernel says its `fastmath`: a kernel
that does not would take it from the process that compiled it first, and the last bits of a flight would depend on the
cache.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CellType, FunctionType
from typing import Any

import numba
import numpy as np

from phygail.config import LINK_TOLERANCE_M
from phygail.swarm.scenario import Scenario

FAR_M2 = 1e18
SOURCE = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()  # of this file


def kernel(*files: Path, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit(cache=True, **options)` for a function of another file that calls kernels of this one and of `files`.

    Before Numba takes a kernel from its cache, it compares the stamp of the kernel's file and the values that the
    function closes over. The function gets one such value: the digest of these files.
    """
    source = SOURCE + "".join(hashlib.sha256(file.read_bytes()).hexdigest() for file in files)

    def compiled(function: FunctionType) -> Any:
        code = function.__code__.replace(co_freevars=("compiled_source",))
        stamped = FunctionType(code, function.__globals__, function.__name__, closure=(CellType(source),))
        stamped.__qualname__, stamped.__module__ = function.__qualname__, function.__module__
        stamped.__doc__ = function.__doc__
        return numba.njit(cache=True, **options)(stamped)

    return compiled  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class World:
    """A scenario as compiled loops read it.

    Attributes:
        spots: (n, 2) m, of the alive. roster: (N, 2) m. alive: (n,) int, roster indices. center: (2,) m.
        numbers: (4,) radio range (m), greatest length of a link (m), stride (m), budget (steps).
        width_m: Of the map. unit: Radio range over the paper's.
    """

    spots: np.ndarray
    roster: np.ndarray
    alive: np.ndarray
    center: np.ndarray
    numbers: np.ndarray
    width_m: float
    unit: float

    @classmethod
    def of(cls, scenario: Scenario) -> World:
        """The arrays of a scenario."""
        physics = scenario.physics
        longest = physics.range_m + LINK_TOLERANCE_M
        numbers = np.array([physics.range_m, longest, physics.stride_m, scenario.budget_steps], dtype=float)
        return cls(
            np.ascontiguousarray(scenario.spots), np.ascontiguousarray(scenario.layout),
            scenario.alive.astype(np.int64), np.ascontiguousarray(scenario.center), numbers, scenario.width_m,
            physics.unit,
        )  # fmt: skip


@numba.njit(cache=True, fastmath=False)
def _root(parent, i):
    """The lowest row of the set of i."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@numba.njit(cache=True, fastmath=False)
def label_subnets(x, longest_m, parent, label):
    """Number of subnets of UAVs at x ((n, 2) m); label ((n,) int) becomes the lowest row of each UAV's subnet.

    Links are at most `longest_m` long; parent ((n,) int) is room to work in.
    """
    n = len(x)
    for i in range(n):
        parent[i] = i
    count, limit = n, longest_m**2
    for i in range(n):
        for j in range(i + 1, n):
            if (x[i, 0] - x[j, 0]) ** 2 + (x[i, 1] - x[j, 1]) ** 2 <= limit:
                a, b = _root(parent, i), _root(parent, j)
                if a != b:
                    count -= 1
                    parent[max(a, b)] = min(a, b)
    for i in range(n):
        label[i] = _root(parent, i)
    return count


@numba.njit(cache=True, fastmath=False)
def toward(x, y, cx, cy, stride):
    """Displacement (m) toward (cx, cy), at most `stride`, never beyond."""
    dx, dy = cx - x, cy - y
    d = math.sqrt(dx * dx + dy * dy)
    if d <= 1e-9:
        return 0.0, 0.0
    part = min(stride / d, 1.0)
    return dx * part, dy * part


@numba.njit(cache=True, fastmath=False)
def spanning_tree(x, members, linked=None, weight=None):
    """(left, right, length) of the edges of the minimum spanning tree (Prim) of the rows `members` of x ((n, 2) m).

    With linked ((N, N) bool) and weight ((N, N) m): the lightest tree of links alone. Lengths (m) are those of x.
    """
    m = len(members)
    near, via = np.full(m, FAR_M2), np.zeros(m, dtype=np.int64)
    done = np.zeros(m, dtype=np.bool_)
    left, right, length = np.empty(m - 1, dtype=np.int64), np.empty(m - 1, dtype=np.int64), np.empty(m - 1)
    done[0], current = True, 0
    for e in range(m - 1):
        pick = -1
        for a in range(m):
            if done[a]:
                continue
            i, j = members[a], members[current]
            if weight is None:  # Numba compiles one of the two branches
                cost = (x[i, 0] - x[j, 0]) ** 2 + (x[i, 1] - x[j, 1]) ** 2
            else:
                cost = weight[i, j] if linked[i, j] else FAR_M2
            if cost < near[a]:
                near[a], via[a] = cost, current
            if pick < 0 or near[a] < near[pick]:
                pick = a
        done[pick] = True
        i, j = members[pick], members[via[pick]]
        left[e], right[e] = i, j
        length[e] = math.sqrt(near[pick]) if weight is None else math.hypot(x[i, 0] - x[j, 0], x[i, 1] - x[j, 1])
        current = pick
    return left, right, length


@numba.njit(cache=True, fastmath=False)
def tree_gaps(x, flying, range_m):
    """(B,) m each: what the edges of the spanning trees of B worlds lack to the range, summed and the largest.

    x: (B, n, 2) m. flying: (B,) int, rows in use. range_m: (B,) m.
    """
    total, largest = np.zeros(len(x)), np.zeros(len(x))
    for b in range(len(x)):
        length = spanning_tree(x[b], np.arange(flying[b]))[2]
        for e in range(len(length)):
            gap = max(length[e] - range_m[b], 0.0)
            total[b] += gap
            largest[b] = max(largest[b], gap)
    return total, largest


@numba.njit(cache=True, fastmath=False)
def label_links(linked, flying, label):
    """Number of subnets of the rows `flying` joined by `linked` ((N, N) bool); label ((N,) int) as `label_subnets`."""
    count, edge = 0, np.empty(len(linked), dtype=np.int64)
    label[:] = -1
    for first in flying:
        if label[first] >= 0:
            continue
        count, size, edge[0], label[first] = count + 1, 1, first, first
        while size:
            size -= 1
            i = edge[size]
            for j in flying:
                if label[j] < 0 and linked[i, j]:
                    label[j], edge[size] = first, j
                    size += 1
    return count


@numba.njit(cache=True, fastmath=False)
def keep_links(x, members, move, pull_weight, range_m, margin, stride, rules):
    """`methods.steering.keep_links` for one subnet: changes `move` so that no edge of its tree outgrows its limit.

    x: (n, 2) m. members: (m,) int, rows. move: (n, 2) strides. pull_weight: (n,). range_m, margin, stride: m.
    rules: (11,) `methods.steering.link_rules`.
    """
    if len(members) == 1:
        return
    left, right, length = spanning_tree(x, members)
    keep_tree(x, members, left, right, length, move, pull_weight, range_m - margin, stride, rules, range_m)


@numba.njit(cache=True, fastmath=False)
def keep_tree(x, members, left, right, length, move, pull_weight, limit, stride, rules, range_m):
    """`keep_links` for a tree in the order of Prim: edges `left`-`right` of a length (m), each up to `limit` m."""
    group, strained = np.arange(len(x)), np.zeros(len(x), dtype=np.bool_)
    for e in range(len(left)):  # Prim's order: the right end is in the tree already
        if length[e] > limit - 2.0 * stride:
            group[left[e]] = group[right[e]]
    for e in range(len(left)):
        i, j = left[e], right[e]
        then = math.hypot(
            x[i, 0] - x[j, 0] + (move[i, 0] - move[j, 0]) * stride,
            x[i, 1] - x[j, 1] + (move[i, 1] - move[j, 1]) * stride,
        )
        if length[e] > limit - 2.0 * stride and then > max(limit, length[e]) + rules[0] * range_m:
            strained[group[i]] = True
    nodes, parent = np.empty(len(members), dtype=np.int64), np.empty(len(members), dtype=np.int64)
    place, most = np.empty(len(x), dtype=np.int64), np.empty(len(members))
    for root in members:
        if group[root] != root or not strained[root]:
            continue
        nodes[0], place[root], count = root, 0, 1
        for e in range(len(left)):
            i = left[e]
            if group[i] == root and i != root:
                nodes[count], place[i], parent[count] = i, count, place[right[e]]
                most[count] = max(limit, length[e]) / stride
                count += 1
        _project(x, nodes[:count], parent[:count], most[:count], move, pull_weight, stride, rules)


# Numba writes a stage of `_project` into it: with calls a flight took 5 % more time. Stages divide by weights, limits
# and slacks, which are positive; the error model "numpy" leaves out the checks for zero.
_stage = numba.njit(cache=True, fastmath=False, error_model="numpy", inline="always")


@_stage
def _slack(vx, vy, limit, least):
    """(limit^2 - |v|^2) / (2 limit), positive also where rounding says otherwise."""
    return max((limit * limit - vx * vx - vy * vy) / (2.0 * limit), least)


@_stage
def _way(slack, slope, curve, least):
    """The a > 0 at which slope a + curve a^2 / 2 has used up the slack."""
    return 2.0 * slack / max(slope + math.sqrt(slope * slope + 2.0 * curve * slack), least)


@numba.njit(cache=True, fastmath=False, error_model="numpy")
def _project(x, nodes, parent, limit, move, pull_weight, stride, rules):
    """`methods.steering.project_moves` for one tree: node a > 0 hangs on parent[a] < a by an edge of limit[a].

    The same iterations; only Newton's system is solved from the leaves to the root and back. Lengths are in strides.
    """
    end_gap, first_gap, to_the_wall, least_slack, smallest = rules[2], rules[3], rules[4], rules[9], rules[10]
    usual, fast, careful, most_iterations = rules[5], rules[6], rules[7], int(rules[8])
    k = len(nodes)
    p, w, u, h = _contracted(x, nodes, move, pull_weight, stride, rules[1])
    v, slack, room, y, z = np.zeros((k, 2)), np.ones(k), np.ones(k), np.zeros(k), np.empty(k)
    _measure(p, u, parent, limit, least_slack, v, room, slack)
    for a in range(k):
        z[a] = first_gap / room[a]
        y[a] = first_gap / slack[a] if a else 0.0
    d, r, dx = np.empty((k, 3)), np.empty((k, 2)), np.empty((k, 2))
    c, dy, dz = np.empty((k, 3)), np.zeros(k), np.empty(k)
    centering = usual
    for _ in range(most_iterations):
        gap = 0.0
        for a in range(k):
            gap += room[a] * z[a] + (slack[a] * y[a] if a else 0.0)
        gap /= 2 * k - 1
        if gap <= end_gap:
            break
        tau = centering * gap
        _assemble(h, w, u, v, parent, limit, room, slack, y, z, tau, d, c, r)
        _solve(parent, d, c, r, dx)
        most = _directions(u, v, dx, parent, limit, room, slack, y, z, tau, smallest, dy, dz)
        step = min(1.0, to_the_wall * most)
        for a in range(k):
            for axis in range(2):
                u[a, axis] += step * dx[a, axis]
            z[a] += step * dz[a]
            y[a] += step * dy[a]
        _measure(p, u, parent, limit, least_slack, v, room, slack)
        centering = fast if step > 0.9 else (usual if step > 0.5 else careful)
    for a in range(k):
        move[nodes[a], 0], move[nodes[a], 1] = u[a, 0], u[a, 1]


@_stage
def _contracted(x, nodes, move, pull_weight, stride, lightest):
    """Places and wanted moves ((k, 2) each), moves inside all limits ((k, 2), toward the middle), weights ((k,))."""
    k = len(nodes)
    p, w, u, h = np.empty((k, 2)), np.empty((k, 2)), np.empty((k, 2)), np.empty(k)
    heaviest, mx, my, far = 0.0, 0.0, 0.0, 0.0
    for a in range(k):
        heaviest = max(heaviest, pull_weight[nodes[a]])
    for a in range(k):
        i = nodes[a]
        h[a] = max(pull_weight[i] / heaviest, lightest)
        for axis in range(2):
            p[a, axis], w[a, axis] = x[i, axis] / stride, move[i, axis]
        mx, my = mx + p[a, 0] / k, my + p[a, 1] / k
    for a in range(k):
        far = max(far, math.hypot(p[a, 0] - mx, p[a, 1] - my))
    for a in range(k):
        u[a, 0], u[a, 1] = -0.5 * (p[a, 0] - mx) / far, -0.5 * (p[a, 1] - my) / far
    return p, w, u, h


@_stage
def _measure(p, u, parent, limit, least, v, room, slack):
    """What moves u leave: `room` of every node below full speed, `slack` of every edge, which then is v ((k, 2))."""
    for a in range(len(u)):
        room[a] = _slack(u[a, 0], u[a, 1], 1.0, least)
    for a in range(1, len(u)):
        for axis in range(2):
            v[a, axis] = p[a, axis] - p[parent[a], axis] + u[a, axis] - u[parent[a], axis]
        slack[a] = _slack(v[a, 0], v[a, 1], limit[a], least)


@_stage
def _assemble(h, w, u, v, parent, limit, room, slack, y, z, tau, d, c, r):
    """Newton's system: blocks d of nodes and c of edges ((k, 3): xx, xy, yy), right side r ((k, 2))."""
    for a in range(len(u)):
        tight, press = z[a] / room[a], tau / room[a]
        d[a, 0], d[a, 1] = h[a] + z[a] + tight * u[a, 0] ** 2, tight * u[a, 0] * u[a, 1]
        d[a, 2] = h[a] + z[a] + tight * u[a, 1] ** 2
        for axis in range(2):
            r[a, axis] = h[a] * (w[a, axis] - u[a, axis]) - press * u[a, axis]
    for a in range(1, len(u)):
        b, gx, gy = parent[a], v[a, 0] / limit[a], v[a, 1] / limit[a]
        stiff, bend, pull = y[a] / slack[a], y[a] / limit[a], tau / slack[a]
        c[a, 0], c[a, 1], c[a, 2] = bend + stiff * gx * gx, stiff * gx * gy, bend + stiff * gy * gy
        for part in range(3):
            d[a, part] += c[a, part]
            d[b, part] += c[a, part]
        r[a, 0], r[a, 1] = r[a, 0] - pull * gx, r[a, 1] - pull * gy
        r[b, 0], r[b, 1] = r[b, 0] + pull * gx, r[b, 1] + pull * gy


@_stage
def _solve(parent, d, c, r, dx):
    """The solution dx ((k, 2)) of Newton's system, by elimination along the tree; d and r are used up."""
    for a in range(len(dx) - 1, 0, -1):  # leaves first
        b = parent[a]
        det = d[a, 0] * d[a, 2] - d[a, 1] ** 2
        i00, i01, i11 = d[a, 2] / det, -d[a, 1] / det, d[a, 0] / det
        e00, e01 = c[a, 0] * i00 + c[a, 1] * i01, c[a, 0] * i01 + c[a, 1] * i11
        e10, e11 = c[a, 1] * i00 + c[a, 2] * i01, c[a, 1] * i01 + c[a, 2] * i11
        d[b, 0] -= e00 * c[a, 0] + e01 * c[a, 1]
        d[b, 1] -= e00 * c[a, 1] + e01 * c[a, 2]
        d[b, 2] -= e10 * c[a, 1] + e11 * c[a, 2]
        r[b, 0] += e00 * r[a, 0] + e01 * r[a, 1]
        r[b, 1] += e10 * r[a, 0] + e11 * r[a, 1]
    for a in range(len(dx)):  # the root first
        if a:
            b = parent[a]
            r[a, 0] += c[a, 0] * dx[b, 0] + c[a, 1] * dx[b, 1]
            r[a, 1] += c[a, 1] * dx[b, 0] + c[a, 2] * dx[b, 1]
        det = d[a, 0] * d[a, 2] - d[a, 1] ** 2
        dx[a, 0] = (d[a, 2] * r[a, 0] - d[a, 1] * r[a, 1]) / det
        dx[a, 1] = (d[a, 0] * r[a, 1] - d[a, 1] * r[a, 0]) / det


@_stage
def _directions(u, v, dx, parent, limit, room, slack, y, z, tau, smallest, dy, dz):
    """The largest step along dx that leaves everything positive; dy and dz become the directions of multipliers."""
    most = 1e300
    for a in range(len(u)):
        across = u[a, 0] * dx[a, 0] + u[a, 1] * dx[a, 1]
        dz[a] = tau / room[a] - z[a] + z[a] / room[a] * across
        far = _way(room[a], across, dx[a, 0] ** 2 + dx[a, 1] ** 2, smallest)
        most = min(most, far, z[a] / max(-dz[a], smallest))
        if a:
            gx, gy = dx[a, 0] - dx[parent[a], 0], dx[a, 1] - dx[parent[a], 1]
            outward = (v[a, 0] * gx + v[a, 1] * gy) / limit[a]
            dy[a] = tau / slack[a] - y[a] + y[a] / slack[a] * outward
            far = _way(slack[a], outward, (gx * gx + gy * gy) / limit[a], smallest)
            most = min(most, far, y[a] / max(-dy[a], smallest))
    return most


# --- draws of worlds -------------------------------------------------------------------------------------------------

_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_LOW, _MIDDLE, _HIGH, _DROPPED = (np.uint64(value) for value in (27, 30, 31, 11))


def draw_keys(seed: int, purposes: tuple[str, ...]) -> np.ndarray:
    """(k,) uint64, the keys with which `uniform` draws for these purposes."""
    with np.errstate(over="ignore"):
        return np.array([np.uint64(seed) ^ np.uint64(zlib.crc32(name.encode())) * _MIX[0] for name in purposes])


@numba.njit(cache=True, fastmath=False)
def _scramble(value):
    value = (value ^ (value >> _MIDDLE)) * _MIX[1]
    value = (value ^ (value >> _LOW)) * _MIX[2]
    return value ^ (value >> _HIGH)


@numba.njit(cache=True, fastmath=False)
def uniform(key, step, i, j):
    """`swarm.world.draw` for one (step, i, j)."""
    mixed = _scramble(key + np.uint64(step) * _MIX[0] + _MIX[0])
    mixed = _scramble(mixed + np.uint64(i) * _MIX[0] + _MIX[0])
    mixed = _scramble(mixed + np.uint64(j) * _MIX[0] + _MIX[0])
    return (np.float64(mixed >> _DROPPED) + 0.5) * 2.0**-53


@numba.njit(cache=True, fastmath=False)
def _ratio(r, a, b):
    """A quotient of two polynomials of degree seven, coefficients from the highest on."""
    top, bottom = a[0], b[0]
    for k in range(1, 8):
        top, bottom = top * r + a[k], bottom * r + b[k]
    return top / bottom


_NEAR = (np.array([2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
                   13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608]),
         np.array([5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
                   5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0]))  # fmt: skip
_FAR = (np.array([7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
                  3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734]),
        np.array([1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
                  0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0]))  # fmt: skip
_TAIL = (np.array([2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
                   0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699,
                   6.6579046435011037772]),
         np.array([2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
                   7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769,
                   1.0]))  # fmt: skip


@numba.njit(cache=True, fastmath=False)
def normal(u):
    """The standard normal quantile (Wichura 1988, AS 241), right to 1e-15."""
    q = u - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(0.180625 - q * q, _NEAR[0], _NEAR[1])
    r = math.sqrt(-math.log(min(u, 1.0 - u)))
    size = _ratio(r - 1.6, _FAR[0], _FAR[1]) if r <= 5.0 else _ratio(r - 5.0, _TAIL[0], _TAIL[1])
    return size if q > 0 else -size
