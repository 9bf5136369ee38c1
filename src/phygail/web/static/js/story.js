// One sentence at a time: what just happened, in the words of somebody who sees this for the first time.
import { BOUND, METHODS } from "./methods/index.js";

const EXPLAIN_AFTER = 14; // steps after a strike: first what happened, then what it means

/** The sentence for this moment of the race. */
export function tellStory(race, clock, intact) {
  const n = race.world.layout.length / 2, { step_s } = race.world.physics;
  if (intact) return `${n} UAVs, one network: everybody reaches everybody, from radio to radio.`;
  const first = race.firstFrame();
  const strikes = [0, ...race.events.map((event) => event.step).filter((step) => step > 0 && step <= clock)];
  const last = strikes[strikes.length - 1];
  if (last === 0 && first.links.count === 1) {
    const lost = n - first.ids.length;
    return `${lost ? `${lost} UAVs lost, and still` : `${n} UAVs,`} one network. Click UAVs, drag a disc, or press Shatter.`;
  }
  if (race.done && clock >= race.length) return tellFinish(race);
  if (clock - last < EXPLAIN_AFTER) return last === 0 ? tellStrike(first, n) : tellLater(race, last);
  const over = race.lanes.filter(({ name, flight }) => name !== BOUND && flight.finish !== null && flight.finish <= clock);
  if (over.length) {
    const { name, flight } = over.reduce((a, b) => (b.flight.finish < a.flight.finish ? b : a));
    return `${METHODS[name].title} has one network again, after ${(flight.finish * step_s).toFixed(1)} s.`;
  }
  return "A subnet hears only itself. It knows the plan from before the strike, and must find the others.";
}

function tellStrike(frame, n) {
  const lost = n - frame.ids.length;
  if (!lost) return `${n} UAVs, ${frame.links.count} subnets that cannot hear each other.`;
  return `Strike: ${lost} UAVs lost. The ${frame.ids.length} left are ${frame.links.count} subnets that cannot hear each other.`;
}

function tellLater(race, step) {
  const ids = race.events.filter((event) => event.step === step).flatMap((event) => event.ids);
  return `Strike in flight: ${ids.length} more UAV${ids.length > 1 ? "s" : ""} lost, the same in every lane.`;
}

function tellFinish(race) {
  const { step_s } = race.world.physics;
  const rows = race.results().filter((row) => row.name !== BOUND);
  const won = rows.filter((row) => row.steps !== null), failed = rows.filter((row) => row.steps === null);
  const times = won.map((row) => `${METHODS[row.name].title} ${row.seconds.toFixed(1)} s`).join(", ");
  const lost = failed.map((row) => METHODS[row.name].title).join(" and ");
  const limit = race.later || !race.bound.steps ? "" : ` Nothing can be faster than ${(race.bound.steps * step_s).toFixed(1)} s.`;
  return `${times ? `One network again: ${times}.` : ""}${lost ? ` ${lost} did not make it in time.` : ""}${limit}`.trim();
}
