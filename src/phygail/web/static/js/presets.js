// Cases worth a look, by name.
import { drawCase, rowsInDisc, swath } from "./cases.js";

/** Settings of each preset; `hits` may ask the case for the UAVs that its strikes take. */
export const PRESETS = Object.freeze({
  shattered: { title: "200, 70 % lost", settings: { source: "random", n: 200, seed: 1, lost: 0.7 } },
  swath: { title: "Area strike: a swath", settings: { source: "random", n: 200, seed: 12, lost: 0 }, hits: (world) => swath(world.layout, world.width, 95) },
  clusters: { title: "Two clusters, cut off", settings: { source: "clusters", n: 100, seed: 3, lost: 0 }, hits: (world) => Array.from({ length: world.bridge }, (_, i) => i) },
  ring: { title: "Ring, cut to pieces", settings: { source: "ring", n: 150, seed: 5, lost: 0.4 } },
  hole: { title: "Ring, struck twice", settings: { source: "ring", n: 120, seed: 2, lost: 0 }, hits: bothSides },
  dust: { title: "Dust: 500, 90 % lost", settings: { source: "random", n: 500, seed: 1, lost: 0.9 } },
  whole: { title: "Whole: strike it!", settings: { source: "random", n: 100, seed: 4, lost: 0 } },
  "paper-20": { title: "The paper's 20", settings: { source: "paper-20", n: 20, seed: 1, lost: 0.5 } },
  "paper-50": { title: "The paper's 50", settings: { source: "paper-50", n: 50, seed: 1, lost: 0.5 } },
  "paper-100": { title: "The paper's 100", settings: { source: "paper-100", n: 100, seed: 1, lost: 0.5 } },
  "paper-200": { title: "The paper's 200", settings: { source: "paper-200", n: 200, seed: 1, lost: 0.5 } },
  "paper-500": { title: "The paper's 500", settings: { source: "paper-500", n: 500, seed: 1, lost: 0.5 } },
});

function bothSides(world) {
  const { width, layout } = world;
  return [...rowsInDisc(layout, 0.1 * width, width / 2, 0.28 * width), ...rowsInDisc(layout, 0.9 * width, width / 2, 0.28 * width)];
}

/** The settings of a preset, its strikes worked out. */
export function presetSettings(name) {
  const { settings, hits } = PRESETS[name];
  const ids = hits ? hits(drawCase({ ...settings, damage: settings.lost })) : [];
  return { ...settings, hits: ids.length ? [{ step: 0, ids }] : [] };
}
