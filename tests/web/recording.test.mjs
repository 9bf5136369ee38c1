// Recorded flights: read, checked, shown.
import assert from "node:assert/strict";
import test from "node:test";
import { METHODS } from "../../src/phygail/web/static/js/methods/index.js";
import { Race } from "../../src/phygail/web/static/js/race.js";
import { addRecording, isTrajectory, readTrajectory } from "../../src/phygail/web/static/js/recording.js";
import { readScenario } from "../../src/phygail/web/static/js/scenario_file.js";

const HEAD = "t,uav,x,y,vx,vy\n";
const line = (t, uav, x, y = 0) => `${t},${uav},${x},${y},0.0,0.0\n`;
// Two UAVs 130 m apart close in by 4 m a step until they are 118 m apart; a third, beside the first, is lost on the way.
const FLIGHT = HEAD + [0, 1, 2, 3].map((k) => line(k / 10, 0, 2 * k) + (k < 2 ? line(k / 10, 2, 2 * k, 20) : "") + line(k / 10, 3, 130 - 2 * k)).join("");
const CASE = { id: "a", positions: [[0, 0], [60, 0], [0, 20], [130, 0]], damaged: [1], center: [65, 0], budget_steps: 30 };
const worldOf = (entry) => readScenario(JSON.stringify({ scenarios: [entry] })).world;

test("a trajectory is known by its first line", () => {
  assert.ok(isTrajectory(`\uFEFF${FLIGHT}`));
  assert.ok(!isTrajectory("x_m,y_m\n1,2\n"));
});

test("a recorded flight is a lane of its case", () => {
  const world = worldOf(CASE), name = addRecording("runs/mine.sidr.csv", readTrajectory(FLIGHT), [worldOf({ ...CASE, damaged: [2] }), world]);
  assert.deepEqual([name, METHODS[name].title, METHODS[name].recording.world], ["recorded-mine.sidr", "mine.sidr", world]);
  const race = new Race(world, [name, "center-fly", "bound"], false);
  const [{ flight }] = race.lanes;
  assert.deepEqual([flight.step, flight.done, flight.finish, race.bound.steps], [3, true, 3, 5]);
  assert.deepEqual(flight.frames.map((frame) => frame.ids), [[0, 2, 3], [0, 2, 3], [0, 3], [0, 3]]);
  assert.deepEqual([flight.frames[2].struck, flight.events], [[2], [{ step: 2, ids: [2] }]]);
  assert.ok(Math.abs(flight.last.distance - (3 * 2 + 2 * 2 + 2 * 2)) < 1e-9);
  race.strike(1, [0]);
  assert.equal(flight.step, 3);
  assert.match(flight.trouble, /cannot be struck/);
});

test("without its case only the survivors are known", () => {
  const name = addRecording("mine.csv", readTrajectory(FLIGHT), [worldOf({ ...CASE, positions: [[1, 0], [60, 0], [0, 20], [130, 0]] })]);
  const { world, frames } = METHODS[name].recording;
  assert.deepEqual([world.bare, world.layout.length / 2, world.damaged], [true, 3, []]);
  assert.deepEqual(frames.map(({ ids }) => ids), [[0, 1, 2], [0, 1, 2], [0, 2], [0, 2]]);
  assert.equal(new Race(world, [name], false).lanes[0].flight.finish, 3);
});

test("two recordings of one name are two lanes", () => {
  const names = [1, 2].map(() => addRecording("twice.csv", readTrajectory(FLIGHT), []));
  assert.notEqual(names[0], names[1]);
});

test("a name from outside cannot become markup", () => {
  const name = addRecording('<img src=x onerror="alert(1)">.csv', readTrajectory(FLIGHT), []);
  assert.doesNotMatch(name + METHODS[name].title, /[<>"&]/);
});

for (const [text, wrong] of [
  [HEAD, /no flight of two UAVs/],
  [HEAD + line(0, 0, 0), /no flight of two UAVs/],
  [`${HEAD}0,0,nan,0,0,0\n`, /line 2 .* is not six numbers/],
  [`${HEAD}0,0,1,2\n`, /line 2 .* is not six numbers/],
  [HEAD + line(0, 0.5, 1), /0.5 is no number of a UAV/],
  [HEAD + line(0, 1, 0) + line(0, 0, 5), /line 3: UAV 0 is out of order/],
  [HEAD + line(1, 0, 0) + line(1, 1, 9) + line(0, 0, 0), /line 4: the time 0 s goes back/],
  [HEAD + line(0, 0, 0) + line(0, 1, 9) + line(1, 0, 0) + line(1, 2, 9), /UAV 2 appears at step 1/],
  [HEAD + [0, 1, 3].map((t) => line(t, 0, 0) + line(t, 1, 9)).join(""), /the time 3 s does not follow in steps of 1 s/],
  [HEAD + Array.from({ length: 1001 }, (_, k) => line(0, k, k)).join(""), /more than 1,000 UAVs/],
]) {
  test(`refused: ${wrong}`, () => assert.throws(() => readTrajectory(text), wrong));
}
