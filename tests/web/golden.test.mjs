// The golden cases in node: equal steps, success, contacts and ways, case by case and method by method.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { flyCase } from "../../src/phygail/web/static/js/fly.js";

const { cases } = JSON.parse(readFileSync(new URL("golden.json", import.meta.url), "utf-8"));

for (const entry of cases) {
  test(`${entry.scenario.id}: ${entry.scenario.positions.length} UAVs, filter ${entry.safety ? "on" : "off"}`, () => {
    const found = flyCase(JSON.stringify({ scenarios: [entry.scenario] }), Object.keys(entry.flights), entry.safety);
    assert.equal(found.subnets, entry.subnets);
    assert.equal(found.bound, entry.bound);
    for (const [name, flight] of Object.entries(entry.flights)) {
      const { way_m: way, positions, ...rest } = found.flights[name], { way_m: wanted, ...golden } = flight;
      assert.deepEqual(rest, golden, name);
      assert.ok(Math.abs(way - wanted) < 1e-4, `${name}: way ${way}, Python ${wanted}`);
    }
  });
}
