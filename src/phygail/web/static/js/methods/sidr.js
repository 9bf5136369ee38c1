// SIDR (METHODS 3.3, Chen et al. 2020): every subnet flies as a block toward the shared center.
import { hypot } from "../numbers.js";
import { strideOf } from "../world.js";
import { goTo, headings, repulsion } from "./forces.js";

const ROUNDING_SHARE = 1e-9; // of a length
const AGGREGATE_AFTER = 0.55; // of the width, flown at full speed

/** Per subnet, whether it aggregates: every member flies to the center by itself, so that all are there in time. */
function aggregating(view) {
  const { physics, positions, subnet, center } = view, stride = strideOf(physics);
  if (view.step * stride >= AGGREGATE_AFTER * view.width * (1 - ROUNDING_SHARE)) return new Uint8Array(view.count).fill(1);
  const late = new Uint8Array(view.count);
  const room = (view.budget - view.step - 2) * stride - ROUNDING_SHARE * physics.range_m;
  let longest = 0;
  for (let i = 0; i < subnet.length; i++) {
    const way = hypot(positions[2 * i] - center[0], positions[2 * i + 1] - center[1]) - physics.range_m / 2;
    if (way > room) late[subnet[i]] = 1;
    longest = Math.max(longest, way);
  }
  view.need = view.step + 2 + longest / stride; // with fewer steps somebody would be late
  return late;
}

/** The commands (flat, changed in place) with those of aggregating subnets replaced. */
export function aggregate(view, commands) {
  const late = aggregating(view), { positions, subnet } = view;
  for (let i = 0; i < subnet.length; i++) {
    if (late[subnet[i]]) goTo(commands, 2 * i, positions[2 * i], positions[2 * i + 1], view.center, view.physics);
  }
  return commands;
}

export const sidr = {
  start: () => ({}),
  act(view) {
    const heading = headings(view), push = repulsion(view), out = new Float64Array(view.positions.length);
    for (let i = 0; i < view.subnet.length; i++) {
      out[2 * i] = heading[2 * view.subnet[i]];
      out[2 * i + 1] = heading[2 * view.subnet[i] + 1];
    }
    aggregate(view, out);
    for (let k = 0; k < out.length; k++) out[k] += push[k];
    return out;
  },
};
