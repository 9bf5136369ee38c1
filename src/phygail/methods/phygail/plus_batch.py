"""The observation `plus` in many worlds at once, for learning: beliefs, graphs and link keeping as compiled loops.

What is observed, and why, stands in `methods.phygail.plus`, which flies it; a test holds the two against each other.
Beliefs are brought up to date in every step, also while a command is held.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numba
import numpy as np

from phygail.config import LINK_TOLERANCE_M
from phygail.methods.phygail.graph import ACTIVE, CENTER, DAMAGED, LOST, Graph, GraphSpec
from phygail.methods.phygail.graph_batch import Observation
from phygail.methods.phygail.plus import (
    CROWDED,
    EDGE_NUMBERS,
    FARTHEST,
    FEWEST,
    LEAST_BELIEF,
    LIGHTEST,
    NEAR,
    NODE_NUMBERS,
    OWN_FIRST,
    TIES,
    belief_spec,
)
from phygail.methods.steering import link_rules
from phygail.sensing.beliefs import CLOCK_M, DEEPEST, LARGEST, LONGEST, MOST_MEMBERS, NEVER, SURE
from phygail.swarm.batch import BatchState
from phygail.swarm.compiled import FAR_M2, keep_links, kernel
from phygail.swarm.scenario import Scenario
from phygail.swarm.simulator import project_speed

_STILL = -1  # step of a world whose beliefs are not up to date


class _Table(NamedTuple):
    """What never changes while B worlds fly, as arrays for the kernels; rosters have up to N entries.

    Attributes:
        roster: (B, N, 2) m. total: (B,) int, real entries. row_of: (B, N) int, row of the alive, -1 for others.
        flying: (B,) int, alive. center: (B, 2) m.
        numbers: (B, 7) range, greatest length of a link, stride, horizon, margin, sigma, sigma per step, all m.
    """

    roster: np.ndarray
    total: np.ndarray
    row_of: np.ndarray
    flying: np.ndarray
    center: np.ndarray
    numbers: np.ndarray


class PlusObservation(Observation):
    """`methods.phygail.plus` in B worlds; remembers how deep every UAV has found every ghost."""

    features, edge_features, types = NODE_NUMBERS, EDGE_NUMBERS, 4

    def __init__(self, spec: GraphSpec) -> None:
        super().__init__(spec)
        self._belief = belief_spec(spec)
        self._scenarios: list[Scenario] = []
        self._table = _Table(*[np.empty(0)] * 6)
        self._depth = np.empty((0, 0, 0), dtype=np.float32)  # (B, n, N)
        self._seen = np.empty(0, dtype=np.int64)  # (B,) step up to which the beliefs know
        self._axes = np.empty((0, 2))  # (receivers, 2) x axis of the coordinates of each UAV's subnet

    def begin(self, state: BatchState, worlds: np.ndarray) -> None:
        scenarios = list(state.scenarios)
        entries = max(scenario.uavs for scenario in scenarios)
        if len(scenarios) != len(self._seen) or entries > self._depth.shape[2] or state.rows > self._depth.shape[1]:
            self._grow(len(scenarios), state.rows, entries)
        for b in worlds.tolist():
            self._fill(b, scenarios[b])
        self._depth[worlds], self._seen[worlds] = NEVER, _STILL

    def _grow(self, worlds: int, rows: int, entries: int) -> None:
        """Room for more worlds, UAVs or roster entries; what is there stays."""
        old, depth, seen = self._table, self._depth, self._seen
        rows, entries = max(rows, depth.shape[1]), max(entries, depth.shape[2])
        self._table = _Table(
            np.zeros((worlds, entries, 2)), np.zeros(worlds, dtype=np.int64),
            np.full((worlds, entries), -1, dtype=np.int64), np.zeros(worlds, dtype=np.int64), np.zeros((worlds, 2)),
            np.zeros((worlds, 7)),
        )  # fmt: skip
        self._depth = np.full((worlds, rows, entries), NEVER, dtype=np.float32)
        self._seen = np.full(worlds, _STILL, dtype=np.int64)
        if len(seen) == worlds:
            for new, before in zip(self._table, old, strict=True):
                new[tuple(slice(0, size) for size in before.shape)] = before
            self._depth[:, : depth.shape[1], : depth.shape[2]] = depth
            self._seen[:] = seen

    def _fill(self, b: int, scenario: Scenario) -> None:
        table, physics, spec = self._table, scenario.physics, self._belief
        table.roster[b, : scenario.uavs], table.total[b] = scenario.layout, scenario.uavs
        table.row_of[b] = -1
        table.row_of[b, scenario.alive] = np.arange(len(scenario.alive))
        table.flying[b], table.center[b] = len(scenario.alive), scenario.center
        table.numbers[b] = (
            physics.range_m, physics.range_m + LINK_TOLERANCE_M, physics.stride_m,
            max(spec.horizon_m * physics.unit, physics.range_m), spec.margin_m * physics.unit,
            spec.sigma_m * physics.unit, spec.sigma_rate * physics.stride_m,
        )  # fmt: skip

    def keep(self, worlds: np.ndarray) -> None:
        self._table = _Table(*[array[worlds] for array in self._table])
        self._depth, self._seen = self._depth[worlds], self._seen[worlds]

    def save(self) -> dict[str, np.ndarray]:
        return {"depth": self._depth, "seen": self._seen}

    def load(self, memory: Mapping[str, np.ndarray]) -> None:
        depth = memory["depth"]
        self._grow(len(depth), depth.shape[1], depth.shape[2])
        self._depth[:, : depth.shape[1], : depth.shape[2]] = depth
        self._seen[:] = memory["seen"]

    def observe(self, state: BatchState) -> Graph:
        spec, worlds, n = self.spec, len(state.scenarios), int(self._table.flying.sum())
        features = np.zeros((n + 3 * worlds, self.features), dtype=np.float32)
        index, mask = np.zeros((n, spec.slots), dtype=np.int64), np.zeros((n, spec.slots), dtype=np.bool_)
        edge = np.zeros((n, spec.slots, self.edge_features), dtype=np.float32)
        self._axes = np.zeros((n, 2))
        sizes = np.array([spec.k_act, spec.k_dmg, spec.k_lost])
        self._look(state, sizes, features, index, mask, edge, self._axes)
        kinds = np.repeat([ACTIVE, DAMAGED, CENTER, LOST], [spec.k_act, spec.k_dmg, 1, spec.k_lost])
        world = np.repeat(np.arange(worlds), self._table.flying)
        types = np.concatenate([np.full(n, ACTIVE), np.tile([DAMAGED, CENTER, LOST], worlds)])
        return Graph(
            features, types, index, mask, kinds, np.concatenate([world, np.repeat(np.arange(worlds), 3)]), worlds, edge
        )

    def _look(self, state: BatchState, sizes: np.ndarray, *out: np.ndarray) -> None:
        """Bring the beliefs up to date; with sizes of slots above zero also write the graphs."""
        spec = self._belief
        rule = np.array([
            spec.drift, spec.depth_half, spec.depth_scale, NEVER, SURE, LARGEST, MOST_MEMBERS, CLOCK_M, LONGEST,
            LEAST_BELIEF, FARTHEST, NEAR, TIES, CROWDED, DEEPEST, FEWEST, OWN_FIRST if self.spec.own_lost else 0.0,
        ], dtype=float)  # fmt: skip
        steps = np.ascontiguousarray(state.steps).astype(np.int64)
        unit = np.array([scenario.physics.unit for scenario in state.scenarios])
        speed = state.cases.speed_mps
        _look_all(
            state.positions, state.velocities / speed[:, None, None], _labels(state),
            state.count.astype(np.int64), steps, unit, *self._table, self._depth, rule, sizes, *out,
        )  # fmt: skip
        self._seen[:] = steps

    def wanted(self, state: BatchState, actions: np.ndarray) -> np.ndarray:
        """(B, n, 3): m/s asked for, and the weight in link keeping; 0 where the policy gives none."""
        along, across = self._axes[:, 0], self._axes[:, 1]
        wanted = np.zeros((*state.positions.shape[:2], 3))
        turned = np.stack(
            [actions[:, 0] * along - actions[:, 1] * across, actions[:, 0] * across + actions[:, 1] * along], axis=1
        )
        wanted[state.mask, :2] = turned
        speed = state.cases.speed_mps[:, None, None]
        wanted[..., :2] = project_speed(wanted[..., :2] * speed, speed)
        if actions.shape[1] > 2:
            wanted[state.mask, 2] = np.exp(actions[:, 2])
        return wanted

    def steer(self, state: BatchState, wanted: np.ndarray) -> np.ndarray:
        if not np.array_equal(self._seen, state.steps):
            none = np.zeros(3, dtype=np.int64)
            self._look(
                state, none, np.zeros((1, 1), np.float32), np.zeros((1, 1), np.int64), np.zeros((1, 1), np.bool_),
                np.zeros((1, 1, 1), np.float32), np.zeros((1, 2)),
            )  # fmt: skip
        speed = state.cases.speed_mps[:, None, None]
        moves = np.ascontiguousarray(wanted[..., :2] / speed)
        _keep_all(
            state.positions, _labels(state), state.count.astype(np.int64), self._table.flying,
            self._table.numbers, moves, np.ascontiguousarray(wanted[..., 2]), LIGHTEST, link_rules(),
        )  # fmt: skip
        return moves * speed


def _labels(state: BatchState) -> np.ndarray:
    """(B, n) int64, the subnet of every row."""
    return np.ascontiguousarray(state.subnet).astype(np.int64)


@numba.njit(cache=True, fastmath=False)
def _insert(key, entry, keys, entries, filled):
    """Keep the entries with the smallest keys, ascending; gives how many there are."""
    most = len(keys)
    if filled == most and (most == 0 or key >= keys[most - 1]):
        return filled
    place = min(filled, most - 1)
    while place > 0 and keys[place - 1] > key:
        keys[place], entries[place] = keys[place - 1], entries[place - 1]
        place -= 1
    keys[place], entries[place] = key, entry
    return min(filled + 1, most)


@numba.njit(cache=True, fastmath=False)
def _turn(dx, dy, ax, ay):
    """(dx, dy) in coordinates whose x axis is (ax, ay)."""
    return dx * ax + dy * ay, dy * ax - dx * ay


@numba.njit(cache=True, fastmath=False)
def _compress(dx, dy, range_m):
    """Unit vector times ln(1 + d/R)."""
    d = math.sqrt(dx * dx + dy * dy)
    part = math.log1p(d / range_m) / max(d, 1e-9)
    return dx * part, dy * part


@numba.njit(cache=True, fastmath=False)
def _listen(x, members, m, ghost, total, row_of, label, own, numbers, t, rule, depth, known, best, nearest, away):
    """One more look of one subnet: known, best (m) and nearest (number of a member), (N,) each; away (m, N) m.

    Along the roster in the inner loops, which so become vector instructions.
    """
    range_m, longest, horizon, margin = numbers[0], numbers[1], numbers[3], numbers[4]
    sigma = numbers[5] + numbers[6] * t
    never, sure = np.float32(rule[3]), np.float32(rule[4])
    known[:total], best[:total] = never, FAR_M2
    for a in range(m):
        i = members[a]
        px, py = x[i, 0], x[i, 1]
        for k in range(total):
            known[k] = max(known[k], depth[i, k])
            d = math.sqrt((ghost[k, 0] - px) ** 2 + (ghost[k, 1] - py) ** 2)
            away[a, k] = d
            if d < best[k]:
                best[k], nearest[k] = d, a
    for k in range(total):
        if row_of[k] >= 0 and label[row_of[k]] == own:
            known[k], nearest[k] = never, -1
        elif t == 0:
            if best[k] <= longest:
                known[k] = sure
        elif best[k] <= horizon:
            known[k] = max(known[k], np.float32((range_m - margin - best[k]) / sigma))
    for a in range(m):
        depth[members[a], :total] = known[:total]


@numba.njit(cache=True, fastmath=False)
def _believe(m, total, rule, known, nearest, weight):
    """The share of teammates that a subnet of m believes alive; fills weight ((N,)), 0 for members."""
    half, scale, sure, largest = rule[1], rule[2], np.float32(rule[4]), rule[5]
    ruled_out = 0.0
    for k in range(total):
        weight[k] = 0.0
        if nearest[k] < 0:
            continue
        if known[k] < sure:
            weight[k] = 1.0 / (1.0 + math.exp(min((known[k] - half) / scale, largest)))
        ruled_out += 1.0 - weight[k]
    return (m + 0.5) / (m + ruled_out + 1.0)


@numba.njit(cache=True, fastmath=False)
def _see_members(x, v, members, m, a, ax, ay, numbers, k_act, first, keys, entries, index, mask, edge):
    """The nearest linked members of member a; gives how many."""
    i, filled = members[a], 0
    for b in range(m):
        j = members[b]
        d = math.sqrt((x[j, 0] - x[i, 0]) ** 2 + (x[j, 1] - x[i, 1]) ** 2)
        if j != i and d <= numbers[1]:
            filled = _insert(d, j, keys[:k_act], entries[:k_act], filled)
    for slot in range(filled):
        j = entries[slot]
        index[slot], mask[slot] = first + j, True
        dx, dy = _turn(x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], ax, ay)
        vx, vy = _turn(v[j, 0] - v[i, 0], v[j, 1] - v[i, 1], ax, ay)
        edge[slot, 0], edge[slot, 1], edge[slot, 4] = dx / numbers[0], dy / numbers[0], keys[slot] / numbers[0]
        edge[slot, 2], edge[slot, 3] = vx, vy
    return filled


@numba.njit(cache=True, fastmath=False)
def _see_damaged(p, v, roster, total, row_of, ax, ay, numbers, k_dmg, node, keys, entries, index, mask, edge):
    """The nearest damaged UAVs in range of a UAV at p; gives how many."""
    filled = 0
    for k in range(total):
        if row_of[k] < 0:
            d = math.sqrt((roster[k, 0] - p[0]) ** 2 + (roster[k, 1] - p[1]) ** 2)
            if d <= numbers[1]:
                filled = _insert(d, k, keys[:k_dmg], entries[:k_dmg], filled)
    for slot in range(filled):
        k = entries[slot]
        index[slot], mask[slot] = node, True
        dx, dy = _turn(roster[k, 0] - p[0], roster[k, 1] - p[1], ax, ay)
        vx, vy = _turn(-v[0], -v[1], ax, ay)
        edge[slot, 0], edge[slot, 1], edge[slot, 4] = dx / numbers[0], dy / numbers[0], keys[slot] / numbers[0]
        edge[slot, 2], edge[slot, 3] = vx, vy
    return filled


@numba.njit(cache=True, fastmath=False)
def _see_lost(
    p, a, ghost, total, known, weight, nearest, away, ax, ay, numbers, rule, k_lost, node, keys, entries, index, mask,
    edge,
):  # fmt: skip
    """The nearest ghosts of member a, at p, that may be alive."""
    filled, range_m = 0, numbers[0]
    for k in range(total):
        if weight[k] >= rule[9] and away[a, k] <= numbers[3]:
            far = away[a, k] / range_m - (rule[16] if nearest[k] == a else 0.0)
            key = np.rint(far * rule[12]) - 0.5 * weight[k]
            filled = _insert(key, k, keys[:k_lost], entries[:k_lost], filled)
    for slot in range(filled):
        k = entries[slot]
        index[slot], mask[slot] = node, True
        d = away[a, k]
        dx, dy = _turn(ghost[k, 0] - p[0], ghost[k, 1] - p[1], ax, ay)
        edge[slot, 0], edge[slot, 1] = _compress(dx, dy, range_m)
        edge[slot, 2], edge[slot, 3] = dx / max(d, 1e-9), dy / max(d, 1e-9)
        edge[slot, 4] = min(max(d - range_m, 0.0) / range_m, rule[10])
        edge[slot, 5], edge[slot, 6] = weight[k], 1.0 if nearest[k] == a else 0.0
        edge[slot, 7] = min(known[k], rule[14]) / rule[14]


@numba.njit(cache=True, fastmath=False)
def _write_node(p, v, g, center, ax, ay, distance, numbers, unit, m, total, t, survival, degree, rule, features, edge):
    """Features of a UAV at p in a subnet with its centroid at g, and of its edge to the center."""
    range_m, stride = numbers[0], numbers[2]
    dx, dy = _turn(center[0] - p[0], center[1] - p[1], ax, ay)
    cx, cy = _compress(dx, dy, range_m)
    vx, vy = _turn(v[0], v[1], ax, ay)
    far = min(math.sqrt(dx * dx + dy * dy) / range_m, rule[10]) / rule[10]
    ox, oy = _turn(p[0] - g[0], p[1] - g[1], ax, ay)
    ox, oy = _compress(ox, oy, range_m)
    features[0], features[1], features[2], features[3] = cx, cy, vx, vy
    features[4], features[5] = math.log1p(degree) / rule[13], far
    features[6], features[7] = math.log1p(distance / range_m), math.log(min(m, rule[6])) / 3.0
    features[8], features[9] = ox, oy
    features[10] = min(distance / (rule[11] * range_m), 1.0)
    features[11] = -math.log(survival) / 3.0
    features[12] = min(t * stride / (rule[7] * unit), rule[8])
    features[13] = max(math.log(m / (survival * total)), rule[15]) / 3.0
    edge[0], edge[1], edge[2], edge[3], edge[4] = cx, cy, -vx, -vy, far


@kernel(fastmath=False)
def _look_all(
    x, v, label, count, steps, unit, roster, total, row_of, flying, center, numbers, depth, rule, sizes, features,
    index, mask, edge, axes,
):  # fmt: skip
    """Beliefs of all worlds, and their graphs unless all `sizes` are 0 (`_Table` and `PlusObservation`).

    Long because one loop over worlds, subnets and members fills all tables: a cut would pass twenty arrays on.
    """
    entries_most = roster.shape[1]
    ghost, known = np.empty((entries_most, 2)), np.empty(entries_most, dtype=np.float32)
    weight, best, nearest = np.empty(entries_most), np.empty(entries_most), np.empty(entries_most, dtype=np.int64)
    away, members = np.empty((x.shape[1], entries_most)), np.empty(x.shape[1], dtype=np.int64)
    most = max(sizes.max(), 1)
    keys, entries = np.empty(most), np.empty(most, dtype=np.int64)
    first, alive = 0, flying.sum()
    at_damaged, at_center, at_lost = sizes[0], sizes[0] + sizes[1], sizes[0] + sizes[1] + 1
    g = np.empty(2)
    for b in range(len(x)):
        t, node = steps[b], alive + 3 * b
        for k in range(total[b]):
            dx, dy = center[b, 0] - roster[b, k, 0], center[b, 1] - roster[b, k, 1]
            part = min(rule[0] * numbers[b, 2] * t / max(math.sqrt(dx * dx + dy * dy), 1e-9), 1.0)
            ghost[k, 0], ghost[k, 1] = roster[b, k, 0] + dx * part, roster[b, k, 1] + dy * part
        for own in range(count[b]):
            m = 0
            g[:] = 0.0
            for i in range(flying[b]):
                if label[b, i] == own:
                    members[m] = i
                    m += 1
                    g += x[b, i]
            g /= m
            _listen(
                x[b], members, m, ghost, total[b], row_of[b], label[b], own, numbers[b], t, rule, depth[b], known,
                best, nearest, away,
            )  # fmt: skip
            if sizes[0] == 0:
                continue
            survival = _believe(m, total[b], rule, known, nearest, weight)
            distance = math.sqrt((center[b, 0] - g[0]) ** 2 + (center[b, 1] - g[1]) ** 2)
            ax, ay = 1.0, 0.0
            if distance > 1e-9:
                ax, ay = (center[b, 0] - g[0]) / distance, (center[b, 1] - g[1]) / distance
            for a in range(m):
                i = members[a]
                row = first + i
                axes[row, 0], axes[row, 1] = ax, ay
                degree = 1 + _see_members(
                    x[b], v[b], members, m, a, ax, ay, numbers[b], sizes[0], first, keys, entries, index[row],
                    mask[row], edge[row],
                )  # fmt: skip
                degree += _see_damaged(
                    x[b, i], v[b, i], roster[b], total[b], row_of[b], ax, ay, numbers[b], sizes[1], node, keys, entries,
                    index[row, at_damaged:], mask[row, at_damaged:], edge[row, at_damaged:],
                )  # fmt: skip
                index[row, at_center], mask[row, at_center] = node + 1, True
                _see_lost(
                    x[b, i], a, ghost, total[b], known, weight, nearest, away, ax, ay, numbers[b], rule, sizes[2],
                    node + 2, keys, entries, index[row, at_lost:], mask[row, at_lost:], edge[row, at_lost:],
                )  # fmt: skip
                _write_node(
                    x[b, i], v[b, i], g, center[b], ax, ay, distance, numbers[b], unit[b], m, total[b], t, survival,
                    degree, rule, features[row], edge[row, at_center],
                )  # fmt: skip
        first += flying[b]


@kernel(fastmath=False)
def _keep_all(x, label, count, flying, numbers, moves, weight, lightest, rules):
    """`steering.keep_links` in all worlds: changes moves ((B, n, 2), strides).

    A weight of 0 is replaced by `lightest` and how far the wish is from the mean of the subnet's, at most 1.
    """
    members = np.empty(x.shape[1], dtype=np.int64)
    for b in range(len(x)):
        if count[b] == 1:
            continue  # its flight has ended
        for own in range(count[b]):
            m = 0
            bx, by = 0.0, 0.0
            for i in range(flying[b]):
                if label[b, i] == own:
                    members[m] = i
                    m += 1
                    bx += moves[b, i, 0]
                    by += moves[b, i, 1]
            if m == 1:
                continue
            for a in range(m):
                i = members[a]
                if weight[b, i] == 0.0:
                    far = math.sqrt((moves[b, i, 0] - bx / m) ** 2 + (moves[b, i, 1] - by / m) ** 2)
                    weight[b, i] = lightest + min(far, 1.0)
            keep_links(x[b], members[:m], moves[b], weight[b], numbers[b, 0], numbers[b, 4], numbers[b, 2], rules)
