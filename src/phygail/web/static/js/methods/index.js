// Every lane of a race: name for links and commands, what a reader sees, and the rule.
import { centerFly } from "./center_fly.js";
import { sidr } from "./sidr.js";

export const BOUND = "bound";

export const METHODS = Object.freeze({
  sidr: { title: "SIDR", note: "every subnet flies as a block to the center (Chen et al. 2020)", rule: sidr },
  "center-fly": { title: "center-fly", note: "everybody flies straight to the center", rule: centerFly },
  [BOUND]: { title: "lower bound", note: "no method, whatever it knows, can be faster", rule: null },
});
