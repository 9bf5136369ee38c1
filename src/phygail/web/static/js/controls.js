// The panel, the clock's buttons, keys, files: everything that one can press.
import { SOURCES } from "./cases.js";
import { addRecording, isTrajectory, readTrajectory } from "./recording.js";
import { CaseError, readCase, writeScenario } from "./scenario_file.js";
import { MOST_LANES } from "./link.js";
import { PRESETS, presetSettings } from "./presets.js";
import { BOUND, METHODS } from "./methods/index.js";

const MOST_FILE_BYTES = 6e7;
const byId = (id) => document.getElementById(id);

/** Wire every control to the app. */
export function wireControls(app, { setTheme }) {
  fillSelects();
  wireSwarm(app);
  wireClock(app);
  wireRace(app);
  wireShare(app);
  wireKeys(app);
  byId("theme").addEventListener("click", setTheme);
}

function fillSelects() {
  const option = (value, text) => Object.assign(document.createElement("option"), { value, textContent: text });
  byId("preset").append(option("", "choose…"), ...Object.entries(PRESETS).map(([name, { title }]) => option(name, title)));
  byId("source").append(...Object.entries(SOURCES).map(([name, title]) => option(name, title)), option("file", "from a file"));
  byId("source").lastChild.disabled = true;
}

function wireSwarm(app) {
  const fresh = (settings) => {
    app.say("");
    app.playing = !app.calm;
    app.setUp({ hits: [], ...settings });
  };
  byId("preset").addEventListener("change", (event) => {
    if (event.target.value) fresh(presetSettings(event.target.value));
  });
  byId("source").addEventListener("change", ({ target }) => {
    fresh({ source: target.value, ...(target.value.startsWith("paper-") ? { n: Number(target.value.slice(6)) } : {}) });
  });
  byId("n").addEventListener("input", ({ target }) => {
    const source = app.fromFile || app.settings.source.startsWith("paper-") ? "random" : app.settings.source;
    fresh({ n: Number(target.value), source });
  });
  byId("lost").addEventListener("input", ({ target }) => fresh({ lost: Number(target.value) }));
  byId("seed").addEventListener("change", ({ target }) => {
    const seed = Math.round(Number(target.value));
    if (seed >= 0 && seed <= 999999) fresh({ seed });
    else app.say(`Seed ${target.value}: choose a whole number from 0 to 999,999.`, true);
  });
  byId("dice").addEventListener("click", () => fresh({ seed: (app.settings.seed + 1) % 1000000 }));
  byId("shatter").addEventListener("click", () => shatter(app));
  byId("heal").addEventListener("click", () => app.undoStrikes());
}

/** Lose half of those flying, chosen by the seed and the step: the same link gives the same loss. */
function shatter(app) {
  const frame = app.race.lanes[0].flight.frameAt(app.step);
  const salt = app.settings.seed * 7919 + app.step * 31 + frame.ids.length;
  const keyed = frame.ids.map((id) => [Math.imul(id + 1, 2654435761) ^ Math.imul(salt + id * 97, 40503), id]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const ids = keyed.slice(0, Math.floor(keyed.length / 2)).map(([, id]) => id).sort((a, b) => a - b);
  app.playing = true;
  app.strike(ids, [], performance.now());
}

function wireClock(app) {
  byId("play").addEventListener("click", () => app.togglePlay());
  byId("restart").addEventListener("click", () => {
    app.playing = !app.calm;
    app.rewind();
  });
  byId("back").addEventListener("click", () => app.nudge(-1));
  byId("forward").addEventListener("click", () => app.nudge(1));
  byId("scrub").addEventListener("input", ({ target }) => app.seek(Number(target.value)));
  byId("speed").addEventListener("change", ({ target }) => {
    app.settings.speed = Number(target.value);
    app.changed();
  });
}

function wireRace(app) {
  const box = byId("methods");
  box.addEventListener("change", () => {
    const chosen = [...box.querySelectorAll("input:checked")].map((input) => input.value);
    if (chosen.length > MOST_LANES) app.say(`Up to ${MOST_LANES} lanes: take one away first.`, true);
    else if (!chosen.length) app.say("A race needs a lane: choose a method.", true);
    else {
      // Lanes keep their places; new ones come last.
      const kept = app.settings.methods.filter((name) => chosen.includes(name));
      app.say("");
      app.setLanes([...kept, ...chosen.filter((name) => !kept.includes(name))]);
      return;
    }
    app.changed();
  });
  byId("safety").addEventListener("change", ({ target }) => app.setSafety(target.checked));
  for (const id of ["show-reach", "show-links", "show-trails"]) byId(id).addEventListener("change", () => app.changed());
}

/** A box to tick for every lane that the case can have: recordings belong to one case only. */
function showChoices(app) {
  const box = byId("methods"), boxes = [...box.querySelectorAll("input")], known = new Set(boxes.map((input) => input.value));
  for (const name of Object.keys(METHODS)) if (!known.has(name)) boxes.push(addChoice(box, name));
  for (const input of boxes) {
    const { recording } = METHODS[input.value];
    input.checked = app.settings.methods.includes(input.value);
    input.closest("label").hidden = Boolean(recording) && recording.world !== app.world;
  }
}

function addChoice(box, name) {
  const label = document.createElement("label"), { title, note } = METHODS[name];
  label.className = "check";
  label.innerHTML = `<input type="checkbox"><span><small></small></span>`;
  label.querySelector("input").value = name;
  label.querySelector("span").prepend(title);
  label.querySelector("small").textContent = note;
  box.append(label);
  return label.querySelector("input");
}

function wireShare(app) {
  byId("copy-link").addEventListener("click", () => {
    const link = app.link();
    if (link === null) app.say("This case came from a file: pass on the file. A link carries cases that the page drew.", true);
    else copy(app, `${location.href.split("#")[0]}#${link}`, "The link is copied.");
  });
  byId("save").addEventListener("click", () => {
    const blob = new Blob([writeScenario(app.world, lostAtStart(app), app.race.events)], { type: "application/json" });
    const anchor = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: fileName(app) });
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
    app.say(`Saved as ${fileName(app)}.`);
  });
  byId("copy-command").addEventListener("click", () => {
    const names = app.settings.methods.filter((name) => name !== BOUND && !METHODS[name].recording);
    const methods = names.length ? ` --methods ${names.join(",")}` : "";
    const command = `phygail recover --scenarios ${fileName(app)}${methods}${app.settings.safety ? " --safety on" : ""}`;
    copy(app, command, "Copied. Save the case beside it.", command);
  });
  byId("open").addEventListener("click", () => byId("file").click());
  byId("file").addEventListener("change", ({ target }) => {
    if (target.files[0]) openFile(app, target.files[0]);
    target.value = "";
  });
  wireDrop(app);
}

function wireDrop(app) {
  let depth = 0;
  const show = (on) => (byId("drop").hidden = !on);
  addEventListener("dragenter", (event) => {
    event.preventDefault();
    show(++depth > 0);
  });
  addEventListener("dragleave", () => show(--depth > 0));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    show((depth = 0) > 0);
    const file = event.dataTransfer?.files[0];
    if (file) openFile(app, file);
  });
}

/** Read a scenario file; whatever is wrong with it is one line, and the race goes on. */
async function openFile(app, file) {
  try {
    if (file.size > MOST_FILE_BYTES) throw new CaseError(`it has ${(file.size / 1e6).toFixed(0)} MB: at most ${MOST_FILE_BYTES / 1e6} MB are read`);
    const text = await file.text();
    if (isTrajectory(text)) return openRecording(app, file.name, text, app.world ? [app.world] : []);
    const { world, count } = readCase(file.name, text);
    app.playing = !app.calm;
    app.setUpFile(world);
    app.say(`${world.id}: ${world.layout.length / 2} UAVs from ${file.name}.${count > 1 ? ` The first of ${count} cases.` : ""}`);
  } catch (error) {
    if (!(error instanceof CaseError)) throw error;
    app.say(`${file.name}: ${error.message}`, true);
  }
}

/** Show a recorded flight; `worlds` are the cases that it may belong to. */
export function openRecording(app, file, text, worlds) {
  const name = addRecording(file, readTrajectory(text), worlds), { world, frames } = METHODS[name].recording;
  app.showRecording(name);
  const unknown = world.bare ? " Who was lost is not in this file: open its scenario file first to see them." : "";
  app.say(`${file}: recorded flight of ${frames[0].ids.length} UAVs, ${frames.length - 1} steps.${unknown}`);
}

function lostAtStart(app) {
  const flying = new Set(app.race.firstFrame().ids);
  return Array.from({ length: app.world.layout.length / 2 }, (_, i) => i).filter((id) => !flying.has(id));
}

function fileName(app) {
  return `${app.world.id.replace(/[^\w.-]+/g, "_").slice(0, 60)}.json`;
}

async function copy(app, text, done, code = "") {
  try {
    await navigator.clipboard.writeText(text);
    app.say(done, false, code);
  } catch {
    app.say("The browser does not let the page copy. Here it is:", false, text);
  }
}

function wireKeys(app) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    const pressing = event.target.tagName === "BUTTON" || event.target.tagName === "SUMMARY";
    const button = { " ": "play", ",": "back", ".": "forward", r: "restart", n: "dice", s: "shatter", u: "heal" }[event.key.toLowerCase()];
    if (!button || typing || (event.key === " " && pressing)) return;
    event.preventDefault();
    showControls(app); // a key may come before the next frame has switched its button on or off
    byId(button).click();
  });
}

/** Show the app's state on the controls. */
export function showControls(app) {
  const { settings, world, race } = app, n = world.layout.length / 2;
  byId("source").value = app.fromFile ? "file" : settings.source;
  byId("n").value = n;
  byId("n-out").textContent = n;
  byId("lost").value = settings.lost;
  const lost = app.fromFile ? world.damaged.length / n : settings.lost;
  byId("lost-out").textContent = `${Math.round(100 * lost)} %`;
  byId("lost").disabled = app.fromFile;
  if (document.activeElement !== byId("seed")) byId("seed").value = settings.seed;
  showChoices(app);
  byId("safety").checked = settings.safety;
  byId("speed").value = String(settings.speed);
  byId("range-out").textContent = Number(world.physics.range_m.toPrecision(4));
  byId("contact-out").textContent = Number(world.physics.contact_m.toPrecision(4));
  byId("heal").disabled = !race.events.length;
  const message = byId("message");
  message.className = app.message.bad ? "bad" : "";
  message.textContent = app.message.text;
  if (app.message.code) message.append(document.createElement("br"), Object.assign(document.createElement("code"), { textContent: app.message.code }));
}

/** Show the clock. */
export function showClock(app, story) {
  const { race } = app, scrub = byId("scrub"), seconds = app.world.physics.step_s;
  scrub.max = Math.max(1, race.length);
  scrub.value = app.step;
  const text = `${(app.step * seconds).toFixed(1)} s`;
  byId("time").textContent = app.intact ? "before" : text;
  scrub.setAttribute("aria-valuetext", app.intact ? "before the strike" : text);
  const over = race.done && app.clock >= race.length;
  const label = app.playing && !over ? "Pause" : over && race.length ? "Replay" : "Play";
  if (byId("play-text").textContent !== label) {
    byId("play-text").textContent = label;
    byId("play").setAttribute("aria-label", label);
    byId("play-icon").setAttribute("d", label === "Pause" ? "M7 5h4v14H7zM13 5h4v14h-4z" : "M8 5v14l11-7z");
  }
  if (byId("story").textContent !== story) byId("story").textContent = story;
}

/** Fill the finishing table. */
export function showTable(app, palette) {
  const body = byId("table").tBodies[0], { race } = app;
  const rows = race.results();
  const best = rows.find((row) => row.name !== BOUND && row.steps !== null);
  const text = rows.map((row) => {
    const place = race.lanes.findIndex((lane) => lane.name === row.name), bound = row.name === BOUND;
    const steps = row.steps ?? (row.failed ? `> ${row.budget}` : "…");
    const cells = [steps, row.seconds === null ? "" : `${row.seconds.toFixed(1)} s`, row.ratio === null ? "" : row.ratio.toFixed(2), bound ? "" : row.contacts, bound ? "" : `${row.way.toFixed(0)} m`];
    const kind = bound ? "bound" : row === best && race.done ? "won" : "";
    return `<tr class="${kind}" data-method="${row.name}"><td><svg width="26" height="8" aria-hidden="true"><path d="M0 4h26" stroke="${palette.lane(place).color}" stroke-width="3" stroke-dasharray="${palette.lane(place).dash.join(" ")}"/></svg> ${METHODS[row.name].title}</td>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
  }).join("");
  if (body.dataset.text !== text) {
    body.dataset.text = text;
    body.innerHTML = text;
  }
}
