"""The compiled loop behind `training.flights`: one UAV after the other instead of arrays.

Compiled by Numba on first use (seconds, then cached in __pycache__). All compiled code is in this file, because the
cache notices changes of this file only: when an imported constant changes, touch it.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from phygail.config import LINK_TOLERANCE_M
from phygail.methods.link_projection import (
    CENTERING,
    FIRST_GAP,
    GAP,
    LIGHTEST,
    MOST_ITERATIONS,
    SMALLEST,
    SMALLEST_SLACK,
    TO_THE_WALL,
)
from phygail.methods.links import GROWTH
from phygail.methods.sidr import ROUNDING
from phygail.models.gates import (
    ANCHOR_INPUTS,
    ANCHOR_OUTPUTS,
    EASE_LIMITS,
    EDGE_INPUTS,
    EDGE_OUTPUTS,
    STRENGTH_LIMITS,
)
from phygail.perception.lost import DEEPEST, LARGEST, LONGEST, MOST_MEMBERS, NEVER, SURE

_FAR = 1e18  # m^2
_CERTAIN = -12.0  # exponent below which a belief is one to 1e-5


@numba.njit(cache=True)
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@numba.njit(cache=True)
def _label(x, reach, parent, label):
    """Number of subnets; `label` becomes the lowest member of each UAV's subnet."""
    n = len(x)
    for i in range(n):
        parent[i] = i
    count = n
    limit = (reach + LINK_TOLERANCE_M) ** 2
    for i in range(n):
        for j in range(i + 1, n):
            if (x[i, 0] - x[j, 0]) ** 2 + (x[i, 1] - x[j, 1]) ** 2 <= limit:
                a, b = _root(parent, i), _root(parent, j)
                if a != b:
                    count -= 1
                    if a < b:
                        parent[b] = a
                    else:
                        parent[a] = b
    for i in range(n):
        label[i] = _root(parent, i)
    return count


@numba.njit(cache=True, fastmath=True)
def _gates(inputs, w1, b1, w2, b2, hidden, out):
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


@numba.njit(cache=True)
def _toward(x, y, cx, cy, stride):
    """Displacement (m) toward (cx, cy), at most `stride`, never beyond."""
    dx, dy = cx - x, cy - y
    d = math.sqrt(dx * dx + dy * dy)
    if d <= 1e-9:
        return 0.0, 0.0
    part = min(stride / d, 1.0)
    return dx * part, dy * part


@numba.njit(cache=True)
def _go_home(points, center, stride):
    """Move all points toward the center."""
    for k in range(len(points)):
        dx, dy = _toward(points[k, 0], points[k, 1], center[0], center[1], stride)
        points[k, 0] += dx
        points[k, 1] += dy


@numba.njit(cache=True, fastmath=True, nogil=True)
def episode(spots, roster, alive, center, numbers, spec, ew1, eb1, ew2, eb2, aw1, ab1, aw2, ab2, trace):
    """Steps until the network is one, or the budget; positions go into `trace` unless it is empty.

    The arguments are the fields of `World`, `BeliefSpec.vector` and the layers of the gates. One long loop on
    purpose: with one function per stage the same flights took 10 to 15 % more time.
    """
    n, total = len(spots), len(roster)
    reach, stride, clock_m, budget, wait_m = numbers[0], numbers[1], numbers[2], int(numbers[3]), numbers[4]
    drift, sigma0, sigma_rate, depth_half, depth_scale, horizon, margin = spec
    x, ghost = spots.copy(), roster.copy()
    depth = np.full((n, total), NEVER, dtype=np.float32)
    known = np.empty(total, dtype=np.float32)
    weight, distance, radius = np.empty(total), np.empty(total), np.empty(total)
    nearest = np.empty(total, dtype=np.int64)
    parent, label = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    row_of = np.full(total, -1, dtype=np.int64)
    for i in range(n):
        row_of[alive[i]] = i
    pull, move, mass = np.zeros((n, 2)), np.zeros((n, 2)), np.zeros(n)
    members = np.empty(n, dtype=np.int64)
    inputs = np.empty(EDGE_INPUTS, dtype=np.float32)
    facts = np.empty(ANCHOR_INPUTS, dtype=np.float32)
    hidden = np.empty(max(len(eb1), len(ab1)), dtype=np.float32)
    out, anchor = np.empty(EDGE_OUTPUTS, dtype=np.float32), np.empty(ANCHOR_OUTPUTS, dtype=np.float32)
    for t in range(budget + 1):
        count = _label(x, reach, parent, label)
        if len(trace):
            trace[t] = x
        if count == 1 or t == budget:
            return t
        if t > 0:
            _go_home(ghost, center, stride * drift)
        for k in range(total):
            out_x, out_y = ghost[k, 0] - center[0], ghost[k, 1] - center[1]
            radius[k] = math.log1p(math.sqrt(out_x * out_x + out_y * out_y) / reach)
        sigma = sigma0 + sigma_rate * stride * t
        for first in range(n):
            if label[first] != first:
                continue
            m = 0
            gx, gy = 0.0, 0.0
            known[:] = NEVER
            for i in range(first, n):
                if label[i] == first:
                    members[m] = i
                    m += 1
                    gx += x[i, 0]
                    gy += x[i, 1]
                    for k in range(total):
                        known[k] = max(known[k], depth[i, k])
            gx, gy = gx / m, gy / m
            ruled_out = 0.0
            for k in range(total):
                weight[k] = 0.0
                if row_of[k] >= 0 and label[row_of[k]] == first:
                    known[k] = NEVER
                    continue
                if known[k] == SURE:
                    ruled_out += 1.0
                    continue
                best, who = _FAR, -1
                for a in range(m):
                    i = members[a]
                    d2 = (ghost[k, 0] - x[i, 0]) ** 2 + (ghost[k, 1] - x[i, 1]) ** 2
                    if d2 < best:
                        best, who = d2, i
                d = math.sqrt(best)
                distance[k], nearest[k] = d, who
                if t == 0:
                    if d <= reach:
                        known[k] = SURE
                else:
                    known[k] = max(known[k], np.float32((reach - margin - d) / sigma))
                if known[k] == SURE:
                    ruled_out += 1.0
                else:
                    z = (known[k] - depth_half) / depth_scale
                    if z < _CERTAIN:
                        weight[k] = 1.0
                    else:
                        weight[k] = 1.0 / (1.0 + math.exp(min(z, LARGEST)))
                        ruled_out += 1.0 - weight[k]
            for a in range(m):
                depth[members[a]] = known
                pull[members[a]] = 0.0
            survival = (m + 0.5) / (m + ruled_out + 1.0)
            away = math.hypot(center[0] - gx, center[1] - gy)
            log_s, log_m = -math.log(survival), math.log(min(m, MOST_MEMBERS)) / 3.0
            clock, far = min(t * stride / clock_m, LONGEST), math.log1p(away / reach)
            share = math.log(m / (survival * total))
            facts[0], facts[1], facts[2], facts[3], facts[4] = log_s, clock, log_m, far, share
            _gates(facts, aw1, ab1, aw2, ab2, hidden, anchor)
            bx, by = _toward(gx, gy, center[0], center[1], stride)
            speed = min(max(1.0 + anchor[0], 0.0), 1.0)
            bx, by = bx * speed / stride, by * speed / stride
            for k in range(total):
                if weight[k] <= 0.0 or distance[k] >= horizon:
                    continue
                i, d = nearest[k], max(distance[k], 1e-9)
                ux, uy = (ghost[k, 0] - x[i, 0]) / d, (ghost[k, 1] - x[i, 1]) / d
                inputs[0] = max(d - reach, 0.0) / reach
                inputs[1], inputs[3], inputs[4], inputs[6] = log_s, clock, log_m, far
                inputs[2] = min(known[k], DEEPEST)
                inputs[5] = ((center[0] - gx) * ux + (center[1] - gy) * uy) / (away + stride)
                inputs[7], inputs[8] = radius[k], share
                _gates(inputs, ew1, eb1, ew2, eb2, hidden, out)
                signed = 1.0 / (1.0 + math.exp(-out[0])) - 1.0 / (1.0 + math.exp(-out[1]))
                force = weight[k] * signed * math.exp(min(max(out[2], STRENGTH_LIMITS[0]), STRENGTH_LIMITS[1]))
                pull[i, 0] += force * ux
                pull[i, 1] += force * uy
            ease = math.exp(min(max(anchor[1], EASE_LIMITS[0]), EASE_LIMITS[1]))
            for a in range(m):
                i = members[a]
                vx, vy = bx + pull[i, 0], by + pull[i, 1]
                size = math.hypot(vx, vy)
                if size > 1.0:
                    vx, vy = vx / size, vy / size
                move[i, 0], move[i, 1] = vx, vy
                mass[i] = ease + min(math.hypot(pull[i, 0], pull[i, 1]), 1.0)
            farthest = 0.0
            for a in range(m):
                i = members[a]
                farthest = max(farthest, math.hypot(x[i, 0] - center[0], x[i, 1] - center[1]))
            late = farthest - reach / 2 > (budget - t - 2) * stride - ROUNDING * reach
            if late or t * stride >= wait_m:  # aggregation phase
                for a in range(m):
                    i = members[a]
                    dx, dy = _toward(x[i, 0], x[i, 1], center[0], center[1], stride)
                    move[i, 0], move[i, 1] = dx / stride, dy / stride
            else:
                _keep_links(x, members[:m], move, mass, reach, margin, stride)
        for i in range(n):
            x[i, 0] += move[i, 0] * stride
            x[i, 1] += move[i, 1] * stride
    return budget


@numba.njit(cache=True)
def _tree(x, members):
    """(left, right, length) of the edges of the subnet's minimum spanning tree (Prim)."""
    m = len(members)
    near, via = np.full(m, _FAR), np.zeros(m, dtype=np.int64)
    done = np.zeros(m, dtype=np.bool_)
    left, right, length = np.empty(m - 1, dtype=np.int64), np.empty(m - 1, dtype=np.int64), np.empty(m - 1)
    current = 0
    done[0] = True
    for e in range(m - 1):
        pick = -1
        for a in range(m):
            if done[a]:
                continue
            i, j = members[a], members[current]
            d2 = (x[i, 0] - x[j, 0]) ** 2 + (x[i, 1] - x[j, 1]) ** 2
            if d2 < near[a]:
                near[a], via[a] = d2, current
            if pick < 0 or near[a] < near[pick]:
                pick = a
        done[pick] = True
        left[e], right[e], length[e] = members[pick], members[via[pick]], math.sqrt(near[pick])
        current = pick
    return left, right, length


@numba.njit(cache=True)
def _keep_links(x, members, move, mass, reach, margin, stride):
    """`methods.links.keep_links` for one subnet: moves (in strides) that let no edge of its tree outgrow its limit."""
    if len(members) == 1:
        return
    left, right, length = _tree(x, members)
    limit = reach - margin
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
        if length[e] > limit - 2.0 * stride and then > max(limit, length[e]) + GROWTH * reach:
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
        _project(x, nodes[:count], parent[:count], most[:count], move, mass, stride)


@numba.njit(cache=True)
def _slack(vx, vy, limit):
    return max((limit * limit - vx * vx - vy * vy) / (2.0 * limit), SMALLEST_SLACK)


@numba.njit(cache=True)
def _way(slack, slope, curve):
    return 2.0 * slack / max(slope + math.sqrt(slope * slope + 2.0 * curve * slack), SMALLEST)


@numba.njit(cache=True)
def _project(x, nodes, parent, limit, move, mass, stride):
    """`methods.link_projection.project_moves` for one tree: node a > 0 hangs on parent[a] < a by an edge of limit[a].

    The same iterations; only Newton's system is solved from the leaves to the root and back.
    """
    k = len(nodes)
    p, w, u, h = np.empty((k, 2)), np.empty((k, 2)), np.empty((k, 2)), np.empty(k)
    heaviest = 0.0
    for a in range(k):
        heaviest = max(heaviest, mass[nodes[a]])
    mx, my = 0.0, 0.0
    for a in range(k):
        i = nodes[a]
        h[a] = max(mass[i] / heaviest, LIGHTEST)
        for axis in range(2):
            p[a, axis], w[a, axis] = x[i, axis] / stride, move[i, axis]
        mx, my = mx + p[a, 0] / k, my + p[a, 1] / k
    far = 0.0
    for a in range(k):
        far = max(far, math.hypot(p[a, 0] - mx, p[a, 1] - my))
    v, slack, room, y, z = np.zeros((k, 2)), np.ones(k), np.ones(k), np.zeros(k), np.empty(k)
    for a in range(k):
        u[a, 0], u[a, 1] = -0.5 * (p[a, 0] - mx) / far, -0.5 * (p[a, 1] - my) / far
        room[a] = _slack(u[a, 0], u[a, 1], 1.0)
        z[a] = FIRST_GAP / room[a]
    for a in range(1, k):
        b = parent[a]
        for axis in range(2):
            v[a, axis] = p[a, axis] - p[b, axis] + u[a, axis] - u[b, axis]
        slack[a] = _slack(v[a, 0], v[a, 1], limit[a])
        y[a] = FIRST_GAP / slack[a]
    d, r, dx = np.empty((k, 3)), np.empty((k, 2)), np.empty((k, 2))
    c, dy, dz, out = np.empty((k, 3)), np.zeros(k), np.empty(k), np.zeros(k)
    centering = CENTERING[0]
    for _ in range(MOST_ITERATIONS):
        gap = 0.0
        for a in range(k):
            gap += room[a] * z[a] + (slack[a] * y[a] if a else 0.0)
        gap /= 2 * k - 1
        if gap <= GAP:
            break
        tau = centering * gap
        for a in range(k):
            tight, press = z[a] / room[a], tau / room[a]
            d[a, 0], d[a, 1] = h[a] + z[a] + tight * u[a, 0] ** 2, tight * u[a, 0] * u[a, 1]
            d[a, 2] = h[a] + z[a] + tight * u[a, 1] ** 2
            for axis in range(2):
                r[a, axis] = h[a] * (w[a, axis] - u[a, axis]) - press * u[a, axis]
        for a in range(1, k):
            b, gx, gy = parent[a], v[a, 0] / limit[a], v[a, 1] / limit[a]
            stiff, bend, pull = y[a] / slack[a], y[a] / limit[a], tau / slack[a]
            c[a, 0], c[a, 1], c[a, 2] = bend + stiff * gx * gx, stiff * gx * gy, bend + stiff * gy * gy
            for part in range(3):
                d[a, part] += c[a, part]
                d[b, part] += c[a, part]
            r[a, 0], r[a, 1] = r[a, 0] - pull * gx, r[a, 1] - pull * gy
            r[b, 0], r[b, 1] = r[b, 0] + pull * gx, r[b, 1] + pull * gy
        for a in range(k - 1, 0, -1):  # leaves first
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
        for a in range(k):  # the root first
            if a:
                b = parent[a]
                r[a, 0] += c[a, 0] * dx[b, 0] + c[a, 1] * dx[b, 1]
                r[a, 1] += c[a, 1] * dx[b, 0] + c[a, 2] * dx[b, 1]
            det = d[a, 0] * d[a, 2] - d[a, 1] ** 2
            dx[a, 0] = (d[a, 2] * r[a, 0] - d[a, 1] * r[a, 1]) / det
            dx[a, 1] = (d[a, 0] * r[a, 1] - d[a, 1] * r[a, 0]) / det
        most = 1e300
        for a in range(k):
            across = u[a, 0] * dx[a, 0] + u[a, 1] * dx[a, 1]
            dz[a] = tau / room[a] - z[a] + z[a] / room[a] * across
            most = min(most, _way(room[a], across, dx[a, 0] ** 2 + dx[a, 1] ** 2), z[a] / max(-dz[a], SMALLEST))
            if a:
                b = parent[a]
                gx, gy = dx[a, 0] - dx[b, 0], dx[a, 1] - dx[b, 1]
                out[a] = (v[a, 0] * gx + v[a, 1] * gy) / limit[a]
                dy[a] = tau / slack[a] - y[a] + y[a] / slack[a] * out[a]
                most = min(most, _way(slack[a], out[a], (gx * gx + gy * gy) / limit[a]), y[a] / max(-dy[a], SMALLEST))
        step = min(1.0, TO_THE_WALL * most)
        for a in range(k):
            for axis in range(2):
                u[a, axis] += step * dx[a, axis]
            z[a] += step * dz[a]
            y[a] += step * dy[a]
            room[a] = _slack(u[a, 0], u[a, 1], 1.0)
        for a in range(1, k):
            for axis in range(2):
                v[a, axis] = p[a, axis] - p[parent[a], axis] + u[a, axis] - u[parent[a], axis]
            slack[a] = _slack(v[a, 0], v[a, 1], limit[a])
        centering = CENTERING[1] if step > 0.9 else (CENTERING[0] if step > 0.5 else CENTERING[2])
    for a in range(k):
        move[nodes[a], 0], move[nodes[a], 1] = u[a, 0], u[a, 1]
