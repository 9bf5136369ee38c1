// The lanes on the page: a card with a canvas each, and the pointer and keys that strike.
import { rowsInDisc } from "./cases.js";
import { StillLayer } from "./layers.js";
import { between, describeLane, drawLane, makeFrame } from "./picture.js";
import { BOUND, METHODS } from "./methods/index.js";
import { timing } from "./timing.js";

const CLICK_PX = 7; // less than this between press and release is a click
const CLICK_REACH_PX = 24; // a click kills the nearest UAV within this

export class Lanes {
  constructor(app, box) {
    this.app = app;
    this.box = box;
    this.cards = [];
    this.aim = null; // {lane, x, y, radius}: the disc under the pointer or the keys
  }

  /** Cards for the lanes of the race; those that are there stay. */
  show(palette) {
    const names = this.app.race.lanes.map(({ name }) => name);
    if (names.join() !== this.cards.map((card) => card.name).join()) {
      this.aim = null;
      this.cards = names.map((name) => this.makeCard(name));
      this.box.replaceChildren(...this.cards.map((card) => card.element));
    }
    const narrow = this.box.clientWidth < 560, count = names.length;
    const columns = count === 1 ? 1 : narrow || count === 2 || (count === 4 && this.box.clientWidth < 1500) ? 2 : count;
    this.box.style.setProperty("--columns", columns);
    const rows = Math.ceil(count / columns), room = Math.max(260, (window.innerHeight * 0.68) / rows);
    this.box.style.setProperty("--side", `${Math.round(rows > 1 ? Math.max(room, 330) : room)}px`);
    this.cards.forEach((card, place) => {
      const { color, dash } = palette.lane(place);
      card.line.setAttribute("stroke", color);
      card.line.setAttribute("stroke-dasharray", dash.join(" "));
    });
  }

  makeCard(name) {
    const element = document.createElement("article");
    element.className = "lane";
    element.dataset.method = name;
    element.innerHTML = `<header><h2><svg viewBox="0 0 34 12" aria-hidden="true"><path d="M1 6h32" fill="none" stroke-width="3"/></svg></h2><span class="state"></span></header><canvas tabindex="0" role="application"></canvas>`;
    element.querySelector("h2").append(METHODS[name].title);
    const canvas = element.querySelector("canvas");
    const card = { name, element, canvas, context: canvas.getContext("2d"), state: element.querySelector(".state"), line: element.querySelector("path"), still: new StillLayer() };
    this.listen(card);
    return card;
  }

  /** Draw all lanes at the app's clock. */
  draw(palette, show, now) {
    const { app } = this, finishes = app.race.lanes.map(({ name, flight }) => (name === BOUND || !flight.done ? null : flight.finish));
    const best = Math.min(...finishes.filter((step) => step !== null && step <= app.clock), Infinity);
    const racing = finishes.length > 1 && !app.intact;
    this.cards.forEach((card, k) => {
      const { flight } = app.race.lanes[k];
      card.place = this.fit(card);
      const scene = app.intact ? wholeScene(app) : { ...between(flight, app.clock), intact: false };
      Object.assign(scene, { flight, clock: app.clock, world: app.world, place: card.place, show, palette, still: card.still });
      scene.bound = card.name === BOUND && !app.intact ? flight.bound : null;
      scene.flash = app.flashShare(now);
      scene.aim = this.aim && (this.aim.lane === card || card.name !== BOUND) ? { ...this.aim, hits: this.aim.lane === card ? this.aim.ids.length : 0 } : null;
      drawLane(card.context, scene);
      card.shown = scene;
      this.label(card, scene, flight, racing && finishes[k] !== null && finishes[k] === best);
    });
  }

  /** Size the canvas to its place on the page, in device pixels. */
  fit(card) {
    const side = card.canvas.clientWidth, ratio = Math.min(window.devicePixelRatio || 1, 3);
    const pixels = Math.round(side * ratio);
    if (card.canvas.width !== pixels) card.canvas.width = card.canvas.height = pixels;
    card.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (card.place?.side === side && card.place.world === this.app.world) return card.place;
    return Object.assign(makeFrame(this.app.world, side, 1 / ratio), { world: this.app.world });
  }

  label(card, { frame }, flight, won) {
    const { app } = this, seconds = app.world.physics.step_s;
    let text;
    if (app.intact) text = "one network";
    else if (card.name === BOUND) text = app.clock >= flight.finish ? `<b>${(flight.finish * seconds).toFixed(1)} s</b>` : `gap ${Math.round(flight.bound.length)} m`;
    else if (frame.links.count === 1) text = flight.finish !== null && app.clock >= flight.finish ? `<b>one network · ${(flight.finish * seconds).toFixed(1)} s</b>` : "<b>one network</b>";
    else text = flight.done && app.clock >= flight.step ? "out of time" : `${frame.links.count} subnets`;
    if (flight.trouble && !app.intact) text = escapeText(flight.trouble);
    else if (flight.remote && !flight.done && app.clock >= flight.step && !app.intact) text += " · waiting";
    if (card.state.innerHTML !== text) {
      card.state.innerHTML = text;
      const what = card.name === BOUND ? "Lower bound: the longest gap that must be closed" : describeLane(METHODS[card.name].title, frame, app.clock, seconds);
      card.canvas.setAttribute("aria-label", `${what}. Arrow keys aim, Enter strikes.`);
    }
    card.element.classList.toggle("won", won);
  }

  listen(card) {
    const { canvas } = card;
    let press = null;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !card.place || press) return;
      press = at(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!press) return;
      const [px, py] = at(event), far = Math.hypot(px - press[0], py - press[1]);
      this.setAim(far < CLICK_PX ? null : card, card.place.toMap(...press), far / card.place.scale);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!press) return;
      const [px, py] = at(event), far = Math.hypot(px - press[0], py - press[1]);
      if (far < CLICK_PX) this.strikeNearest(card, px, py);
      else this.strikeDisc(card, card.place.toMap(...press), far / card.place.scale);
      press = null;
      this.setAim(null);
    });
    canvas.addEventListener("pointercancel", () => {
      press = null;
      this.setAim(null);
    });
    canvas.addEventListener("keydown", (event) => this.key(card, event));
    canvas.addEventListener("blur", () => this.setAim(null));
  }

  /** Keys of a focused picture: arrows aim, plus and minus size the disc, Enter strikes. */
  key(card, event) {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    const { extent } = card.place, aim = this.aim?.lane === card ? this.aim : { x: this.app.world.center[0], y: this.app.world.center[1], radius: extent / 8 };
    if (by) this.setAim(card, [aim.x + (by[0] * extent) / 40, aim.y + (by[1] * extent) / 40], aim.radius);
    else if (event.key === "+" || event.key === "=") this.setAim(card, [aim.x, aim.y], aim.radius * 1.15);
    else if (event.key === "-") this.setAim(card, [aim.x, aim.y], aim.radius / 1.15);
    else if (event.key === "Enter") this.strikeDisc(card, [aim.x, aim.y], aim.radius);
    else if (event.key === "Escape") this.setAim(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  setAim(card, point, radius) {
    this.aim = card ? { lane: card, x: point[0], y: point[1], radius, ids: this.idsInDisc(card, point, radius) } : null;
    this.app.changed();
  }

  idsInDisc(card, [x, y], radius) {
    const { points, frame } = card.shown;
    return rowsInDisc(points, x, y, radius).map((row) => frame.ids[row]);
  }

  strikeDisc(card, point, radius) {
    this.hit(this.idsInDisc(card, point, radius), [[...point, radius]]);
  }

  strikeNearest(card, px, py) {
    const { points, frame } = card.shown;
    let best = -1, least = CLICK_REACH_PX;
    for (let row = 0; row < frame.ids.length; row++) {
      const far = Math.hypot(card.place.x(points[2 * row]) - px, card.place.y(points[2 * row + 1]) - py);
      if (far < least) [best, least] = [row, far];
    }
    if (best >= 0) this.hit([frame.ids[best]], [[points[2 * best], points[2 * best + 1], 12]]);
  }

  /** Strike. Before the strike of the case the whole swarm is shown: whom that takes anyway is no further loss. */
  hit(ids, spots) {
    timing.pressed = performance.now();
    const hit = this.app.strike(ids, spots, timing.pressed);
    const flying = this.app.race.lanes[0].flight.frameAt(this.app.step).ids.length;
    if (!hit.length && ids.length && flying <= 2) this.app.say("At least two UAVs must stay alive.");
  }
}

/** The swarm before the strike. */
function wholeScene(app) {
  if (!app.race.whole) {
    const ids = Array.from({ length: app.world.layout.length / 2 }, (_, i) => i);
    app.race.whole = app.race.start("center-fly").frame({ origin: new Map(ids.map((id) => [id, 0])) }, ids, app.world.layout, ids);
  }
  return { frame: app.race.whole, points: app.world.layout, intact: true };
}

function escapeText(text) {
  return Object.assign(document.createElement("span"), { textContent: text.slice(0, 60) }).innerHTML;
}
