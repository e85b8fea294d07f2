// Forward passes of exported models (`anyorder export --format web`), class by class as the package computes them.
(function (root) {
  "use strict";
  const { multiply } = root.AnyorderMatrices || require("./matrices.js");

  const { Index, complete, reads, related, classKey, mapValues } = root.AnyorderIndexSets || require("./index_sets.js");

  function plus(rows, more) {
    for (let n = 0; n < rows.length; n++) rows[n] += more[n];
    return rows;
  }

  class Weights {
    constructor(model) {
      const text = atob(model.data);
      const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
      const numbers = new Float32Array(bytes.buffer);
      this.tensors = mapValues(model.tensors, ({ shape, offset }) => {
        const size = shape.reduce((a, b) => a * b, 1);
        return { shape, data: numbers.subarray(offset, offset + size) };
      });
      this.turned = new Map();
    }
    has(name) {
      return name in this.tensors;
    }
    get(name) {
      if (!this.has(name)) throw new Error(`the model has no tensor ${name}`);
      return this.tensors[name];
    }
    // The weight of a torch Linear as (in, out).
    linear(name) {
      if (!this.turned.has(name)) {
        const { shape: [out, into], data } = this.get(name);
        const turned = new Float32Array(out * into);
        for (let o = 0; o < out; o++) for (let i = 0; i < into; i++) turned[i * out + o] = data[o * into + i];
        this.turned.set(name, { into, out, data: turned });
      }
      return this.turned.get(name);
    }
  }

  function addBias(rows, bias) {
    for (let at = 0; at < rows.length; at += bias.length) for (let c = 0; c < bias.length; c++) rows[at + c] += bias[c];
    return rows;
  }

  function dense(weights, name, rows) {
    const { into, out, data } = weights.linear(`${name}.weight`);
    return addBias(multiply(rows, rows.length / into, into, data, out), weights.get(`${name}.bias`).data);
  }

  // In place: the rows are of the caller alone.
  function relu(rows) {
    for (let n = 0; n < rows.length; n++) if (rows[n] < 0) rows[n] = 0;
    return rows;
  }

  // The error function between 0 and 6: values and slopes in steps of 1/128, cubic between them (off by 1e-10 at most).
  const STEPS = 128, slopeOf = (x) => (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x);
  const erfTable = Float64Array.from({ length: 6 * STEPS + 2 }, (_, n) => {
    const x = n / STEPS;
    let term = x, sum = 0;
    for (let k = 1; term > 1e-18 * sum || k < 3; k++) {
      sum += term;
      term *= (2 * x * x) / (2 * k + 1);
    }
    return slopeOf(x) * sum;
  });
  const erfSlopes = erfTable.map((_, n) => slopeOf(n / STEPS) / STEPS);

  function erf(x) {
    const place = Math.min(Math.abs(x), 6) * STEPS, n = place | 0, t = place - n, u = 1 - t;
    const ends = u * u * (1 + 2 * t) * erfTable[n] + t * t * (1 + 2 * u) * erfTable[n + 1];
    const y = ends + t * u * (u * erfSlopes[n] - t * erfSlopes[n + 1]);
    return x < 0 ? -y : y;
  }

  function gelu(rows) {
    for (let n = 0; n < rows.length; n++) rows[n] *= 0.5 * (1 + erf(rows[n] * Math.SQRT1_2));
    return rows;
  }

  function layerNorm(weights, name, rows) {
    const scale = weights.get(`${name}.weight`).data, shift = weights.get(`${name}.bias`).data;
    const width = scale.length, out = new Float64Array(rows.length);
    for (let at = 0; at < rows.length; at += width) {
      let mean = 0, square = 0;
      for (let c = 0; c < width; c++) mean += rows[at + c] / width;
      for (let c = 0; c < width; c++) square += (rows[at + c] - mean) ** 2 / width;
      const length = Math.sqrt(square + 1e-5);
      for (let c = 0; c < width; c++) out[at + c] = ((rows[at + c] - mean) / length) * scale[c] + shift[c];
    }
    return out;
  }

  // Adds row read[n] of `rows` to row n of `total`, nothing where that is -1.
  function addRead(total, rows, read, width) {
    for (let to = 0, b = 0; to < read.length; to++, b += width) {
      if (read[to] < 0) continue;
      for (let c = 0, a = read[to] * width; c < width; c++) total[b + c] += rows[a + c];
    }
  }

  // Writes rows into columns of wider ones, from `first` on.
  function place(rows, width, wide, whole, first) {
    for (let at = 0, to = first; at < rows.length; at += width, to += whole) for (let c = 0; c < width; c++) wide[to + c] = rows[at + c];
  }

  // Rows of one pattern: what each pointwise class reads, times its matrix, added up.
  function project(classes, weight, bias, parts, source, target, pattern) {
    const count = target.count(pattern);
    const width = bias ? bias.length : weight.shape[2];
    const total = new Float64Array(count * width);
    if (bias) addBias(total, bias);
    classes.forEach((cls, n) => {
      const rows = parts[cls.source];
      if (!rows || !rows.length || !count) return;
      const [, into, out] = weight.shape;
      const product = multiply(rows, rows.length / into, into, weight.data.subarray(n * into * out, (n + 1) * into * out), out);
      addRead(total, product, reads(cls, source, target), out);
    });
    return total;
  }

  function columns(rows, width, from, to) {
    const some = new Float64Array((rows.length / width) * (to - from));
    for (let at = from, n = 0; at < rows.length; at += width) for (let c = 0; c < to - from; c++) some[n++] = rows[at + c];
    return some;
  }

  // exp(x) for x <= 0: 2^(whole + n/512) from tables, and two terms of what is left (off by 1e-10 of it at most).
  const PARTS = 512, parts = Float64Array.from({ length: PARTS }, (_, n) => 2 ** (n / PARTS));
  const wholes = Float64Array.from({ length: 1024 }, (_, n) => 2 ** -n);
  function fastExp(x) {
    if (x < -700) return 0;
    const place = Math.floor(x * (PARTS / Math.LN2)), rest = x - place * (Math.LN2 / PARTS);
    return wholes[-(place >> 9)] * parts[place & 511] * (1 + rest * (1 + rest * (0.5 + rest / 6)));
  }

  // Softmax of rows of scores over the allowed keys, in place; a row without any is zero.
  function softmax(scores, mask, keys, scale) {
    for (let at = 0; at < scores.length; at += keys) {
      let most = -Infinity, sum = 0;
      for (let k = at; k < at + keys; k++) if (mask[k] && scores[k] > most) most = scores[k];
      for (let k = at; k < at + keys; k++) sum += scores[k] = mask[k] ? fastExp((scores[k] - most) * scale) : 0;
      if (sum > 0) for (let k = at; k < at + keys; k++) scores[k] /= sum;
    }
  }

  // What the queries of a class receive (query, head x channel), and the mean of the weights over heads where asked for.
  function attend(query, key, value, mask, heads, width, seen) {
    const full = heads * width, queries = query.length / full, keys = key.length / full;
    const received = new Float64Array(queries * full);
    if (!keys || !queries) return received;
    for (let h = 0; h < heads; h++) {
      const turned = new Float64Array(width * keys);
      for (let c = 0; c < width; c++) for (let k = 0; k < keys; k++) turned[c * keys + k] = key[k * full + h * width + c];
      const scores = multiply(columns(query, full, h * width, (h + 1) * width), queries, width, turned, keys);
      softmax(scores, mask, keys, 1 / Math.sqrt(width));
      if (seen) for (let n = 0; n < scores.length; n++) seen[n] += scores[n] / heads;
      const part = multiply(scores, queries, keys, columns(value, full, h * width, (h + 1) * width), width);
      place(part, width, received, full, h * width);
    }
    return received;
  }

  class Encoder {
    constructor(model, weights, path) {
      Object.assign(this, { weights, plan: model.encoders[path], path: path ? `${path}.` : "" });
    }

    linear(plan, name, parts, source, target) {
      const weight = this.weights.get(`${name}.weight`), bias = this.weights.get(`${name}.bias`);
      const width = weight.shape[2];
      return Object.fromEntries(Object.keys(target.parts).map((pattern) => {
        const place = plan.patterns.indexOf(pattern);
        const numbers = plan.classes.flatMap((cls, n) => (cls.target === pattern ? [n] : []));
        const size = weight.shape[1] * width;
        const data = new Float32Array(numbers.length * size);
        numbers.forEach((number, n) => data.set(weight.data.subarray(number * size, (number + 1) * size), n * size));
        const own = { shape: [numbers.length, weight.shape[1], width], data };
        const classes = numbers.map((number) => plan.classes[number]);
        return [pattern, project(classes, own, bias.data.subarray(place * width, (place + 1) * width), parts, source, target, pattern)];
      }));
    }

    lightweight(plan, name, role, pattern, parts, source, target) {
      const weight = this.weights.has(`${name}.${role}.${pattern}.weight`) ? this.weights.get(`${name}.${role}.${pattern}.weight`) : null;
      const bias = this.weights.has(`${name}.${role}.${pattern}.bias`) ? this.weights.get(`${name}.${role}.${pattern}.bias`).data : null;
      return project(weight ? plan[role][pattern] : [], weight, bias, parts, source, target, pattern);
    }

    attention(plan, name, parts, source, target, maps) {
      const { heads, width } = plan, full = heads * width, made = {}, once = (key, make) => (made[key] ??= make());
      const out = {}, some = Object.keys(parts).find((pattern) => source.count(pattern));
      const channels = some ? parts[some].length / source.count(some) : 0;
      for (const pattern of Object.keys(target.parts)) {
        const direct = plan.pointwise[pattern] && this.lightweight(plan, name, "pointwise", pattern, parts, source, target);
        const pooled = plan.pooled.filter((cls) => cls.target === pattern);
        const count = target.count(pattern), wide = new Float64Array(count * pooled.length * full);
        for (const cls of pooled) {
          if (!source.count(cls.source)) continue;
          const query = once(`query ${pattern}`, () => this.lightweight(plan, name, "query", pattern, parts, source, target));
          const key = once(`key ${cls.source}`, () => this.lightweight(plan, name, "key", cls.source, parts, source, source));
          const value = once(`value ${cls.source}`, () => {
            const { shape, data } = this.weights.get(`${name}.value.${cls.source}`);
            return multiply(parts[cls.source], source.count(cls.source), shape[0], data, shape[1]);
          });
          const [q, k, v] = [[query, cls.write, count], [key, cls.read, source.count(cls.source)], [value, cls.read, source.count(cls.source)]]
            .map(([rows, at, number]) => columns(rows, rows.length / number, at * full, (at + 1) * full));
          const mask = target.once(`mask ${classKey(cls)} ${source === target}`, () => related(cls, source, target));
          const seen = maps && new Float64Array(mask.length);
          const received = attend(q, k, v, mask, heads, width, seen);
          if (maps) maps.push({ cls, weights: seen, queries: count, keys: source.count(cls.source) });
          place(received, full, wide, pooled.length * full, cls.write * full);
        }
        const output = pooled.length ? this.weights.get(`${name}.output.${pattern}`) : null;
        const total = output ? multiply(wide, count, output.shape[0], output.data, output.shape[1]) : new Float64Array(count * channels);
        out[pattern] = direct ? plus(total, direct) : total;
      }
      return out;
    }

    layer(plan, name, parts, source, target, maps) {
      const norm = (which, some) => (plan.norm ? mapValues(some, (rows) => layerNorm(this.weights, `${name}.${which}`, rows)) : some);
      const add = (some, more) => Object.fromEntries(Object.keys(some).map((key) => [key, plus(some[key], more[key])]));
      let hidden = this.attention(plan.attention, `${name}.attention`, norm("norm_attention", parts), source, target, maps);
      if (plan.residual && source === target) hidden = add(hidden, parts);
      const wide = this.linear(plan.widen, `${name}.widen`, norm("norm_mlp", hidden), target, target);
      return add(hidden, this.linear(plan.narrow, `${name}.narrow`, mapValues(wide, gelu), target, target));
    }

    // Rows of `index` to rows of the last order. `targets`: index sets by order, where they do not follow.
    forward(index, rows, targets = {}, maps = null) {
      let parts = this.linear(this.plan.project, `${this.path}project`, index.split(rows, rows.length / index.tuples.length), index, index);
      this.plan.layers.forEach((plan, n) => {
        const target = targets[plan.orders[1]] || index.withOrder(plan.orders[1]);
        const seen = maps && plan.orders[0] === plan.orders[1] ? [] : null; // maps of larger orders are too large to keep
        parts = this.layer(plan, `${this.path}layers.${n}`, parts, index, target, seen);
        if (maps) maps.push(seen);
        index = target;
      });
      const width = this.weights.get(`${this.path}norm.weight`).data.length;
      const out = layerNorm(this.weights, `${this.path}norm`, index.join(parts, width));
      return { index, rows: this.weights.has(`${this.path}head.weight`) ? dense(this.weights, `${this.path}head`, out) : out };
    }
  }

  function standardised(model, points) {
    const { mean, deviation, channels } = { channels: 2, ...model.settings.shapes };
    if (!mean) return Float64Array.from(points);
    return Float64Array.from(points, (x, n) => Math.fround(Math.fround(x - mean[n % channels]) / deviation[n % channels]));
  }

  class PairEncoder {
    constructor(model) {
      Object.assign(this, { model, weights: new Weights(model), sets: new Map() });
      this.encoder = new Encoder(model, this.weights, "encoder");
    }
    // Points, flat, to a logit for each ordered pair; with `maps`, what each class of each layer attends to.
    forward(points, maps = null) {
      const channels = this.model.settings.shapes.channels, n = points.length / channels;
      if (!this.sets.has(n)) this.sets.set(n, [complete(1, n), complete(2, n)]);
      const [nodes, pairs] = this.sets.get(n);
      const { rows } = this.encoder.forward(nodes, standardised(this.model, points), { 2: pairs }, maps), width = rows.length / (n * n);
      const logits = this.head("head", rows);
      if (this.model.settings.model.own_diagonal) {
        const own = new Float64Array(n * width);
        for (let i = 0; i < n; i++) own.set(rows.subarray((i * n + i) * width, (i * n + i + 1) * width), i * width);
        this.head("diagonal_head", own).forEach((logit, i) => (logits[i * n + i] = logit));
      }
      return { n, logits };
    }
    head(name, rows) {
      const depth = this.model.settings.model.head.length;
      for (let d = 0; d < depth; d++) rows = relu(dense(this.weights, `${name}.${2 * d}`, rows));
      return dense(this.weights, `${name}.${2 * depth}`, rows);
    }
  }

  class SetToGraph {
    constructor(model) {
      Object.assign(this, { model, weights: new Weights(model) });
    }
    forward(points) {
      const { widths, head, own_diagonal: ownDiagonal } = this.model.settings.model;
      let rows = standardised(this.model, points);
      const n = rows.length / this.model.settings.shapes.channels;
      widths.forEach((_, d) => {
        if (d) rows = relu(rows);
        rows = this.layer(`layers.${d}`, rows, n);
      });
      const logits = this.head("head", rows, n, head, (first, second) => {
        const width = head[0], sums = new Float64Array(n * n * width);
        for (let i = 0, at = 0; i < n; i++) {
          for (let j = 0; j < n; j++) for (let c = 0; c < width; c++) sums[at++] = first[i * width + c] + second[j * width + c];
        }
        return sums;
      });
      if (ownDiagonal) {
        const loops = this.head("diagonal_head", rows, n, head, plus);
        for (let i = 0; i < n; i++) logits[i * n + i] = loops[i];
      }
      return { n, logits };
    }
    layer(name, rows, n) {
      const width = rows.length / n, centred = new Float64Array(rows.length);
      for (let c = 0; c < width; c++) {
        let mean = 0;
        for (let i = 0; i < n; i++) mean += rows[i * width + c] / n;
        for (let i = 0; i < n; i++) centred[i * width + c] = rows[i * width + c] - mean;
      }
      const out = plus(dense(this.weights, `${name}.own`, rows), dense(this.weights, `${name}.centred`, centred));
      const size = out.length / n;
      for (let i = 0; i < n; i++) {
        const row = out.subarray(i * size, (i + 1) * size), length = Math.max(Math.hypot(...row), 1e-12);
        row.forEach((x, c) => (row[c] = x / length));
      }
      return out;
    }
    head(name, rows, n, widths, spread) {
      const { into, out, data } = this.weights.linear(`${name}.spread.weight`), half = into / 2;
      const second = multiply(rows, n, half, data.subarray(0, half * out), out);
      const first = addBias(multiply(rows, n, half, data.subarray(half * out), out), this.weights.get(`${name}.spread.bias`).data);
      let hidden = relu(spread(first, second));
      for (let d = 1; d < widths.length; d++) hidden = relu(dense(this.weights, `${name}.rest.${2 * d - 1}`, hidden));
      return dense(this.weights, `${name}.rest.${2 * widths.length - 1}`, hidden);
    }
  }

  class GraphModel {
    constructor(model) {
      this.weights = new Weights(model);
      this.encoder = new Encoder(model, this.weights, "");
    }
    forward(index, rows, targets) {
      return this.encoder.forward(index, rows, targets);
    }
  }

  const kinds = { PairEncoder, SetToGraph, Encoder: GraphModel };

  // A model from what `anyorder export --format web` wrote.
  function load(model) {
    if (!model || model.format !== "anyorder-web" || model.version !== 1) throw new Error("expected a model written by anyorder export --format web, version 1");
    if (!(model.kind in kinds)) throw new Error(`models of class ${model.kind} are not known, expected one of ${Object.keys(kinds)}`);
    return new kinds[model.kind](model);
  }

  // The edges i < j whose mean logit of both directions is at least 0.
  function edgesOf({ n, logits }) {
    const edges = [];
    for (let i = 0; i < n; i++) for (let j = i + 1; j < n; j++) if (logits[i * n + j] + logits[j * n + i] >= 0) edges.push([i, j]);
    return edges;
  }

  const api = { load, Index, complete, related, edgesOf };
  root.AnyorderWeb = api;
  if (typeof module !== "undefined") module.exports = api;
})(globalThis);
