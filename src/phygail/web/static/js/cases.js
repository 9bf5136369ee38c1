// Cases: who stands where and who is lost. Drawn from the page's own seeds; the same link gives the same case.
import { Random, hypot, readLetters } from "./numbers.js";
import { findLinks, nearPairs } from "./links.js";
import { PHYSICS, budgetFor, farthestFrom, widthFor } from "./world.js";
import { DATA } from "./data.js";

export const LEAST_UAVS = 20;
export const MOST_UAVS = 500;
const SEPARATION_M = 10; // smallest distance between two UAVs of a fresh layout
const LEAST_ALIVE = 2;
const LAYOUT_DRAWS = 300;
const DAMAGE_DRAWS = 200;

/** Where layouts come from: name for links and files, and what a reader sees. */
export const SOURCES = Object.freeze({
  random: "random",
  ring: "ring",
  clusters: "two clusters",
  "paper-20": "the paper's 20",
  "paper-50": "the paper's 50",
  "paper-100": "the paper's 100",
  "paper-200": "the paper's 200",
  "paper-500": "the paper's 500",
});

/** A case without its strikes. `damage` is the share lost at random at t = 0, redrawn until it splits the swarm. */
export function drawCase({ source, n, seed, damage }) {
  const ground = makeLayout(source, n, new Random(seed * 1009 + n));
  const uavs = ground.layout.length / 2;
  const damaged = drawDamage(ground.layout, damage, new Random(seed * 2003 + n + 7));
  return {
    id: `page-${source === "random" ? "" : `${source}-`}n${uavs}-s${seed}`,
    ...ground,
    physics: PHYSICS,
    budget: budgetFor(ground.width, PHYSICS, farthestFrom(ground.center, ground.layout)),
    damaged,
  };
}

/** Share of the swarm as a count, rounded half up, leaving at least two alive. */
export function damageCount(n, share) {
  return Math.min(Math.floor(n * share + 0.5 + 1e-9), n - LEAST_ALIVE);
}

/** The UAVs of `ids` that may be struck so that at least two of `alive` stay. */
export function checkStrike(alive, ids) {
  const hit = new Set(ids);
  const struck = alive.filter((id) => hit.has(id));
  return struck.slice(0, Math.max(0, alive.length - LEAST_ALIVE));
}

/** Rows of the points (flat) within `radius` of (x, y). */
export function rowsInDisc(points, x, y, radius) {
  const rows = [];
  for (let i = 0; i < points.length / 2; i++) {
    if (hypot(points[2 * i] - x, points[2 * i + 1] - y) <= radius) rows.push(i);
  }
  return rows;
}

/** A swath of discs across the map: what a storm front or a line of jammers takes. */
export function swath(layout, width, radius) {
  const hit = new Set();
  for (let k = 0; k <= 10; k++) {
    const x = width * (0.3 + 0.04 * k), y = (width * k) / 10;
    rowsInDisc(layout, x, y, radius).forEach((row) => hit.add(row));
  }
  return [...hit].sort((a, b) => a - b);
}

function makeLayout(source, n, random) {
  if (source === "ring") return ringLayout(n, random);
  if (source === "clusters") return clusterLayout(n, random);
  if (source in DATA.layouts) {
    const letters = readLetters(DATA.layouts[source]), layout = Float64Array.from({ length: letters.length / 2 }, (_, k) => 64 * letters[2 * k] + letters[2 * k + 1]);
    const width = widthFor(layout.length / 2);
    return { layout, width, center: [width / 2, width / 2] };
  }
  const width = widthFor(n);
  let layout = null;
  for (let k = 0; k < LAYOUT_DRAWS; k++) {
    layout = spread([], n, random, () => [random.uniform() * width, random.uniform() * width]);
    if (findLinks(layout, PHYSICS).count === 1) break;
  }
  return { layout, width, center: [width / 2, width / 2] };
}

/** Fill up `fixed` (flat) to n points of `draw`, each SEPARATION_M from every earlier one. */
function spread(fixed, n, random, draw) {
  const points = [...fixed];
  for (let tries = 0; points.length < 2 * n; tries++) {
    const [x, y] = draw();
    const near = tries < 200 * n && rowsInDisc(points, x, y, SEPARATION_M).length;
    if (!near) points.push(x, y);
  }
  return Float64Array.from(points);
}

/** Three staggered rows round the center, a little shaken: many ways to cut it, none to heal without flying. */
function ringLayout(n, random) {
  const rows = n < 60 ? 1 : 3, radius = (n * (rows === 1 ? 62 : 24)) / (2 * Math.PI), width = 2 * (radius + 110);
  const points = [];
  for (let i = 0; i < n; i++) {
    const angle = (2 * Math.PI * i) / n, far = radius + ((i % rows) - (rows - 1) / 2) * 42;
    points.push(width / 2 + far * Math.cos(angle) + 8 * (random.uniform() - 0.5));
    points.push(width / 2 + far * Math.sin(angle) + 8 * (random.uniform() - 0.5));
  }
  return { layout: Float64Array.from(points), width, center: [width / 2, width / 2] };
}

/** Two round clusters and a chain of UAVs between them. The chain comes first: UAVs 0 to bridge - 1. */
function clusterLayout(n, random) {
  const bridge = n < 40 ? 3 : 5, each = (n - bridge) / 2, radius = 26 * Math.sqrt(each) + 20;
  const gap = (bridge + 1) * 85, width = 4 * radius + gap, middle = width / 2;
  const points = [];
  for (let k = 1; k <= bridge; k++) points.push(2 * radius + 85 * k, middle + 12 * (random.uniform() - 0.5));
  // The two UAVs that hold the ends of the chain stand at the rims of the clusters.
  points.push(2 * radius, middle, 2 * radius + gap, middle);
  let layout = null;
  for (let draws = 0; draws < LAYOUT_DRAWS; draws++) {
    let left = true;
    layout = spread(points, n, random, () => {
      left = !left;
      const angle = 2 * Math.PI * random.uniform(), far = radius * Math.sqrt(random.uniform());
      return [(left ? radius : width - radius) + far * Math.cos(angle), middle + far * Math.sin(angle)];
    });
    if (findLinks(layout, PHYSICS).count === 1) break;
  }
  return { layout, width, center: [middle, middle], bridge };
}

/** UAVs lost at random, redrawn until the rest is split; the last draw where nothing splits it. */
function drawDamage(layout, share, random) {
  const n = layout.length / 2, count = damageCount(n, share);
  let damaged = [];
  for (let k = 0; count > 0 && k < DAMAGE_DRAWS; k++) {
    damaged = random.choose(n, count);
    if (findLinks(withoutRows(layout, damaged), PHYSICS).count > 1) break;
  }
  return damaged;
}

/** The points (flat) of all rows but these. */
export function withoutRows(points, rows) {
  const gone = new Set(rows), kept = [];
  for (let i = 0; i < points.length / 2; i++) if (!gone.has(i)) kept.push(points[2 * i], points[2 * i + 1]);
  return Float64Array.from(kept);
}

/** Smallest distance between two points: what a test of layouts asks. */
export function leastDistance(points) {
  return nearPairs(points, 100).lengths.reduce((least, d) => Math.min(least, d), Infinity);
}
