// center-fly (METHODS 3.1): everybody flies straight to the shared center.
import { goTo } from "./forces.js";

export const centerFly = {
  start: () => ({}),
  act(view) {
    const out = new Float64Array(view.positions.length);
    for (let k = 0; k < out.length; k += 2) {
      goTo(out, k, view.positions[k], view.positions[k + 1], view.center, view.physics);
    }
    return out;
  },
};
