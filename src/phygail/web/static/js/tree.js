// The minimum spanning tree and the lower bound that it gives (swarm/tree.py).
import { hypot } from "./numbers.js";
import { LINK_TOLERANCE_M } from "./links.js";

const STEP_SLACK = 1e-6; // of a step: rounding must not push the bound above a reachable optimum

/** Euclidean minimum spanning tree by Prim's algorithm: {edges: [[i, j], ...], lengths}. */
export function spanningTree(points) {
  const n = points.length / 2, edges = [], lengths = [];
  const outside = new Uint8Array(n).fill(1), distance = new Float64Array(n).fill(Infinity), parent = new Int32Array(n);
  let newest = 0;
  for (let k = 1; k < n; k++) {
    outside[newest] = 0;
    let next = -1;
    for (let j = 0; j < n; j++) {
      if (!outside[j]) continue;
      const d = hypot(points[2 * j] - points[2 * newest], points[2 * j + 1] - points[2 * newest + 1]);
      if (d < distance[j]) [distance[j], parent[j]] = [d, newest];
      if (next < 0 || distance[j] < distance[next]) next = j;
    }
    edges.push([Math.min(parent[next], next), Math.max(parent[next], next)]);
    lengths.push(distance[next]);
    newest = next;
  }
  return { edges, lengths };
}

/**
 * {steps, edge, length}: no controller reconnects the swarm in fewer steps.
 * The longest edge w of the tree is the smallest range at which the swarm would be one network; a step shortens any
 * distance by at most 2 v_max dt, and w must fall to the radio range.
 */
export function lowerBound(points, physics) {
  const { edges, lengths } = spanningTree(points);
  let longest = 0, edge = null;
  lengths.forEach((length, k) => {
    if (length > longest) [longest, edge] = [length, edges[k]];
  });
  const closing = 2 * physics.speed_mps * physics.step_s;
  const steps = Math.max(0, longest - physics.range_m) / closing;
  return { steps: Math.max(0, Math.ceil(steps - Math.max(STEP_SLACK, LINK_TOLERANCE_M / closing))), edge, length: longest };
}
