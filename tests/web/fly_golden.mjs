// Flies one golden case with the modules of the page.
import { readScenario } from "../../src/phygail/web/static/js/scenario_file.js";
import { Flight } from "../../src/phygail/web/static/js/flight.js";
import { METHODS } from "../../src/phygail/web/static/js/methods/index.js";
import { lowerBound } from "../../src/phygail/web/static/js/tree.js";

export function flyGolden(entry) {
  const { world } = readScenario(JSON.stringify({ scenarios: [entry.scenario] }));
  const found = { flights: {} };
  for (const name of Object.keys(entry.flights)) {
    const flight = new Flight(world, METHODS[name].rule, entry.safety);
    found.subnets = flight.frames[0].links.count;
    found.bound = lowerBound(flight.frames[0].positions, world.physics).steps;
    while (!flight.done) flight.advance();
    const { last, step } = flight;
    found.flights[name] = { steps: step, converged: last.links.count === 1, contacts: last.contacts, way_m: last.distance / last.ids.length };
  }
  return found;
}
