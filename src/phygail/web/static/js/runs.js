// Recorded runs of a server: rows to look at, cases to fly again.
import { readScenario } from "./scenario_file.js";

/** Put the runs of the server into the panel. */
export async function wireRuns(app, section) {
  const names = await ask("runs");
  section.hidden = !names.length;
  section.innerHTML = `<h2>Recorded runs</h2><select aria-label="Recorded run"></select><div class="runs" tabindex="0" role="region" aria-label="Rows of the run"></div>`;
  const select = section.querySelector("select"), box = section.querySelector(".runs");
  for (const name of ["choose…", ...names]) select.append(new Option(name, name === "choose…" ? "" : name));
  select.addEventListener("change", async () => {
    box.replaceChildren();
    if (!select.value) return;
    const { rows, all } = await ask(`runs/${encodeURIComponent(select.value)}`);
    box.append(tableOf(app, select.value, rows));
    app.say(`${select.value}: ${all.toLocaleString("en-US")} rows${all > rows.length ? `, the first ${rows.length.toLocaleString("en-US")} are shown` : ""}. A click on one flies its case.`);
  });
}

function tableOf(app, run, rows) {
  const table = document.createElement("table");
  table.innerHTML = "<thead><tr><th scope=col>case</th><th scope=col>method</th><th scope=col>steps</th></tr></thead><tbody></tbody>";
  for (const row of rows) {
    const line = table.tBodies[0].insertRow(), button = document.createElement("button");
    button.type = "button";
    button.textContent = row.scenario;
    button.addEventListener("click", () => open(app, run, row.scenario));
    line.insertCell().append(button);
    line.insertCell().textContent = row.method;
    line.insertCell().textContent = row.converged ? row.steps : `> ${row.steps}`;
  }
  return table;
}

async function open(app, run, scenario) {
  const entry = await ask(`runs/${encodeURIComponent(run)}?scenario=${encodeURIComponent(scenario)}`).catch((error) => app.say(error.message, true));
  if (!entry) return;
  const { world } = readScenario(JSON.stringify({ scenarios: [entry] }));
  app.playing = !app.calm;
  app.setUpFile(world);
  app.say(`${world.id}, drawn again.`);
}

async function ask(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}
