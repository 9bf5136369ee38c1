// One method on one case: every state it has been in, so that one can scrub, strike and fly on from any of them.
import { hypot } from "./numbers.js";
import { findLinks, subnetSizes } from "./links.js";
import { stepWorld } from "./world.js";

/** The rule of flights that are flown elsewhere: nobody moves by itself. */
export const still = { start: () => ({}), act: (view) => new Float64Array(view.positions.length) };

const SNAPSHOT_EVERY = 16; // steps between two copies of a method's memory

/**
 * A frame is the swarm at one step:
 *   ids: UAV numbers of the alive; positions: flat, m; velocities: flat, m/s, executed in the step before; leg: what the methods were told; links: the radio network;
 *   wrecks: of every UAV that is lost, where it lies (flat, by number); contacts, distance: events and meters so far, over
 *   all UAVs; struck: UAVs lost at this very step, before: the frame before they were; need: the least budget in which
 *   nobody has to hurry.
 * Strikes in flight are the events of a world (swarm/flight.py). A leg begins with the case, and again when a strike hits
 * a swarm that was one network: then everybody knows where everybody was. A strike into a split swarm changes nothing
 * that anybody was told.
 */
export class Flight {
  constructor(world, rule, safety, events = []) {
    this.world = world;
    this.rule = rule;
    this.safety = safety;
    this.events = events;
    const all = Array.from({ length: world.layout.length / 2 }, (_, i) => i);
    const leg = { begin: 0, roster: world.layout, origin: null };
    const struck = new Set([...world.damaged, ...this.struckAt(0)]);
    this.frames = [{ ...this.frame(leg, all.filter((id) => !struck.has(id)), world.layout, all), wrecks: world.layout }];
    this.frames[0].struck = [...struck];
    leg.origin = originOf(this.frames[0]);
    this.memory = rule.start();
    this.snapshots = new Map();
  }

  get last() {
    return this.frames[this.frames.length - 1];
  }

  get step() {
    return this.frames.length - 1;
  }

  /** The step of the last strike, 0 without one in flight. */
  get lastStrike() {
    return lastOf(this.events);
  }

  /** T_max: that of the case, counted from the last strike. */
  get budget() {
    return this.world.budget + this.lastStrike;
  }

  /** Whether nothing more happens: one network or out of budget, and no strike to come. */
  get done() {
    return this.resting(this.last, this.step) && this.step >= this.lastStrike;
  }

  /** The first step from which on the network is one to the end, or null. */
  get finish() {
    if (!this.done || this.last.links.count > 1) return null;
    let step = this.step;
    while (step > 0 && this.frames[step - 1].links.count === 1 && !this.frames[step].struck.length) step--;
    return step;
  }

  frameAt(step) {
    return this.frames[Math.min(Math.max(step, 0), this.step)];
  }

  /** Fly one more step. */
  advance() {
    const now = this.last, step = this.step;
    if (this.done) return;
    if (this.resting(now, step)) {
      this.frames.push({ ...now, velocities: new Float64Array(now.positions.length), struck: [], before: undefined }); // one network, waiting for a strike that the link holds
    } else {
      if (step % SNAPSHOT_EVERY === 0) this.snapshots.set(step, structuredClone(this.memory));
      const view = this.viewOf(now, step), commands = this.rule.act(view, this.memory);
      now.need = now.leg.begin + (view.need ?? 0);
      this.frames.push(this.moved(now, commands));
    }
    this.applyStrikes();
  }

  /** One more step that was flown elsewhere: where everybody of `now` is after it. */
  follow(positions, now = this.last) {
    const links = findLinks(positions, this.world.physics);
    const contacts = now.contacts + newContacts(now, now.ids, links);
    let { distance } = now;
    for (let k = 0; k < positions.length; k += 2) {
      distance += hypot(positions[k] - now.positions[k], positions[k + 1] - now.positions[k + 1]);
    }
    this.frames.push({ ids: now.ids, positions, leg: now.leg, wrecks: now.wrecks, links, contacts, distance, struck: [] });
  }

  /** A strike at step t: what was flown later is forgotten. */
  strike(step, events) {
    const kept = this.keeps(step, events);
    this.events = events;
    if (step === 0 || !kept) {
      const fresh = new Flight(this.world, this.rule, this.safety, events);
      Object.assign(this, { frames: fresh.frames, memory: fresh.memory, snapshots: fresh.snapshots });
      return;
    }
    if (step > this.step) return; // still to come: applied when the flight gets there
    const live = step === this.step;
    const target = this.frames[step];
    this.frames.length = step + 1;
    if (!live) this.recall(step, target);
    this.applyStrikes();
  }

  /** Whether a flight with these strikes would have come to this step as this one has: else it is flown anew. */
  keeps(step, events) {
    const before = this.budget, after = this.world.budget + lastOf(events);
    const need = Math.max(...this.frames.slice(0, step).map((frame) => frame.need ?? 0));
    if (before !== after && need > Math.min(before, after) - 1e-6) return false;
    if (!this.rule.rebases || this.lastStrike > 0) return true; // the others read a torn subnet as they always do
    return !this.frames.slice(1, step + 1).some((frame, k) => torn(this.frames[k], frame));
  }

  /** Bring the method's memory to what it was at this step, by flying on from the last copy of it. */
  recall(step, target) {
    const begin = target.leg.begin;
    let from = step - (step % SNAPSHOT_EVERY);
    while (from > begin && !this.snapshots.has(from)) from -= SNAPSHOT_EVERY;
    for (const key of [...this.snapshots.keys()]) if (key > from) this.snapshots.delete(key);
    const known = from > begin && this.snapshots.has(from);
    this.memory = known ? structuredClone(this.snapshots.get(from)) : this.rule.start();
    for (let s = known ? from : begin; s < step; s++) {
      if (!this.resting(this.frames[s], s)) this.rule.act(this.viewOf(this.frames[s], s), this.memory);
    }
  }

  struckAt(step) {
    return this.events.filter((event) => event.step === step).flatMap((event) => event.ids);
  }

  applyStrikes() {
    // Strikes of one step count as one, in whatever order they came: all are applied to the frame before the first.
    const step = this.step, hit = new Set(this.struckAt(step)), now = this.last.before ?? this.last;
    const struck = now.ids.filter((id) => hit.has(id));
    if (!struck.length) return;
    const alive = now.ids.filter((id) => !hit.has(id));
    const whole = this.frames[step - 1].links.count === 1, places = Float64Array.from(now.wrecks ?? this.world.layout);
    now.ids.forEach((id, row) => places.set(now.positions.subarray(2 * row, 2 * row + 2), 2 * id));
    const leg = whole ? { begin: step, roster: places, origin: null } : { ...now.leg };
    // The last move of the struck counts for nobody: neither its way nor its contacts.
    const next = { ...this.frame(leg, alive, now.positions, now.ids), wrecks: places, struck, before: now }, earlier = this.frames[step - 1];
    next.contacts = earlier.contacts + newContacts(earlier, alive, next.links);
    next.distance = now.distance;
    now.ids.forEach((id, row) => {
      const [x, y] = [0, 1].map((a) => now.positions[2 * row + a] - earlier.positions[2 * row + a]);
      if (hit.has(id)) next.distance -= hypot(x, y);
    });
    if (!whole && now.velocities) next.velocities = rowsOf(now.velocities, now.ids, new Set(alive)); // a new leg begins at rest
    if (whole) this.memory = this.rule.start();
    leg.origin = originOf(next);
    this.frames[step] = next;
  }

  resting(frame, step) {
    return frame.links.count === 1 || step >= this.budget;
  }

  /** The frame of `alive` (UAV numbers), whose positions stand in `points` (flat) in the order of `ids`. */
  frame(leg, alive, points, ids) {
    const positions = rowsOf(points, ids, new Set(alive)), links = findLinks(positions, this.world.physics);
    return { ids: alive, positions, velocities: new Float64Array(positions.length), leg, links, contacts: 0, distance: 0, struck: [] };
  }

  moved(now, commands) {
    const { physics } = this.world;
    const { positions, velocities } = stepWorld(now.positions, commands, physics, this.safety);
    const links = findLinks(positions, physics);
    const contacts = now.contacts + newContacts(now, now.ids, links);
    let { distance } = now;
    for (let k = 0; k < velocities.length; k += 2) distance += hypot(velocities[k], velocities[k + 1]) * physics.step_s;
    return { ids: now.ids, positions, velocities, leg: now.leg, wrecks: now.wrecks, links, contacts, distance, struck: [] };
  }

  /** What a method may know. */
  viewOf(frame, step) {
    const { leg, links } = frame;
    return {
      physics: this.world.physics,
      center: this.world.center,
      width: this.world.width,
      step: step - leg.begin,
      budget: this.budget - leg.begin,
      losses: this.lastStrike > 0,
      roster: leg.roster,
      wrecks: frame.wrecks,
      members: Int32Array.from(frame.ids),
      positions: frame.positions,
      velocities: frame.velocities,
      ...links,
    };
  }
}

/** The vectors (flat, in the order of `ids`) of those in `kept`. */
function rowsOf(vectors, ids, kept) {
  const out = new Float64Array(2 * kept.size);
  let row = 0;
  ids.forEach((id, i) => {
    if (kept.has(id)) out.set([vectors[2 * i], vectors[2 * i + 1]], 2 * row++);
  });
  return out;
}

function lastOf(events) {
  return Math.max(0, ...events.map((event) => event.step));
}

/** Whether somebody has lost a teammate of its subnet from one frame to the next. */
function torn(before, after) {
  const home = new Map();
  return before.ids.some((id, row) => {
    const label = before.links.subnet[row], now = after.links.subnet[row];
    return (home.get(label) ?? home.set(label, now).get(label)) !== now;
  });
}

/** How many pairs in contact (of `links`, rows of `ids`) were not so in the frame `before`. */
function newContacts(before, ids, links) {
  const code = (numbers, pairs, k) => numbers[pairs[k]] * 1e4 + numbers[pairs[k + 1]], old = before.links.contacts, touching = new Set();
  for (let k = 0; k < old.length; k += 2) touching.add(code(before.ids, old, k));
  let count = 0;
  for (let k = 0; k < links.contacts.length; k += 2) if (!touching.has(code(ids, links.contacts, k))) count++;
  return count;
}

/** Per UAV number, the subnet it was in right after the strike; subnets by falling size, so that 0 is the largest. */
function originOf(frame) {
  const { subnet, count } = frame.links, sizes = subnetSizes(subnet, count);
  const order = [...sizes.keys()].sort((a, b) => sizes[b] - sizes[a] || a - b), rank = new Int32Array(count);
  order.forEach((label, place) => (rank[label] = place));
  return new Map(frame.ids.map((id, row) => [id, rank[subnet[row]]]));
}
