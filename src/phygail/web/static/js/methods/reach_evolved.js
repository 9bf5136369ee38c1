// reach-evolved: reach with evolved gates on lost teammates (docs/methods). The weights come with the page.
import { hypot } from "../numbers.js";
import { projectSpeed } from "../world.js";
import { DATA } from "../data.js";
import { headings } from "./forces.js";
import { keepLinks } from "./keep_links.js";
import { observeLost, startBeliefs } from "./lost.js";
import { aggregate } from "./sidr.js";

const STRENGTH_LIMITS = [-10, 6]; // of its logarithm
const EASE_LIMITS = [-8, 4]; // of its logarithm
const PAPER_RADIO_M = 120;
const single = Math.fround;

export const reachEvolved = {
  rebases: true, // where somebody may be lost in flight, it expects a lost teammate where it was last seen
  start: startBeliefs,
  act(view, memory) {
    const { gates } = DATA, { speed_mps: top } = view.physics, { subnet } = view;
    const { edges, anchors } = observeLost(view, memory, gates.belief);
    const pulls = new Float64Array(view.positions.length);
    for (const { row, dx, dy, weight, features } of edges) {
      const [attract, repel, log] = twoLayers(features, gates.edge);
      const signed = single(single(sigmoid(attract)) - single(sigmoid(repel)));
      const strength = single(single(signed * single(Math.exp(clip(log, STRENGTH_LIMITS)))) * weight);
      pulls[2 * row] += strength * dx;
      pulls[2 * row + 1] += strength * dy;
    }
    const anchored = anchors.map((features) => {
      const [slower, log] = twoLayers(features, gates.anchor);
      return { speed: clip(single(1 + slower), [0, 1]), ease: single(Math.exp(clip(log, EASE_LIMITS))) };
    });
    const heading = headings(view);
    const wanted = pulls.map((pull, k) => {
      const s = subnet[k >> 1];
      return anchored[s].speed * heading[2 * s + (k & 1)] + top * pull;
    });
    const heft = Float64Array.from(subnet, (s, i) => anchored[s].ease + Math.min(hypot(pulls[2 * i], pulls[2 * i + 1]), 1));
    const margin = gates.belief.margin_m / PAPER_RADIO_M;
    return aggregate(view, keepLinks(view, projectSpeed(wanted, top), heft, margin));
  },
};

/** A small network: one hidden layer of rectified units. `w1[i][j]` leads from input i to unit j. */
function twoLayers(inputs, { w1, b1, w2, b2 }) {
  const hidden = b1.map((bias, j) => {
    let sum = 0;
    for (let i = 0; i < inputs.length; i++) sum += inputs[i] * single(w1[i][j]);
    return Math.max(0, single(single(sum) + single(bias)));
  });
  return b2.map((bias, k) => {
    let sum = 0;
    for (let j = 0; j < hidden.length; j++) sum += hidden[j] * single(w2[j][k]);
    return single(single(sum) + single(bias));
  });
}

function sigmoid(value) {
  return 1 / (1 + Math.exp(-value));
}

function clip(value, [low, high]) {
  return Math.min(Math.max(value, low), high);
}
