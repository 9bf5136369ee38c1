// SIDR (METHODS 3.3, Chen et al. 2020): every subnet flies as a block toward the shared center.
import { subnetMeans } from "../links.js";
import { goTo, repulsion } from "./forces.js";

const AGGREGATE_AFTER = 0.55; // of the width, in steps

/** Whether the late phase has begun, in which everybody flies to the center by itself. */
export function aggregating(view) {
  return view.step >= Math.ceil(AGGREGATE_AFTER * view.width - 1e-9);
}

export const sidr = {
  start: () => ({}),
  act(view) {
    const { positions, subnet, center, physics } = view;
    const late = aggregating(view), means = late ? null : subnetMeans(subnet, view.count, positions);
    const push = repulsion(view), out = new Float64Array(positions.length);
    for (let i = 0; i < subnet.length; i++) {
      const from = late ? positions : means, k = 2 * (late ? i : subnet[i]);
      goTo(out, 2 * i, from[k], from[k + 1], center, physics);
      out[2 * i] += push[2 * i];
      out[2 * i + 1] += push[2 * i + 1];
    }
    return out;
  },
};
