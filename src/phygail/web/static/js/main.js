// Starts the page: puts the app, the lanes and the controls together and keeps them on one beat.
import { App } from "./app.js";
import { drawChart } from "./chart.js";
import { addRemoteMethod } from "./methods/index.js";
import { RaceServer } from "./remote.js";
import { wireRuns } from "./runs.js";
import { showClock, showControls, showTable, wireControls } from "./controls.js";
import { Lanes } from "./lanes.js";
import { paletteOf } from "./palette.js";
import { flyCase } from "./fly.js";
import { tellStory } from "./story.js";
import { note, timing } from "./timing.js";

const root = document.documentElement;
const box = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
let palette = paletteOf("light");
let dirty = true; // something besides the clock has changed
let chosenTheme = null;

function showTheme() {
  const theme = chosenTheme ?? (dark.matches ? "dark" : "light");
  root.dataset.theme = theme;
  palette = paletteOf(theme);
  dirty = true;
}

function flipTheme() {
  chosenTheme = root.dataset.theme === "dark" ? "light" : "dark";
  showTheme();
}

const app = new App({
  calm: matchMedia("(prefers-reduced-motion: reduce)").matches,
  changed: () => (dirty = true),
});
const offer = JSON.parse(document.querySelector('meta[name="phygail-server"]')?.content ?? "null");
if (offer) {
  for (const [name, note] of Object.entries(offer.methods)) addRemoteMethod(name, note);
  const address = location.href.split(/[?#]/)[0].replace(/^http/, "ws");
  app.server = new RaceServer(`${address}race`, { changed: () => (dirty = true), say: (text, bad) => app.say(text, bad) });
}
const lanes = new Lanes(app, box("lanes"));

/** Everything that changes only when somebody presses something. */
function showChanged() {
  dirty = false;
  showControls(app);
  lanes.show(palette);
  const link = app.link();
  try {
    if (link !== null && location.hash !== `#${link}`) history.replaceState(null, "", `#${link}`);
  } catch {
    // An address that cannot be changed (some embeddings) only loses the link in the address bar.
  }
}

let before = performance.now();
let shownStep = null;
function beat(now) {
  const begun = performance.now(), length = app.race.length;
  const moved = app.tick(now - before, now);
  before = now;
  const flown = performance.now();
  if (app.race.length > length) note(timing.steps, (flown - begun) / (app.race.length - length));
  if (dirty || moved || app.flash) {
    const changed = dirty;
    if (changed) showChanged();
    lanes.draw(palette, { reach: box("show-reach").checked, links: box("show-links").checked, trails: box("show-trails").checked }, now);
    showClock(app, tellStory(app.race, app.clock, app.intact));
    if (changed || shownStep !== app.step) showFigures();
    shownStep = app.step;
    note(timing.draws, performance.now() - flown);
    if (timing.pressed !== null) note(timing.strikes, performance.now() - timing.pressed);
    timing.pressed = null;
  }
  timing.frames++;
  requestAnimationFrame(beat);
}

function showFigures() {
  const chart = box("chart"), ratio = Math.min(devicePixelRatio || 1, 3), width = chart.clientWidth, height = chart.clientHeight;
  if (width && height) {
    chart.width = Math.round(width * ratio);
    chart.height = Math.round(height * ratio);
    const context = chart.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawChart(context, app.race, app.clock, width, height, palette, parseFloat(getComputedStyle(root).fontSize));
  }
  showTable(app, palette);
}

dark.addEventListener("change", showTheme);
// A document that embeds the page may say how it looks; nothing else is taken from outside.
addEventListener("message", ({ data }) => {
  if (data?.theme !== "light" && data?.theme !== "dark") return;
  chosenTheme = data.theme;
  showTheme();
});
addEventListener("resize", () => (dirty = true));
addEventListener("hashchange", () => {
  if (location.hash.slice(1) !== app.link()) app.openLink(location.hash);
});
showTheme();
wireControls(app, { setTheme: flipTheme });
if (offer?.runs) wireRuns(app, box("runs"));
if (new URLSearchParams(location.search).has("embed")) root.dataset.embed = "";
app.openLink(location.hash);
window.phygail = { app, lanes, timing, flyCase }; // for the console and for tests
requestAnimationFrame(beat);
