// Recorded flights: trajectories as `phygail recover --trajectory` writes them (docs/formats.md), shown as a lane.
import { Flight, still } from "./flight.js";
import { MOST_IN_FILE, CaseError } from "./scenario_file.js";
import { PHYSICS, budgetFor, farthestFrom } from "./world.js";
import { METHODS } from "./methods/index.js";

const HEADER = "t,uav,x,y,vx,vy";
const MOST_FRAMES = 20000;
const SAME_PLACE_M = 1e-6;
const LONGEST_TITLE = 24;

/** Whether a file holds a trajectory. */
export function isTrajectory(text) {
  return text.slice(0, 100).replace(/^\uFEFF/, "").split(/[\r\n]/, 1)[0].replace(/\s/g, "") === HEADER;
}

/** {step_s, frames: [{ids, positions}]} of a trajectory, or a CaseError that names the line. */
export function readTrajectory(text) {
  const frames = [], times = [];
  let ids = [], points = [];
  const close = () => {
    if (ids.length) frames.push({ ids, positions: Float64Array.from(points) });
    [ids, points] = [[], []];
  };
  text.split(/\r\n|\n|\r/).forEach((line, k) => {
    if (!k || !line.trim()) return;
    const [t, uav, x, y] = checkLine(line, k + 1);
    if (!times.length || t !== times[times.length - 1]) {
      if (times.length && t < times[times.length - 1]) throw new CaseError(`line ${k + 1}: the time ${t} s goes back`);
      close();
      times.push(t);
      if (times.length > MOST_FRAMES) throw new CaseError(`more than ${MOST_FRAMES.toLocaleString("en-US")} steps in this file`);
    }
    if (ids.length && uav <= ids[ids.length - 1]) throw new CaseError(`line ${k + 1}: UAV ${uav} is out of order`);
    ids.push(uav);
    points.push(x, y);
    if (ids.length > MOST_IN_FILE) throw new CaseError(`more than ${MOST_IN_FILE.toLocaleString("en-US")} UAVs in this file`);
  });
  close();
  return { frames: checkFrames(frames), step_s: checkTimes(times) };
}

function checkLine(line, number) {
  const parts = line.split(",").map((part) => (part.trim() ? Number(part) : NaN));
  if (parts.length !== 6 || !parts.every(Number.isFinite)) throw new CaseError(`line ${number} “${line.slice(0, 40)}” is not six numbers ${HEADER}`);
  if (!Number.isInteger(parts[1]) || parts[1] < 0) throw new CaseError(`line ${number}: ${parts[1]} is no number of a UAV`);
  return parts;
}

/** UAVs may be lost on the way, nobody may come back; the list of those who stay is one and the same. */
function checkFrames(frames) {
  if (!frames.length || frames[0].ids.length < 2) throw new CaseError("this file holds no flight of two UAVs or more");
  for (let k = 1; k < frames.length; k++) {
    const before = new Set(frames[k - 1].ids);
    const stranger = frames[k].ids.find((id) => !before.has(id));
    if (stranger !== undefined) throw new CaseError(`UAV ${stranger} appears at step ${k}: nobody can join a flight`);
    if (frames[k].ids.length === before.size) frames[k].ids = frames[k - 1].ids;
  }
  return frames;
}

function checkTimes(times) {
  const step = times.length > 1 ? times[1] - times[0] : PHYSICS.step_s;
  const uneven = times.findIndex((t, k) => Math.abs(t - times[0] - k * step) > 1e-3 * step);
  if (uneven >= 0) throw new CaseError(`the time ${times[uneven]} s does not follow in steps of ${Number(step.toPrecision(6))} s`);
  return Number(step.toPrecision(9));
}

/**
 * Make a lane of a trajectory: its name. `worlds` are cases that it may belong to: the one whose survivors stand where
 * it begins brings map, center and the lost along. Without one, the survivors are all that is known.
 */
export function addRecording(file, { frames, step_s }, worlds) {
  const [first] = frames;
  const world = worlds.find((known) => fits(known, first, step_s)) ?? bareWorld(file, first, step_s, frames.length);
  const numbers = world.bare ? new Map(first.ids.map((id, row) => [id, row])) : null;
  const renumbered = new Map(); // frames that share their list go on sharing it
  const own = (ids) => renumbered.get(ids) ?? renumbered.set(ids, numbers ? ids.map((id) => numbers.get(id)) : ids).get(ids);
  const stem = file.replace(/^.*\//, "").replace(/\.csv$/i, "").replace(/[^\w.-]+/g, "_"); // it becomes part of the page
  let name = `recorded-${stem}`;
  while (Object.hasOwn(METHODS, name)) name += "+";
  METHODS[name] = {
    title: stem.length > LONGEST_TITLE ? `…${stem.slice(1 - LONGEST_TITLE)}` : stem,
    note: `recorded: ${frames.length - 1} steps`,
    rule: null,
    recording: { world, frames: frames.map(({ ids, positions }) => ({ ids: own(ids), positions })) },
  };
  return name;
}

/** Whether the survivors of a case stand where a recording begins. */
function fits(world, { ids, positions }, step_s) {
  const lost = new Set(world.damaged), alive = ids.length === world.layout.length / 2 - lost.size;
  return alive && Math.abs(world.physics.step_s - step_s) < 1e-9 && ids.every((id, row) => {
    const away = (axis) => Math.abs(world.layout[2 * id + axis] - positions[2 * row + axis]);
    return !lost.has(id) && 2 * id < world.layout.length && away(0) < SAME_PLACE_M && away(1) < SAME_PLACE_M;
  });
}

/** A case of which only those who flew are known. */
function bareWorld(file, { positions }, step_s, frames) {
  const physics = Object.freeze({ ...PHYSICS, step_s }), axis = (a) => positions.filter((_, k) => k % 2 === a);
  const [left, right] = [Math.min(...axis(0)), Math.max(...axis(0))], [low, high] = [Math.min(...axis(1)), Math.max(...axis(1))];
  const width = Math.max(right - left, high - low, 1), center = [(left + right) / 2, (low + high) / 2];
  const budget = Math.max(frames - 1, budgetFor(width, physics, farthestFrom(center, positions)));
  return { id: file.replace(/\.csv$/i, ""), layout: Float64Array.from(positions), width, center, boxed: true, bare: true, physics, budget, damaged: [] };
}

/** A flight that is over: what its file says. */
export class RecordedFlight extends Flight {
  constructor({ world, frames }) {
    super(world, still, false, []);
    this.trouble = "";
    for (const { ids, positions } of frames.slice(1)) {
      if (ids.length === this.last.ids.length) this.follow(positions);
      else this.lose(ids, positions);
    }
  }

  /** A step after which some are missing: they were hit before it. */
  lose(ids, positions) {
    const now = this.last, kept = new Set(ids), struck = now.ids.filter((id) => !kept.has(id));
    this.follow(positions, { ...this.frame(now.leg, ids, now.positions, now.ids), contacts: now.contacts, distance: now.distance });
    Object.assign(this.last, { before: now, struck });
    this.events = [...this.events, { step: this.step, ids: struck }];
  }

  get recorded() {
    return true;
  }

  get done() {
    return true;
  }

  advance() {}

  /** What has been flown cannot be struck. */
  strike(step, events) {
    this.trouble = events.length ? "recorded: cannot be struck" : "";
  }
}
