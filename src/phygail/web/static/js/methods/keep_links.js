// Keeping one's links while flying apart (methods/steering.py).
import { hypot } from "../numbers.js";
import { findRoot } from "../links.js";
import { strideOf } from "../world.js";
import { projectTree } from "./link_projection.js";

const LINK_MARGIN = 1 / 120; // of the radio range, by which tree edges are held below it
const GROWTH = 1e-6 / 120; // of the radio range: rounding decides nothing

/** The velocities (flat) nearest to `wanted` that keep every edge of the subnets' minimum spanning trees. */
export function keepLinks(view, wanted, weights = null, margin = LINK_MARGIN) {
  const { physics } = view, limit = physics.range_m - margin * physics.range_m, stride = strideOf(physics);
  const ahead = view.positions.map((value, k) => value + wanted[k] * physics.step_s);
  const after = (i, j) => hypot(ahead[2 * i] - ahead[2 * j], ahead[2 * i + 1] - ahead[2 * j + 1]);
  const edges = [];
  const root = Int32Array.from(view.subnet, (_, i) => i);
  for (const k of strainedTrees(view, after, limit)) {
    const i = view.pairs[2 * k], j = view.pairs[2 * k + 1], now = view.lengths[k];
    if (!(now > limit - 2 * stride)) continue; // it cannot outgrow the limit in one step
    const most = Math.max(limit, now);
    edges.push({ i, j, most, strained: after(i, j) > most + GROWTH * physics.range_m });
    const a = findRoot(root, i), b = findRoot(root, j);
    if (a !== b) root[Math.max(a, b)] = Math.min(a, b);
  }
  const solved = new Set(edges.filter((edge) => edge.strained).map((edge) => findRoot(root, edge.i)));
  const kept = Float64Array.from(wanted);
  for (const group of solved) {
    const inside = edges.filter((edge) => findRoot(root, edge.i) === group);
    solveGroup(view, wanted, weights, inside, stride, kept);
  }
  return kept;
}

/** Numbers of the links that make the trees of subnets of which a link would outgrow the limit (Kruskal). */
function strainedTrees(view, after, limit) {
  const { pairs, lengths, subnet } = view, strained = new Uint8Array(view.count);
  for (let k = 0; k < lengths.length; k++) {
    const label = subnet[pairs[2 * k]];
    if (strained[label]) continue;
    const then = after(pairs[2 * k], pairs[2 * k + 1]);
    if (then > limit && then > lengths[k]) strained[label] = 1;
  }
  const candidates = [];
  for (let k = 0; k < lengths.length; k++) if (strained[subnet[pairs[2 * k]]]) candidates.push(k);
  candidates.sort((a, b) => lengths[a] - lengths[b] || a - b);
  const root = Int32Array.from(subnet, (_, i) => i);
  return candidates.filter((k) => {
    const a = findRoot(root, pairs[2 * k]), b = findRoot(root, pairs[2 * k + 1]);
    if (a !== b) root[Math.max(a, b)] = Math.min(a, b);
    return a !== b;
  });
}

/** Project the moves of one tree of long edges and write its velocities into `kept`. */
function solveGroup(view, wanted, weights, inside, stride, kept) {
  const rows = [...new Set(inside.flatMap(({ i, j }) => [i, j]))].sort((a, b) => a - b);
  const place = new Map(rows.map((row, k) => [row, k])), { speed_mps: speed } = view.physics;
  const pick = (values, unit) => Float64Array.from({ length: 2 * rows.length }, (_, k) => values[2 * rows[k >> 1] + (k & 1)] / unit);
  const moves = projectTree(
    pick(view.positions, stride),
    pick(wanted, speed),
    Float64Array.from(rows, (row) => (weights ? weights[row] : 1)),
    Int32Array.from(inside.flatMap(({ i, j }) => [place.get(i), place.get(j)])),
    Float64Array.from(inside, ({ most }) => most / stride),
  );
  rows.forEach((row, k) => {
    kept[2 * row] = moves[2 * k] * speed;
    kept[2 * row + 1] = moves[2 * k + 1] * speed;
  });
}
