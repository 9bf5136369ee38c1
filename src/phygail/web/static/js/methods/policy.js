// A compact learned policy: node encoder, rounds of physics-gated messages, head (methods/phygail/network.py, heads.py).
// In double precision, commands rounded to a grid, as Python flies it: sums in another order leave no trace.
import { readLetters } from "../numbers.js";
import { NODE_FEATURES, perceive } from "./policy_graph.js";

const LARGEST_MEAN = 3;

/** The rule of a policy as `phygail.web.build` writes it: {graph, command, grid, layers, tensors: [[name, shape]], numbers}. */
export function makePolicy(data) {
  const weights = unpack(data);
  return {
    start: () => ({}),
    act(view) {
      const means = decide(perceive(view, data.graph), weights, data.layers);
      return Float64Array.from(means, (mean) => {
        const u = Math.min(Math.max(mean, -LARGEST_MEAN), LARGEST_MEAN);
        return view.physics.speed_mps * (Math.round((data.command === "tanh" ? Math.tanh(u) : u) * data.grid) / data.grid);
      });
    },
  };
}

/** {name: {rows, columns, values}} of numbers in half precision: a letter for each head, then ten bits for each fraction. */
function unpack({ tensors, numbers }) {
  const sizes = tensors.map(([, shape]) => shape.reduce((a, b) => a * b, 1)), total = sizes.reduce((a, b) => a + b, 0);
  const letters = readLetters(numbers), weights = {};
  let at = 0;
  tensors.forEach(([name, shape], number) => {
    const values = new Float64Array(sizes[number]);
    for (let k = 0; k < values.length; k++, at++) {
      const first = total + Math.floor((10 * at) / 6), word = (letters[first] << 12) | (letters[first + 1] << 6) | letters[first + 2];
      values[k] = half((letters[at] << 10) | ((word >> (8 - ((10 * at) % 6))) & 1023));
    }
    weights[name] = { rows: shape[0], columns: shape[1] ?? 1, values };
  });
  return weights;
}

function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1, power = (bits >> 10) & 31, rest = bits & 1023;
  return sign * (power ? 2 ** (power - 15) * (1 + rest / 1024) : rest * 2 ** -24);
}

/** (n, 2), flat: the mean of u for every receiver of a graph. */
export function decide(graph, weights, layers) {
  const kinds = weights["encoder.node_type.weight"], count = graph.types.length, wide = NODE_FEATURES + kinds.columns;
  const inputs = new Float64Array(count * wide);
  for (let k = 0; k < count; k++) {
    inputs.set(graph.features.subarray(NODE_FEATURES * k, NODE_FEATURES * (k + 1)), k * wide);
    inputs.set(rowOf(kinds, graph.types[k]), k * wide + NODE_FEATURES);
  }
  let h = twoLinears(inputs, count, weights, "encoder.node.0", "encoder.node.2");
  rectify(h);
  for (let layer = 0; layer < layers; layer++) h = talk(h, graph, weights, `encoder.layers.${layer}`, layer === layers - 1);
  return twoLinears(h, graph.receivers, weights, "mean.0", "mean.2");
}

/** One round of messages: states of all nodes, in the last round of the receivers alone. */
function talk(h, graph, weights, name, last) {
  const { receivers, receiver, sender, types } = graph, count = types.length, width = h.length / count;
  const own = linear(h, receivers, weights, `${name}.own`), sent = linear(h, count, weights, `${name}.sent`);
  const kind = weights[`${name}.kind.weight`], received = new Float64Array(receivers * width);
  for (let k = 0; k < count; k++) for (let d = 0; d < width; d++) sent[k * width + d] += kind.values[types[k] * width + d];
  const mixed = new Float64Array(receiver.length * width);
  for (let e = 0; e < receiver.length; e++) {
    for (let d = 0; d < width; d++) mixed[e * width + d] = Math.max(0, own[receiver[e] * width + d] + sent[sender[e] * width + d]);
  }
  const f = rectify(linear(mixed, receiver.length, weights, `${name}.out`));
  const force = linear(f, receiver.length, weights, `${name}.force`);
  for (let e = 0; e < receiver.length; e++) {
    const signed = sigmoidOf(force[3 * e]) - sigmoidOf(force[3 * e + 1]), strength = softplus(force[3 * e + 2]) * signed;
    for (let d = 0; d < width; d++) received[receiver[e] * width + d] += f[e * width + d] * strength;
  }
  const kept = last ? receivers : count, both = new Float64Array(2 * width * kept);
  for (let k = 0; k < kept; k++) {
    both.set(h.subarray(k * width, (k + 1) * width), 2 * width * k);
    if (k < receivers) both.set(received.subarray(k * width, (k + 1) * width), 2 * width * k + width);
  }
  const change = rectify(twoLinears(both, kept, weights, `${name}.update.0`, `${name}.update.2`));
  return change.map((value, k) => h[k] + value);
}

function twoLinears(inputs, count, weights, first, second) {
  return linear(rectify(linear(inputs, count, weights, first)), count, weights, second);
}

/** W x + b for the first `count` rows of `inputs`. Eight sums at a time, of two rows: a processor adds them side by side. */
function linear(inputs, count, weights, name) {
  const { rows, columns, values } = weights[`${name}.weight`], bias = weights[`${name}.bias`]?.values;
  const out = new Float64Array(count * rows), fours = rows - (rows % 4);
  for (let k = 0; k < count; k += 2) {
    const x = k * columns, at = k * rows, next = k + 1 < count ? 1 : 0, y = x + next * columns, beside = at + next * rows;
    for (let r = 0; r < fours; r += 4) {
      const w0 = r * columns, w1 = w0 + columns, w2 = w1 + columns, w3 = w2 + columns;
      let a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
      for (let i = 0; i < columns; i++) {
        const one = inputs[x + i], two = inputs[y + i], p = values[w0 + i], q = values[w1 + i], s = values[w2 + i], t = values[w3 + i];
        a += p * one;
        b += q * one;
        c += s * one;
        d += t * one;
        e += p * two;
        f += q * two;
        g += s * two;
        h += t * two;
      }
      out[at + r] = a;
      out[at + r + 1] = b;
      out[at + r + 2] = c;
      out[at + r + 3] = d;
      out[beside + r] = e;
      out[beside + r + 1] = f;
      out[beside + r + 2] = g;
      out[beside + r + 3] = h;
    }
  }
  for (let k = 0; k < count; k++) {
    for (let r = fours; r < rows; r++) {
      let sum = 0;
      for (let i = 0; i < columns; i++) sum += values[r * columns + i] * inputs[k * columns + i];
      out[k * rows + r] = sum;
    }
    if (bias) for (let r = 0; r < rows; r++) out[k * rows + r] += bias[r];
  }
  return out;
}

function rectify(values) {
  for (let k = 0; k < values.length; k++) if (values[k] < 0) values[k] = 0;
  return values;
}

function rowOf({ columns, values }, row) {
  return values.subarray(row * columns, (row + 1) * columns);
}

function sigmoidOf(value) {
  return 1 / (1 + Math.exp(-value));
}

function softplus(value) {
  return value > 20 ? value : Math.log1p(Math.exp(value));
}
