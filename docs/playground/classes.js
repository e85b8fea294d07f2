// Equivalence classes of a layer from order k to order l, as the package lists them.
(function (root) {
  "use strict";

  function setPartitions(order) {
    let found = [[]];
    for (let axis = 0; axis < order; axis++) {
      found = found.flatMap((labels) => Array.from({ length: (labels.length ? Math.max(...labels) + 1 : 0) + 1 }, (_, label) => [...labels, label]));
    }
    return found;
  }

  const blocksOf = (labels) => (labels.length ? Math.max(...labels) + 1 : 0);

  function choose(items, size) {
    if (size === 0) return [[]];
    return items.flatMap((item, n) => choose(items.slice(n + 1), size - 1).map((rest) => [item, ...rest]));
  }

  function arrange(items, size) {
    if (size === 0) return [[]];
    return items.flatMap((item, n) => arrange([...items.slice(0, n), ...items.slice(n + 1)], size - 1).map((rest) => [item, ...rest]));
  }

  function matchings(sources, targets) {
    const found = [], range = (count) => Array.from({ length: count }, (_, n) => n);
    for (let size = 0; size <= Math.min(sources, targets); size++) {
      for (const read of choose(range(sources), size)) for (const write of arrange(range(targets), size)) found.push(read.map((a, n) => [a, write[n]]));
    }
    return found;
  }

  function makeClass(source, target, matching) {
    const letters = "ijklmnopqrstuvwxyz", outputs = blocksOf(target);
    let fresh = outputs;
    const names = Array.from({ length: blocksOf(source) }, (_, block) => {
      const found = matching.find(([a]) => a === block);
      return found ? letters[found[1]] : letters[fresh++];
    });
    const inputs = source.map((block) => names[block]), written = target.map((block) => letters[block]);
    const summed = [...new Set(inputs)].filter((name) => !written.includes(name));
    const kind = summed.length === 0 ? "pointwise" : matching.length ? "local" : "global";
    const sum = summed.length ? `sum over ${summed.join(", ")} of ` : "";
    return {
      source: `p${source.join("_")}`, target: `p${target.join("_")}`, matching, inputs, outputs: written, kind,
      name: `(${inputs}) -> (${written})`, formula: `Y[${written}] += ${sum}X[${inputs}] W`,
    };
  }

  function classes(k, l) {
    return setPartitions(k).flatMap((source) => setPartitions(l).flatMap((target) => matchings(blocksOf(source), blocksOf(target)).map((matching) => makeClass(source, target, matching))));
  }

  const api = { classes, setPartitions };
  root.AnyorderClasses = api;
  if (typeof module !== "undefined") module.exports = api;
})(globalThis);
