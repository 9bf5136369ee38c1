// The exact form of keeping links (methods/link_projection.py): the moves nearest to the wanted ones that let no edge
// of a tree outgrow its limit, by a primal-dual interior point method. Lengths are in strides.
import { hypot } from "../numbers.js";

const LIGHTEST = 1e-3;
const GAP = 1e-8;
const FIRST_GAP = 0.1;
const TO_THE_WALL = 0.99;
const [USUAL, FAST, CAREFUL] = [0.1, 0.02, 0.3]; // fall of the path parameter
const MOST_ITERATIONS = 40;
const SMALLEST_SLACK = 1e-14;
const SMALLEST = 1e-300;

/**
 * The moves (flat) of the nodes of one tree.
 * @param places positions, flat. wanted: moves, flat, at most 1 long. weights: one per node.
 * @param edges i0, j0, i1, j1, ...: n - 1 of them. limits: one per edge, not shorter than the edge.
 */
export function projectTree(places, wanted, weights, edges, limits) {
  const n = weights.length, m = limits.length, count = n + m;
  const heaviest = weights.reduce((a, b) => Math.max(a, b), 0);
  const h = weights.map((weight) => Math.max(weight / heaviest, LIGHTEST));
  const tree = rootTree(n, edges);
  // Constraints |v| <= limit: first those of the edges, v = p_i + x_i - p_j - x_j, then those of the speeds, v = x_i.
  const limit = new Float64Array(count).fill(1);
  limit.set(limits);
  const x = contracted(places);
  const v = new Float64Array(2 * count), slack = new Float64Array(count), y = new Float64Array(count);
  for (let e = 0; e < m; e++) {
    const i = 2 * edges[2 * e], j = 2 * edges[2 * e + 1];
    for (let a = 0; a < 2; a++) v[2 * e + a] = places[i + a] - places[j + a] + (x[i + a] - x[j + a]);
  }
  v.set(x, 2 * m);
  findSlack(v, limit, slack);
  for (let c = 0; c < count; c++) y[c] = FIRST_GAP / slack[c];
  const work = { pull: new Float64Array(count), dv: new Float64Array(2 * count), dy: new Float64Array(count) };
  let centering = USUAL;
  for (let round = 0; round < MOST_ITERATIONS; round++) {
    let gap = 0;
    for (let c = 0; c < count; c++) gap += slack[c] * y[c];
    gap /= count;
    if (!(gap > GAP)) break;
    const dx = newtonStep({ n, m, h, x, v, y, slack, limit, wanted, edges, tree, tau: centering * gap }, work.pull);
    const step = Math.min(1, TO_THE_WALL * wayToWall({ m, edges, v, y, slack, limit, dx }, work));
    for (let k = 0; k < x.length; k++) x[k] += step * dx[k];
    for (let c = 0; c < count; c++) y[c] += step * work.dy[c];
    for (let k = 0; k < v.length; k++) v[k] += step * work.dv[k];
    findSlack(v, limit, slack);
    centering = step > 0.9 ? FAST : step > 0.5 ? USUAL : CAREFUL;
  }
  return x;
}

/** A start inside all limits: the tree contracts toward its middle, at half a stride at most. */
function contracted(places) {
  const n = places.length / 2;
  let mx = 0, my = 0, most = 0;
  for (let i = 0; i < n; i++) {
    mx += places[2 * i];
    my += places[2 * i + 1];
  }
  const x = places.map((value, k) => value - (k % 2 ? my : mx) / n);
  for (let i = 0; i < n; i++) most = Math.max(most, hypot(x[2 * i], x[2 * i + 1]));
  return x.map((value) => (-0.5 * value) / most);
}

/** Nodes from the root outward, with each one's parent and the edge to it. */
function rootTree(n, edges) {
  const near = Array.from({ length: n }, () => []);
  for (let e = 0; e < edges.length / 2; e++) {
    near[edges[2 * e]].push([edges[2 * e + 1], e]);
    near[edges[2 * e + 1]].push([edges[2 * e], e]);
  }
  const order = [0], parent = new Int32Array(n).fill(-1), edgeUp = new Int32Array(n).fill(-1);
  for (let k = 0; k < order.length; k++) {
    for (const [other, e] of near[order[k]]) {
      if (other === parent[order[k]]) continue;
      parent[other] = order[k];
      edgeUp[other] = e;
      order.push(other);
    }
  }
  return { order, parent, edgeUp };
}

/** -g = (limit^2 - |v|^2) / (2 limit), positive also where rounding says otherwise. */
function findSlack(v, limit, slack) {
  for (let c = 0; c < limit.length; c++) {
    const square = v[2 * c] * v[2 * c] + v[2 * c + 1] * v[2 * c + 1];
    slack[c] = Math.max(0.5 * (limit[c] - square / limit[c]), SMALLEST_SLACK);
  }
}

/** Newton's step (flat) for stationarity and y slack = tau; fills `pull` with tau / slack. */
function newtonStep({ n, m, h, x, v, y, slack, limit, wanted, edges, tree, tau }, pull) {
  const right = new Float64Array(2 * n), blocks = new Float64Array(3 * (n + m));
  for (let k = 0; k < 2 * n; k++) right[k] = h[k >> 1] * (wanted[k] - x[k]);
  for (let c = 0; c < n + m; c++) {
    const ux = v[2 * c] / limit[c], uy = v[2 * c + 1] / limit[c];
    const stiff = y[c] / slack[c], bend = y[c] / limit[c], first = c < m ? edges[2 * c] : c - m;
    pull[c] = tau / slack[c];
    right[2 * first] -= pull[c] * ux;
    right[2 * first + 1] -= pull[c] * uy;
    if (c < m) {
      right[2 * edges[2 * c + 1]] += pull[c] * ux;
      right[2 * edges[2 * c + 1] + 1] += pull[c] * uy;
    }
    blocks[3 * c] = bend + stiff * ux * ux;
    blocks[3 * c + 1] = stiff * ux * uy;
    blocks[3 * c + 2] = bend + stiff * uy * uy;
  }
  return solveTree(n, m, h, blocks, tree, right);
}

/**
 * Newton's system by elimination from the leaves to the root. With K the block of the edge to the parent and M what
 * else stands on a node's diagonal, the node gives its parent M (K + M)^-1 K: no difference of large numbers.
 */
function solveTree(n, m, h, blocks, { order, parent, edgeUp }, right) {
  const own = new Float64Array(3 * n); // M: weight, speed limit, and what the children gave
  for (let i = 0; i < n; i++) {
    own[3 * i] = h[i] + blocks[3 * (m + i)];
    own[3 * i + 1] = blocks[3 * (m + i) + 1];
    own[3 * i + 2] = h[i] + blocks[3 * (m + i) + 2];
  }
  const inverse = new Float64Array(3 * n); // (K + M)^-1
  for (let k = n - 1; k >= 0; k--) {
    const i = order[k], up = parent[i], e = 3 * edgeUp[i];
    const [ka, kb, kc] = up < 0 ? [0, 0, 0] : [blocks[e], blocks[e + 1], blocks[e + 2]];
    const [ma, mb, mc] = [own[3 * i], own[3 * i + 1], own[3 * i + 2]];
    const a = ka + ma, b = kb + mb, c = kc + mc, det = a * c - b * b;
    const [ia, ib, ic] = [c / det, -b / det, a / det];
    inverse.set([ia, ib, ic], 3 * i);
    if (up < 0) continue;
    // M (K + M)^-1, then times K; symmetric but for rounding.
    const pa = ma * ia + mb * ib, pb = ma * ib + mb * ic, pc = mb * ia + mc * ib, pd = mb * ib + mc * ic;
    own[3 * up] += pa * ka + pb * kb;
    own[3 * up + 1] += 0.5 * (pa * kb + pb * kc + (pc * ka + pd * kb));
    own[3 * up + 2] += pc * kb + pd * kc;
    const sx = ia * right[2 * i] + ib * right[2 * i + 1], sy = ib * right[2 * i] + ic * right[2 * i + 1];
    right[2 * up] += ka * sx + kb * sy;
    right[2 * up + 1] += kb * sx + kc * sy;
  }
  const out = new Float64Array(2 * n);
  for (const i of order) {
    let rx = right[2 * i], ry = right[2 * i + 1];
    if (parent[i] >= 0) {
      const e = 3 * edgeUp[i], px = out[2 * parent[i]], py = out[2 * parent[i] + 1];
      rx += blocks[e] * px + blocks[e + 1] * py;
      ry += blocks[e + 1] * px + blocks[e + 2] * py;
    }
    out[2 * i] = inverse[3 * i] * rx + inverse[3 * i + 1] * ry;
    out[2 * i + 1] = inverse[3 * i + 1] * rx + inverse[3 * i + 2] * ry;
  }
  return out;
}

/** How far along the step the nearest limit or multiplier is; fills `dv` and `dy`. */
function wayToWall({ m, edges, v, y, slack, limit, dx }, { pull, dv, dy }) {
  let least = Infinity;
  for (let c = 0; c < limit.length; c++) {
    const i = 2 * (c < m ? edges[2 * c] : c - m);
    for (let a = 0; a < 2; a++) dv[2 * c + a] = c < m ? dx[i + a] - dx[2 * edges[2 * c + 1] + a] : dx[i + a];
    const outward = (v[2 * c] / limit[c]) * dv[2 * c] + (v[2 * c + 1] / limit[c]) * dv[2 * c + 1];
    dy[c] = pull[c] - y[c] + (y[c] / slack[c]) * outward;
    const curve = (dv[2 * c] * dv[2 * c] + dv[2 * c + 1] * dv[2 * c + 1]) / limit[c];
    const way = (2 * slack[c]) / Math.max(outward + Math.sqrt(outward * outward + 2 * curve * slack[c]), SMALLEST);
    least = Math.min(least, way, y[c] / Math.max(-dy[c], SMALLEST));
  }
  return least;
}
