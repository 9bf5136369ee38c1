// Several methods on one case and one clock.
import { checkStrike } from "./cases.js";
import { Flight } from "./flight.js";
import { RecordedFlight } from "./recording.js";
import { RemoteFlight } from "./remote.js";
import { lowerBound } from "./tree.js";
import { BOUND, METHODS } from "./methods/index.js";

export class Race {
  /** @param events strikes by hand, [{step, ids}]: all lanes lose the same UAVs at the same step. */
  constructor(world, names, safety, events = [], server = null) {
    this.world = world;
    this.server = server; // flies what a browser cannot
    this.safety = safety;
    this.events = this.possible(events);
    this.lanes = [];
    this.setLanes(names);
  }

  /** Fly these methods; lanes that are there already stay as they are. */
  setLanes(names) {
    const old = new Map(this.lanes.map((lane) => [lane.name, lane]));
    const gone = this.lanes.filter((lane) => lane.flight.remote && !names.includes(lane.name));
    this.lanes = names.map((name) => old.get(name) ?? { name, flight: this.start(name) });
    gone.forEach((lane) => this.server.drop(lane.flight));
    this.server?.fly(this.lanes.filter((lane) => lane.flight.remote && !old.has(lane.name)).map((lane) => lane.flight));
    this.bound = lowerBound(this.firstFrame().positions, this.world.physics);
  }

  start(name) {
    const { rule, remote, recording } = METHODS[name];
    if (recording) return new RecordedFlight(recording);
    if (remote) return new RemoteFlight(this.world, name, this.safety, this.events);
    return rule ? new Flight(this.world, rule, this.safety, this.events) : new BoundLane(this);
  }

  /** The swarm right after the strikes at t = 0: the same in every lane. */
  firstFrame() {
    const flown = this.lanes.find(({ flight }) => flight instanceof Flight && !flight.recorded);
    return (flown?.flight ?? this.still ?? (this.still = this.start(Object.keys(METHODS)[0]))).frames[0];
  }

  /** Steps of the longest flight so far. */
  get length() {
    return Math.max(this.world.damaged.length || this.events.length ? 1 : 0, ...this.lanes.map((lane) => lane.flight.step));
  }

  get done() {
    return this.lanes.every((lane) => lane.flight.done);
  }

  /** Nobody looks at this race any more. */
  close() {
    for (const { flight } of this.lanes) if (flight.remote) this.server.drop(flight);
  }

  /** Fly every lane up to `step`, the hindmost first, until `deadline` (ms); true if all are there. */
  advanceTo(step, deadline = Infinity, now = () => performance.now()) {
    for (;;) {
      let behind = null, waiting = false;
      for (const { flight } of this.lanes) {
        if (flight.remote) waiting ||= !flight.done && flight.step < step;
        else if (!flight.done && flight.step < step && (!behind || flight.step < behind.step)) behind = flight;
      }
      if (!behind) return !waiting;
      if (now() > deadline) return false;
      behind.advance();
    }
  }

  /** Strike UAVs at a step; later strikes are forgotten. Gives the UAVs that are hit. */
  strike(step, ids) {
    const earlier = this.events.filter((event) => event.step <= step), events = this.possible([...earlier, { step, ids }]);
    if (events.length === earlier.length) return [];
    this.restrike(step, events);
    return events[earlier.length].ids;
  }

  /** Strikes without those who are lost already, and with two left. */
  possible(events) {
    let alive = Array.from({ length: this.world.layout.length / 2 }, (_, i) => i).filter((id) => !this.world.damaged.includes(id));
    return events.map(({ step, ids }) => {
      const hit = checkStrike(alive, ids);
      alive = alive.filter((id) => !hit.includes(id));
      return { step, ids: hit };
    }).filter(({ ids }) => ids.length);
  }

  /** Take back the strikes by hand. */
  undoStrikes() {
    this.restrike(0, []);
  }

  restrike(step, events) {
    this.events = events;
    this.still = null;
    for (const { flight } of this.lanes) flight.strike(step, events);
    if (step === 0) this.bound = lowerBound(this.firstFrame().positions, this.world.physics);
    this.lanes.forEach(({ flight }) => flight.refresh?.());
  }

  /** Rows of the finishing table, the fastest first. */
  results() {
    const { step_s } = this.world.physics;
    const rows = this.lanes.map(({ name, flight }) => {
      const steps = name === BOUND ? this.bound.steps : flight.finish;
      const failed = name !== BOUND && flight.done && steps === null;
      const uavs = flight.frames[0].ids.length;
      return {
        name, steps, failed, budget: flight.budget,
        seconds: steps === null ? null : steps * step_s,
        ratio: steps === null || !this.bound.steps || this.later ? null : steps / this.bound.steps,
        contacts: flight.last.contacts,
        way: flight.last.distance / uavs,
        subnets: flight.last.links.count,
      };
    });
    return rows.sort((a, b) => (a.steps ?? Infinity) - (b.steps ?? Infinity));
  }

  /** Whether a strike hit in flight: the bound is about the first split only. */
  get later() {
    return this.events.some((event) => event.step > 0);
  }
}

/** The lower bound as a lane: nobody flies; the longest gap of the tree closes as fast as two UAVs can close it. */
class BoundLane {
  constructor(race) {
    this.race = race;
    this.refresh();
  }

  refresh() {
    const first = this.race.firstFrame();
    this.frames = [first];
    this.bound = lowerBound(first.positions, this.race.world.physics);
  }

  strike() {}

  get step() {
    return this.bound.steps;
  }

  get last() {
    return this.frames[0];
  }

  get done() {
    return true;
  }

  get finish() {
    return this.bound.steps;
  }

  frameAt() {
    return this.frames[0];
  }

  advance() {}
}
