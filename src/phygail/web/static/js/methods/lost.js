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

/** Memory of an episode: where ghosts are, and per roster entry the depths (shared inside a subnet) it knows. */
export function startBeliefs() {
  return { ghosts: null, step: 0, depths: [] };
}

/** {edges: [{row, dx, dy, weight, features}], anchors: [[...], ...]}: what the gates read. */
export function observeLost(view, memory, spec) {
  advanceGhosts(view, memory, spec);
  const { physics, roster, members, subnet, count } = view, n = roster.length / 2, unit = unitOf(physics);
  const depths = recallFor(view, memory.depths, () => new Float32Array(n).fill(NEVER), (known, heard) => {
    for (let k = 0; k < n; k++) if (heard[k] > known[k]) known[k] = heard[k];
  });
  const horizon = Math.max(spec.horizon_m * unit, physics.range_m);
  const nearest = nearestMembers(view, memory.ghosts, horizon, (label, spot) => depths[label][spot] >= SURE);
  listen(view, depths, nearest, spec);
  members.forEach((member, row) => (depths[subnet[row]][member] = NEVER));
  members.forEach((member, row) => (memory.depths[member] = depths[subnet[row]]));
  const weights = depths.map((known) => known.map((depth) => weightOf(depth, spec)));
  members.forEach((member, row) => (weights[subnet[row]][member] = 0));
  const sizes = subnetSizes(subnet, count);
  const survival = weights.map((known, s) => (sizes[s] + 0.5) / (sizes[s] + (sumSingle(known.map((w) => 1 - w)) - sizes[s]) + 1));
  return describe(view, memory.ghosts, nearest, { depths, weights, survival, sizes });
}

/** Ghosts fly toward the center, starting with the second view. */
function advanceGhosts(view, memory, spec) {
  const way = strideOf(view.physics) * spec.drift;
  if (!memory.ghosts) Object.assign(memory, { ghosts: toward(view.roster, view.center, way * view.step), step: view.step });
  for (; memory.step < view.step; memory.step++) memory.ghosts = toward(memory.ghosts, view.center, way);
}

/** The points (flat) after flying that far toward the goal, or at it. */
function toward(points, goal, way) {
  const out = new Float64Array(points.length);
  for (let k = 0; k < points.length; k += 2) {
    const dx = goal[0] - points[k], dy = goal[1] - points[k + 1];
    const share = Math.min(way / Math.max(hypot(dx, dy), 1e-9), 1);
    out[k] = points[k] + dx * share;
    out[k + 1] = points[k + 1] + dy * share;
  }
  return out;
}

/** Nobody answers: how deep inside the covered area is each ghost? */
function listen(view, depths, nearest, spec) {
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
    const depth = f32((physics.range_m - spec.margin_m * unit - distance) / sigma);
    if (depth > depths[label][spot]) depths[label][spot] = depth;
  }
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
    const dx = (ghosts[2 * spot] - positions[2 * row]) / far, dy = (ghosts[2 * spot + 1] - positions[2 * row + 1]) / far;
    const radius = hypot(ghosts[2 * spot] - center[0], ghosts[2 * spot + 1] - center[1]), own = anchors[s];
    const features = [
      Math.max(distance - range, 0) / range, own[0], Math.min(depths[s][spot], DEEPEST), own[1], own[2],
      (home[s][0] * dx + home[s][1] * dy) / (away[s] + stride), own[3], Math.log1p(radius / range), own[4],
    ].map(f32);
    edges.push({ row, dx, dy, weight, features });
  }
  return { edges, anchors };
}
