// A case flown without a picture: for tests, and for the console of a curious reader.
import { Flight } from "./flight.js";
import { METHODS } from "./methods/index.js";
import { readScenario } from "./scenario_file.js";
import { lowerBound } from "./tree.js";

/** Fly the first case of a scenario file, struck in flight by `events` ([{step, ids}], else those of the file): {subnets, bound, flights: {method: {steps, converged, contacts, way_m, positions}}}. */
export function flyCase(text, names, safety = false, events = null) {
  const { world } = readScenario(text);
  const found = { flights: {} };
  for (const name of names) {
    const flight = new Flight(world, METHODS[name].rule, safety, events ?? world.strikes);
    found.subnets = flight.frames[0].links.count;
    found.bound = lowerBound(flight.frames[0].positions, world.physics).steps;
    while (!flight.done) flight.advance();
    const { last, step } = flight;
    found.flights[name] = { steps: step, converged: last.links.count === 1, contacts: last.contacts, way_m: last.distance / flight.frames[0].ids.length, positions: [...last.positions] };
  }
  return found;
}
