// Scenario files (docs/formats.md): written for `phygail recover --scenarios FILE`, read when dropped onto the page.
import { withoutRows } from "./cases.js";
import { PHYSICS, budgetFor, farthestFrom } from "./world.js";

export const MOST_IN_FILE = 1000; // UAVs that the page flies from a file
const LARGEST_COORDINATE_M = 1e7;
const SMALLEST_QUANTITY = 1e-6;
const MOST_BYTES = 5e6;
const LATEST_EVENT = 20000; // step
const KEYS = ["id", "positions", "damaged", "width", "center", "range_m", "speed_mps", "step_s", "contact_m", "budget_steps", "seed", "events"];
const WORLD_KEYS = ["hold_steps", "links", "obstacles", "vehicle", "knowledge", "altitude", "level", "redundant", "battery_s"];
const UNUSED_KEYS = ["world", "weather"]; // what a world was drawn from: losses of named UAVs need no draw

/** What is wrong with a user's file, in one line. */
export class CaseError extends Error {}

/** The text of a scenario file that holds one case. `damaged` is everybody lost at t = 0, `events` ([{step, ids}]) who is lost in flight. */
export function writeScenario(world, damaged, events = []) {
  const points = [];
  for (let i = 0; i < world.layout.length; i += 2) points.push([world.layout[i], world.layout[i + 1]]);
  const { range_m, speed_mps, step_s, contact_m } = world.physics;
  const entry = { id: world.id, width: world.width, center: [...world.center], positions: points, damaged: [...damaged] };
  if (world.boxed) delete entry.width; // it came without a map: readers take the bounding box again
  const later = events.filter(({ step }) => step > 0), last = Math.max(0, ...later.map(({ step }) => step));
  Object.assign(entry, { range_m, speed_mps, step_s, contact_m, budget_steps: world.budget + last });
  if (last) entry.events = later.map(({ step, ids }) => ({ step, uavs: ids }));
  if (world.seed !== undefined) entry.seed = world.seed; // it came with one: planners draw as they would have
  return `{"scenarios": [\n${JSON.stringify(entry)}\n]}\n`;
}

/** A case of a file: the first of a scenario file, or a layout CSV (header x_m,y_m) in which nobody is lost yet. */
export function readCase(name, text) {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/).map((line) => line.trim());
  if (lines[0].replace(/\s/g, "") !== "x_m,y_m") return readScenario(text);
  const positions = [];
  lines.slice(1).forEach((line, k) => {
    if (!line) return;
    const parts = line.split(",").map((part) => (part.trim() ? Number(part) : NaN));
    if (parts.length !== 2 || !parts.every(Number.isFinite)) throw new CaseError(`line ${k + 2} “${line.slice(0, 40)}” is not two numbers x,y`);
    positions.push(parts);
  });
  return { world: checkEntry({ id: name.replace(/\.[^.]*$/, "") || "layout", positions, damaged: [] }), count: 1 };
}

/** The first case of a scenario file, or a CaseError that names what is wrong. */
export function readScenario(text) {
  if (text.length > MOST_BYTES) throw new CaseError(`the file has ${(text.length / 1e6).toFixed(1)} MB: at most 5 MB are read`);
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    throw new CaseError("this file is not JSON: drop a scenario file, as “Save case” or `phygail scenarios` write it, or a CSV with the header x_m,y_m");
  }
  const list = content && content.scenarios;
  if (!Array.isArray(list) || !list.length) throw new CaseError('no scenario in this file: it must hold {"scenarios": [...]}');
  return { world: checkEntry(list[0]), count: list.length };
}

function checkEntry(entry) {
  if (!entry || typeof entry !== "object" || Array.isArray(entry)) throw new CaseError("scenario 0 is no object");
  if (typeof entry.id !== "string" || !entry.id) throw new CaseError("scenario 0 has no id: give it a name");
  const beyond = Object.keys(entry).find((key) => WORLD_KEYS.includes(key));
  if (beyond) throw new CaseError(`“${beyond}” is of a world that the page does not fly: use phygail recover`);
  const unknown = Object.keys(entry).find((key) => !KEYS.includes(key) && !UNUSED_KEYS.includes(key));
  if (unknown !== undefined) throw new CaseError(`unknown key “${unknown.slice(0, 40)}”: known are ${KEYS.join(", ")}`);
  const layout = checkPositions(entry.positions);
  const physics = {};
  for (const [key, usual] of Object.entries(PHYSICS)) physics[key] = positive(key, entry[key] ?? usual);
  const { width, center, boxed } = checkMap(entry, layout);
  const damaged = checkDamaged(entry.damaged, layout.length / 2);
  const total = entry.budget_steps ?? budgetFor(width, physics, farthestFrom(center, withoutRows(layout, damaged))) + LATEST_EVENT;
  if (!Number.isInteger(total) || total < 1) throw new CaseError(`budget_steps ${shown(total)}: give a whole number, at least 1`);
  const strikes = checkEvents(entry.events ?? [], damaged, layout.length / 2, total), last = Math.max(0, ...strikes.map(({ step }) => step));
  const budget = total - (entry.budget_steps === undefined ? LATEST_EVENT : last); // counted from the last strike
  const seed = entry.seed;
  if (seed !== undefined && (!Number.isSafeInteger(seed) || seed < 0)) throw new CaseError(`seed ${shown(seed)}: give a whole number, at least 0`);
  return { id: entry.id.slice(0, 80), layout, width, center, boxed, physics: Object.freeze(physics), budget, damaged, strikes, seed };
}

function checkPositions(positions) {
  if (!Array.isArray(positions)) throw new CaseError("“positions” must be a list of [x, y] pairs");
  const n = positions.length;
  if (n < 2) throw new CaseError(`${n} UAV in this file: at least two are needed`);
  if (n > MOST_IN_FILE) {
    throw new CaseError(`${n.toLocaleString("en-US")} UAVs in this file: the page flies up to ${MOST_IN_FILE.toLocaleString("en-US")}; use phygail recover`);
  }
  const layout = new Float64Array(2 * n), seen = new Set();
  positions.forEach((point, i) => {
    if (!Array.isArray(point) || point.length !== 2 || !point.every(isCoordinate)) {
      throw new CaseError(`position ${i} ${shown(point)}: give [x, y] in meters, numbers up to 1e7 in size`);
    }
    layout.set(point, 2 * i);
    if (seen.has(point.join())) throw new CaseError(`position ${i} ${shown(point)} occurs twice: move one of the UAVs`);
    seen.add(point.join());
  });
  return layout;
}

function checkMap(entry, layout) {
  const xs = layout.filter((_, k) => k % 2 === 0), ys = layout.filter((_, k) => k % 2 === 1);
  const low = [Math.min(...xs), Math.min(...ys)], high = [Math.max(...xs), Math.max(...ys)];
  const boxed = entry.width === undefined || entry.width === null;
  const width = boxed ? Math.max(high[0] - low[0], high[1] - low[1], 1) : positive("width", entry.width);
  if (!boxed && (low[0] < 0 || low[1] < 0 || high[0] > width || high[1] > width)) {
    throw new CaseError(`a position is outside the map of width ${width} m: move it, widen the map or leave the width out`);
  }
  const middle = boxed ? [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2] : [width / 2, width / 2];
  const center = entry.center ?? middle;
  if (!Array.isArray(center) || center.length !== 2 || !center.every(isCoordinate)) {
    throw new CaseError(`center ${shown(center)}: give [x, y] in meters`);
  }
  return { width, center, boxed };
}

function checkDamaged(damaged, n) {
  if (!Array.isArray(damaged)) throw new CaseError("“damaged” must be a list of UAV numbers");
  const bad = damaged.find((id) => !Number.isInteger(id) || id < 0 || id >= n);
  if (bad !== undefined) throw new CaseError(`damaged UAV ${shown(bad)}: give whole numbers from 0 to ${n - 1}`);
  if (new Set(damaged).size < damaged.length) throw new CaseError("a damaged UAV is listed twice: list each once");
  if (n - damaged.length < 2) throw new CaseError(`${damaged.length} of ${n} UAVs damaged: at least 2 must stay alive`);
  return [...damaged].sort((a, b) => a - b);
}

/** Losses in flight as strikes, [{step, ids}]: nobody is lost twice, and two stay. */
function checkEvents(events, damaged, n, latest) {
  if (!Array.isArray(events)) throw new CaseError("“events” must be a list");
  const gone = new Set(damaged), strikes = events.map((event, k) => {
    const { step, uavs, ...rest } = event ?? {};
    if (Object.keys(rest).some((key) => key === "strike" || key === "near_random")) throw new CaseError(`event ${k} hits whoever is there: the page flies losses of named UAVs; use phygail recover`);
    if (!Number.isInteger(step) || step < 1 || step > latest) throw new CaseError(`event ${k}: step ${shown(step)}: give a whole number from 1 to the budget of ${latest}`);
    if (!Array.isArray(uavs) || Object.keys(rest).length) throw new CaseError(`event ${k}: give step and a list of uavs`);
    for (const id of uavs) {
      if (!Number.isInteger(id) || id < 0 || id >= n) throw new CaseError(`event ${k}: UAV ${shown(id)}: give whole numbers from 0 to ${n - 1}`);
      if (gone.has(id)) throw new CaseError(`event ${k}: UAV ${id} is lost already: name it once, and not among the damaged`);
      gone.add(id);
    }
    return { step, ids: [...uavs].sort((a, b) => a - b) };
  });
  if (n - gone.size < 2) throw new CaseError(`damage and events leave ${n - gone.size} of ${n} UAVs: at least 2 must stay alive`);
  return strikes.filter(({ ids }) => ids.length).sort((a, b) => a.step - b.step);
}

function positive(name, value) {
  if (typeof value !== "number" || !(value >= SMALLEST_QUANTITY && value <= LARGEST_COORDINATE_M)) {
    throw new CaseError(`${name} ${shown(value)}: give a positive number`);
  }
  return value;
}

function isCoordinate(value) {
  return typeof value === "number" && Math.abs(value) <= LARGEST_COORDINATE_M;
}

function shown(value) {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}
