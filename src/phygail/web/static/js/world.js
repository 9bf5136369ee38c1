// The world: radio and vehicle, the map, and the one step that every method flies through (swarm/simulator.py).
import { hypot } from "./numbers.js";
import { filterVelocities } from "./safety.js";

/** Radio and vehicle of the paper. */
export const PHYSICS = Object.freeze({ range_m: 120, speed_mps: 10, step_s: 0.1, contact_m: 10 });

const PAPER_WIDTHS_M = [[20, 320], [50, 500], [100, 750], [200, 1000], [500, 1600]];
const BUDGET_WIDTHS = 0.8; // the way flown at full speed, in widths of the map
const PAPER_RANGE_M = 120; // lengths of the rules are chosen for it

// Scaling to exactly v_max can land one rounding above it; this keeps the norm at or below the limit.
export const JUST_BELOW = 1 - 2 ** -50;

/** Side of the square map for a swarm of n: the paper's five, the same density between. */
export function widthFor(n) {
  let [size, width] = PAPER_WIDTHS_M[0];
  for (const [larger, wider] of PAPER_WIDTHS_M) if (larger <= n) [size, width] = [larger, wider];
  return width * Math.sqrt(n / size);
}

/** What a length chosen at the paper's radio is multiplied by. */
export function unitOf(physics) {
  return physics.range_m / PAPER_RANGE_M;
}

/** The farthest a UAV can fly in one step, m. */
export function strideOf(physics) {
  return physics.speed_mps * physics.step_s;
}

/** T_max: steps after which a flight that is still split has failed; enough for the farthest to reach the center. */
export function budgetFor(width, physics = PHYSICS, farthest = 0) {
  const across = Math.floor((BUDGET_WIDTHS * width) / strideOf(physics) + 1e-9);
  return Math.max(1, across, Math.ceil(farthest / strideOf(physics) - 1e-9));
}

/** How far from the center the farthest point (flat) is. */
export function farthestFrom(center, points) {
  let far = 0;
  for (let k = 0; k < points.length; k += 2) far = Math.max(far, hypot(points[k] - center[0], points[k + 1] - center[1]));
  return far;
}

/** Velocities (flat, m/s) scaled onto the speed disc; what is no number becomes zero. */
export function projectSpeed(velocities, speed) {
  const out = Float64Array.from(velocities);
  for (let k = 0; k < out.length; k += 2) {
    if (!Number.isFinite(out[k]) || !Number.isFinite(out[k + 1])) {
      out[k] = out[k + 1] = 0;
      continue;
    }
    const norm = hypot(out[k], out[k + 1]);
    if (norm > speed) {
      const share = (speed * JUST_BELOW) / norm;
      out[k] *= share;
      out[k + 1] *= share;
    }
  }
  return out;
}

/** One step: {positions, velocities} after flying the commands, projected and, if asked for, filtered. */
export function stepWorld(positions, commands, physics, safety) {
  let velocities = projectSpeed(commands, physics.speed_mps);
  if (safety) velocities = filterVelocities(positions, velocities, physics);
  const moved = new Float64Array(positions.length);
  for (let k = 0; k < moved.length; k++) moved[k] = positions[k] + velocities[k] * physics.step_s;
  return { positions: moved, velocities };
}
