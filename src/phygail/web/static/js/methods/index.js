// Every lane of a race: name for links and commands, what a reader sees, and the rule.
import { centerFly } from "./center_fly.js";
import { DATA } from "../data.js";
import { makePolicy } from "./policy.js";
import { reach } from "./reach.js";
import { reachEvolved } from "./reach_evolved.js";
import { sidr } from "./sidr.js";

export const BOUND = "bound";

// The learned policy, where the package carries one that is small enough for a page.
const learned = DATA.policy ? { [DATA.policy.name]: { title: DATA.policy.name, note: DATA.policy.note, rule: makePolicy(DATA.policy) } } : {};

/** By name: title and note for readers; `rule`, or `remote` where a server flies the method. */
export const METHODS = {
  "reach-evolved": { title: "reach-evolved", note: "weighs where lost teammates may be by now; gates found by evolution", rule: reachEvolved },
  ...learned,
  reach: { title: "reach", note: "reaches out to teammates not yet ruled out, keeps its links", rule: reach },
  sidr: { title: "SIDR", note: "every subnet flies as a block to the center (Chen et al. 2020)", rule: sidr },
  "center-fly": { title: "center-fly", note: "everybody flies straight to the center", rule: centerFly },
  [BOUND]: { title: "lower bound", note: "no method, whatever it knows, can be faster", rule: null },
};

/** Add a method that a server flies. */
export function addRemoteMethod(name, note) {
  if (!Object.hasOwn(METHODS, name)) METHODS[name] = { title: name, note: `${note} (on the server)`, rule: null, remote: true };
}
