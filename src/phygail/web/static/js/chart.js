// Subnets over time, one line per lane.
import { BOUND } from "./methods/index.js";

/** Draw the chart on a canvas of width x height CSS pixels. */
export function drawChart(context, race, clock, width, height, palette, em = 15) {
  context.clearRect(0, 0, width, height);
  const room = { left: 2 * em, right: 0.8 * em, top: 0.5 * em, bottom: 1.5 * em };
  context.font = `${0.88 * em}px system-ui, sans-serif`;
  const counts = race.lanes.map(({ name, flight }) => (name === BOUND ? [] : flight.frames.map((frame) => frame.links.count)));
  const most = Math.max(2, ...counts.map((line) => line.reduce((a, b) => Math.max(a, b), 0)));
  const steps = Math.max(20, race.length, race.bound.steps) * 1.02;
  const x = (step) => room.left + (step / steps) * (width - room.left - room.right);
  const y = (count) => room.top + (1 - Math.log(count) / Math.log(most)) * (height - room.top - room.bottom);
  drawAxes(context, { x, y, most, steps, width, height, palette, room, em, stepSeconds: race.world.physics.step_s });
  if (race.bound.steps && !race.later) drawLimit(context, x(race.bound.steps), room.top, height - room.bottom, width, palette, em);
  counts.forEach((line, place) => {
    const { color, dash } = palette.lane(place);
    context.strokeStyle = context.fillStyle = color;
    context.lineWidth = em / 7.5;
    context.setLineDash(dash);
    context.beginPath();
    line.forEach((count, step) => {
      if (step === 0) context.moveTo(x(0), y(count));
      else if (count !== line[step - 1] || step === line.length - 1) {
        context.lineTo(x(step), y(line[step - 1]));
        context.lineTo(x(step), y(count));
      }
    });
    context.stroke();
    context.setLineDash([]);
    const shown = Math.min(Math.max(0, Math.floor(clock)), line.length - 1);
    if (line.length) {
      context.beginPath();
      context.arc(x(shown), y(line[shown]), 0.27 * em, 0, 2 * Math.PI);
      context.fill();
    }
  });
  context.strokeStyle = palette.soft;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x(Math.max(0, clock)), room.top);
  context.lineTo(x(Math.max(0, clock)), height - room.bottom);
  context.stroke();
}

function drawAxes(context, { x, y, most, steps, width, height, palette, room, em, stepSeconds }) {
  context.fillStyle = palette.soft;
  context.strokeStyle = palette.faint;
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const count of [1, 2, 5, 10, 20, 50, 100].filter((c) => c <= most)) {
    context.fillText(String(count), room.left - 0.4 * em, y(count) + 0.3 * em);
    context.beginPath();
    context.moveTo(room.left, y(count));
    context.lineTo(width - room.right, y(count));
    context.stroke();
  }
  context.textAlign = "center";
  const seconds = steps * stepSeconds, tick = [1, 2, 5, 10, 20, 50, 100, 1000].find((t) => seconds / t <= 8) ?? seconds;
  for (let t = 0; t <= seconds; t += tick) context.fillText(`${t} s`, Math.max(room.left, x(t / stepSeconds)), height - 0.35 * em);
}

/** The lower bound: no line can come down to one on its left. */
function drawLimit(context, x, top, bottom, width, palette, em) {
  context.strokeStyle = palette.strike;
  context.fillStyle = palette.strike;
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(x, top);
  context.lineTo(x, bottom);
  context.stroke();
  context.setLineDash([]);
  const right = x + 0.3 * em + context.measureText("bound").width < width;
  context.textAlign = right ? "left" : "right";
  context.fillText("bound", x + (right ? 0.3 : -0.3) * em, bottom - 0.4 * em);
}
