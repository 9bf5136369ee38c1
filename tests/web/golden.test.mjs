// The golden cases in node: equal steps, success, contacts and ways, case by case and method by method.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { flyCase } from "../../src/phygail/web/static/js/fly.js";

const { cases } = JSON.parse(readFileSync(new URL("golden.json", import.meta.url), "utf-8"));

// Flights of the network that take a second each are left to the browser (test_golden_page.py), which runs the same engine,
// and the longest to the slow tests, which set PHYGAIL_GOLDEN=long and fly all of those.
const LONG = 2000; // UAVs times steps
const long = process.env.PHYGAIL_GOLDEN === "long";
const isLong = ({ scenario, flights }, name) => name === "phygail" && (scenario.positions.length - scenario.damaged.length) * flights[name].steps > LONG;

for (const entry of cases) {
  const names = Object.keys(entry.flights).filter((name) => isLong(entry, name) === long);
  if (!names.length) continue;
  test(`${entry.scenario.id}: ${entry.scenario.positions.length} UAVs, filter ${entry.safety ? "on" : "off"}`, () => {
    const found = flyCase(JSON.stringify({ scenarios: [entry.scenario] }), names, entry.safety);
    assert.equal(found.subnets, entry.subnets);
    assert.equal(found.bound, entry.bound);
    for (const name of names) {
      const flight = entry.flights[name];
      const { way_m: way, positions, ...rest } = found.flights[name], { way_m: wanted, ...golden } = flight;
      assert.deepEqual(rest, golden, name);
      assert.ok(Math.abs(way - wanted) < 1e-4, `${name}: way ${way}, Python ${wanted}`);
    }
  });
}
