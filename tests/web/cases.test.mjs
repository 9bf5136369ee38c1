// Cases, links to them, files of them.
import assert from "node:assert/strict";
import test from "node:test";
import { SOURCES, checkStrike, damageCount, drawCase, leastDistance, withoutRows } from "../../src/phygail/web/static/js/cases.js";
import { findLinks } from "../../src/phygail/web/static/js/links.js";
import { DEFAULTS, readLink, writeLink } from "../../src/phygail/web/static/js/link.js";
import { PRESETS, presetSettings } from "../../src/phygail/web/static/js/presets.js";
import { CaseError, readCase, readScenario, writeScenario } from "../../src/phygail/web/static/js/scenario_file.js";
import { PHYSICS } from "../../src/phygail/web/static/js/world.js";

test("drawn layouts are one network, 10 m apart, and split by their damage", () => {
  for (const source of ["random", "ring", "clusters"]) {
    for (const n of [20, 30, 60, 150, 500]) {
      for (const seed of [0, 1]) {
        const world = drawCase({ source, n, seed, damage: 0.5 }), what = `${source} ${n} ${seed}`;
        assert.equal(world.layout.length, 2 * n, what);
        assert.equal(findLinks(world.layout, PHYSICS).count, 1, what);
        assert.ok(leastDistance(world.layout) >= 10, what);
        assert.ok(world.layout.every((v) => v >= 0 && v <= world.width), what);
        assert.equal(world.damaged.length, n / 2, what);
        assert.ok(findLinks(withoutRows(world.layout, world.damaged), PHYSICS).count > 1, what);
      }
    }
  }
});

test("a case depends on its settings only", () => {
  const settings = { source: "random", n: 60, seed: 4, damage: 0.5 };
  assert.deepEqual(drawCase(settings), drawCase(settings));
  assert.notDeepEqual(drawCase(settings).layout, drawCase({ ...settings, seed: 5 }).layout);
  assert.deepEqual(drawCase(settings).layout, drawCase({ ...settings, damage: 0.2 }).layout);
});

test("the paper's layouts are there whole", () => {
  assert.deepEqual(Object.keys(SOURCES).filter((name) => name.startsWith("paper-")), ["paper-20", "paper-50", "paper-100", "paper-200", "paper-500"]);
  assert.equal(drawCase({ source: "paper-500", n: 500, seed: 1, damage: 0.5 }).layout.length, 1000);
});

test("damage is rounded half up and always leaves two", () => {
  assert.equal(damageCount(50, 0.15), 8);
  assert.equal(damageCount(20, 0.95), 18);
  assert.deepEqual(checkStrike([1, 2, 3, 4], [4, 3, 2, 1]), [1, 2]);
  assert.deepEqual(checkStrike([1, 2], [1]), []);
});

test("every preset splits the swarm, but for the one that waits for your strike", () => {
  for (const name of Object.keys(PRESETS)) {
    const settings = presetSettings(name), world = drawCase({ ...settings, damage: settings.lost });
    const lost = [...world.damaged, ...settings.hits.flatMap((hit) => hit.ids)];
    const { count } = findLinks(withoutRows(world.layout, lost), PHYSICS);
    assert.equal(count > 1, name !== "whole", `${name}: ${count}`);
  }
});

test("a link brings back every setting", () => {
  const settings = { source: "ring", n: 150, seed: 99, lost: 0.35, hits: [{ step: 0, ids: [3, 17] }, { step: 41, ids: [140] }], methods: ["sidr", "bound"], safety: true, speed: 0.5 };
  const { settings: read, bad } = readLink(`#${writeLink(settings)}`);
  assert.deepEqual(read, settings);
  assert.deepEqual(bad, []);
  assert.deepEqual(readLink("").settings, { ...DEFAULTS });
});

test("garbage in a link is named and replaced, never obeyed", () => {
  const garbage = "#layout=__proto__&n=1e9&seed=-3&lost=NaN&hit=0-zzzz.%3Cscript%3E&race=constructor,toString&safety=maybe&speed=99&x=%00";
  const { settings, bad } = readLink(garbage);
  assert.deepEqual(settings, { ...DEFAULTS });
  assert.deepEqual(bad, ["layout", "n", "seed", "lost", "hit", "race", "safety", "speed"]);
  assert.deepEqual(readLink("#hit=0-zz&n=50").bad, ["hit"]); // UAV 1295 of 50
  assert.deepEqual(readLink("#%%%&&==&n").bad, ["n"]);
  assert.equal(readLink("#race=sidr,sidr,bound,center-fly").settings.methods.length, 3);
});

test("a saved case is read back exactly", () => {
  const world = drawCase({ source: "random", n: 40, seed: 2, damage: 0.5 });
  const { world: read, count } = readScenario(writeScenario(world, world.damaged));
  assert.equal(count, 1);
  for (const key of ["id", "width", "budget"]) assert.equal(read[key], world[key]);
  assert.deepEqual(read.layout, world.layout);
  assert.deepEqual(read.damaged, world.damaged);
  assert.deepEqual({ ...read.physics }, { ...PHYSICS });
});

test("strikes in flight are events of the file, and counted from the last of them is the budget of the case", () => {
  const world = drawCase({ source: "random", n: 40, seed: 2, damage: 0.5 }), strikes = [{ step: 9, ids: [1, 30] }, { step: 44, ids: [7] }];
  const damaged = world.damaged.filter((id) => ![1, 30, 7].includes(id)), text = writeScenario(world, damaged, [{ step: 0, ids: [2] }, ...strikes]);
  const [entry] = JSON.parse(text).scenarios;
  assert.deepEqual(entry.events, [{ step: 9, uavs: [1, 30] }, { step: 44, uavs: [7] }]);
  assert.equal(entry.budget_steps, world.budget + 44);
  const read = readScenario(text).world;
  assert.deepEqual([read.strikes, read.budget], [strikes, world.budget]);
  const { budget_steps, ...bare } = entry, drawn = { ...bare, world: "trickle=0.1:40", weather: 7 }; // as `phygail scenarios` may write it
  assert.deepEqual(readScenario(JSON.stringify({ scenarios: [drawn] })).world.strikes, strikes);
});

test("the seed of a case is kept, and none is made up", () => {
  const entry = { id: "a", positions: [[0, 0], [100, 40]], damaged: [] };
  const written = (more) => JSON.parse(writeScenario(readScenario(JSON.stringify({ scenarios: [{ ...entry, ...more }] })).world, [])).scenarios[0];
  assert.equal(written({ seed: 7 }).seed, 7);
  assert.equal(written({ seed: 0 }).seed, 0);
  assert.ok(!("seed" in written({})));
  for (const seed of [-1, 1.5, "7", null]) assert.throws(() => written({ seed }), CaseError);
});

test("a layout without a map is centered on its bounding box", () => {
  const { world } = readScenario('{"scenarios": [{"id": "a", "positions": [[0, 0], [100, 40], [-20, 10]], "damaged": []}]}');
  assert.deepEqual([world.width, ...world.center, world.boxed], [120, 40, 20, true]);
  assert.ok(!writeScenario(world, []).includes("width"));
});

test("a layout CSV is a case in which nobody is lost yet", () => {
  const { world } = readCase("my swarm.csv", "\uFEFFx_m, y_m\r\n0,0\r\n100, 40\r\n\r\n-20,10\r\n");
  assert.deepEqual([world.id, [...world.layout], world.damaged, world.width], ["my swarm", [0, 0, 100, 40, -20, 10], [], 120]);
  for (const [text, wrong] of [["x_m,y_m\n1,2\n3\n", /line 3 “3” is not two numbers/], ["x_m,y_m\n1,2\n3,\n", /line 3/], ["x_m,y_m\n1,nan\n", /line 2/], ["x_m,y_m\n1,2\n", /1 UAV/], ["a,b\n1,2\n", /not JSON/]]) {
    assert.throws(() => readCase("a.csv", text), (error) => error instanceof CaseError && wrong.test(error.message));
  }
});

const entry = (extra) => JSON.stringify({ scenarios: [{ id: "a", positions: [[0, 0], [50, 0], [99, 0]], damaged: [], ...extra }] });
const many = Array.from({ length: 10000 }, (_, i) => [i, 0]);
for (const [what, text, wrong] of [
  ["no JSON", "x,y\n1,2\n", /not JSON/],
  ["another JSON", "[1, 2]", /no scenario in this file/],
  ["no scenarios", '{"scenarios": []}', /no scenario in this file/],
  ["null", "null", /no scenario in this file/],
  ["10,000 UAVs", entry({ positions: many }), /10,000 UAVs in this file: the page flies up to 1,000/],
  ["one UAV", entry({ positions: [[0, 0]] }), /1 UAV in this file/],
  ["NaN", entry({}).replace("[50,0]", "[NaN,0]"), /not JSON/],
  ["null for a number", entry({ positions: [[0, 0], [null, 1]] }), /position 1 \[null,1\]/],
  ["text for a number", entry({ positions: [[0, 0], ["5", 1]] }), /position 1/],
  ["too far", entry({ positions: [[0, 0], [1e300, 1]] }), /position 1/],
  ["a twin", entry({ positions: [[0, 0], [0, 0], [1, 1]] }), /occurs twice/],
  ["damaged out of range", entry({ damaged: [3] }), /damaged UAV 3: give whole numbers from 0 to 2/],
  ["damaged twice", entry({ damaged: [1, 1] }), /listed twice/],
  ["nobody left", entry({ damaged: [0, 1] }), /at least 2 must stay alive/],
  ["negative width", entry({ width: -5 }), /width -5/],
  ["outside the map", entry({ width: 60 }), /outside the map/],
  ["unknown key", entry({ wind: 3 }), /unknown key “wind”/],
  ["no id", entry({ id: 7 }), /no id/],
  ["budget", entry({ budget_steps: 1.5 }), /budget_steps 1.5/],
  ["a world of obstacles", entry({ obstacles: [{ disc: [1, 2, 3] }] }), /“obstacles” is of a world that the page does not fly: use phygail recover/],
  ["events that are none", entry({ events: 3 }), /“events” must be a list/],
  ["an event that is none", entry({ events: [null] }), /event 0: step undefined/],
  ["a strike at whoever is there", entry({ events: [{ step: 4, strike: [0, 0, 9] }] }), /event 0 hits whoever is there/],
  ["an event at step 0", entry({ events: [{ step: 0, uavs: [1] }] }), /event 0: step 0: give a whole number from 1/],
  ["an event after the end", entry({ budget_steps: 8, events: [{ step: 9, uavs: [1] }] }), /event 0: step 9: give a whole number from 1 to the budget of 8/],
  ["an event without UAVs", entry({ events: [{ step: 4 }] }), /event 0: give step and a list of uavs/],
  ["an event with a stranger", entry({ events: [{ step: 4, uavs: [3] }] }), /event 0: UAV 3: give whole numbers from 0 to 2/],
  ["somebody lost twice", entry({ damaged: [1], events: [{ step: 4, uavs: [1] }] }), /event 0: UAV 1 is lost already/],
  ["events that leave nobody", entry({ damaged: [1], events: [{ step: 4, uavs: [0] }] }), /leave 1 of 3 UAVs: at least 2/],
]) {
  test(`a dropped file is refused in one line: ${what}`, () => {
    assert.throws(() => readScenario(text), (error) => error instanceof CaseError && wrong.test(error.message) && !error.message.includes("\n"));
  });
}
