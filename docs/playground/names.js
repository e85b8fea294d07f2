// A graph that one edits, the same with other numbers twice, and what a model answers for each of the three.
(function () {
  "use strict";
  const { panel, place, line, dot, label, letters } = globalThis.AnyorderDrawing;
  const { Index, load } = globalThis.AnyorderWeb, model = load(anyorderModels.graph);
  const box = document.getElementById("ao-names"), panels = box.querySelector(".ao-panels");
  const status = box.querySelector(".ao-status"), table = box.querySelector(".ao-answers"), MOST = 12, DIGITS = 6;
  const views = ["Yours", "Other numbers", "Others again"].map((title) => panel(panels, title));
  let nodes, edges, orders, picked, answers;

  const shuffled = (count) => {
    const order = Array.from({ length: count }, (_, n) => n);
    for (let n = count - 1; n > 0; n--) {
      const other = Math.floor(Math.random() * (n + 1));
      [order[n], order[other]] = [order[other], order[n]];
    }
    return order;
  };

  const joined = (a, b) => edges.findIndex(([x, y]) => (x === a && y === b) || (x === b && y === a));

  function start() {
    nodes = [[50, 15], [85, 45], [68, 85], [25, 80], [15, 40]];
    edges = [[0, 1], [1, 2], [2, 3], [0, 2]];
    picked = null;
    renumber();
  }

  function renumber() {
    orders = [nodes.map((_, n) => n), shuffled(nodes.length), shuffled(nodes.length)];
    update();
  }

  // The answers of the model, by node, when node n is called order[n]. Nodes have channels (1, 0), edges (0, 1).
  function answer(order) {
    const tuples = [...nodes.map((_, n) => [n, n]), ...edges.flatMap(([a, b]) => [[order[a], order[b]], [order[b], order[a]]])];
    const rows = Float64Array.from(tuples.flatMap(([a, b]) => (a === b ? [1, 0] : [0, 1])));
    const found = model.forward(new Index(2, nodes.length, tuples), rows).rows;
    return nodes.map((_, n) => found[order[n]]);
  }

  function draw() {
    views.forEach(({ svg }, v) => {
      svg.replaceChildren(...edges.map(([a, b]) => line(nodes[a], nodes[b], "ao-edge")));
      nodes.forEach((at, n) => {
        const more = v === 0 ? { tabindex: 0, role: "button", "data-node": n, "aria-label": `node ${letters(n)}${n === picked ? ", chosen" : ""}` } : {};
        svg.append(dot(at, 6, n === picked && v === 0 ? "ao-letter ao-picked" : "ao-letter", more), label(at, String(orders[v][n])));
        svg.append(label([at[0] + 9, at[1] - 7], letters(n), "ao-small"));
      });
    });
  }

  function update() {
    answers = nodes.length ? orders.map(answer) : [[], [], []];
    const texts = answers.map((some) => some.map((x) => x.toFixed(DIGITS)));
    const differ = nodes.filter((_, n) => texts.some((some) => some[n] !== texts[0][n])).length;
    const widest = Math.max(0, ...answers.flatMap((some) => some.map((x, n) => Math.abs(x - answers[0][n]))));
    status.textContent = `${differ ? `${differ} answers differ` : "All answers are equal"} in ${DIGITS} digits; largest difference ${widest.toExponential(1)}.`;
    const row = (cells, tag) => `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join("")}</tr>`;
    const body = nodes.map((_, n) => row([letters(n), ...texts.map((some, v) => `${some[n]} <small>(as ${orders[v][n]})</small>`)], "td")).join("");
    table.innerHTML = `<table><thead>${row(["node", "yours", "other numbers", "others again"], "th")}</thead><tbody>${body}</tbody></table>`;
    draw();
  }

  function pick(n) {
    if (picked === null || picked === n) picked = picked === n ? null : n;
    else {
      const known = joined(picked, n);
      if (known < 0) edges.push([picked, n]);
      else edges.splice(known, 1);
      picked = null;
    }
    update();
  }

  function remove(n) {
    nodes.splice(n, 1);
    edges = edges.filter((edge) => !edge.includes(n)).map((edge) => edge.map((end) => (end > n ? end - 1 : end)));
    picked = null;
    renumber();
  }

  const svg = views[0].svg;
  svg.addEventListener("click", (event) => {
    const [x, y] = place(svg, event), near = nodes.findIndex((at) => Math.hypot(at[0] - x, at[1] - y) < 8);
    if (near >= 0) pick(near);
    else if (nodes.length < MOST) {
      nodes.push([x, y]);
      renumber();
    } else status.textContent = `This page takes at most ${MOST} nodes.`;
  });
  svg.addEventListener("keydown", (event) => {
    const n = event.target.dataset.node === undefined ? null : +event.target.dataset.node;
    if (n === null) return;
    if (event.key === "Delete" || event.key === "Backspace") remove(n);
    else if (event.key === "Enter" || event.key === " ") pick(n);
    else return;
    event.preventDefault();
    svg.querySelector(`[data-node="${Math.min(n, nodes.length - 1)}"]`)?.focus();
  });
  box.addEventListener("click", (event) => {
    if (event.target.dataset.do === "shuffle") renumber();
    if (event.target.dataset.do === "reset") start();
  });
  globalThis.anyorderPlayground = { ...globalThis.anyorderPlayground, names: () => ({ nodes, edges, orders, answers }) };
  start();
})();
