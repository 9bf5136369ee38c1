"""Worlds beyond the paper's as compiled loops, for the soak's twin: radio, losses, ways around obstacles, the filter.

What `swarm.links`, `swarm.world`, `swarm.obstacles`, `swarm.safety` and `swarm.flight` do, once more. UAVs go by their
roster index here: every array has N entries, lost UAVs included. Needs Numba.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np

from phygail.config import LINK_TOLERANCE_M
from phygail.swarm.compiled import draw_keys, kernel, normal, uniform
from phygail.swarm.flight import IN_HAND, _share
from phygail.swarm.links import FARTHEST, KNOTS, LONG_AGO, UNSET, outage_rates, threshold
from phygail.swarm.obstacles import Map, shapes_of
from phygail.swarm.safety import _ROUNDING, kept_m
from phygail.swarm.scenario import Scenario
from phygail.swarm.world import draw, draw_normal

ONE = np.uint64(1)
MOST_PLANES = 256  # half-planes of one UAV


class Radio(NamedTuple):
    """Who hears whom; keys are those of `draw` after its first mix."""

    longest_m: float
    watch_m: float
    heights: np.ndarray  # (N,) m
    fading: bool
    direct: float  # amplitude of the direct way
    spread: float
    need: float  # threshold over R^2
    least: int
    window: int
    drop: int
    shadow_db: float
    knots_s: float
    deaf: np.ndarray  # (N,) dB
    out_p: float
    out_q: float
    look_back: int
    step_s: float
    keys: np.ndarray  # (5,) uint64: outage, fading x, fading y, shadow phase, shadow


class Losses(NamedTuple):
    """Events: (E,) steps, (E, N) named, (E, 3) discs m (radius below 0: none), (E,) m radii around a drawn UAV."""

    steps: np.ndarray
    named: np.ndarray
    discs: np.ndarray
    near: np.ndarray
    strike: np.ndarray  # (E, N) draws
    spared: np.ndarray  # (E, N) draws of the event's step


class Fence(NamedTuple):
    """Obstacles (discs and walls) with the map, and what keeps everybody out and apart."""

    a: np.ndarray
    b: np.ndarray
    radius: np.ndarray
    dark: np.ndarray
    posts: np.ndarray  # (P, 2) m, of all levels of the map
    ahead: np.ndarray  # (P,) m, way from each post to the center
    last: np.ndarray  # (levels,) int, where the posts of each level end
    goal_room: np.ndarray  # (E,) m
    margins: np.ndarray  # (levels,) m
    mapped: bool
    safety: bool
    kept: float
    in_hand: float
    stride: float
    speed: float
    step_s: float
    rounding: float


def radio_of(scenario: Scenario) -> Radio:
    """The radio of a scenario's world."""
    world, physics, model = scenario.world, scenario.physics, scenario.world.links
    k = 10.0 ** (model.k_db / 10.0)
    fading = model.model == "rician"
    p, q = outage_rates(model, physics.step_s) if model.outage_share else (0.0, 0.0)
    heights = np.zeros(scenario.uavs) if world.altitude is None else np.array(world.altitude)
    names = ("outage", "fading x", "fading y", "shadow phase", "shadow")
    keys = draw_keys(world.seed, names)
    deaf = model.asymmetry_db * draw_normal(world.seed, "deaf", 0, np.arange(scenario.uavs))
    return Radio(
        physics.range_m + LINK_TOLERANCE_M,
        max(physics.range_m * (FARTHEST if fading else 1.0), physics.contact_m) + 1e-3,
        heights, fading, math.sqrt(k / (k + 1)), math.sqrt(1.0 / (2 * (k + 1))),
        threshold(model) / physics.range_m**2 if fading else 0.0, model.heard[0], model.heard[1], max(model.drop, 1),
        model.shadow_db, KNOTS * model.shadow_s, deaf, p, q, math.ceil(UNSET / (p + q)) if p + q else 0,
        physics.step_s, keys,
    )  # fmt: skip


def losses_of(scenario: Scenario) -> Losses:
    """The events of a scenario's world."""
    world, each = scenario.world, np.arange(scenario.uavs)
    count = len(world.events)
    named, discs = np.zeros((count, scenario.uavs), dtype=np.bool_), np.full((count, 3), -1.0)
    for row, event in enumerate(world.events):
        named[row, list(event.uavs)] = True
        if event.strike is not None:
            discs[row] = event.strike
    near = np.array([-1.0 if event.near_random is None else event.near_random for event in world.events])
    strike = [draw(world.seed, "strike", row, each) for row in range(count)]
    spared = [draw(world.seed, "spared", event.step, each) for event in world.events]
    steps = np.array([event.step for event in world.events], dtype=np.int64)
    empty = np.empty((0, scenario.uavs))
    draws = (np.array(strike), np.array(spared)) if count else (empty, empty)
    return Losses(steps, named, discs, near.astype(float), *draws)


def fence_of(scenario: Scenario, chart: Map | None, *, safety: bool) -> Fence:
    """Obstacles, map and filter of a scenario."""
    shapes, physics = shapes_of(scenario.world.obstacles), scenario.physics
    levels = () if chart is None else chart.levels
    goal_room = np.zeros(len(shapes.a))
    if chart is not None:
        goal_room = shapes.nearest(scenario.center[None])[0][0, shapes.owner]
    margins = np.array([level.margin_m for level in levels], dtype=float)
    posts = [np.empty((0, 2)), *(level._posts for level in levels)]
    ahead = [np.empty(0), *(level._to_goal(scenario.center) for level in levels if len(level._posts))]
    last = np.cumsum([len(level._posts) for level in levels], dtype=np.int64)
    return Fence(
        shapes.a, shapes.b, shapes.radius, shapes.dark.astype(np.bool_), np.concatenate(posts),
        np.concatenate(ahead), last, goal_room, margins, chart is not None, safety, kept_m(physics),
        IN_HAND * physics.contact_m, physics.stride_m, physics.speed_mps, physics.step_s, _ROUNDING,
    )  # fmt: skip


def response_of(scenario: Scenario) -> tuple[float, float]:
    """(share of a change that the lag lets through, largest change in m/s) within one step."""
    vehicle, step_s = scenario.world.vehicle, scenario.physics.step_s
    return _share(vehicle, step_s), vehicle.accel_mps2 * step_s


# --- radio -----------------------------------------------------------------------------------------------------------


@kernel(fastmath=False)
def _is_out(radio, i, j, t, before):
    """Whether a pair is in an outage: what the last number that set it says; `before` says so after t = 0."""
    for back in range(radio.look_back + 1):
        number = uniform(radio.keys[0], t + LONG_AGO - back, i, j)
        if number < radio.out_p:
            return True
        if number > 1.0 - radio.out_q:
            return False
        if t > 0:
            return before
    return False


@kernel(fastmath=False)
def _heard(radio, i, j, length, t):
    """Whether hello and answer of a step came through."""
    gain_db = 0.0
    if radio.shadow_db > 0:
        clock = (t + LONG_AGO) * radio.step_s / radio.knots_s + uniform(radio.keys[3], 0, i, j)
        knot = math.floor(clock)
        share = clock - knot
        first = normal(uniform(radio.keys[4], knot, i, j))
        second = normal(uniform(radio.keys[4], knot + 1, i, j))
        gain_db = radio.shadow_db * ((1 - share) * first + share * second) / math.sqrt((1 - share) ** 2 + share**2)
    gain_db -= max(radio.deaf[i], radio.deaf[j])
    real = radio.direct + radio.spread * normal(uniform(radio.keys[1], t + LONG_AGO, i, j))
    other = radio.spread * normal(uniform(radio.keys[2], t + LONG_AGO, i, j))
    return (real * real + other * other) * 10.0 ** (gain_db / 10.0) >= radio.need * length * length


@kernel(fastmath=False)
def _faded(radio, i, j, length, t, bits, up, watched):
    """Whether a fading link is up now; keeps the last hellos."""
    mask = (ONE << np.uint64(radio.window)) - ONE
    if not watched[i, j]:
        bits[i, j], up[i, j] = np.uint64(0), False
        if t == 0:
            for back in range(radio.window - 1, 0, -1):
                bits[i, j] = (bits[i, j] << ONE) | np.uint64(_heard(radio, i, j, length, t - back))
    bits[i, j] = ((bits[i, j] << ONE) | np.uint64(_heard(radio, i, j, length, t))) & mask
    count = 0
    left = bits[i, j]
    while left > np.uint64(0):
        left &= left - ONE
        count += 1
    up[i, j] = count >= (radio.drop if up[i, j] else radio.least)
    return up[i, j]


@kernel(fastmath=False)
def hear(radio, fence, x, flying, t, out, bits, up, watched, linked, length):
    """`swarm.links.listen`: linked ((N, N) bool) and length ((N, N) m) of the pairs of `flying`."""
    shaded, none = fence.dark.any(), np.zeros(len(fence.radius))
    for row, i in enumerate(flying):
        for j in flying[row + 1 :]:
            if radio.out_p > 0:
                out[i, j] = _is_out(radio, i, j, t, out[i, j])
            flat = math.hypot(x[i, 0] - x[j, 0], x[i, 1] - x[j, 1])
            far = math.hypot(flat, radio.heights[i] - radio.heights[j])
            near = flat <= radio.watch_m
            link = near and far <= radio.longest_m
            if radio.fading and near:
                link = _faded(radio, i, j, far, t, bits, up, watched)
            watched[i, j] = near
            link = link and not out[i, j]
            if link and shaded:
                link = in_sight(fence, x[i, 0], x[i, 1], x[j, 0], x[j, 1], none, True)
            linked[i, j] = linked[j, i] = link
            length[i, j] = length[j, i] = far


# --- losses ----------------------------------------------------------------------------------------------------------


@numba.njit(cache=True, fastmath=False)
def strike(losses, t, x, alive):
    """Whether a UAV is lost at step t; `alive` becomes False for the lost ones; at least two UAVs stay."""
    count, hit, row = 0, np.zeros(len(alive), dtype=np.bool_), -1
    for e in range(len(losses.steps)):
        if losses.steps[e] != t:
            continue
        row = e
        cx, cy, radius = losses.discs[e, 0], losses.discs[e, 1], losses.discs[e, 2]
        if losses.near[e] >= 0:
            best = -1
            for k in range(len(alive)):
                if alive[k] and (best < 0 or losses.strike[e, k] > losses.strike[e, best]):
                    best = k
            cx, cy, radius = x[best, 0], x[best, 1], losses.near[e]
        for k in range(len(alive)):
            struck = radius >= 0 and math.hypot(x[k, 0] - cx, x[k, 1] - cy) <= radius
            hit[k] |= losses.named[e, k] or struck
    if row < 0:
        return False
    for k in range(len(alive)):
        hit[k] &= alive[k]
        count += alive[k] and not hit[k]
    while count < 2:
        lucky = -1
        for k in range(len(alive)):
            if hit[k] and (lucky < 0 or losses.spared[row, k] > losses.spared[row, lucky]):
                lucky = k
        hit[lucky] = False
        count += 1
    for k in range(len(alive)):
        alive[k] &= not hit[k]
    return bool(hit.any())


# --- obstacles -------------------------------------------------------------------------------------------------------


@numba.njit(cache=True, fastmath=False)
def _foot(px, py, ax, ay, bx, by):
    """The nearest point of the segment a-b to p."""
    ux, uy = bx - ax, by - ay
    share = ((px - ax) * ux + (py - ay) * uy) / max(ux * ux + uy * uy, 1e-12)
    share = min(max(share, 0.0), 1.0)
    return ax + share * ux, ay + share * uy


@numba.njit(cache=True, fastmath=False)
def _from_segment(px, py, ax, ay, bx, by):
    fx, fy = _foot(px, py, ax, ay, bx, by)
    return math.hypot(px - fx, py - fy)


@numba.njit(cache=True, fastmath=False)
def in_sight(fence, px, py, qx, qy, margin, dark_only):
    """Whether the straight way from p to q keeps `margin` ((E,) m) from every segment (`Shapes.clear`)."""
    for e in range(len(fence.radius)):
        if dark_only and not fence.dark[e]:
            continue
        ax, ay, bx, by = fence.a[e, 0], fence.a[e, 1], fence.b[e, 0], fence.b[e, 1]
        need = fence.radius[e] + margin[e]
        if min(_from_segment(px, py, ax, ay, bx, by), _from_segment(qx, qy, ax, ay, bx, by)) < need:
            return False
        if min(_from_segment(ax, ay, px, py, qx, qy), _from_segment(bx, by, px, py, qx, qy)) < need:
            return False
        over = (qx - px) * (ay - py) - (qy - py) * (ax - px), (qx - px) * (by - py) - (qy - py) * (bx - px)
        back = (bx - ax) * (py - ay) - (by - ay) * (px - ax), (bx - ax) * (qy - ay) - (by - ay) * (qx - ax)
        if over[0] * over[1] < 0 and back[0] * back[1] < 0:
            return False
    return True


@numba.njit(cache=True, fastmath=False)
def way(fence, px, py, cx, cy, tried):
    """(x, y, m): where to fly now on the shortest way to the center, and its length (`Map.ways`)."""
    straight = math.hypot(cx - px, cy - py)
    if not fence.mapped:
        return cx, cy, straight
    room, near = np.empty(len(fence.radius)), np.empty(len(fence.radius))
    for e in range(len(room)):
        far = _from_segment(px, py, fence.a[e, 0], fence.a[e, 1], fence.b[e, 0], fence.b[e, 1]) - fence.radius[e]
        near[e] = min(far, fence.goal_room[e]) - 1e-9
    tried[:] = False
    first = 0
    for level in range(len(fence.last)):
        for e in range(len(room)):
            room[e] = min(max(near[e], 0.0), fence.margins[level]) * 0.999
        if in_sight(fence, px, py, cx, cy, room, False):
            return cx, cy, straight
        while True:
            best, least = -1, np.inf
            for k in range(first, fence.last[level]):
                here = math.hypot(px - fence.posts[k, 0], py - fence.posts[k, 1])
                if not tried[k] and here > 1e-6 and here + fence.ahead[k] < least:
                    best, least = k, here + fence.ahead[k]
            if best < 0:
                break
            if in_sight(fence, px, py, fence.posts[best, 0], fence.posts[best, 1], room, False):
                return fence.posts[best, 0], fence.posts[best, 1], least
            tried[best] = True
        first = fence.last[level]
    return _backed_out(fence, px, py, cx, cy, straight)


@numba.njit(cache=True, fastmath=False)
def _backed_out(fence, px, py, cx, cy, straight):
    """Out of a notch between obstacles that touch, where no post is in sight."""
    ox, oy, nearest = 0.0, 0.0, np.inf
    for e in range(len(fence.radius)):
        far = _from_segment(px, py, fence.a[e, 0], fence.a[e, 1], fence.b[e, 0], fence.b[e, 1])
        nearest = min(nearest, far - fence.radius[e])
    for e in range(len(fence.radius)):
        fx, fy = _foot(px, py, fence.a[e, 0], fence.a[e, 1], fence.b[e, 0], fence.b[e, 1])
        d = math.hypot(px - fx, py - fy)
        if d - fence.radius[e] < nearest + fence.margins[0]:
            ox, oy = ox + (px - fx) / max(d, 1e-12), oy + (py - fy) / max(d, 1e-12)
            long = math.hypot(fence.b[e, 0] - fence.a[e, 0], fence.b[e, 1] - fence.a[e, 1])
            straight += long + math.pi * (fence.radius[e] + fence.margins[0])
    return (px + ox, py + oy, straight) if ox != 0.0 or oy != 0.0 else (cx, cy, straight)


# --- the filter ------------------------------------------------------------------------------------------------------


@numba.njit(cache=True, fastmath=False)
def keep_apart(fence, x, v, flying, planes):
    """`swarm.safety` and the fence of `swarm.flight`: v ((N, 2) m/s) becomes the nearest velocities that are allowed.

    planes: (MOST_PLANES, 3) room to work in: normal and limit (m/s).
    """
    fastest = 0.0
    for i in flying:
        fastest = max(fastest, math.hypot(v[i, 0], v[i, 1]))
    reach, beside = fastest * fence.step_s + fence.stride, fence.kept + 2.0 * fence.stride
    for i in flying:
        count = 0
        speed = math.hypot(v[i, 0], v[i, 1])
        if fence.safety:
            for j in flying:
                d = math.hypot(x[j, 0] - x[i, 0], x[j, 1] - x[i, 1])
                limit = max(0.0, (d - fence.kept) / 2.0) / fence.step_s
                if j != i and 0.0 < d <= beside and limit < speed and count < MOST_PLANES:
                    planes[count] = (x[j, 0] - x[i, 0]) / d, (x[j, 1] - x[i, 1]) / d, limit
                    count += 1
        for e in range(len(fence.radius)):
            fx, fy = _foot(x[i, 0], x[i, 1], fence.a[e, 0], fence.a[e, 1], fence.b[e, 0], fence.b[e, 1])
            d = math.hypot(fx - x[i, 0], fy - x[i, 1])
            limit = max(0.0, d - fence.radius[e] - fence.in_hand) / fence.step_s
            if d - fence.radius[e] < reach and limit < speed and count < MOST_PLANES:
                planes[count] = (fx - x[i, 0]) / max(d, 1e-12), (fy - x[i, 1]) / max(d, 1e-12), limit
                count += 1
        v[i, 0], v[i, 1] = _nearest(planes[:count], v[i, 0], v[i, 1], fence.rounding * fence.speed)


@numba.njit(cache=True, fastmath=False)
def _nearest(planes, cx, cy, slack):
    """The allowed velocity nearest to (cx, cy): `safety.project_onto_cells` for one cell."""
    vx, vy, first, second = cx, cy, -1, -1
    for _ in range(64):
        worst, by = -1, slack
        for k in range(len(planes)):
            over = planes[k, 0] * vx + planes[k, 1] * vy - planes[k, 2]
            if over > by:
                worst, by = k, over
        if worst < 0:
            break
        nx, ny, b = planes[worst, 0], planes[worst, 1], planes[worst, 2]
        least, found, partner = np.inf, False, -1
        for choice in (-1, first, second):
            if choice < 0:
                over = nx * cx + ny * cy - b
                px, py = cx - over * nx, cy - over * ny
            else:
                mx, my, c = planes[choice, 0], planes[choice, 1], planes[choice, 2]
                cross = nx * my - ny * mx
                if abs(cross) <= 2.5e-13:
                    continue
                px, py = (b * my - c * ny) / cross, (c * nx - b * mx) / cross
            good = True
            for other in (first, second):
                if other >= 0:
                    good &= planes[other, 0] * px + planes[other, 1] * py - planes[other, 2] <= slack
            far = (px - cx) ** 2 + (py - cy) ** 2
            if good and far < least:
                least, found, partner, vx, vy = far, True, choice, px, py
        if not found:
            break
        first, second = worst, partner
    share = 1.0
    for k in range(len(planes)):
        along = planes[k, 0] * vx + planes[k, 1] * vy
        if along - planes[k, 2] > slack:
            share = min(share, planes[k, 2] / along)
    size, most = math.hypot(vx, vy) * share, math.hypot(cx, cy)
    share *= most * (1.0 - 2.0**-50) / size if size > most else 1.0
    return vx * share, vy * share
