// reach (METHODS 8.4): fly for the teammates you have not yet ruled out, and keep your own links meanwhile.
import { LINK_TOLERANCE_M, subnetSizes } from "../links.js";
import { projectSpeed, strideOf, unitOf } from "../world.js";
import { headings } from "./forces.js";
import { keepLinks } from "./keep_links.js";
import { aggregate } from "./sidr.js";

const REACH = { gain: 60, fade_m: 160, decay_m: 90, horizon_m: 260, silent_margin_m: 1 };

export const reach = {
  /** `silent[k]`: per roster entry, 1 if UAV k knows it to be silent; shared by the members of a subnet. */
  start: () => ({ silent: [], before: null }),
  act(view, memory) {
    const heading = headings(view), pulls = findPulls(view, memory), { speed_mps: speed } = view.physics;
    const wanted = pulls.map((pull, k) => heading[2 * view.subnet[k >> 1] + (k & 1)] + speed * pull);
    return aggregate(view, keepLinks(view, projectSpeed(wanted, speed)));
  },
};

/** The sum of pulls on each UAV (flat), in units of v_max. */
function findPulls(view, memory) {
  const { physics, positions, roster, members, subnet, count } = view, n = roster.length / 2, unit = unitOf(physics);
  const pulls = new Float64Array(positions.length);
  const fade = Math.max(0, 1 - (view.step * strideOf(physics)) / (REACH.fade_m * unit));
  if (fade === 0) return pulls; // nobody is listened to any more
  const nearest = nearestMembers(view, roster, Math.max(REACH.horizon_m * unit, physics.range_m));
  const silent = recallFor(view, memory.silent, () => new Uint8Array(n), (known, heard) => {
    for (let k = 0; k < n; k++) known[k] |= heard[k];
  });
  const reachM = view.step === 0 ? physics.range_m + LINK_TOLERANCE_M : physics.range_m - REACH.silent_margin_m * unit;
  const flying = new Uint8Array(n);
  for (const member of members) flying[member] = 1;
  nearest.forEach(({ label, spot, distance }) => {
    if (distance <= reachM && !(view.step === 0 && flying[spot])) silent[label][spot] = 1;
  });
  if (view.losses && memory.before) {
    const close = physics.range_m - 2 * strideOf(physics);
    for (const { label, spot } of missing(view, memory.before, close)) silent[label][spot] = 1;
  }
  memory.before = { members, subnet, positions };
  members.forEach((member, row) => (silent[subnet[row]][member] = 0));
  members.forEach((member, row) => (memory.silent[member] = silent[subnet[row]]));
  const sizes = subnetSizes(subnet, count);
  const survival = silent.map((known, label) => (sizes[label] + 0.5) / (sizes[label] + known.reduce((a, b) => a + b, 0) + 1));
  for (const { label, spot, row, distance } of nearest) {
    if (silent[label][spot] || !(distance < REACH.horizon_m * unit)) continue;
    const decay = Math.exp(-(distance - physics.range_m) / (REACH.decay_m * unit));
    const strength = REACH.gain * (survival[label] * survival[label]) * fade * decay, far = Math.max(distance, 1e-9);
    for (let a = 0; a < 2; a++) pulls[2 * row + a] += (strength * (roster[2 * spot + a] - positions[2 * row + a])) / far;
  }
  return pulls;
}

/** Who was a member of a subnet a step ago and is silent in its midst now, within `close` of a member: [{label, spot}]. */
function missing(view, { members, subnet, positions }, close) {
  const earlier = new Map(Array.from(members, (member, row) => [member, subnet[row]]));
  const places = Float64Array.from(view.roster), own = Array.from({ length: view.count }, () => new Set());
  members.forEach((member, row) => places.set(positions.subarray(2 * row, 2 * row + 2), 2 * member));
  view.members.forEach((member, row) => own[view.subnet[row]].add(earlier.get(member)));
  return nearestMembers(view, places, close, (label, spot) => !earlier.has(spot) || !own[label].has(earlier.get(spot)));
}

/**
 * The nearest member of each subnet to each place (flat, or one list per subnet) of somebody who is not a member, up to `horizon`:
 * [{label, spot, row, distance}], by subnet and roster number. Of two equally near the lower row answers.
 */
export function nearestMembers(view, places, horizon, skip = () => false) {
  const { positions, members, subnet, count } = view, n = view.roster.length / 2, limit = horizon * horizon;
  const home = new Int32Array(n).fill(-1);
  members.forEach((member, row) => (home[member] = subnet[row]));
  const rows = Array.from({ length: count }, () => []);
  subnet.forEach((label, row) => rows[label].push(row));
  const found = [];
  rows.forEach((own, label) => {
    const all = places[label].length ? places[label] : places;
    for (let spot = 0; spot < n; spot++) {
      if (home[spot] === label || skip(label, spot)) continue;
      const x = all[2 * spot], y = all[2 * spot + 1];
      let best = -1, least = Infinity;
      for (const row of own) {
        const dx = positions[2 * row] - x, dy = positions[2 * row + 1] - y, d = dx * dx + dy * dy;
        if (d < least) [best, least] = [row, d];
      }
      if (least <= limit) found.push({ label, spot, row: best, distance: Math.sqrt(least) });
    }
  });
  return found;
}

/** What each subnet knows: `blank()`, united by `unite` with what each of its members (by roster number) remembers. */
export function recallFor(view, remembered, blank, unite) {
  const known = Array.from({ length: view.count }, blank), seen = known.map(() => new Set());
  view.members.forEach((member, row) => {
    const own = remembered[member], label = view.subnet[row];
    if (!own || seen[label].has(own)) return; // members of one subnet share one memory
    seen[label].add(own);
    unite(known[label], own);
  });
  return known;
}
