"""The compiled twin of `reach-evolved` in worlds beyond the paper's: what `phygail soak` flies (docs/worlds.md).

The rule, its beliefs and the phases of `methods.controller`, written a second time for one small swarm per call; a test
flies both. It knows losses, discs and walls, outages, fading, heights, wrong knowledge, inertia without the filter, and
the filter without inertia; `knows` says what it does not. UAVs are known by their roster index.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from phygail.methods.reach_evolved import BASE_WEIGHT_LIMITS, STRENGTH_LIMITS, GateShape, twin_world
from phygail.methods.reach_evolved.compiled import run_gates
from phygail.methods.reach_evolved.twin_world import (
    MOST_PLANES,
    Fence,
    Losses,
    Radio,
    fence_of,
    hear,
    keep_apart,
    losses_of,
    radio_of,
    response_of,
    strike,
    way,
)
from phygail.methods.sidr import ROUNDING, aggregation_m
from phygail.methods.steering import link_rules
from phygail.sensing import beliefs
from phygail.sensing.beliefs import BeliefSpec
from phygail.sensing.worlds import Copies, mission_facts
from phygail.swarm.compiled import FAR_M2, keep_tree, kernel, label_links, spanning_tree, toward
from phygail.swarm.scenario import Scenario
from phygail.swarm.world import draw

_CERTAIN = -12.0  # exponent below which a belief is one to 1e-5
_KERNELS = Path(twin_world.__file__)


class Case(NamedTuple):
    """A scenario and what its UAVs know."""

    layout: np.ndarray  # (N, 2) m
    alive: np.ndarray  # (N,) bool, at t = 0
    range_m: float
    stride: float
    step_s: float
    budget: int
    hold: int
    last_event: int
    wait_m: float
    coast_m: float
    lead: int
    near_m: float
    rebased: bool
    silence: bool
    own: bool  # every subnet meets at its own centroid
    met: bool  # every subnet meets at the mean of the roster that it knows
    centers: np.ndarray  # (N, 2) m, where a subnet with this speaker means to meet, in the first phase
    copies: np.ndarray  # (N, N, 2) m, rosters by speaker in the first phase, or (1, N, 2) where all are equal
    slow: bool  # inertia
    share: float
    most: float


class Rule(NamedTuple):
    """Constants and gates of the rule, lengths in meters."""

    spec: np.ndarray
    links: np.ndarray
    clock_m: float
    limits: np.ndarray  # of strength and of base weight
    edge: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    anchor: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Minds(NamedTuple):
    """What groups of UAVs know, by the lowest member of each: depths, last places and their steps, (N, N, ...)."""

    depths: np.ndarray
    places: np.ndarray
    steps: np.ndarray


def knows(scenario: Scenario, *, safety: bool) -> bool:
    """Whether the twin can fly a scenario."""
    world = scenario.world
    known = world.knowledge
    odd = world.redundant or world.level or any(world.vehicle.wind_mps) or known.detect_miss or known.detect_false
    lost_way = (world.obstacles and not known.exact) or any(len(o.corners) > 2 for o in world.obstacles)
    return not (odd or lost_way or (world.vehicle.inertia and (safety or world.obstacles)))


def fly_in_world(
    scenario: Scenario, vector: np.ndarray, shape: GateShape, spec: BeliefSpec, *, safety: bool
) -> tuple[np.ndarray, np.ndarray, bool]:
    """((T, N, 2) m, (T, N) bool, bool): places and who is alive in every state, whether the network is one at last."""
    chart = mission_facts(scenario)["map"]
    trace = np.zeros((scenario.budget_steps + 1, scenario.uavs, 2))
    present = np.zeros(trace.shape[:2], dtype=np.bool_)
    steps, success = episode(
        _case_of(scenario), _rule_of(scenario, vector, shape, spec), radio_of(scenario), losses_of(scenario),
        fence_of(scenario, chart, safety=safety), trace, present,
    )  # fmt: skip
    return trace[: steps + 1], present[: steps + 1], bool(success)


def _case_of(scenario: Scenario) -> Case:
    world, physics, each = scenario.world, scenario.physics, np.arange(scenario.uavs)
    known, facts, copies = world.knowledge, mission_facts(scenario), Copies(scenario)
    alive = np.zeros(scenario.uavs, dtype=np.bool_)
    alive[scenario.alive] = True
    layout = np.array(scenario.layout)  # writable, like every array here: a kernel is compiled once
    angle = 2 * math.pi * draw(world.seed, "center", 0, each)
    centers = scenario.center + known.center_error_m * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rosters = layout[None]
    if not copies.exact or known.center == "roster":
        drawn = [copies.roster(speaker, layout) for speaker in each.tolist()]
        if known.center == "roster":
            centers = np.stack([places[sure].mean(axis=0) for places, sure in drawn])
        if not copies.exact:
            pairs = zip(drawn, centers, strict=True)
            rosters = np.stack([np.where(sure[:, None], places, middle) for (places, sure), middle in pairs])
    share, most = response_of(scenario)
    return Case(
        layout, alive, physics.range_m, physics.stride_m, physics.step_s, scenario.budget_steps, world.hold_steps,
        world.last_event, aggregation_m(scenario.width_m), facts["coast_m"], facts["lead_steps"],
        0.0 if facts["arrive"] else physics.range_m / 2, facts["losses"], facts["silence"],
        known.center == "none", known.center == "roster", centers, rosters, world.vehicle.inertia, share, most,
    )  # fmt: skip


def _rule_of(scenario: Scenario, vector: np.ndarray, shape: GateShape, spec: BeliefSpec) -> Rule:
    unit = scenario.physics.unit
    layers = shape.layers(np.asarray(vector, dtype=np.float32))
    limits = np.array([*STRENGTH_LIMITS, *BASE_WEIGHT_LIMITS], dtype=float)
    return Rule(spec.vector(unit), link_rules(), beliefs.CLOCK_M * unit, limits, layers[:4], layers[4:])  # type: ignore[arg-type]


NEVER, SURE, LARGEST = beliefs.NEVER, beliefs.SURE, beliefs.LARGEST
DEEPEST, MOST_MEMBERS, LONGEST = beliefs.DEEPEST, beliefs.MOST_MEMBERS, beliefs.LONGEST


@kernel(_KERNELS, fastmath=False)
def episode(
    case: Case, rule: Rule, radio: Radio, losses: Losses, fence: Fence, trace: np.ndarray, present: np.ndarray
) -> tuple[int, bool]:
    """(steps, whether the network is one for as long as the world asks); places go into `trace`.

    Long because it is the order of events within a step, as in `swarm.flight`, in one place.
    """
    total = len(case.layout)
    x, v, wanted = case.layout.copy(), np.zeros((total, 2)), np.zeros((total, 2))
    alive, roster = case.alive.copy(), case.layout.copy()
    square = (total, total)
    out, up, watched = np.zeros(square, np.bool_), np.zeros(square, np.bool_), np.zeros(square, np.bool_)
    linked, bits, length = np.zeros(square, np.bool_), np.zeros(square, np.uint64), np.zeros(square)
    old = Minds(np.full(square, NEVER), np.zeros((total, total, 2)), np.zeros(square, np.int64))
    new = Minds(np.full(square, NEVER), np.zeros((total, total, 2)), np.zeros(square, np.int64))
    group, label = np.full(total, -1), np.full(total, -1)
    planes, tried = np.zeros((MOST_PLANES, 3)), np.zeros(len(fence.ahead), np.bool_)
    held, base, phase, whole = 0, 0, -1, False
    for t in range(case.budget + 1):
        if t > 0:
            lost = strike(losses, t, x, alive)
            if whole and (case.silence or lost):
                base = t
                roster[:] = x
        flying = np.flatnonzero(alive)
        hear(radio, fence, x, flying, t, out, bits, up, watched, linked, length)
        whole = label_links(linked, flying, label) == 1
        held = held + 1 if whole else 0
        trace[t], present[t] = x, alive
        if held >= case.hold and t >= case.last_event:
            return t, True
        if t == case.budget:
            return t, False
        wanted[:] = 0.0
        if not whole:
            if phase != base:
                phase = base
                group[:] = -1
            for speaker in flying:
                if label[speaker] == speaker:
                    members = flying[label[flying] == speaker]
                    think(case, rule, fence, x, alive, roster, members, t - base, base, group, old, new, wanted, linked,
                          length, tried)  # fmt: skip
            group[flying] = label[flying]
            old, new = new, old
        for i in flying:
            size = math.hypot(wanted[i, 0], wanted[i, 1])
            scale = fence.speed / max(size, 1.0)
            wanted[i, 0], wanted[i, 1] = wanted[i, 0] * scale, wanted[i, 1] * scale
        if fence.safety or len(fence.radius):
            keep_apart(fence, x, wanted, flying, planes)
        for i in flying:
            dx, dy = wanted[i, 0] - v[i, 0], wanted[i, 1] - v[i, 1]
            if case.slow:
                dx, dy = dx * case.share, dy * case.share
                part = min(1.0, case.most / max(math.hypot(dx, dy), 1e-12))
                dx, dy = dx * part, dy * part
            v[i, 0], v[i, 1] = v[i, 0] + dx, v[i, 1] + dy
            x[i, 0], x[i, 1] = x[i, 0] + v[i, 0] * case.step_s, x[i, 1] + v[i, 1] * case.step_s
    return case.budget, False


@kernel(_KERNELS, fastmath=False)
def think(case, rule, fence, x, alive, roster, members, step, base, group, old, new, move, linked, length, tried):
    """One subnet decides: `ReachEvolved._decide`. `move` ((N, 2) strides) becomes what its members want to fly."""
    speaker, total = members[0], len(roster)
    gx, gy = x[members, 0].mean(), x[members, 1].mean()
    cx, cy = case.centers[speaker, 0], case.centers[speaker, 1]
    if case.own:
        cx, cy = gx, gy
    elif case.met and base > 0:
        cx, cy = roster[:, 0].mean(), roster[:, 1].mean()
    inside = np.zeros(total, np.bool_)
    inside[members] = True
    depths, places, steps = new.depths[speaker], new.places[speaker], new.steps[speaker]
    recall(case, roster, members, base, group, old, depths, places, steps)
    drift = rule.spec[0]
    ghost, distance, nearest = np.zeros((total, 2)), np.zeros(total), np.zeros(total, np.int64)
    for k in range(total):
        if inside[k]:
            depths[k] = NEVER
            continue
        dx, dy = toward(places[k, 0], places[k, 1], cx, cy, case.stride * drift * (step - steps[k]))
        ghost[k, 0], ghost[k, 1] = places[k, 0] + dx, places[k, 1] + dy
        best = FAR_M2
        for i in members:
            d2 = (ghost[k, 0] - x[i, 0]) ** 2 + (ghost[k, 1] - x[i, 1]) ** 2
            if d2 < best:
                best, nearest[k] = d2, i
        distance[k] = math.sqrt(best)
    listen(case, rule.spec, x, alive, members, inside, step, distance, depths, places, steps)
    steer(case, rule, fence, x, members, inside, step, base, cx, cy, gx, gy, ghost, distance, nearest, depths, move,
          linked, length, tried)  # fmt: skip
    for i in members:
        places[i, 0], places[i, 1], steps[i] = x[i, 0], x[i, 1], step


@kernel(_KERNELS, fastmath=False)
def recall(case, roster, members, base, group, old, depths, places, steps):
    """What the groups that have met know together: the newest sightings, the deepest beliefs."""
    total, known = len(roster), np.zeros(len(roster), np.bool_)
    for i in members:
        if group[i] >= 0:
            known[group[i]] = True
    own = members[0] if len(case.copies) > 1 else 0
    begun = False
    for g in range(total):
        if not known[g]:
            continue
        for k in range(total):
            if not begun:
                depths[k], steps[k] = old.depths[g, k], old.steps[g, k]
                places[k] = old.places[g, k]
            elif not case.rebased:
                depths[k] = max(depths[k], old.depths[g, k])
            elif old.steps[g, k] > steps[k] or (old.steps[g, k] == steps[k] and old.depths[g, k] > depths[k]):
                depths[k], steps[k] = old.depths[g, k], old.steps[g, k]
                places[k] = old.places[g, k]
        begun = True
    if not begun:
        depths[:] = NEVER
    if not begun or not case.rebased:
        steps[:] = 0
        places[:] = case.copies[own] if base == 0 else roster


@kernel(_KERNELS, fastmath=False)
def listen(case, spec, x, alive, members, inside, step, distance, depths, places, steps):
    """Nobody answers: `Beliefs._listen`, `RebasedBeliefs._listen`."""
    sigma0, sigma_rate, half, horizon, margin = spec[1], spec[2], spec[3], spec[5], spec[6]
    sure = SURE if case.silence else np.float32(half)
    reach = case.range_m - 2.0 * case.stride - margin
    for k in range(len(alive)):
        if inside[k]:
            continue
        if step == 0:
            if not alive[k]:
                for i in members:
                    if math.hypot(x[k, 0] - x[i, 0], x[k, 1] - x[i, 1]) <= case.range_m + 1e-6:
                        depths[k] = SURE
            continue
        if distance[k] < max(horizon, case.range_m) and depths[k] < SURE:
            flown = case.stride * (step - steps[k])
            depth = np.float32((case.range_m - margin - distance[k]) / (sigma0 + sigma_rate * flown))
            depths[k] = max(depths[k], min(depth, sure) if case.rebased else depth)
        if case.rebased and step > 1 and steps[k] == step - 1:
            for i in members:
                if math.hypot(places[k, 0] - x[i, 0], places[k, 1] - x[i, 1]) <= reach:
                    depths[k] = max(depths[k], sure)


@kernel(_KERNELS, fastmath=True)
def steer(case, rule, fence, x, members, inside, step, base, cx, cy, gx, gy, ghost, distance, nearest, depths, move,
          linked, length, tried):  # fmt: skip
    """Gates, pulls, links and the aggregation phase of one subnet."""
    half, scale, horizon, margin = rule.spec[3], rule.spec[4], max(rule.spec[5], case.range_m), rule.spec[6]
    total, m = len(inside), len(members)
    weight, ruled_out = np.zeros(total), 0.0
    for k in range(total):
        if inside[k]:
            continue
        if depths[k] < SURE:
            z = (depths[k] - half) / scale
            weight[k] = 1.0 if z < _CERTAIN else 1.0 / (1.0 + math.exp(min(z, LARGEST)))
        ruled_out += 1.0 - weight[k]
    survival, away = (m + 0.5) / (m + ruled_out + 1.0), math.hypot(cx - gx, cy - gy)
    log_s, log_m = -math.log(survival), math.log(min(m, MOST_MEMBERS)) / 3.0
    clock, far = min(step * case.stride / rule.clock_m, LONGEST), math.log1p(away / case.range_m)
    share = math.log(m / (survival * total))
    hidden = np.empty(max(len(rule.edge[1]), len(rule.anchor[1])), dtype=np.float32)
    out, anchor = np.empty(len(rule.edge[3]), dtype=np.float32), np.empty(len(rule.anchor[3]), dtype=np.float32)
    facts = np.array([log_s, clock, log_m, far, share]).astype(np.float32)
    run_gates(facts, *rule.anchor, hidden, anchor)
    inputs, pull = np.empty(9, dtype=np.float32), np.zeros((total, 2))
    for k in range(total):
        if weight[k] <= 0.0 or distance[k] >= horizon:
            continue
        i, d = nearest[k], max(distance[k], 1e-9)
        ux, uy = (ghost[k, 0] - x[i, 0]) / d, (ghost[k, 1] - x[i, 1]) / d
        inputs[0], inputs[2] = max(d - case.range_m, 0.0) / case.range_m, min(depths[k], DEEPEST)
        inputs[1], inputs[3], inputs[4], inputs[6], inputs[8] = log_s, clock, log_m, far, share
        inputs[5] = ((cx - gx) * ux + (cy - gy) * uy) / (away + case.stride)
        inputs[7] = math.log1p(math.hypot(ghost[k, 0] - cx, ghost[k, 1] - cy) / case.range_m)
        run_gates(inputs, *rule.edge, hidden, out)
        signed = 1.0 / (1.0 + math.exp(-out[0])) - 1.0 / (1.0 + math.exp(-out[1]))
        force = weight[k] * signed * math.exp(min(max(out[2], rule.limits[0]), rule.limits[1]))
        pull[i, 0] += force * ux
        pull[i, 1] += force * uy
    fly(case, rule, fence, x, members, step, base, (cx, cy, gx, gy), pull, anchor, margin, move, linked, length, tried)


@kernel(_KERNELS, fastmath=False)
def fly(case, rule, fence, x, members, step, base, middle, pull, anchor, margin, move, linked, length, tried):
    """What the members want to fly: toward the center and the ghosts, with their links, or the aggregation phase."""
    cx, cy, gx, gy = middle
    speed = min(max(1.0 + anchor[0], 0.0), 1.0)
    base_weight = math.exp(min(max(anchor[1], rule.limits[2]), rule.limits[3]))
    bx, by = toward(gx, gy, cx, cy, case.stride)
    pull_weight, home, farthest = np.zeros(len(pull)), np.zeros((len(pull), 2)), 0.0
    for i in members:
        px, py, length_m = way(fence, x[i, 0], x[i, 1], cx, cy, tried)
        hx, hy = toward(x[i, 0], x[i, 1], px, py, case.stride)
        home[i, 0], home[i, 1] = hx / case.stride, hy / case.stride
        turned = px != cx or py != cy
        vx = (hx if turned else bx) / case.stride * speed + pull[i, 0]
        vy = (hy if turned else by) / case.stride * speed + pull[i, 1]
        size = max(math.hypot(vx, vy), 1.0)
        move[i, 0], move[i, 1] = vx / size, vy / size
        pull_weight[i] = base_weight + min(math.hypot(pull[i, 0], pull[i, 1]), 1.0)
        farthest = max(farthest, length_m)
    left = case.budget - case.lead - base - step - 2
    urgent = farthest - case.near_m > left * case.stride - ROUNDING * case.range_m
    if urgent or step * case.stride >= case.wait_m:
        for i in members:
            move[i, 0], move[i, 1] = home[i, 0], home[i, 1]
        return
    limit, strained = case.range_m - margin - case.coast_m, False
    for i in members:
        for j in members:
            if i < j and linked[i, j]:
                then = math.hypot(
                    x[i, 0] - x[j, 0] + (move[i, 0] - move[j, 0]) * case.stride,
                    x[i, 1] - x[j, 1] + (move[i, 1] - move[j, 1]) * case.stride,
                )
                strained |= then > limit and then > length[i, j]
    if strained:
        left_end, right_end, flat = spanning_tree(x, members, linked, length)
        keep_tree(
            x, members, left_end, right_end, flat, move, pull_weight, limit, case.stride, rule.links, case.range_m
        )
