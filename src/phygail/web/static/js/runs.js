// Recorded runs of a server: rows to look at, cases to fly again, flights to replay.
import { openRecording } from "./controls.js";
import { MOST_LANES } from "./link.js";
import { METHODS } from "./methods/index.js";
import { CaseError, readScenario } from "./scenario_file.js";

const WAIT_MS = 250; // after the last key before the server is asked

/** Put the runs of the server into the panel. */
export async function wireRuns(app, section) {
  const { rows, flights } = await ask("runs");
  section.hidden = !rows.length && !flights.length;
  section.innerHTML = `<h2>Recorded runs</h2><select aria-label="Recorded run"><option value="">choose…</option></select> ` +
    `<input type="search" id="find" placeholder="find a case or method" aria-label="Find rows" hidden> ` +
    `<div class="runs" tabindex="0" role="region" aria-label="Rows of the run" hidden></div>`;
  const select = section.querySelector("select"), find = section.querySelector("input");
  for (const [label, names, kind] of [["Rows", rows, "rows"], ["Flights", flights, "flight"]]) {
    const group = Object.assign(document.createElement("optgroup"), { label });
    group.append(...names.map((name) => Object.assign(new Option(name, name), { className: kind })));
    if (names.length) select.append(group);
  }
  let waiting = null;
  find.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => showRows(app, section, select.value, find.value).catch((error) => fail(app, error)), WAIT_MS);
  });
  select.addEventListener("change", () => {
    find.value = "";
    const chosen = select.selectedOptions[0], shown = chosen.className === "rows";
    find.hidden = section.querySelector(".runs").hidden = !shown;
    const done = shown ? showRows(app, section, chosen.value, "") : chosen.value ? replay(app, chosen.value) : Promise.resolve();
    done.catch((error) => fail(app, error));
  });
}

function fail(app, error) {
  if (!(error instanceof CaseError)) throw error;
  app.say(error.message, true);
}

async function showRows(app, section, run, words) {
  const { rows, found, all } = await ask(`runs/${pathOf(run)}?find=${encodeURIComponent(words)}`);
  section.querySelector(".runs").replaceChildren(tableOf(app, run, rows));
  const number = (count) => count.toLocaleString("en-US");
  app.say(`${run}: ${words ? `${number(found)} of ` : ""}${number(all)} rows${found > rows.length ? `, the first ${number(rows.length)} are shown` : ""}. A click on one flies it again.`);
}

function tableOf(app, run, rows) {
  const table = document.createElement("table");
  table.innerHTML = "<thead><tr><th scope=col>case</th><th scope=col>method</th><th scope=col>steps</th></tr></thead><tbody></tbody>";
  for (const row of rows) {
    const line = table.tBodies[0].insertRow(), button = document.createElement("button");
    button.type = "button";
    button.textContent = row.scenario;
    button.addEventListener("click", () => flyAgain(app, run, row).catch((error) => fail(app, error)));
    line.insertCell().append(button);
    line.insertCell().textContent = row.method;
    line.insertCell().textContent = row.converged ? row.steps : `> ${row.steps}`;
  }
  return table;
}

/** Fly a row's method on its case; rows of the case that is shown join the race. */
async function flyAgain(app, run, row) {
  const entry = await ask(`runs/${pathOf(run)}?scenario=${encodeURIComponent(row.scenario)}`);
  const known = Object.hasOwn(METHODS, row.method), safety = row.safety === "on";
  const joins = app.fromFile && app.world.id === row.scenario && app.settings.safety === safety;
  if (joins && known) {
    const others = app.settings.methods.filter((name) => name !== row.method);
    app.setLanes([...others.slice(1 - MOST_LANES), row.method]);
    app.rewind();
  } else if (!joins) {
    const { world } = readScenario(JSON.stringify({ scenarios: [entry] }));
    app.setUpFile(world, { safety, methods: known ? [row.method] : app.settings.methods });
  }
  app.playing = !app.calm;
  const recorded = `${row.method} needed ${row.converged ? row.steps : `more than ${row.steps}`} steps in ${run}.`;
  app.say(`${recorded}${known ? otherwise(row) : " This method is not there today."}`);
}

/** In what the recorded flight differs from what is flown here. */
function otherwise(row) {
  const ways = [row.noise_m && `noise of ${row.noise_m} m`, row.delay_steps && `a delay of ${row.delay_steps} steps`, row.bias_m && `a bias of ${row.bias_m} m`, row.variant && `the policy ${row.variant}`];
  const told = ways.filter(Boolean);
  return told.length ? ` It flew with ${told.join(" and ")}; here it flies without.` : "";
}

/** Show a recorded flight on its case, if that lies beside it. */
async function replay(app, name) {
  const { text, scenarios } = await ask(`runs/${pathOf(name)}`);
  const worlds = scenarios.map((entry) => readScenario(JSON.stringify({ scenarios: [entry] })).world);
  openRecording(app, name, text, [app.world, ...worlds]);
}

function pathOf(name) {
  return name.split("/").map(encodeURIComponent).join("/");
}

async function ask(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new CaseError(await answer.text());
  return answer.json();
}
