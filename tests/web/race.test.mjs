// Flights that are struck, scrubbed and flown on, and the app that holds the clock.
import assert from "node:assert/strict";
import test from "node:test";
import { App, INTRO_STEPS } from "../../src/phygail/web/static/js/app.js";
import { drawCase } from "../../src/phygail/web/static/js/cases.js";
import { Flight } from "../../src/phygail/web/static/js/flight.js";
import { METHODS } from "../../src/phygail/web/static/js/methods/index.js";
import { Race } from "../../src/phygail/web/static/js/race.js";
import { tellStory } from "../../src/phygail/web/static/js/story.js";

const RULES = Object.keys(METHODS).filter((name) => METHODS[name].rule);
const world = drawCase({ source: "random", n: 80, seed: 11, damage: 0.5 });
const fly = (race, step = Infinity) => race.advanceTo(Math.min(step, 5000));
const last = (lane) => [...lane.flight.last.positions];

test("a race ends in one network for every method, and no method beats the bound", () => {
  const race = new Race(world, ["sidr", "center-fly", "bound"], false);
  fly(race);
  assert.ok(race.done);
  const rows = race.results();
  assert.equal(rows[0].name, "bound");
  assert.ok(rows.every((row) => row.steps >= race.bound.steps && row.ratio >= 1));
});

for (const name of RULES) {
  test(`${name}: a strike in flight gives the same flight live, after scrubbing back, and from a link`, () => {
    const live = new Race(world, [name], false);
    fly(live, 21);
    const ids = [...live.lanes[0].flight.frames[21].ids.slice(3, 12)];
    live.strike(21, ids);
    fly(live);
    const scrubbed = new Race(world, [name], false);
    fly(scrubbed);
    scrubbed.strike(21, ids);
    fly(scrubbed);
    const linked = new Race(world, [name], false, [{ step: 21, ids }]);
    fly(linked);
    assert.equal(live.lanes[0].flight.step, linked.lanes[0].flight.step);
    // From a link it is known from the start that somebody will be lost: beliefs round otherwise, nothing else differs.
    for (const race of [live, scrubbed]) {
      assert.deepEqual(race.lanes[0].flight.last.ids, linked.lanes[0].flight.last.ids);
      last(race.lanes[0]).forEach((value, k) => assert.ok(Math.abs(value - last(linked.lanes[0])[k]) < 1e-6));
    }
    assert.ok(!linked.lanes[0].flight.last.ids.some((id) => ids.includes(id)));
  });

  test(`${name}: two strikes at one step count as one`, () => {
    const twice = new Race(world, [name], true), once = new Race(world, [name], true);
    for (const race of [twice, once]) fly(race, 10);
    const ids = [...once.lanes[0].flight.frames[10].ids.slice(0, 8)];
    twice.strike(10, ids.slice(0, 4));
    twice.strike(10, ids.slice(4));
    once.strike(10, ids);
    for (const race of [twice, once]) fly(race);
    assert.deepEqual(last(twice.lanes[0]), last(once.lanes[0]));
  });
}

test("a strike into one network begins a new leg: everybody knew where everybody was", () => {
  const race = new Race(world, ["sidr"], false);
  fly(race);
  const { flight } = race.lanes[0], end = flight.step, alive = flight.last.ids;
  race.strike(end + 1, alive.filter((_, k) => k % 3));
  fly(race);
  const { leg, before } = flight.frames[end + 1];
  assert.equal(leg.begin, end + 1);
  alive.forEach((id, row) => assert.deepEqual(leg.roster.slice(2 * id, 2 * id + 2), before.positions.slice(2 * row, 2 * row + 2)));
  assert.ok(race.done && flight.last.links.count === 1);
});

test("a strike in the very step in which the network would have become one finds it split, one after the end of the race does not", () => {
  const race = new Race(world, ["sidr"], false), { flight } = race.lanes[0];
  fly(race);
  const end = flight.step;
  race.strike(end, flight.last.ids.filter((_, k) => k % 3));
  assert.equal(flight.last.leg.begin, 0);
  const app = new App({ calm: true });
  app.openLink("#n=60&seed=3&race=sidr");
  app.race.advanceTo(5000);
  app.seek(app.race.length);
  const steps = app.race.length, ids = app.race.lanes[0].flight.last.ids;
  app.strike(ids.filter((_, k) => k % 3), [], 0);
  assert.equal(app.step, steps + 1);
  assert.equal(app.race.lanes[0].flight.last.leg.begin, steps + 1);
});

test("a strike may change what was flown before it: then the flight is flown anew, as the link would", () => {
  // A rule that hurries once the budget falls short: a later strike gives it more.
  const hasty = {
    start: () => ({}),
    act(view) {
      view.need = view.step + 35;
      return new Float64Array(view.positions.length).fill(view.budget < view.need ? 5 : 1);
    },
  };
  const small = { ...world, budget: 50 }, events = [{ step: 30, ids: [world.layout.length / 2 - 1] }];
  const live = new Flight(small, hasty, false), linked = new Flight(small, hasty, false, events);
  events[0].ids = [live.last.ids[0]];
  for (let k = 0; k < 30; k++) live.advance();
  live.strike(30, events);
  assert.equal(live.step, 0);
  while (!linked.done) linked.advance();
  while (!live.done) live.advance();
  assert.deepEqual(live.last.positions, linked.last.positions);
});

test("beliefs about a subnet that was torn before the first strike are flown anew, what holds no beliefs is not", () => {
  const apart = { start: () => ({}), act: (view) => view.positions.map((value, k) => (value - view.center[k % 2]) / 20) };
  for (const rebases of [true, false]) {
    const flight = new Flight(world, { ...apart, rebases }, false), before = flight.last.links.count;
    for (let k = 0; k < 20; k++) flight.advance();
    assert.ok(flight.last.links.count > before);
    flight.strike(20, [{ step: 20, ids: [flight.last.ids[0]] }]);
    assert.equal(flight.step, rebases ? 0 : 20);
  }
});

test("a lane that is done waits for a strike that comes later", () => {
  const quick = new Race(world, ["sidr"], false);
  fly(quick);
  const step = quick.lanes[0].flight.step + 15, ids = quick.lanes[0].flight.last.ids.slice(0, 5);
  const race = new Race(world, ["sidr"], false, [{ step, ids }]);
  fly(race);
  const { frames } = race.lanes[0].flight;
  assert.deepEqual(frames[step - 1].positions, frames[step - 10].positions);
  assert.equal(frames[step].ids.length, frames[step - 1].ids.length - 5);
});

test("at least two stay alive, whatever is struck", () => {
  const race = new Race(world, ["sidr"], false);
  race.strike(0, Array.from({ length: 80 }, (_, i) => i));
  assert.equal(race.firstFrame().ids.length, 2);
  assert.deepEqual(race.strike(0, [0, 1, 2]), []);
});

test("strikes can be undone, and lanes added in flight", () => {
  const race = new Race(world, ["sidr"], false), before = [...race.firstFrame().ids];
  race.strike(0, before.slice(0, 10));
  race.undoStrikes();
  assert.deepEqual(race.firstFrame().ids, before);
  fly(race, 9);
  const kept = race.lanes[0].flight;
  race.setLanes(["center-fly", "sidr"]);
  assert.equal(race.lanes[1].flight, kept);
  assert.equal(race.lanes[0].flight.step, 0);
});

test("the budget ends a flight that finds nobody", () => {
  const still = { start: () => ({}), act: (view) => new Float64Array(view.positions.length) };
  const flight = new Flight({ ...world, budget: 30 }, still, false);
  while (!flight.done) flight.advance();
  assert.equal(flight.step, 30);
  assert.equal(flight.finish, null);
});

test("the clock runs at the chosen speed, holds for a late lane, and stops at the end", () => {
  const app = new App();
  app.openLink("#n=60&seed=3&race=sidr");
  assert.equal(app.clock, -INTRO_STEPS);
  let now = 0;
  for (let k = 0; k < 24; k++) app.tick(50, (now += 50), () => now);
  assert.ok(Math.abs(app.clock) < 1e-9); // the intro takes 1.2 s at every speed
  for (let k = 0; k < 10; k++) app.tick(50, (now += 50), () => now);
  assert.ok(Math.abs(app.clock - 10 * 0.05 * 2 * 10) < 1.01);
  const held = app.clock;
  app.tick(50, now, (() => { let t = 0; return () => (t += 100); })()); // the deadline has passed at once
  assert.ok(app.clock <= Math.ceil(held));
  for (let k = 0; k < 2000; k++) app.tick(100, (now += 100), () => now);
  assert.equal(app.clock, app.race.length);
  assert.ok(app.race.done);
  assert.match(tellStory(app.race, app.clock, app.intact), /^One network again: SIDR \d/);
  app.togglePlay();
  assert.ok(app.intact && app.playing);
});

test("the story goes from one network to the strike to the search", () => {
  const app = new App();
  app.openLink("#n=60&seed=3");
  assert.match(tellStory(app.race, -3, true), /^60 UAVs, one network/);
  assert.match(tellStory(app.race, 2, false), /^Strike: 42 UAVs lost. The 18 left are \d+ subnets/);
  app.race.advanceTo(20);
  assert.match(tellStory(app.race, 16, false), /A subnet hears only itself|has one network again/);
  app.setUp({ lost: 0, hits: [] });
  assert.match(tellStory(app.race, 0, false), /^60 UAVs, one network. Click UAVs/);
});

test("who wants no motion gets the strike at rest", () => {
  const app = new App({ calm: true });
  app.openLink("#n=60");
  assert.deepEqual([app.clock, app.playing], [0, false]);
});
