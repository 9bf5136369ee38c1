// The picture of one lane: radio reach, links, trails, UAVs, the lost, the center, and the strike under the pointer.
import { subnetSizes } from "./links.js";
import { addMark } from "./palette.js";

const TRAIL_STEPS = 48;
const TRAIL_STRIDE = 6;
const MARGIN = 0.05; // of the map, around it

/** Where a point of the map is on a canvas of `side` CSS pixels; `hair` is the width of a device pixel. */
export function makeFrame(world, side, hair = 1) {
  const xs = [], ys = [];
  for (let k = 0; k < world.layout.length; k += 2) {
    xs.push(world.layout[k]);
    ys.push(world.layout[k + 1]);
  }
  // A file may hold a layout anywhere: what is shown is the map, or whatever reaches beyond it.
  const boxed = world.boxed;
  const left = Math.min(...xs, world.center[0], boxed ? Infinity : 0), top = Math.min(...ys, world.center[1], boxed ? Infinity : 0);
  const right = Math.max(...xs, world.center[0], boxed ? -Infinity : world.width);
  const bottom = Math.max(...ys, world.center[1], boxed ? -Infinity : world.width);
  const extent = Math.max(right - left, bottom - top, 1), scale = (side * (1 - 2 * MARGIN)) / extent;
  const x0 = (left + right) / 2, y0 = (top + bottom) / 2;
  return {
    scale, side, extent, hair,
    x: (x) => side / 2 + (x - x0) * scale,
    y: (y) => side / 2 - (y - y0) * scale,
    toMap: (px, py) => [x0 + (px - side / 2) / scale, y0 - (py - side / 2) / scale],
  };
}

/** Positions between two frames: UAVs glide from step to step. */
export function between(flight, clock) {
  const step = Math.max(0, Math.floor(clock)), now = flight.frameAt(step), next = flight.frameAt(step + 1);
  const share = clock - step;
  if (!(share > 0) || next === now || next.ids !== now.ids) return { frame: now, points: now.positions };
  const points = new Float64Array(now.positions.length);
  for (let k = 0; k < points.length; k++) points[k] = now.positions[k] + share * (next.positions[k] - now.positions[k]);
  return { frame: now, points };
}

/** Rank of each current subnet's color: that of the largest subnet of the strike that lives on in it. */
export function subnetRanks(frame) {
  const ranks = new Array(frame.links.count).fill(Infinity);
  frame.ids.forEach((id, row) => {
    const label = frame.links.subnet[row];
    ranks[label] = Math.min(ranks[label], frame.leg.origin.get(id));
  });
  return ranks;
}

/** Draw one lane. `scene`: {frame, points, flight, clock, world, place, show, palette, still, bound, aim, flash}. */
export function drawLane(context, scene) {
  const { place, palette, frame } = scene;
  context.clearRect(0, 0, place.side, place.side);
  const one = frame.links.count === 1;
  const groups = one ? [{ color: palette.one, tint: palette.oneTint, shape: 0, rows: [...frame.ids.keys()] }] : groupRows(frame, palette);
  const lost = scene.intact ? [] : lostPlaces(scene.flight, scene.clock, scene.world);
  const key = [scene.world, palette, scene.flight.frames[0], scene.flight.events, lost.length];
  const ground = scene.still.show(key, place, (layer) => {
    drawGround(layer, scene);
    drawLost(layer, scene, lost);
  });
  if (scene.show.reach) drawReach(context, scene, groups);
  context.drawImage(ground, 0, 0, place.side, place.side);
  if (scene.show.trails) drawTrails(context, scene, groups);
  if (scene.show.links) drawLinks(context, scene, groups, one);
  drawUavs(context, scene, groups);
  if (scene.bound) drawBound(context, scene);
  if (scene.flash) drawFlash(context, scene);
  if (scene.aim) drawAim(context, scene);
}

/** Rows by subnet, with color and shape. */
function groupRows(frame, palette) {
  const ranks = subnetRanks(frame);
  const groups = ranks.map((rank) => ({ ...palette.subnet(rank), rows: [] }));
  frame.ids.forEach((_, row) => groups[frame.links.subnet[row]].rows.push(row));
  return groups;
}

function drawGround(context, { world, place, palette }) {
  const [x, y] = [place.x(world.center[0]), place.y(world.center[1])], arm = Math.max(6, place.side / 60);
  if (!world.boxed) {
    context.strokeStyle = palette.faint;
    context.lineWidth = 1;
    context.strokeRect(place.x(0), place.y(world.width), world.width * place.scale, world.width * place.scale);
  }
  context.strokeStyle = palette.ink;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x - arm, y);
  context.lineTo(x + arm, y);
  context.moveTo(x, y - arm);
  context.lineTo(x, y + arm);
  context.stroke();
}

/** Discs of half the radio range: two of them touch where two UAVs have a link. Filled one by one: that is fast. */
function drawReach(context, { points, world, place }, groups) {
  const r = (world.physics.range_m / 2) * place.scale;
  for (const { tint, rows } of groups) {
    context.fillStyle = tint;
    for (const row of rows) {
      context.beginPath();
      context.arc(place.x(points[2 * row]), place.y(points[2 * row + 1]), r, 0, 2 * Math.PI);
      context.fill();
    }
  }
}

function drawLost(context, { world, place, palette }, lost) {
  const arm = markSize(place, world) * 0.75;
  context.strokeStyle = palette.lost;
  context.lineWidth = 1.3;
  context.beginPath();
  for (const [x, y] of lost) {
    const px = place.x(x), py = place.y(y);
    context.moveTo(px - arm, py - arm);
    context.lineTo(px + arm, py + arm);
    context.moveTo(px + arm, py - arm);
    context.lineTo(px - arm, py + arm);
  }
  context.stroke();
}

/** Where the lost fell: at their spots, or where a later strike hit them. */
function lostPlaces(flight, clock, world) {
  const places = [], first = flight.frames[0];
  const flying = new Set(first.ids);
  for (let id = 0; id < world.layout.length / 2; id++) {
    if (!flying.has(id)) places.push([world.layout[2 * id], world.layout[2 * id + 1]]);
  }
  for (const event of flight.events ?? []) {
    if (event.step === 0 || event.step > clock || event.step >= flight.frames.length) continue;
    const { before } = flight.frames[event.step];
    event.ids.forEach((id) => {
      const row = before ? before.ids.indexOf(id) : -1;
      if (row >= 0) places.push([before.positions[2 * row], before.positions[2 * row + 1]]);
    });
  }
  return places;
}

function drawTrails(context, { flight, clock, frame, points, place }, groups) {
  const step = Math.floor(clock), begin = Math.max(0, step - TRAIL_STEPS);
  if (step <= 0 || flight.frames.length < 2) return;
  const past = [];
  for (let s = step - (step % TRAIL_STRIDE); s >= begin; s -= TRAIL_STRIDE) {
    const old = flight.frameAt(s);
    if (old.ids !== frame.ids) break; // rows changed by a strike: trails begin there
    past.push(old.positions);
  }
  context.lineWidth = place.hair; // one device pixel: drawn ten times faster than anything wider
  context.globalAlpha = 0.7;
  for (const { color, rows } of groups) {
    context.strokeStyle = color;
    context.beginPath();
    for (const row of rows) {
      context.moveTo(place.x(points[2 * row]), place.y(points[2 * row + 1]));
      for (const old of past) context.lineTo(place.x(old[2 * row]), place.y(old[2 * row + 1]));
    }
    context.stroke();
  }
  context.globalAlpha = 1;
}

function drawLinks(context, { frame, points, place, palette }, groups, one) {
  const { pairs, subnet } = frame.links, { origin } = frame.leg;
  const thin = groups.map(() => new Path2D()), fresh = [];
  for (let k = 0; k < pairs.length; k += 2) {
    const i = pairs[k], j = pairs[k + 1];
    const ends = [place.x(points[2 * i]), place.y(points[2 * i + 1]), place.x(points[2 * j]), place.y(points[2 * j + 1])];
    if (origin.get(frame.ids[i]) !== origin.get(frame.ids[j])) fresh.push(ends);
    else {
      thin[one ? 0 : subnet[i]].moveTo(ends[0], ends[1]);
      thin[one ? 0 : subnet[i]].lineTo(ends[2], ends[3]);
    }
  }
  // One device pixel is drawn forty times faster than two; large pictures of small swarms can afford more.
  context.lineWidth = frame.ids.length > 150 ? place.hair : Math.max(place.hair, place.side / 700);
  context.globalAlpha = 0.7;
  groups.forEach(({ color }, label) => {
    context.strokeStyle = color;
    context.stroke(thin[label]);
  });
  context.globalAlpha = 1;
  context.strokeStyle = palette.ink;
  context.lineWidth = Math.max(2, place.side / 240);
  for (const [x1, y1, x2, y2] of fresh) {
    context.beginPath();
    context.moveTo(x1, y1);
    context.lineTo(x2, y2);
    context.stroke();
  }
}

function drawUavs(context, { points, place, world, palette }, groups) {
  const r = markSize(place, world);
  for (const { color, shape, rows } of groups) {
    for (const [style, size] of [[palette.map, r + 1.2], [color, r]]) {
      context.fillStyle = style;
      for (const row of rows) {
        context.beginPath();
        addMark(context, shape, place.x(points[2 * row]), place.y(points[2 * row + 1]), size);
        context.fill();
      }
    }
  }
}

/** Radius of a UAV's mark, px: grows with the picture, shrinks with the swarm. */
function markSize(place, world) {
  return Math.min(place.side / 60, Math.max(2.2, (place.side / 34) * (6.5 / Math.sqrt(world.layout.length / 2 + 60))));
}

/** The longest gap of the tree, closing from both ends as fast as two UAVs can. */
function drawBound(context, { bound, clock, frame, place, palette, world }) {
  if (!bound.edge) return;
  const [i, j] = bound.edge, { positions } = frame;
  const closed = Math.min(Math.max(clock, 0), bound.steps) * world.physics.speed_mps * world.physics.step_s;
  const ax = positions[2 * i], ay = positions[2 * i + 1], bx = positions[2 * j], by = positions[2 * j + 1];
  const ux = (bx - ax) / bound.length, uy = (by - ay) / bound.length;
  const line = (x1, y1, x2, y2) => {
    context.beginPath();
    context.moveTo(place.x(x1), place.y(y1));
    context.lineTo(place.x(x2), place.y(y2));
    context.stroke();
  };
  context.lineWidth = 2.5;
  context.strokeStyle = palette.strike;
  context.setLineDash([5, 4]);
  line(ax, ay, bx, by);
  context.setLineDash([]);
  context.strokeStyle = palette.one;
  context.lineWidth = 5;
  if (closed > 0) {
    line(ax, ay, ax + ux * closed, ay + uy * closed);
    line(bx, by, bx - ux * closed, by - uy * closed);
  }
}

/** A ring that grows where a strike hit. */
function drawFlash(context, { flash, place, palette }) {
  context.globalAlpha = 1 - flash.age;
  context.strokeStyle = palette.strike;
  context.lineWidth = 3;
  context.beginPath();
  for (const [x, y, r] of flash.spots) {
    const radius = (r + 25 * flash.age) * place.scale;
    context.moveTo(place.x(x) + radius, place.y(y));
    context.arc(place.x(x), place.y(y), radius, 0, 2 * Math.PI);
  }
  context.stroke();
  context.globalAlpha = 1;
}

/** The disc under the pointer, and how many it would take. */
function drawAim(context, { aim, place, palette }) {
  const x = place.x(aim.x), y = place.y(aim.y), r = Math.max(aim.radius * place.scale, 2);
  context.fillStyle = palette.strike;
  context.globalAlpha = 0.14;
  context.beginPath();
  context.arc(x, y, r, 0, 2 * Math.PI);
  context.fill();
  context.globalAlpha = 1;
  context.strokeStyle = palette.strike;
  context.lineWidth = 2;
  context.stroke();
  context.beginPath();
  context.moveTo(x - 5, y);
  context.lineTo(x + 5, y);
  context.moveTo(x, y - 5);
  context.lineTo(x, y + 5);
  context.stroke();
  context.fillStyle = palette.strike;
  context.font = `600 ${Math.round(Math.max(13, place.side / 32))}px system-ui, sans-serif`;
  context.textAlign = "center";
  if (aim.hits) context.fillText(`${aim.hits} UAV${aim.hits > 1 ? "s" : ""}`, x, Math.max(14, y - r - 6));
}

/** A sentence for who cannot see the picture. */
export function describeLane(title, frame, clock, stepSeconds) {
  const sizes = subnetSizes(frame.links.subnet, frame.links.count);
  const state = frame.links.count === 1 ? "one network" : `${frame.links.count} subnets, the largest of ${Math.max(...sizes)}`;
  return `${title}: ${frame.ids.length} UAVs flying, ${state}, at ${(Math.max(0, clock) * stepSeconds).toFixed(1)} seconds`;
}
