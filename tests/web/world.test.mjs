// World, links, bound and filter against hand-worked numbers.
import assert from "node:assert/strict";
import test from "node:test";
import { Random, hypot } from "../../src/phygail/web/static/js/numbers.js";
import { findLinks, labelSubnets, subnetMeans } from "../../src/phygail/web/static/js/links.js";
import { PHYSICS, budgetFor, projectSpeed, stepWorld, widthFor } from "../../src/phygail/web/static/js/world.js";
import { filterVelocities } from "../../src/phygail/web/static/js/safety.js";
import { lowerBound, spanningTree } from "../../src/phygail/web/static/js/tree.js";
import { centerFly } from "../../src/phygail/web/static/js/methods/center_fly.js";
import { sidr } from "../../src/phygail/web/static/js/methods/sidr.js";

const viewOf = (points, extra = {}) => ({
  physics: PHYSICS, center: [0, 0], width: 1000, step: 0, roster: points,
  members: Int32Array.from({ length: points.length / 2 }, (_, i) => i), positions: points, ...findLinks(points, PHYSICS), ...extra,
});

test("hypot knows Pythagoras, zero and very different sides", () => {
  assert.equal(hypot(3, 4), 5);
  assert.equal(hypot(-5, 12), 13);
  assert.equal(hypot(0, 0), 0);
  assert.equal(hypot(0, -7), 7);
  assert.equal(hypot(1e-20, 1), 1);
});

test("hypot is correctly rounded where Math.hypot or the plain root may not be", () => {
  // (2^k a, 2^k b) must be exactly 2^k times as long: a property that sloppy forms lose in the last bit.
  const random = new Random(5);
  for (let k = 0; k < 2000; k++) {
    const x = random.uniform() * 300 - 150, y = random.uniform() * 300 - 150;
    assert.equal(hypot(4 * x, 4 * y), 4 * hypot(x, y));
    assert.equal(hypot(x, y), hypot(-y, x));
    assert.ok(Math.abs(hypot(x, y) - Math.sqrt(x * x + y * y)) < 1e-13);
  }
});

test("the generator gives the same numbers on every machine and different ones for neighboring seeds", () => {
  const draw = (seed) => Array.from({ length: 4 }, function () { return this.word(); }, new Random(seed));
  assert.deepEqual(draw(1), [2420951833, 2513034076, 3847892949, 4064752930]);
  assert.notDeepEqual(draw(1), draw(2));
  const random = new Random(3), mean = Array.from({ length: 20000 }, () => random.uniform()).reduce((a, b) => a + b) / 20000;
  assert.ok(Math.abs(mean - 0.5) < 0.01);
  assert.deepEqual(new Random(9).choose(5, 5), [0, 1, 2, 3, 4]);
});

test("a link reaches exactly the radio range, a contact stops just below 10 m", () => {
  const links = findLinks(Float64Array.of(0, 0, 120, 0, 240.001, 0, 240.001, 9.9, 500, 0, 510, 0), PHYSICS);
  assert.deepEqual([...links.pairs], [0, 1, 2, 3, 4, 5]);
  assert.deepEqual([...links.subnet], [0, 0, 1, 1, 2, 2]);
  assert.equal(links.count, 3);
  assert.deepEqual(links.contacts, [2, 3]);
});

test("subnets are numbered by their lowest rows and averaged by themselves", () => {
  const { subnet, count } = labelSubnets(6, [4, 5, 0, 4, 1, 2]);
  assert.deepEqual([...subnet, count], [0, 1, 1, 2, 0, 0, 3]);
  assert.deepEqual([...subnetMeans(Int32Array.of(0, 1, 0), 2, [0, 0, 7, 8, 4, 2])], [2, 1, 7, 8]);
});

test("maps have the paper's widths and its density between them", () => {
  assert.deepEqual([20, 50, 100, 200, 500].map(widthFor), [320, 500, 750, 1000, 1600]);
  assert.equal(widthFor(400), 1000 * Math.SQRT2);
  assert.equal(budgetFor(750), 600);
});

test("the speed disc takes every command, also one that is no number", () => {
  const out = projectSpeed([30, 40, 1, 1, NaN, 3, Infinity, 0], 10);
  assert.ok(Math.abs(out[0] - 6) < 1e-12 && Math.abs(out[1] - 8) < 1e-12);
  assert.deepEqual([...out.slice(2)], [1, 1, 0, 0, 0, 0]);
});

test("a step moves by velocity times 0.1 s", () => {
  const { positions } = stepWorld(Float64Array.of(0, 0, 100, 0), [10, 0, -3, 4], PHYSICS, false);
  assert.deepEqual([...positions], [1, 0, 99.7, 0.4]);
});

test("the filter halves the way between two that meet and leaves everybody else alone", () => {
  const positions = Float64Array.of(0, 0, 11, 0, 300, 0), commands = Float64Array.of(10, 0, -10, 0, 10, 0);
  const safe = filterVelocities(positions, commands, PHYSICS);
  const limit = (11 - 10.001) / 2 / 0.1;
  assert.ok(Math.abs(safe[0] - limit) < 1e-9 && Math.abs(safe[2] + limit) < 1e-9);
  assert.equal(safe[4], 10);
  assert.equal(filterVelocities(Float64Array.of(0, 0, 50, 0), commands.slice(0, 4), PHYSICS).length, 4);
});

test("the filter makes contacts impossible in a crowd that rushes to one point", () => {
  const random = new Random(8), points = [];
  for (let x = 0; x < 6; x++) for (let y = 0; y < 6; y++) points.push(12 * x + random.uniform(), 12 * y + random.uniform());
  let positions = Float64Array.from(points);
  for (let step = 0; step < 60; step++) {
    const commands = centerFly.act(viewOf(positions, { center: [33, 33] }));
    positions = stepWorld(positions, commands, PHYSICS, true).positions;
    assert.equal(findLinks(positions, PHYSICS).contacts.length, 0);
  }
});

test("the lower bound closes the longest gap of the tree from both ends", () => {
  const points = Float64Array.of(0, 0, 100, 0, 400, 0, 450, 0);
  assert.deepEqual(spanningTree(points).edges, [[0, 1], [1, 2], [2, 3]]);
  const bound = lowerBound(points, PHYSICS);
  assert.deepEqual([bound.steps, bound.edge, bound.length], [90, [1, 2], 300]); // (300 - 120) / 2
  assert.equal(lowerBound(points.slice(0, 4), PHYSICS).steps, 0);
});

test("center-fly arrives exactly; SIDR moves a subnet as a block", () => {
  assert.deepEqual([...centerFly.act(viewOf(Float64Array.of(3, 4, 0.3, 0.4)))].map((v) => Number(v.toFixed(9))), [-6, -8, -3, -4]);
  const out = sidr.act(viewOf(Float64Array.of(300, 0, 400, 0)));
  assert.deepEqual([...out], [-10, 0, -10, 0]);
});

test("SIDR parts two that are too close, also when they are at one place", () => {
  const out = sidr.act(viewOf(Float64Array.of(300, 0, 307.5, 0)));
  assert.ok(Math.abs(out[0] + 15) < 1e-9 && Math.abs(out[2] + 5) < 1e-9);
  const twins = sidr.act(viewOf(Float64Array.of(300, 0, 300, 0)));
  assert.ok(Math.hypot(twins[0] - twins[2], twins[1] - twins[3]) > 19.9);
});
