// Lanes that a server flies (`phygail serve`): planners, plugins, whatever is too much for a browser.
import { Flight, still } from "./flight.js";
import { writeScenario } from "./scenario_file.js";

const RETRY_MS = 700;
const TOGETHER_MS = 50;

/** A flight whose frames come from elsewhere. */
export class RemoteFlight extends Flight {
  constructor(world, name, safety, events) {
    super(world, still, safety, events);
    this.name = name;
    this.ended = super.done;
    this.trouble = "";
  }

  get remote() {
    return true;
  }

  get done() {
    return this.ended;
  }

  advance() {}

  recall() {} // what the method remembers is the server's affair

  /** What was flown up to the strike stays; the rest is ordered anew. */
  strike(step, events) {
    super.strike(step, events);
    this.ended = super.done;
    this.trouble = "";
    this.restarted?.();
  }

  /** A picture from the server. */
  take(step, positions) {
    if (step !== this.step + 1 || positions.length !== this.last.positions.length) return;
    this.follow(positions);
    this.applyStrikes();
  }

  end(converged, flag) {
    this.ended = true;
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
    this.struck = new Set(); // flights that will be ordered anew
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
      this.away = this.races.size > 0;
      setTimeout(() => this.connect(), RETRY_MS);
    };
  }

  /** After a connection: what was ordered meanwhile, and the rest of what was being told. */
  greet() {
    if (this.away) this.say("The server is back.");
    this.away = false;
    for (const [race, entry] of this.races) {
      this.send(entry.known ? { type: "resume", race, have: entry.have } : entry.order);
      entry.resuming = entry.known;
    }
  }

  /** Fly these flights on, all of one case. */
  fly(flights) {
    for (const flight of flights) flight.restarted = () => this.flyAgain(flight); // also one that rests until a strike
    flights = flights.filter((flight) => !flight.ended);
    if (!flights.length) return;
    const race = Math.floor(Math.random() * 2 ** 32), [{ world, safety, frames, events }] = flights;
    const lost = Array.from({ length: world.layout.length / 2 }, (_, i) => i).filter((id) => !frames[0].ids.includes(id));
    const [scenario] = JSON.parse(writeScenario(world, lost)).scenarios;
    const strikes = events.filter((event) => event.step > 0);
    const from = Math.min(...flights.map((flight) => flight.step)); // whoever is further passes over what it has
    const order = { type: "fly", race, scenario, methods: flights.map((flight) => flight.name), safety, strikes, from };
    this.races.set(race, { order, flights: [...flights], have: 0, known: false });
    this.send(order);
  }

  /** Order a flight anew after a strike; those that were struck together are one race. */
  flyAgain(flight) {
    this.drop(flight);
    this.struck.add(flight);
    clearTimeout(this.pending);
    this.pending = setTimeout(() => {
      const flights = [...this.struck];
      this.struck.clear();
      this.fly(flights);
    }, TOGETHER_MS);
  }

  /** Nobody looks at this flight any more. */
  drop(flight) {
    this.struck.delete(flight);
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
    if (type === "error" && entry?.resuming) {
      // It was started anew, or has waited long enough: what is left of the flights is ordered again.
      for (const flight of entry.flights.filter(Boolean)) this.flyAgain(flight);
      return;
    }
    if (type === "error") this.say(`Server: ${text}`, true);
    if (!entry) return;
    if (type === "welcome") Object.assign(entry, { known: true, resuming: false });
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
