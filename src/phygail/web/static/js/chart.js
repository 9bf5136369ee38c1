// Subnets over time, one line per lane.
import { BOUND } from "./methods/index.js";

const LEFT = 30, RIGHT = 12, TOP = 8, BOTTOM = 22;

/** Draw the chart on a canvas of width x height CSS pixels. */
export function drawChart(context, race, clock, width, height, palette) {
  context.clearRect(0, 0, width, height);
  const counts = race.lanes.map(({ name, flight }) => (name === BOUND ? [] : flight.frames.map((frame) => frame.links.count)));
  const most = Math.max(2, ...counts.map((line) => line.reduce((a, b) => Math.max(a, b), 0)));
  const steps = Math.max(20, race.length, race.bound.steps) * 1.02;
  const x = (step) => LEFT + (step / steps) * (width - LEFT - RIGHT);
  const y = (count) => TOP + (1 - Math.log(count) / Math.log(most)) * (height - TOP - BOTTOM);
  drawAxes(context, { x, y, most, steps, width, height, palette, stepSeconds: race.world.physics.step_s });
  if (race.bound.steps && !race.later) drawLimit(context, x(race.bound.steps), height, palette);
  counts.forEach((line, place) => {
    const { color, dash } = palette.lane(place);
    context.strokeStyle = context.fillStyle = color;
    context.lineWidth = 2;
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
      context.arc(x(shown), y(line[shown]), 4, 0, 2 * Math.PI);
      context.fill();
    }
  });
  context.strokeStyle = palette.soft;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x(Math.max(0, clock)), TOP);
  context.lineTo(x(Math.max(0, clock)), height - BOTTOM);
  context.stroke();
}

function drawAxes(context, { x, y, most, steps, width, height, palette, stepSeconds }) {
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = palette.soft;
  context.strokeStyle = palette.faint;
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const count of [1, 2, 5, 10, 20, 50, 100].filter((c) => c <= most)) {
    context.fillText(String(count), LEFT - 6, y(count) + 4);
    context.beginPath();
    context.moveTo(LEFT, y(count));
    context.lineTo(width - RIGHT, y(count));
    context.stroke();
  }
  context.textAlign = "center";
  const seconds = steps * stepSeconds, tick = [1, 2, 5, 10, 20, 50, 100, 1000].find((t) => seconds / t <= 8) ?? seconds;
  for (let t = 0; t <= seconds; t += tick) context.fillText(`${t} s`, Math.max(LEFT, x(t / stepSeconds)), height - 6);
}

/** The lower bound: no line can come down to one on its left. */
function drawLimit(context, x, height, palette) {
  context.strokeStyle = palette.strike;
  context.fillStyle = palette.strike;
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(x, TOP);
  context.lineTo(x, height - BOTTOM);
  context.stroke();
  context.setLineDash([]);
  context.textAlign = "left";
  context.fillText("bound", x + 4, TOP + 10);
}
