// The case as a link: everything after the # of the address. Whatever is garbage falls back to its default.
import { LEAST_UAVS, MOST_UAVS, SOURCES } from "./cases.js";
import { METHODS } from "./methods/index.js";

export const MOST_LANES = 4;
export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const MOST_SEED = 999999;
const MOST_STEP = 20000;

/** What the page shows when the link says nothing. */
export const DEFAULTS = Object.freeze({
  source: "random", n: 200, seed: 1, lost: 0.7, hits: [], methods: ["reach-evolved", "sidr"], safety: false, speed: 2,
});

/** {settings, bad}: what a link says, and the parts of it that say nothing sensible. */
export function readLink(hash) {
  const settings = { ...DEFAULTS, hits: [] }, bad = [];
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const take = (key, parse) => {
    if (!given.has(key)) return undefined;
    const value = parse(given.get(key));
    if (value === undefined) bad.push(key);
    return value;
  };
  settings.source = take("layout", (text) => (Object.hasOwn(SOURCES, text) ? text : undefined)) ?? settings.source;
  settings.n = take("n", (text) => whole(text, LEAST_UAVS, MOST_UAVS)) ?? settings.n;
  if (settings.source.startsWith("paper-")) settings.n = Number(settings.source.slice(6));
  settings.seed = take("seed", (text) => whole(text, 0, MOST_SEED)) ?? settings.seed;
  settings.lost = take("lost", (text) => share(text)) ?? settings.lost;
  settings.hits = take("hit", (text) => readHits(text, settings.n)) ?? [];
  settings.methods = take("race", readMethods) ?? settings.methods;
  settings.safety = take("safety", (text) => ({ on: true, off: false })[text]) ?? settings.safety;
  settings.speed = take("speed", (text) => SPEEDS.find((speed) => String(speed) === text)) ?? settings.speed;
  return { settings, bad };
}

/** The link of these settings, without the #. */
export function writeLink(settings) {
  const parts = [
    ["layout", settings.source], ["n", settings.n], ["seed", settings.seed], ["lost", settings.lost],
    ["hit", writeHits(settings.hits)], ["race", settings.methods.join(",")],
    ["safety", settings.safety ? "on" : "off"], ["speed", settings.speed],
  ];
  return parts.filter(([, value]) => value !== "").map(([key, value]) => `${key}=${value}`).join("&");
}

/** Strikes as STEP-ID.ID.ID_STEP-..., numbers to the base 36. */
function writeHits(hits) {
  return hits.map(({ step, ids }) => `${step.toString(36)}-${ids.map((id) => id.toString(36)).join(".")}`).join("_");
}

function readHits(text, n) {
  const hits = [];
  for (const part of text.split("_")) {
    const match = /^([0-9a-z]{1,4})-([0-9a-z.]+)$/.exec(part);
    if (!match) return undefined;
    const step = parseInt(match[1], 36), ids = match[2].split(".").map((id) => parseInt(id, 36));
    if (!(step <= MOST_STEP) || !ids.every((id) => id >= 0 && id < n)) return undefined;
    hits.push({ step, ids: [...new Set(ids)].sort((a, b) => a - b) });
  }
  return hits.sort((a, b) => a.step - b.step);
}

function readMethods(text) {
  const names = [...new Set(text.split(","))].filter((name) => Object.hasOwn(METHODS, name));
  return names.length ? names.slice(0, MOST_LANES) : undefined;
}

function whole(text, least, most) {
  const value = /^\d{1,7}$/.test(text) ? Number(text) : NaN;
  return value >= least && value <= most ? value : undefined;
}

function share(text) {
  const value = /^\d(\.\d{1,4})?$/.test(text) ? Number(text) : NaN;
  return value >= 0 && value <= 0.95 ? value : undefined;
}
