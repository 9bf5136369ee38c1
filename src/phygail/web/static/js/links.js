// Links, subnets and contacts of the alive (swarm/links.py). Points are flat arrays x0, y0, x1, y1, ... in meters.
import { hypot } from "./numbers.js";

export const LINK_TOLERANCE_M = 1e-6;
const CONTACT_TOLERANCE_M = 1e-6;

/**
 * All pairs of points at most `radius` apart: {pairs: i0, j0, i1, j1, ... with i < j, sorted; lengths}.
 * Every pair is looked at: for the 500 UAVs of this page that costs less than building a tree.
 */
export function nearPairs(points, radius) {
  const n = points.length / 2, limit = radius * radius, pairs = [], lengths = [];
  for (let i = 0; i < n; i++) {
    const x = points[2 * i], y = points[2 * i + 1];
    for (let j = i + 1; j < n; j++) {
      const dx = x - points[2 * j], dy = y - points[2 * j + 1];
      if (dx * dx + dy * dy <= limit) {
        pairs.push(i, j);
        lengths.push(hypot(dx, dy));
      }
    }
  }
  return { pairs: Int32Array.from(pairs), lengths: Float64Array.from(lengths) };
}

/** The radio network at one instant: pairs, lengths, subnet of each row, count of subnets, contacts. */
export function findLinks(points, physics) {
  const reach = physics.range_m + LINK_TOLERANCE_M;
  let { pairs, lengths } = nearPairs(points, Math.max(reach, physics.contact_m));
  const contacts = [];
  for (let k = 0; k < lengths.length; k++) {
    if (lengths[k] < physics.contact_m - CONTACT_TOLERANCE_M) contacts.push(pairs[2 * k], pairs[2 * k + 1]);
  }
  if (reach < physics.contact_m) {
    const kept = [...lengths.keys()].filter((k) => lengths[k] <= reach);
    pairs = Int32Array.from(kept.flatMap((k) => [pairs[2 * k], pairs[2 * k + 1]]));
    lengths = Float64Array.from(kept, (k) => lengths[k]);
  }
  const { subnet, count } = labelSubnets(points.length / 2, pairs);
  return { pairs, lengths, subnet, count, contacts };
}

/** Connected components of n nodes joined by `pairs`: labels 0, 1, ... in the order of their lowest rows. */
export function labelSubnets(n, pairs) {
  const root = Int32Array.from({ length: n }, (_, i) => i);
  for (let k = 0; k < pairs.length; k += 2) {
    const a = findRoot(root, pairs[k]), b = findRoot(root, pairs[k + 1]);
    if (a !== b) root[Math.max(a, b)] = Math.min(a, b);
  }
  const subnet = new Int32Array(n);
  let count = 0;
  for (let i = 0; i < n; i++) subnet[i] = root[i] === i ? count++ : subnet[findRoot(root, i)];
  return { subnet, count };
}

/** The lowest row of a set; ways are halved while walking. */
export function findRoot(root, i) {
  while (root[i] !== i) {
    root[i] = root[root[i]];
    i = root[i];
  }
  return i;
}

/** Number of members of each subnet. */
export function subnetSizes(subnet, count) {
  const sizes = new Int32Array(count);
  for (const label of subnet) sizes[label]++;
  return sizes;
}

/** Mean of the members' vectors (flat) per subnet, flat. */
export function subnetMeans(subnet, count, vectors) {
  const sums = new Float64Array(2 * count), sizes = subnetSizes(subnet, count);
  for (let i = 0; i < subnet.length; i++) {
    sums[2 * subnet[i]] += vectors[2 * i];
    sums[2 * subnet[i] + 1] += vectors[2 * i + 1];
  }
  for (let s = 0; s < count; s++) {
    sums[2 * s] /= sizes[s];
    sums[2 * s + 1] /= sizes[s];
  }
  return sums;
}
