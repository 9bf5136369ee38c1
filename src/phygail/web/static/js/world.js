// The world: radio and vehicle, the map, and the one step that every method flies through (swarm/dynamics.py).
import { hypot } from "./numbers.js";
import { filterVelocities } from "./safety.js";

/** Radio and vehicle of the paper. */
export const PHYSICS = Object.freeze({ range_m: 120, speed_mps: 10, step_s: 0.1, contact_m: 10 });

const PAPER_WIDTHS_M = [[20, 320], [50, 500], [100, 750], [200, 1000], [500, 1600]];
const BUDGET_STEPS_PER_M = 0.8;

// Scaling to exactly v_max can land one rounding above it; this keeps the norm at or below the limit.
export const JUST_BELOW = 1 - 2 ** -50;

/** Side of the square map for a swarm of n: the paper's five, the same density between. */
export function widthFor(n) {
  let [size, width] = PAPER_WIDTHS_M[0];
  for (const [larger, wider] of PAPER_WIDTHS_M) if (larger <= n) [size, width] = [larger, wider];
  return width * Math.sqrt(n / size);
}

/** T_max: steps after which a flight that is still split has failed. */
export function budgetFor(width) {
  return Math.max(1, Math.floor(BUDGET_STEPS_PER_M * width + 1e-9));
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
