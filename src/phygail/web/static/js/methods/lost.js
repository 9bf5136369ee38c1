// Lost teammates (sensing/beliefs.py): who may still be alive, where by now, and how sure a subnet is.
// Python keeps beliefs and features in single precision; Math.fround does the same here.
import { hypot } from "../numbers.js";
import { LINK_TOLERANCE_M, subnetMeans, subnetSizes } from "../links.js";
import { strideOf, unitOf } from "../world.js";
import { nearestMembers, recallFor } from "./reach.js";

const NEVER = -3;
const SURE = 1e9;
const LARGEST = 30;
const DEEPEST = 3;
const MOST_MEMBERS = 20;
const CLOCK_M = 200;
const LONGEST = 3;
const f32 = Math.fround;

/**
 * Memory of an episode: where ghosts are; per roster entry what it knows, shared inside a subnet: depths, and where
 * teammates are lost in flight `seen`, {last, since}: where and when it saw everybody last;
 * before: the members of the step before.
 */
export function startBeliefs() {
  return { ghosts: null, step: 0, depths: [], seen: null, before: null };
}

/** {edges: [{row, dx, dy, weight, features}], anchors: [[...], ...]}: what the gates read. */
export function observeLost(view, memory, spec) {
  const { physics, roster, members, subnet, positions, count } = view, n = roster.length / 2, unit = unitOf(physics);
  const seen = view.losses ? recallSeen(view, memory, spec) : null;
  if (!seen) advanceGhosts(view, memory, spec);
  const depths = seen?.depths ?? recallFor(view, memory.depths, () => new Float32Array(n).fill(NEVER), (known, heard) => {
    for (let k = 0; k < n; k++) if (heard[k] > known[k]) known[k] = heard[k];
  });
  const horizon = Math.max(spec.horizon_m * unit, physics.range_m), ghosts = seen?.ghosts ?? memory.ghosts;
  const nearest = nearestMembers(view, ghosts, horizon, (label, spot) => depths[label][spot] >= SURE);
  listen(view, depths, nearest, spec, seen);
  members.forEach((member, row) => {
    depths[subnet[row]][member] = NEVER;
    seen?.last[subnet[row]].set(positions.subarray(2 * row, 2 * row + 2), 2 * member);
    if (seen) seen.since[subnet[row]][member] = view.step;
  });
  const shared = seen?.last.map((last, label) => ({ last, since: seen.since[label] }));
  members.forEach((member, row) => {
    memory.depths[member] = depths[subnet[row]];
    if (shared) memory.seen[member] = shared[subnet[row]];
  });
  memory.before = { members, positions, step: view.step };
  const weights = depths.map((known) => known.map((depth) => weightOf(depth, spec)));
  members.forEach((member, row) => (weights[subnet[row]][member] = 0));
  const sizes = subnetSizes(subnet, count);
  const survival = weights.map((known, s) => (sizes[s] + 0.5) / (sizes[s] + (sumSingle(known.map((w) => 1 - w)) - sizes[s]) + 1));
  return describe(view, ghosts, nearest, { depths, weights, survival, sizes });
}

/** Per subnet the newest sightings that any member knows, {depths, last, since}, and where its ghosts are by now. */
function recallSeen(view, memory, spec) {
  const { roster, members, subnet, center } = view, n = roster.length / 2, way = strideOf(view.physics) * spec.drift;
  if (!memory.seen) startSeen(view, memory);
  const depths = [], last = [], since = [], parts = [];
  members.forEach((member, row) => {
    const s = subnet[row], known = memory.seen[member], deep = memory.depths[member];
    if (!parts[s]) {
      [depths[s], last[s], since[s]] = [deep.slice(), known.last.slice(), known.since.slice()];
      parts[s] = new Set([deep]);
    } else if (!parts[s].has(deep)) {
      parts[s].add(deep);
      for (let k = 0; k < n; k++) {
        if (known.since[k] < since[s][k] || (known.since[k] === since[s][k] && deep[k] <= depths[s][k])) continue;
        [depths[s][k], since[s][k]] = [deep[k], known.since[k]];
        last[s].set(known.last.subarray(2 * k, 2 * k + 2), 2 * k);
      }
    }
  });
  const ghosts = last.map((places, s) => toward(places, center, (k) => way * (view.step - since[s][k])));
  return { depths, last, since, ghosts };
}

/** The first view of a flight in which somebody is lost, or of its rest: only members of before were seen since. */
function startSeen(view, memory) {
  const { roster, members } = view, n = roster.length / 2, shared = new Map(), blank = new Float32Array(n).fill(NEVER);
  memory.seen = [];
  for (const member of memory.before?.members ?? members) {
    const deep = memory.depths[member] ?? (memory.depths[member] = blank);
    if (!shared.has(deep)) shared.set(deep, { last: Float64Array.from(roster), since: new Int32Array(n) });
    memory.seen[member] = shared.get(deep);
  }
  memory.before?.members.forEach((member, row) => {
    const { last, since } = memory.seen[member];
    last.set(memory.before.positions.subarray(2 * row, 2 * row + 2), 2 * member);
    since[member] = memory.before.step;
  });
}

/** Ghosts fly toward the center, starting with the second view. */
function advanceGhosts(view, memory, spec) {
  const way = strideOf(view.physics) * spec.drift;
  if (!memory.ghosts) Object.assign(memory, { ghosts: toward(view.roster, view.center, way * view.step), step: view.step });
  for (; memory.step < view.step; memory.step++) memory.ghosts = toward(memory.ghosts, view.center, way);
}

/** The points (flat) after flying that far toward the goal, or at it; `way`: one for all, or of point k. */
function toward(points, goal, way) {
  const out = new Float64Array(points.length);
  for (let k = 0; k < points.length; k += 2) {
    const dx = goal[0] - points[k], dy = goal[1] - points[k + 1];
    const far = typeof way === "number" ? way : way(k / 2), share = Math.min(far / Math.max(hypot(dx, dy), 1e-9), 1);
    out[k] = points[k] + dx * share;
    out[k + 1] = points[k + 1] + dy * share;
  }
  return out;
}

/** Nobody answers: how deep inside the covered area is each ghost? */
function listen(view, depths, nearest, spec, seen) {
  const { physics, roster, members } = view, unit = unitOf(physics);
  if (view.step === 0) {
    const flying = new Uint8Array(roster.length / 2);
    for (const member of members) flying[member] = 1;
    for (const { label, spot, distance } of nearestMembers(view, roster, physics.range_m + LINK_TOLERANCE_M)) {
      if (!flying[spot] && distance <= physics.range_m + LINK_TOLERANCE_M) depths[label][spot] = SURE;
    }
    return;
  }
  const sigma = spec.sigma_m * unit + spec.sigma_rate * physics.speed_mps * physics.step_s * view.step;
  for (const { label, spot, distance } of nearest) {
    const off = seen ? spec.sigma_m * unit + spec.sigma_rate * (physics.speed_mps * physics.step_s * (view.step - seen.since[label][spot])) : sigma;
    const depth = Math.min(f32((physics.range_m - spec.margin_m * unit - distance) / off), SURE);
    if (depth > depths[label][spot]) depths[label][spot] = depth;
  }
  if (!seen || view.step < 2) return;
  // Who was a member a step ago and is silent now, in the area that the others cover, is gone.
  const close = physics.range_m - 2 * strideOf(physics) - spec.margin_m * unit;
  for (const { label, spot } of nearestMembers(view, seen.last, close, (s, k) => seen.since[s][k] !== view.step - 1)) depths[label][spot] = SURE;
}

/** How likely a lost teammate is alive, relative to one never looked for. */
function weightOf(depth, spec) {
  if (!(depth < SURE)) return 0;
  const exponent = Math.min(f32(f32(depth - f32(spec.depth_half)) / f32(spec.depth_scale)), LARGEST);
  return f32(1 / f32(1 + f32(Math.exp(exponent))));
}

/** Sum in single precision, added in the order of numpy: eight at a time, halves of long lists by themselves. */
export function sumSingle(values, begin = 0, n = values.length) {
  if (n > 128) {
    const half = Math.floor(n / 2), left = half - (half % 8);
    return f32(sumSingle(values, begin, left) + sumSingle(values, begin + left, n - left));
  }
  let k = 0, sum = 0;
  if (n >= 8) {
    const parts = Array.from({ length: 8 }, (_, lane) => values[begin + lane]);
    for (k = 8; k + 8 <= n; k += 8) for (let lane = 0; lane < 8; lane++) parts[lane] = f32(parts[lane] + values[begin + k + lane]);
    const pair = (lane) => f32(parts[lane] + parts[lane + 1]);
    sum = f32(f32(pair(0) + pair(2)) + f32(pair(4) + pair(6)));
  }
  for (; k < n; k++) sum = f32(sum + values[begin + k]);
  return sum;
}

/** Features of the edges (nine numbers each) and of the subnets (five). */
function describe(view, ghosts, nearest, { depths, weights, survival, sizes }) {
  const { physics, positions, center, roster, subnet, count } = view;
  const range = physics.range_m, stride = strideOf(physics), means = subnetMeans(subnet, count, positions);
  const home = Array.from(survival, (_, s) => [center[0] - means[2 * s], center[1] - means[2 * s + 1]]);
  const away = home.map(([x, y]) => hypot(x, y));
  const clock = Math.min((view.step * stride) / (CLOCK_M * unitOf(physics)), LONGEST);
  const anchors = survival.map((share, s) => [
    -Math.log(share), clock, Math.log(Math.min(sizes[s], MOST_MEMBERS)) / 3, Math.log1p(away[s] / range),
    Math.log(sizes[s] / (share * (roster.length / 2))),
  ].map(f32));
  const edges = [];
  for (const { label: s, spot, row, distance } of nearest) {
    const weight = weights[s][spot];
    if (!(weight > 0)) continue;
    const far = Math.max(distance, 1e-9);
    const all = ghosts[s].length ? ghosts[s] : ghosts, x = all[2 * spot], y = all[2 * spot + 1];
    const dx = (x - positions[2 * row]) / far, dy = (y - positions[2 * row + 1]) / far;
    const radius = hypot(x - center[0], y - center[1]), own = anchors[s];
    const features = [
      Math.max(distance - range, 0) / range, own[0], Math.min(depths[s][spot], DEEPEST), own[1], own[2],
      (home[s][0] * dx + home[s][1] * dy) / (away[s] + stride), own[3], Math.log1p(radius / range), own[4],
    ].map(f32);
    edges.push({ row, dx, dy, weight, features });
  }
  return { edges, anchors };
}
