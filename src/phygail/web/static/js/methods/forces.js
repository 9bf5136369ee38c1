// Motion primitives that several methods share (methods/forces.py).
import { hypot } from "../numbers.js";

const REPULSION_MPS = 10;
const REPULSION_RADIUS_M = 15;
const COINCIDENT_M = 1e-6;
const ARRIVED_M = 1e-9;

/** Velocity straight from (x, y) to the goal, written to out[k], out[k + 1]: full speed, exact arrival. */
export function goTo(out, k, x, y, goal, physics) {
  const dx = goal[0] - x, dy = goal[1] - y, distance = hypot(dx, dy);
  if (distance < ARRIVED_M) {
    out[k] = out[k + 1] = 0;
    return;
  }
  const speed = Math.min(physics.speed_mps, distance / physics.step_s);
  out[k] = (dx / distance) * speed;
  out[k + 1] = (dy / distance) * speed;
}

/** Push of near teammates apart (flat, m/s), summed in the order of Python: first as lower row, then as upper row. */
export function repulsion(view) {
  const { positions, pairs, lengths, members } = view;
  const close = [];
  for (let k = 0; k < lengths.length; k++) if (lengths[k] < REPULSION_RADIUS_M) close.push(k);
  const pushes = close.map((k) => {
    const i = pairs[2 * k], j = pairs[2 * k + 1], d = lengths[k];
    let ax, ay;
    if (d < COINCIDENT_M) {
      const angle = 2.399963 * (members[i] * 7919 + members[j]);
      [ax, ay] = [Math.cos(angle), Math.sin(angle)];
    } else {
      [ax, ay] = [(positions[2 * i] - positions[2 * j]) / d, (positions[2 * i + 1] - positions[2 * j + 1]) / d];
    }
    const size = REPULSION_MPS * (1 - d / REPULSION_RADIUS_M);
    return [i, j, size * ax, size * ay];
  });
  const force = new Float64Array(positions.length);
  for (const [i, , fx, fy] of pushes) {
    force[2 * i] += fx;
    force[2 * i + 1] += fy;
  }
  for (const [, j, fx, fy] of pushes) {
    force[2 * j] -= fx;
    force[2 * j + 1] -= fy;
  }
  return force;
}
