// Lanes that a server flies (`phygail serve`): planners, plugins, whatever is too much for a browser.
import { hypot } from "./numbers.js";
import { Flight, newContacts } from "./flight.js";
import { findLinks } from "./links.js";
import { writeScenario } from "./scenario_file.js";

const RETRY_MS = 700;
const still = { start: () => ({}), act: (view) => new Float64Array(view.positions.length) };

/** A flight whose frames come from elsewhere. */
export class RemoteFlight extends Flight {
  constructor(world, name, safety, events) {
    super(world, still, safety, events.filter((event) => event.step === 0));
    this.name = name;
    this.ended = this.last.links.count === 1;
    this.converged = this.ended;
    this.trouble = "";
  }

  get remote() {
    return true;
  }

  get done() {
    return this.ended;
  }

  get finish() {
    return this.ended && this.converged ? this.step : null;
  }

  advance() {}

  /** Strikes at the start are part of the case; one in flight cannot be told to the server. */
  strike(step, events) {
    const later = events.some((event) => event.step > 0);
    this.trouble = later ? "flies on without the later strike" : "";
    if (step > 0) return;
    const fresh = new RemoteFlight(this.world, this.name, this.safety, events);
    Object.assign(this, { frames: fresh.frames, ended: fresh.ended, converged: fresh.converged, events: fresh.events });
    this.restarted?.();
  }

  /** A picture from the server. */
  take(step, positions) {
    if (step !== this.step + 1 || positions.length !== this.last.positions.length) return;
    const { physics } = this.world, now = this.last, links = findLinks(positions, physics);
    const contacts = now.contacts + newContacts(now.links.contacts, links.contacts);
    let { distance } = now;
    for (let k = 0; k < positions.length; k += 2) {
      distance += hypot(positions[k] - now.positions[k], positions[k + 1] - now.positions[k + 1]);
    }
    this.frames.push({ ids: now.ids, positions, leg: now.leg, links, contacts, distance, struck: [] });
  }

  end(converged, flag) {
    this.ended = true;
    this.converged = converged && this.last.links.count === 1;
    if (!converged && flag) this.trouble = flag;
  }
}

/** The connection to the server: starts races, takes their frames, comes back after it was lost. */
export class RaceServer {
  constructor(address, { changed = () => {}, say = () => {}, Socket = WebSocket } = {}) {
    this.address = address;
    this.changed = changed;
    this.say = say;
    this.Socket = Socket;
    this.races = new Map(); // tag -> {order, flights, have}
    this.connect();
  }

  connect() {
    this.socket = new this.Socket(this.address);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => this.greet();
    this.socket.onmessage = ({ data }) => (typeof data === "string" ? this.hear(JSON.parse(data)) : this.see(data));
    this.socket.onclose = () => {
      if (this.races.size) this.say("The server is away. The race goes on when it is back.", true);
      setTimeout(() => this.connect(), RETRY_MS);
    };
  }

  /** After a connection: what was ordered meanwhile, and the rest of what was being told. */
  greet() {
    for (const [race, entry] of this.races) {
      this.send(entry.known ? { type: "resume", race, have: entry.have } : entry.order);
    }
  }

  /** Fly these flights, all of one case. */
  fly(flights) {
    if (!flights.length) return;
    const race = Math.floor(Math.random() * 2 ** 32), [{ world, safety, frames }] = flights;
    const lost = Array.from({ length: world.layout.length / 2 }, (_, i) => i).filter((id) => !frames[0].ids.includes(id));
    const [scenario] = JSON.parse(writeScenario(world, lost)).scenarios;
    const order = { type: "fly", race, scenario, methods: flights.map((flight) => flight.name), safety };
    this.races.set(race, { order, flights: [...flights], have: 0, known: false });
    this.send(order);
    for (const flight of flights) {
      flight.restarted = () => {
        this.drop(flight);
        clearTimeout(flight.pending);
        flight.pending = setTimeout(() => this.fly([flight]), 50);
      };
    }
  }

  /** Nobody looks at this flight any more. */
  drop(flight) {
    for (const [race, entry] of this.races) {
      entry.flights = entry.flights.map((other) => (other === flight ? null : other));
      if (entry.flights.some(Boolean)) continue;
      this.races.delete(race);
      this.send({ type: "stop", race });
    }
  }

  send(message) {
    if (this.socket.readyState === 1) this.socket.send(JSON.stringify(message));
  }

  hear({ type, race, lane, converged, flag, text }) {
    const entry = this.races.get(race);
    if (type === "error") this.say(`Server: ${text}`, true);
    if (!entry) return;
    if (type === "welcome") entry.known = true;
    if (type === "end") {
      entry.have++;
      entry.flights[lane]?.end(converged, flag);
    }
    if (type === "error") entry.flights.forEach((flight) => flight?.end(false, text));
    this.changed();
  }

  see(data) {
    const [race, , lane, step] = new Uint32Array(data, 0, 4), entry = this.races.get(race);
    if (!entry) return;
    entry.have++;
    entry.flights[lane]?.take(step, new Float64Array(data.slice(16)));
    this.changed();
  }
}
