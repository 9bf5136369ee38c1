// Motion primitives that several methods share (methods/forces.py).
import { hypot } from "../numbers.js";
import { subnetMeans } from "../links.js";
import { unitOf } from "../world.js";

const REPULSION = 1; // of v_max
const REPULSION_RADIUS = 1.5; // of the contact distance
const COINCIDENT_M = 1e-6; // at a range of 120 m
const ARRIVED_M = 1e-9; // at a range of 120 m

/** Velocity straight from (x, y) to the goal, written to out[k], out[k + 1]: full speed, exact arrival. */
export function goTo(out, k, x, y, goal, physics) {
  const dx = goal[0] - x, dy = goal[1] - y, distance = hypot(dx, dy);
  if (distance < ARRIVED_M * unitOf(physics)) {
    out[k] = out[k + 1] = 0;
    return;
  }
  const speed = Math.min(physics.speed_mps, distance / physics.step_s);
  out[k] = (dx / distance) * speed;
  out[k + 1] = (dy / distance) * speed;
}

/** Velocity of each subnet's centroid to the center, flat, one per subnet. */
export function headings(view) {
  const means = subnetMeans(view.subnet, view.count, view.positions), out = new Float64Array(2 * view.count);
  for (let s = 0; s < view.count; s++) goTo(out, 2 * s, means[2 * s], means[2 * s + 1], view.center, view.physics);
  return out;
}

/** Push of near teammates apart (flat, m/s), summed in the order of Python: first as lower row, then as upper row. */
export function repulsion(view) {
  const { positions, pairs, lengths, members, physics } = view;
  const gain = REPULSION * physics.speed_mps, radius = REPULSION_RADIUS * physics.contact_m;
  const close = [];
  for (let k = 0; k < lengths.length; k++) if (lengths[k] < radius) close.push(k);
  const pushes = close.map((k) => {
    const i = pairs[2 * k], j = pairs[2 * k + 1], d = lengths[k];
    let ax, ay;
    if (d < COINCIDENT_M * unitOf(physics)) {
      const angle = 2.399963 * (members[i] * 7919 + members[j]);
      [ax, ay] = [Math.cos(angle), Math.sin(angle)];
    } else {
      [ax, ay] = [(positions[2 * i] - positions[2 * j]) / d, (positions[2 * i + 1] - positions[2 * j + 1]) / d];
    }
    const size = gain * (1 - d / radius);
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
