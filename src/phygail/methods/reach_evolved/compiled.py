"""One flight of the evolved rule as a compiled loop, which evolution flies thousands of times a minute.

Compiled by Numba on first use (seconds, then cached in __pycache__). World, links and tree are those of
`swarm.compiled`; constants of the rule are arguments. A test flies the rule and this loop and compares positions.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from phygail.methods.reach_evolved import BASE_WEIGHT_LIMITS, STRENGTH_LIMITS, GateShape
from phygail.methods.sidr import ROUNDING, aggregation_m
from phygail.methods.steering import link_rules
from phygail.sensing import beliefs
from phygail.sensing.beliefs import BeliefSpec
from phygail.swarm.compiled import FAR_M2, World, keep_links, kernel, label_subnets, toward

_CERTAIN = -12.0  # exponent below which a belief differs from one by less than 1e-5


def fly_policy(world: World, vector: np.ndarray, shape: GateShape, spec: BeliefSpec) -> int:
    """Steps until the network is one, or the budget."""
    return int(episode(*_arguments(world, vector, shape, spec), np.empty((0, 0, 2))))


def trace_policy(world: World, vector: np.ndarray, shape: GateShape, spec: BeliefSpec) -> np.ndarray:
    """(steps + 1, n, 2) m, positions."""
    trace = np.zeros((int(world.numbers[3]) + 1, len(world.spots), 2))
    steps = episode(*_arguments(world, vector, shape, spec), trace)
    return trace[: steps + 1]


def _arguments(world: World, vector: np.ndarray, shape: GateShape, spec: BeliefSpec) -> tuple[np.ndarray, ...]:
    layers = shape.layers(np.asarray(vector, dtype=np.float32))
    rule = np.array([
        beliefs.CLOCK_M * world.unit, aggregation_m(world.width_m), beliefs.NEVER, beliefs.SURE, beliefs.LARGEST,
        beliefs.DEEPEST, beliefs.MOST_MEMBERS, beliefs.LONGEST, *STRENGTH_LIMITS, *BASE_WEIGHT_LIMITS,
        ROUNDING,
    ], dtype=float)  # fmt: skip
    places = (world.spots, world.roster, world.alive, world.center, world.numbers)
    return (*places, rule, link_rules(), spec.vector(world.unit), *layers)


@numba.njit(cache=True, fastmath=True)
def run_gates(inputs, w1, b1, w2, b2, hidden, out):
    """One hidden layer of ReLU; the inner loops run along rows so that they become vector instructions."""
    for h in range(len(b1)):
        hidden[h] = b1[h]
    for f in range(w1.shape[0]):
        value = inputs[f]
        for h in range(len(b1)):
            hidden[h] += w1[f, h] * value
    for o in range(len(b2)):
        out[o] = b2[o]
    for h in range(len(b1)):
        value = max(hidden[h], np.float32(0.0))
        for o in range(len(b2)):
            out[o] += w2[h, o] * value


@kernel(fastmath=False)
def _go_home(points, center, stride):
    """Move all points toward the center."""
    for k in range(len(points)):
        dx, dy = toward(points[k, 0], points[k, 1], center[0], center[1], stride)
        points[k, 0] += dx
        points[k, 1] += dy


# Numba writes a stage of `episode` into it: with calls the same flights took 10 to 15 % more time.
_stage = numba.njit(cache=True, fastmath=True, inline="always")


@_stage
def _gather(first, n, total, x, label, depth, never, members, known):
    """Size and centroid (m) of the subnet of `first`; `members` and `known`, what they know together, are filled."""
    m = 0
    gx, gy = 0.0, 0.0
    known[:] = never
    for i in range(first, n):
        if label[i] == first:
            members[m] = i
            m += 1
            gx += x[i, 0]
            gy += x[i, 1]
            for k in range(total):
                known[k] = max(known[k], depth[i, k])
    gx, gy = gx / m, gy / m
    return m, gx, gy


@_stage
def _believe(first, m, total, x, ghost, members, label, row_of, t, sigma, range_m, margin, never, sure,
             depth_half, depth_scale, largest, known, weight, distance, nearest):  # fmt: skip
    """How many UAVs a subnet rules out; `weight` ((N,)) becomes its belief that each of the others is alive.

    Silence deepens `known` ((N,)). distance: (N,) m, from a ghost to its nearest member, a row in `nearest`.
    """
    ruled_out = 0.0
    for k in range(total):
        weight[k] = 0.0
        if row_of[k] >= 0 and label[row_of[k]] == first:
            known[k] = never
            continue
        if known[k] == sure:
            ruled_out += 1.0
            continue
        best, who = FAR_M2, -1
        for a in range(m):
            i = members[a]
            d2 = (ghost[k, 0] - x[i, 0]) ** 2 + (ghost[k, 1] - x[i, 1]) ** 2
            if d2 < best:
                best, who = d2, i
        d = math.sqrt(best)
        distance[k], nearest[k] = d, who
        if t == 0:
            if d <= range_m:
                known[k] = sure
        else:
            known[k] = max(known[k], np.float32((range_m - margin - d) / sigma))
        if known[k] == sure:
            ruled_out += 1.0
        else:
            z = (known[k] - depth_half) / depth_scale
            if z < _CERTAIN:
                weight[k] = 1.0
            else:
                weight[k] = 1.0 / (1.0 + math.exp(min(z, largest)))
                ruled_out += 1.0 - weight[k]
    return ruled_out


@_stage
def _describe(m, ruled_out, total, t, gx, gy, center, range_m, stride, most_members, clock_m, longest_clock):
    """Way to the center (m) and what gates read: ln survival, clock, ln members, way, share of the alive."""
    survival = (m + 0.5) / (m + ruled_out + 1.0)
    away = math.hypot(center[0] - gx, center[1] - gy)
    log_s, log_m = -math.log(survival), math.log(min(m, most_members)) / 3.0
    clock, far = min(t * stride / clock_m, longest_clock), math.log1p(away / range_m)
    share = math.log(m / (survival * total))
    return away, log_s, clock, log_m, far, share


@_stage
def _attract(x, ghost, center, gx, gy, away, range_m, stride, horizon, deepest, weakest, strongest,
             weight, distance, nearest, known, radius, log_s, clock, log_m, far, share, inputs, ew1, eb1,
             ew2, eb2, hidden, out, pull):  # fmt: skip
    """Every ghost pulls the member nearest to it as strongly as the gates say; `pull` ((n, 2)) sums up."""
    for k in range(len(ghost)):
        if weight[k] <= 0.0 or distance[k] >= horizon:
            continue
        i, d = nearest[k], max(distance[k], 1e-9)
        ux, uy = (ghost[k, 0] - x[i, 0]) / d, (ghost[k, 1] - x[i, 1]) / d
        inputs[0] = max(d - range_m, 0.0) / range_m
        inputs[1], inputs[3], inputs[4], inputs[6] = log_s, clock, log_m, far
        inputs[2] = min(known[k], deepest)
        inputs[5] = ((center[0] - gx) * ux + (center[1] - gy) * uy) / (away + stride)
        inputs[7], inputs[8] = radius[k], share
        run_gates(inputs, ew1, eb1, ew2, eb2, hidden, out)
        signed = 1.0 / (1.0 + math.exp(-out[0])) - 1.0 / (1.0 + math.exp(-out[1]))
        force = weight[k] * signed * math.exp(min(max(out[2], weakest), strongest))
        pull[i, 0] += force * ux
        pull[i, 1] += force * uy


@_stage
def _combine(m, members, bx, by, lightest, heaviest, anchor, pull, move, pull_weight):
    """Moves ((n, 2) strides) of members: the move (bx, by) that all share plus their pull; and pull weights."""
    base_weight = math.exp(min(max(anchor[1], lightest), heaviest))
    for a in range(m):
        i = members[a]
        vx, vy = bx + pull[i, 0], by + pull[i, 1]
        size = math.hypot(vx, vy)
        if size > 1.0:
            vx, vy = vx / size, vy / size
        move[i, 0], move[i, 1] = vx, vy
        pull_weight[i] = base_weight + min(math.hypot(pull[i, 0], pull[i, 1]), 1.0)


@_stage
def _urgent(m, members, x, center, t, budget, range_m, stride, rounding):
    """Whether the aggregation phase must begin: the farthest member has just the steps left to get home."""
    farthest = 0.0
    for a in range(m):
        i = members[a]
        farthest = max(farthest, math.hypot(x[i, 0] - center[0], x[i, 1] - center[1]))
    return farthest - range_m / 2 > (budget - t - 2) * stride - rounding * range_m


@kernel(fastmath=True, nogil=True)
def episode(spots, roster, alive, center, numbers, rule, rules, spec, ew1, eb1, ew2, eb2, aw1, ab1, aw2, ab2, trace):
    """Steps until the network is one, or the budget; positions go into `trace` unless it is empty.

    The arguments are the fields of `World`, constants of the rule and of `keep_links`, `BeliefSpec.vector` and the
    layers of the gates. Long because all room to work in is made here, once per flight: what can be named stands in
    stages, and a further cut would pass twenty arrays on.
    """
    n, total = len(spots), len(roster)
    range_m, longest_m, stride, budget = numbers[0], numbers[1], numbers[2], int(numbers[3])
    clock_m, wait_m, never, sure, largest, deepest = rule[0], rule[1], rule[2], rule[3], rule[4], rule[5]
    most_members, longest_clock, rounding = int(rule[6]), rule[7], rule[12]
    weakest, strongest, lightest, heaviest = rule[8], rule[9], rule[10], rule[11]
    drift, sigma0, sigma_rate, depth_half, depth_scale, horizon, margin = spec
    x, ghost = spots.copy(), roster.copy()
    depth = np.full((n, total), never, dtype=np.float32)
    known = np.empty(total, dtype=np.float32)
    weight, distance, radius = np.empty(total), np.empty(total), np.empty(total)
    nearest = np.empty(total, dtype=np.int64)
    parent, label = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    row_of = np.full(total, -1, dtype=np.int64)
    for i in range(n):
        row_of[alive[i]] = i
    pull, move, pull_weight = np.zeros((n, 2)), np.zeros((n, 2)), np.zeros(n)
    members = np.empty(n, dtype=np.int64)
    inputs = np.empty(ew1.shape[0], dtype=np.float32)
    facts = np.empty(aw1.shape[0], dtype=np.float32)
    hidden = np.empty(max(len(eb1), len(ab1)), dtype=np.float32)
    out, anchor = np.empty(len(eb2), dtype=np.float32), np.empty(len(ab2), dtype=np.float32)
    for t in range(budget + 1):
        count = label_subnets(x, longest_m, parent, label)
        if len(trace):
            for i in range(n):  # an array at once would need Numba's texts for errors: seconds to compile
                trace[t, i, 0], trace[t, i, 1] = x[i, 0], x[i, 1]
        if count == 1 or t == budget:
            return t
        if t > 0:
            _go_home(ghost, center, stride * drift)
        for k in range(total):
            out_x, out_y = ghost[k, 0] - center[0], ghost[k, 1] - center[1]
            radius[k] = math.log1p(math.sqrt(out_x * out_x + out_y * out_y) / range_m)
        sigma = sigma0 + sigma_rate * stride * t
        for first in range(n):
            if label[first] != first:
                continue
            m, gx, gy = _gather(first, n, total, x, label, depth, never, members, known)
            ruled_out = _believe(first, m, total, x, ghost, members, label, row_of, t, sigma, range_m,
                                 margin, never, sure, depth_half, depth_scale, largest, known, weight,
                                 distance, nearest)  # fmt: skip
            for a in range(m):
                for k in range(total):
                    depth[members[a], k] = known[k]
                pull[members[a]] = 0.0
            away, log_s, clock, log_m, far, share = _describe(
                m, ruled_out, total, t, gx, gy, center, range_m, stride, most_members, clock_m, longest_clock
            )
            facts[0], facts[1], facts[2], facts[3], facts[4] = log_s, clock, log_m, far, share
            run_gates(facts, aw1, ab1, aw2, ab2, hidden, anchor)
            bx, by = toward(gx, gy, center[0], center[1], stride)
            speed = min(max(1.0 + anchor[0], 0.0), 1.0)
            bx, by = bx * speed / stride, by * speed / stride
            _attract(x, ghost, center, gx, gy, away, range_m, stride, horizon, deepest, weakest,
                     strongest, weight, distance, nearest, known, radius, log_s, clock, log_m, far, share,
                     inputs, ew1, eb1, ew2, eb2, hidden, out, pull)  # fmt: skip
            _combine(m, members, bx, by, lightest, heaviest, anchor, pull, move, pull_weight)
            urgent = _urgent(m, members, x, center, t, budget, range_m, stride, rounding)
            if urgent or t * stride >= wait_m:  # aggregation phase
                for a in range(m):
                    i = members[a]
                    dx, dy = toward(x[i, 0], x[i, 1], center[0], center[1], stride)
                    move[i, 0], move[i, 1] = dx / stride, dy / stride
            else:
                keep_links(x, members[:m], move, pull_weight, range_m, margin, stride, rules)
        for i in range(n):
            x[i, 0] += move[i, 0] * stride
            x[i, 1] += move[i, 1] * stride
    return budget
