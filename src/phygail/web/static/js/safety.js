// The safety filter: buffered Voronoi cells (swarm/safety.py). New contacts become impossible, whatever a method asks.
import { hypot } from "./numbers.js";
import { nearPairs } from "./links.js";

const IN_HAND = 1e-4; // share of the contact distance that UAVs keep more
const ROUNDING = 1e-12; // share of v_max by which a half-plane may be violated
const MOST_ROUNDS = 64;
const SHRINK = 1 - 2 ** -50;

/** The velocities (flat, m/s) nearest to `velocities` that keep every UAV in its cell. */
export function filterVelocities(positions, velocities, physics) {
  const reach = keptDistance(physics) + 2 * (physics.speed_mps * physics.step_s);
  const near = nearPairs(positions, reach);
  const slack = ROUNDING * physics.speed_mps;
  const planes = halfPlanes(positions, near, physics);
  const needy = new Map();
  for (const plane of planes) {
    const row = plane.owner;
    const over = plane.nx * velocities[2 * row] + plane.ny * velocities[2 * row + 1] - plane.limit > slack;
    if (over) needy.set(row, []);
  }
  if (!needy.size) return velocities;
  for (const plane of planes) {
    const row = plane.owner;
    if (needy.has(row) && plane.limit < hypot(velocities[2 * row], velocities[2 * row + 1])) needy.get(row).push(plane);
  }
  const safe = Float64Array.from(velocities);
  for (const [row, cell] of needy) {
    const most = hypot(velocities[2 * row], velocities[2 * row + 1]);
    let [x, y] = projectOntoCell(velocities[2 * row], velocities[2 * row + 1], cell, slack);
    const size = hypot(x, y);
    if (size > most) {
      const share = (most * SHRINK) / size;
      x *= share;
      y *= share;
    }
    safe[2 * row] = x;
    safe[2 * row + 1] = y;
  }
  return safe;
}

/** The distance that the filter keeps: 10.001 m for a contact distance of 10 m. */
function keptDistance(physics) {
  return physics.contact_m + IN_HAND * physics.contact_m;
}

/** n.v <= limit for each of the two UAVs of every near pair: first all lower rows, then all upper ones. */
function halfPlanes(positions, near, physics) {
  const lower = [], upper = [];
  for (let k = 0; k < near.lengths.length; k++) {
    const i = near.pairs[2 * k], j = near.pairs[2 * k + 1], d = near.lengths[k];
    if (!(d > 0)) continue; // coincident UAVs cannot come closer than they are
    const nx = (positions[2 * j] - positions[2 * i]) / d, ny = (positions[2 * j + 1] - positions[2 * i + 1]) / d;
    const limit = Math.max(0, (d - keptDistance(physics)) / 2) / physics.step_s;
    lower.push({ owner: i, nx, ny, limit });
    upper.push({ owner: j, nx: -nx, ny: -ny, limit });
  }
  return lower.concat(upper);
}

/**
 * The nearest point of one cell, exactly, by a dual active-set method: each round adds the half-plane that the present
 * point violates most; the optimum lies on its line, at the foot of the command or at a corner with one of the basis.
 */
function projectOntoCell(px, py, cell, slack) {
  let x = px, y = py, basis = [null, null];
  for (let round = 0; round < MOST_ROUNDS; round++) {
    let worst = null, by = -Infinity;
    for (const plane of cell) {
      const excess = plane.nx * x + plane.ny * y - plane.limit;
      if (excess > by) [worst, by] = [plane, excess];
    }
    if (!(by > slack)) break;
    const found = bestOnLine(px, py, worst, basis, slack);
    if (!found) break;
    x = found.x;
    y = found.y;
    basis = [worst, found.partner];
  }
  return shrinkIntoCell(x, y, cell, slack);
}

/** The point of the line nearest to (px, py) that satisfies the two half-planes of `basis`; null if there is none. */
function bestOnLine(px, py, line, basis, slack) {
  const beyond = line.nx * px + line.ny * py - line.limit;
  const choices = [{ x: px - beyond * line.nx, y: py - beyond * line.ny, partner: null }];
  for (const other of basis) if (other) choices.push({ ...corner(line, other), partner: other });
  let best = null, least = Infinity;
  for (const choice of choices) {
    // Written so that the NaN of a missing corner is not allowed.
    const allowed = basis.every((b) => !b || b.nx * choice.x + b.ny * choice.y - b.limit <= slack);
    const dx = choice.x - px, dy = choice.y - py, far = dx * dx + dy * dy;
    if (allowed && far < least) [best, least] = [choice, far];
  }
  return best;
}

/** Where two lines meet; NaN for lines that are parallel up to rounding. */
function corner(one, other) {
  let cross = one.nx * other.ny - one.ny * other.nx;
  if (!(Math.abs(cross) > ROUNDING / 4)) cross = NaN;
  const solve = (right, left) => [
    (left / cross) * -one.ny - (right / cross) * -other.ny,
    (left / cross) * one.nx - (right / cross) * other.nx,
  ];
  const [x, y] = solve(one.limit, other.limit);
  // One step of refinement: nearly parallel lines lose digits in the difference above.
  const [fx, fy] = solve(one.limit - (one.nx * x + one.ny * y), other.limit - (other.nx * x + other.ny * y));
  return { x: x + fx, y: y + fy };
}

/** Scale a point that is still outside its cell until it is in: safe whatever rounding did before. */
function shrinkIntoCell(x, y, cell, slack) {
  let share = 1;
  for (const plane of cell) {
    const along = plane.nx * x + plane.ny * y;
    if (along - plane.limit > slack) share = Math.min(share, plane.limit / along);
  }
  return [x * share, y * share];
}
