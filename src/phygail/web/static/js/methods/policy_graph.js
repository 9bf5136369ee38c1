// What a learned policy reads: the bounded graph of the paper (methods/phygail/graph.py), all subnets at once.
import { hypot } from "../numbers.js";
import { LINK_TOLERANCE_M } from "../links.js";

export const ACTIVE = 0;
export const DAMAGED = 1;
export const CENTER = 2;
export const NODE_FEATURES = 5; // x, y, vx, vy, degree

/**
 * The graph of a view: {features: flat, NODE_FEATURES per node; types: per node; receiver, sender: per
 * edge, ordered by receiver}. The first nodes are the rows of the view; those lost in range and the center follow.
 * `spec`: {k_act, k_dmg, center, scale_m}.
 */
export function perceive(view, spec) {
  const { positions, center, physics } = view, n = positions.length / 2, roster = view.wrecks ?? view.roster;
  const peers = nearest(linked(view), spec.k_act), wrecks = nearest(lostInRange(view, roster), spec.k_dmg);
  const spots = [...new Set(wrecks.flat())].sort((a, b) => a - b), node = new Map(spots.map((spot, k) => [spot, n + k]));
  const receiver = [], sender = [], degree = new Int32Array(n);
  for (let row = 0; row < n; row++) {
    const heard = [...peers[row], ...wrecks[row].map((spot) => node.get(spot)), ...(spec.center ? [n + spots.length] : [])];
    degree[row] = heard.length;
    for (const other of heard) {
      receiver.push(row);
      sender.push(other);
    }
  }
  const places = [...positions, ...spots.flatMap((spot) => [roster[2 * spot], roster[2 * spot + 1]]), ...(spec.center ? center : [])];
  const types = Uint8Array.from({ length: places.length / 2 }, (_, k) => (k < n ? ACTIVE : k < n + spots.length ? DAMAGED : CENTER));
  const features = new Float64Array(NODE_FEATURES * types.length), scale = spec.scale_m ?? view.width / 2;
  const slots = spec.k_act + spec.k_dmg + (spec.center ? 1 : 0);
  for (let k = 0; k < types.length; k++) {
    const at = NODE_FEATURES * k;
    features[at] = (places[2 * k] - center[0]) / scale;
    features[at + 1] = (places[2 * k + 1] - center[1]) / scale;
    if (k >= n) continue;
    features[at + 2] = view.velocities[2 * k] / physics.speed_mps;
    features[at + 3] = view.velocities[2 * k + 1] / physics.speed_mps;
    features[at + 4] = Math.log1p(degree[k]) / Math.log1p(slots);
  }
  return { features, types, receiver: Int32Array.from(receiver), sender: Int32Array.from(sender), receivers: n };
}

/** Per row, [[distance, row of somebody linked], ...]. */
function linked({ pairs, lengths, positions }) {
  const found = Array.from({ length: positions.length / 2 }, () => []);
  lengths.forEach((length, k) => {
    found[pairs[2 * k]].push([length, pairs[2 * k + 1]]);
    found[pairs[2 * k + 1]].push([length, pairs[2 * k]]);
  });
  return found;
}

/** Per row, [[distance, roster number of somebody lost within range], ...]. */
function lostInRange({ positions, members, physics }, roster) {
  const flying = new Uint8Array(roster.length / 2), limit = physics.range_m + LINK_TOLERANCE_M;
  for (const member of members) flying[member] = 1;
  const lost = [...flying.keys()].filter((spot) => !flying[spot]);
  return Array.from({ length: positions.length / 2 }, (_, row) => {
    const near = [];
    for (const spot of lost) {
      const dx = roster[2 * spot] - positions[2 * row], dy = roster[2 * spot + 1] - positions[2 * row + 1];
      if (Math.abs(dx) > limit || Math.abs(dy) > limit) continue;
      const away = hypot(dx, dy);
      if (away <= limit) near.push([away, spot]);
    }
    return near;
  });
}

/** The k nearest of every row; of two equally near the lower number. */
function nearest(candidates, k) {
  return candidates.map((near) => near.sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, k).map(([, other]) => other));
}
