// The state of the page and its clock.
import { drawCase } from "./cases.js";
import { Race } from "./race.js";
import { DEFAULTS, MOST_LANES, readLink, writeLink } from "./link.js";
import { METHODS } from "./methods/index.js";

export const INTRO_STEPS = 12; // the whole swarm is shown this long before the strike
const STEP_MS = 12; // of every frame, at most, for flying
const FLASH_MS = 500;

/** Settings, race and clock. `changed` is called when the controls must be shown afresh. */
export class App {
  constructor({ calm = false, changed = () => {}, server = null } = {}) {
    this.calm = calm; // the user wants no motion that was not asked for
    this.changed = changed;
    this.server = server;
    this.settings = { ...DEFAULTS };
    this.world = null;
    this.fromFile = false;
    this.playing = !calm;
    this.flash = null;
    this.message = { text: "", bad: false };
  }

  /** Begin with what the address says. */
  openLink(hash) {
    const { settings, bad } = readLink(hash);
    this.say(bad.length ? `Not understood in the link: ${bad.join(", ")}. The usual value is used instead.` : "", bad.length > 0);
    this.setUp(settings);
  }

  /** Draw the case of these settings and put the clock before its strike. */
  setUp(settings) {
    this.settings = { ...this.settings, ...settings };
    this.fromFile = false;
    const { source, n, seed, lost } = this.settings;
    this.begin(drawCase({ source, n, seed, damage: lost }), this.settings.hits ?? []);
  }

  /** Fly a case from a file. */
  setUpFile(world, settings = {}) {
    this.fromFile = true;
    this.settings = { ...this.settings, ...settings, hits: world.strikes ?? [] };
    this.begin(world, this.settings.hits);
  }

  /** Show a recorded flight: beside the lanes of its case where that is shown, alone where it is not. */
  showRecording(name) {
    const { world } = METHODS[name].recording;
    this.playing = !this.calm;
    if (world !== this.world) return this.setUpFile(world, { methods: [name] });
    const others = this.settings.methods.filter((other) => other !== name);
    this.setLanes([...others.slice(0, MOST_LANES - 1), name]);
    this.rewind();
  }

  begin(world, hits) {
    this.world = world;
    this.race?.close();
    const own = this.settings.methods.filter((name) => (METHODS[name].recording?.world ?? world) === world);
    this.settings.methods = own.length ? own : [...DEFAULTS.methods]; // a recording belongs to its own case
    this.race = new Race(world, this.settings.methods, this.settings.safety, hits, this.server);
    this.rewind();
  }

  /** The clock before the strike; without motion, at it. */
  rewind() {
    const struck = this.race.firstFrame().ids.length < this.world.layout.length / 2;
    this.clock = struck && !this.calm ? -INTRO_STEPS : 0;
    this.flash = null;
    this.changed();
  }

  setLanes(names) {
    this.settings.methods = names;
    this.race.setLanes(names);
    this.changed();
  }

  setSafety(on) {
    this.settings.safety = on;
    this.race.close();
    this.race = new Race(this.world, this.settings.methods, on, this.race.events, this.server);
    this.rewind();
  }

  /** Whether the whole swarm of before the strike is shown. */
  get intact() {
    return this.clock < 0;
  }

  get step() {
    return Math.max(0, Math.floor(this.clock));
  }

  /** Strike UAVs now. `spots` ([x, y, radius], m) are where it flashes. */
  strike(ids, spots, now) {
    // After the end the network is one and everybody knows it: the strike hits one step later.
    const over = this.race.length > 0 && this.race.done && this.step >= this.race.length;
    this.clock = this.step;
    const hit = this.race.strike(this.step + (over ? 1 : 0), ids);
    if (!hit.length) return hit;
    if (over) this.clock++;
    this.settings.hits = this.race.events;
    this.race.advanceTo(this.step);
    if (!this.calm) this.flash = { begin: now, spots };
    this.changed();
    return hit;
  }

  undoStrikes() {
    this.race.undoStrikes();
    this.settings.hits = [];
    this.rewind();
  }

  seek(step) {
    this.playing = false;
    this.clock = Math.max(0, Math.min(step, this.race.length));
    this.race.advanceTo(this.clock);
    this.changed();
  }

  /** One step on, flown if it was not yet. */
  nudge(by) {
    this.playing = false;
    const goal = Math.max(0, this.step + by);
    if (goal > this.race.length) this.race.advanceTo(goal);
    this.seek(goal);
  }

  togglePlay() {
    const over = this.race.done && this.clock >= this.race.length;
    if (over && this.race.length > 0) this.rewind();
    this.playing = over || !this.playing;
    this.changed();
  }

  /** Let `elapsed` ms pass: move the clock and fly as far as it shows. Gives whether anything moved. */
  tick(elapsed, now, clockOf = () => performance.now()) {
    if (this.flash && now - this.flash.begin > FLASH_MS) this.flash = null;
    if (!this.playing) return false;
    // Before the strike there is nothing to hurry: the whole swarm is shown for as long at every speed.
    const speed = this.intact ? 1 : this.settings.speed;
    const passed = ((Math.min(elapsed, 100) / 1000) * speed) / this.world.physics.step_s;
    const goal = this.intact ? Math.min(0, this.clock + passed) : this.clock + passed;
    const ready = this.race.advanceTo(Math.ceil(Math.max(0, goal)), clockOf() + STEP_MS, clockOf);
    const end = this.race.done ? this.race.length : Infinity;
    // A lane that is late holds the clock: all lanes show the same moment.
    const flown = ready ? goal : Math.min(goal, Math.max(this.clock, this.flownBy()));
    const next = Math.min(flown, Math.max(end, this.clock));
    const moved = next !== this.clock;
    this.clock = next;
    return moved;
  }

  /** The last step that every lane has flown. */
  flownBy() {
    return Math.min(...this.race.lanes.filter(({ flight }) => !flight.done).map(({ flight }) => flight.step));
  }

  flashShare(now) {
    return this.flash ? { age: Math.min(1, (now - this.flash.begin) / FLASH_MS), spots: this.flash.spots } : null;
  }

  /** The address of this case, or null where a file holds it. */
  link() {
    return this.fromFile ? null : writeLink(this.settings);
  }

  say(text, bad = false, code = "") {
    this.message = { text, bad, code };
    this.changed();
  }
}
