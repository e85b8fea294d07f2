// One class at a time: its drawing, and the tuples of a small graph that it joins.
(function () {
  "use strict";
  const { panel, line, dot, label, arrow, loop, element, letters } = globalThis.AnyorderDrawing;
  const { classes } = globalThis.AnyorderClasses, { Index, related } = globalThis.AnyorderWeb;
  const box = document.getElementById("ao-classes"), find = (name) => box.querySelector(`[data-name=${name}]`);
  const panels = box.querySelector(".ao-panels"), status = box.querySelector(".ao-status"), chips = box.querySelector(".ao-tuples");
  const diagram = panel(panels, "The class"), graph = panel(panels, "A graph of five nodes");
  const NODES = [[50, 12], [85, 40], [70, 84], [28, 84], [15, 40]], EDGES = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [0, 2]];
  const touches = (a, b) => a === b || EDGES.some(([x, y]) => (x === a && y === b) || (x === b && y === a));
  const shelves = new Map();

  // Tuples of an order: walks over the graph that may also stay where they are.
  function tuples(order) {
    let found = [[]];
    for (let axis = 0; axis < order; axis++) {
      found = found.flatMap((tuple) => NODES.map((_, node) => [...tuple, node]).filter((longer) => axis === 0 || touches(longer[axis - 1], longer[axis])));
    }
    return found;
  }

  const indexOf = (order) => shelves.get(order) || shelves.set(order, new Index(order, NODES.length, tuples(order))).get(order);
  const written = (tuple) => `(${tuple.map(letters)})`;

  function walk(names, spots, kind, bend) {
    const group = element("g");
    if (new Set(names).size === 1) group.append(loop(spots[names[0]], kind, kind === "ao-read" ? 6 : 8.5));
    for (let axis = 1; axis < names.length; axis++) {
      if (names[axis] !== names[axis - 1]) group.append(arrow(spots[names[axis - 1]], spots[names[axis]], kind, 6, bend));
    }
    return group;
  }

  function drawClass(cls) {
    const columns = [cls.inputs.filter((n) => !cls.outputs.includes(n)), cls.outputs.filter((n) => cls.inputs.includes(n)), cls.outputs.filter((n) => !cls.inputs.includes(n))].map((some) => [...new Set(some)]);
    const spots = {};
    columns.forEach((column, c) => column.forEach((name, row) => (spots[name] = [20 + 30 * c + (row % 2 ? 6 : 0), (100 * (row + 1)) / (column.length + 1)])));
    diagram.svg.replaceChildren(walk(cls.inputs, spots, "ao-read", 5), walk(cls.outputs, spots, "ao-write", -5));
    for (const [name, at] of Object.entries(spots)) diagram.svg.append(dot(at, 5.5, "ao-letter"), label(at, name));
    if (!cls.outputs.length) diagram.svg.append(label([80, 50], "the graph"));
    diagram.caption.textContent = cls.name;
    diagram.svg.setAttribute("aria-label", `the class ${cls.name}: ${cls.formula}`);
  }

  function lit(cls, target, exact) {
    const from = indexOf(cls.inputs.length), to = indexOf(cls.outputs.length), keys = from.parts[cls.source].entries;
    const mask = related(cls, from, to, exact), query = to.parts[cls.target].entries.indexOf(target);
    return keys.filter((_, k) => mask[query * keys.length + k]).map((entry) => from.tuples[entry]);
  }

  function drawGraph(cls, target, exact, extra) {
    const spots = Object.fromEntries(NODES.map((at, n) => [n, at]));
    graph.svg.replaceChildren(...EDGES.map(([a, b]) => line(NODES[a], NODES[b], "ao-faint")));
    for (const tuple of exact) graph.svg.append(walk(tuple, spots, "ao-read", 4));
    for (const tuple of extra) graph.svg.append(walk(tuple, spots, "ao-relaxed", 4));
    if (target.length) graph.svg.append(walk(target, spots, "ao-write", -4));
    NODES.forEach((at, n) => graph.svg.append(dot(at, 5, "ao-letter"), label(at, letters(n))));
    graph.caption.textContent = `${target.length ? written(target) : "the graph"} receives ${exact.length} tuples${extra.length ? `, relaxed ${extra.length} more` : ""}`;
  }

  function chip(tuple, kind) {
    const made = document.createElement("code");
    made.className = kind;
    made.textContent = written(tuple);
    return made;
  }

  let all = [], chosen = null;

  function show(keepTarget = false) {
    const number = Math.min(Math.max(1, Math.round(+find("number").value) || 1), all.length);
    find("number").value = number;
    const cls = all[number - 1], to = indexOf(cls.outputs.length), part = to.parts[cls.target];
    if (!keepTarget) {
      find("target").replaceChildren(...part.entries.map((entry) => new Option(to.tuples[entry].length ? written(to.tuples[entry]) : "the graph", entry)));
    }
    const entry = +find("target").value, exact = lit(cls, entry, true), known = new Set(exact.map(String));
    const extra = find("relaxed").checked ? lit(cls, entry, false).filter((tuple) => !known.has(String(tuple))) : [];
    status.textContent = `Class ${number} of ${all.length}, ${cls.kind}: ${cls.formula}`;
    drawClass(cls);
    drawGraph(cls, to.tuples[entry], exact, extra);
    chips.replaceChildren(...exact.map((tuple) => chip(tuple, "ao-chip-read")), ...extra.map((tuple) => chip(tuple, "ao-chip-relaxed")));
    chosen = { number, of: all.length, name: cls.name, exact: exact.length, extra: extra.length };
  }

  function restart() {
    all = classes(+find("k").value, +find("l").value).filter((cls) => indexOf(cls.inputs.length).parts[cls.source] && indexOf(cls.outputs.length).parts[cls.target]);
    find("number").max = all.length;
    find("number").value = 1;
    show();
  }

  box.addEventListener("click", (event) => {
    const step = { previous: -1, next: 1 }[event.target.dataset.do];
    if (!step) return;
    find("number").value = ((+find("number").value - 1 + step + all.length) % all.length) + 1;
    show();
  });
  for (const name of ["k", "l"]) find(name).addEventListener("change", restart);
  find("number").addEventListener("change", () => show());
  for (const name of ["target", "relaxed"]) find(name).addEventListener("change", () => show(true));
  globalThis.anyorderPlayground = { ...globalThis.anyorderPlayground, classes: () => chosen };
  restart();
})();
