// Points that one moves, what two models say of them, and the exact triangulation.
(function () {
  "use strict";
  const { panel, place, line, dot } = globalThis.AnyorderDrawing;
  const { triangulate, compare } = globalThis.AnyorderGeometry;
  const web = globalThis.AnyorderWeb, box = document.getElementById("ao-delaunay"), panels = box.querySelector(".ao-panels");
  const models = ["delaunay-1-ours", "delaunay-2-s2g"].map((name, n) => ({ name: ["Ours", "S2G"][n], model: web.load(anyorderModels[name]), ...panel(panels, ["Ours", "S2G"][n]) }));
  const exact = panel(panels, "Exact");
  const layer = box.querySelector("[data-name=layer]");
  let points = [], held = null, shown = null, maps = null, waiting = false;
  const status = { answers: {}, milliseconds: {} };

  const clamp = (x) => Math.min(0.99, Math.max(0.01, x));
  const random = (count) => Array.from({ length: count }, () => [clamp(Math.random()), clamp(Math.random())]);
  const screen = ([x, y]) => [100 * x, 100 * (1 - y)];

  function predict() {
    const truth = triangulate(points), flat = points.flat();
    exact.caption.textContent = `Exact: ${truth.length} edges, ${points.length} points`;
    exact.answer = { right: truth, missed: [], wrong: [] };
    for (const each of models) {
      const start = performance.now();
      const found = each.name === "Ours" ? [] : null;
      const answer = points.length > 1 ? each.model.forward(flat, found) : { n: points.length, logits: [] };
      const time = performance.now() - start;
      if (found) maps = found;
      each.answer = compare(truth, web.edgesOf(answer));
      status.answers[each.name] = Array.from(answer.logits);
      status.milliseconds[each.name] = time;
      each.caption.textContent = `${each.name}: F1 ${each.answer.f1.toFixed(3)}, ${time.toFixed(0)} ms`;
    }
  }

  function drawAttention(svg) {
    const seen = maps && shown !== null && maps[+layer.value] && maps[+layer.value][0];
    if (!seen || seen.queries !== points.length) return;
    points.forEach((point, k) => {
      const weight = seen.weights[shown * seen.keys + k];
      if (k !== shown && weight > 0.005) svg.append(line(screen(points[shown]), screen(point), "ao-attention", { "stroke-width": 0.2 + 6 * weight, "stroke-opacity": Math.min(1, 0.25 + 3 * weight) }));
    });
  }

  function draw() {
    for (const each of [...models, exact]) {
      each.svg.replaceChildren();
      for (const kind of ["right", "missed", "wrong"]) for (const [i, j] of each.answer[kind]) each.svg.append(line(screen(points[i]), screen(points[j]), `ao-${kind}`));
      if (each.name === "Ours") drawAttention(each.svg);
      points.forEach((point, n) => each.svg.append(dot(screen(point), 1.3, "ao-point")));
      points.forEach((point, n) => each.svg.append(dot(screen(point), 3.2, "ao-handle", {
        tabindex: each === models[0] ? 0 : -1, role: "button", "data-point": n, "aria-label": `point ${n + 1} at ${point[0].toFixed(2)}, ${point[1].toFixed(2)}`,
      })));
    }
  }

  function update() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      predict();
      const focused = document.activeElement && document.activeElement.dataset && document.activeElement.dataset.point;
      draw();
      if (focused !== undefined && held === null) models[0].svg.querySelector(`[data-point="${focused}"]`)?.focus();
    });
  }

  function remove(n) {
    points.splice(n, 1);
    shown = held = null;
    update();
  }

  const numberOf = (event) => (event.target.dataset && event.target.dataset.point !== undefined ? +event.target.dataset.point : null);
  for (const { svg } of [...models, exact]) {
    svg.addEventListener("pointerdown", (event) => {
      held = shown = numberOf(event);
      if (held === null) {
        const [x, y] = place(svg, event);
        held = points.push([clamp(x / 100), clamp(1 - y / 100)]) - 1;
        update();
      }
      svg.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    svg.addEventListener("pointermove", (event) => {
      if (held !== null) {
        const [x, y] = place(svg, event);
        points[held] = [clamp(x / 100), clamp(1 - y / 100)];
        update();
      } else if (numberOf(event) !== shown) {
        shown = numberOf(event);
        draw();
      }
    });
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => (held = null));
    svg.addEventListener("dblclick", (event) => {
      const [x, y] = place(svg, event);
      const near = points.map((point, n) => [Math.hypot(screen(point)[0] - x, screen(point)[1] - y), n]).filter(([distance]) => distance < 3.2);
      if (near.length) near.sort((a, b) => a[0] - b[0]).slice(0, 1).forEach(([, n]) => remove(n));
    });
    svg.addEventListener("focusin", (event) => {
      if (held === null && numberOf(event) !== shown) {
        shown = numberOf(event);
        const number = shown;
        draw();
        svg.querySelector(`[data-point="${number}"]`)?.focus();
      }
    });
    svg.addEventListener("keydown", (event) => {
      const n = numberOf(event), step = { ArrowLeft: [-0.01, 0], ArrowRight: [0.01, 0], ArrowUp: [0, 0.01], ArrowDown: [0, -0.01] }[event.key];
      if (n === null) return;
      if (event.key === "Delete" || event.key === "Backspace") remove(n);
      else if (step) {
        points[n] = [clamp(points[n][0] + step[0]), clamp(points[n][1] + step[1])];
        update();
      } else return;
      event.preventDefault();
    });
  }
  box.addEventListener("click", (event) => {
    const what = event.target.dataset.do;
    if (what === "add") points.push(...random(1));
    else if (what === "random") points = random(60);
    else if (what === "few") points = random(12);
    else if (what === "clear") points = [];
    else return;
    shown = null;
    update();
  });
  layer.addEventListener("change", draw);

  globalThis.anyorderPlayground = { ...globalThis.anyorderPlayground, delaunay: { status, points: () => points, set: (some) => { points = some; predict(); draw(); } } };
  points = random(30);
  predict();
  draw();
})();
