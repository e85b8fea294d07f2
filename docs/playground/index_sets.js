// Which tuples exist, and which of them a class joins.
(function (root) {
  "use strict";

  const patternOf = (tuple) => {
    const seen = [];
    return "p" + tuple.map((node) => (seen.includes(node) ? seen.indexOf(node) : seen.push(node) - 1)).join("_");
  };

  // Which tuples exist, by pattern. `blocks` of an entry are its nodes, each once.
  class Index {
    constructor(order, numNodes, tuples) {
      Object.assign(this, { order, numNodes, tuples, known: new Map() });
      this.parts = {};
      tuples.forEach((tuple, entry) => {
        const part = (this.parts[patternOf(tuple)] ??= { entries: [], blocks: [], place: new Map() });
        const blocks = [...new Set(tuple)];
        part.place.set(this.key(blocks), part.entries.length);
        part.entries.push(entry);
        part.blocks.push(blocks);
      });
    }
    key(blocks) {
      return blocks.reduce((total, node) => total * this.numNodes + node, 0);
    }
    count(pattern) {
      return this.parts[pattern] ? this.parts[pattern].entries.length : 0;
    }
    split(rows, width) {
      return mapValues(this.parts, (part) => {
        const some = new Float64Array(part.entries.length * width);
        part.entries.forEach((entry, n) => some.set(rows.subarray(entry * width, (entry + 1) * width), n * width));
        return some;
      });
    }
    join(parts, width) {
      const rows = new Float64Array(this.tuples.length * width);
      for (const [pattern, part] of Object.entries(this.parts)) {
        part.entries.forEach((entry, n) => rows.set(parts[pattern].subarray(n * width, (n + 1) * width), entry * width));
      }
      return rows;
    }
    withOrder(order) {
      if (order === this.order) return this;
      if (order > 1) throw new Error(`no index set of order ${order} follows from one of order ${this.order}: give the tuples`);
      return this.once(`order ${order}`, () => complete(order, this.numNodes));
    }
    once(name, make) {
      if (!this.known.has(name)) this.known.set(name, make());
      return this.known.get(name);
    }
  }

  function complete(order, numNodes) {
    let tuples = [[]];
    for (let axis = 0; axis < order; axis++) {
      tuples = tuples.flatMap((tuple) => Array.from({ length: numNodes }, (_, node) => [...tuple, node]));
    }
    return new Index(order, numNodes, tuples);
  }

  const mapValues = (object, change) => Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
  const classKey = (cls) => `${cls.source}>${cls.target}:${cls.matching.join(";")}`;

  // For each output entry the input entry that a pointwise class reads, -1 where there is none.
  function reads(cls, source, target) {
    return target.once(`reads ${classKey(cls)} ${source.order} ${source === target}`, () => {
      const from = source.parts[cls.source];
      return Int32Array.from(target.parts[cls.target].blocks, (blocks) => {
        const place = from && from.place.get(source.key(cls.matching.map(([, write]) => blocks[write])));
        return place === undefined ? -1 : place;
      });
    });
  }

  // (query, key): 1 where the matched blocks are equal and, if exact, all others differ.
  function related(cls, source, target, exact = true) {
    const keys = source.parts[cls.source] ? source.parts[cls.source].blocks : [];
    const queries = target.parts[cls.target] ? target.parts[cls.target].blocks : [];
    const mask = new Uint8Array(queries.length * keys.length);
    queries.forEach((query, q) => keys.forEach((key, k) => {
      const held = cls.matching.every(([a, b]) => key[a] === query[b]);
      const apart = () => key.every((node, a) => query.every((other, b) => node !== other || cls.matching.some((m) => m[0] === a && m[1] === b)));
      mask[q * keys.length + k] = held && (!exact || apart()) ? 1 : 0;
    }));
    return mask;
  }

  const api = { Index, complete, reads, related, classKey, mapValues, patternOf };
  root.AnyorderIndexSets = api;
  if (typeof module !== "undefined") module.exports = api;
})(globalThis);
