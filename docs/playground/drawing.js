// Small helpers to draw with SVG.
(function (root) {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";

  function element(name, attributes = {}, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // A figure with a caption; coordinates go from 0 to `width` and 0 to `height`.
  function panel(parent, title, width = 100, height = 100) {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption");
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": title });
    caption.textContent = title;
    figure.append(svg, caption);
    parent.append(figure);
    return { svg, caption };
  }

  // Where a pointer is, in the coordinates of a figure.
  function place(svg, event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [point.x, point.y];
  }

  const line = (a, b, kind, more = {}) => element("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], class: kind, ...more });
  const dot = (at, r, kind, more = {}) => element("circle", { cx: at[0], cy: at[1], r, class: kind, ...more });
  const label = (at, text, kind = "ao-label") => element("text", { x: at[0], y: at[1], class: kind, "text-anchor": "middle", "dominant-baseline": "central" }, text);

  // An arrow from a to b that stops short of the nodes.
  function arrow(a, b, kind, gap = 5, bend = 0) {
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]], length = Math.hypot(dx, dy) || 1, [ux, uy] = [dx / length, dy / length];
    const from = [a[0] + ux * gap, a[1] + uy * gap], to = [b[0] - ux * (gap + 2), b[1] - uy * (gap + 2)];
    const middle = [(from[0] + to[0]) / 2 - uy * bend, (from[1] + to[1]) / 2 + ux * bend];
    const [hx, hy] = [to[0] - middle[0], to[1] - middle[1]], size = Math.hypot(hx, hy) || 1, [vx, vy] = [hx / size, hy / size];
    const tip = [to[0] + vx * 2.5, to[1] + vy * 2.5];
    const head = [tip, [to[0] - vy * 1.8, to[1] + vx * 1.8], [to[0] + vy * 1.8, to[1] - vx * 1.8]];
    return element("g", { class: kind }, element("path", { d: `M${from} Q${middle} ${to}`, fill: "none" }), element("polygon", { points: head.join(" ") }));
  }

  // A loop at a node.
  const loop = (at, kind, r = 5) => element("g", { class: kind }, element("circle", { cx: at[0], cy: at[1], r: r + 2, fill: "none" }));

  const letters = (n) => String.fromCharCode(97 + n);
  root.AnyorderDrawing = { element, panel, place, line, dot, label, arrow, loop, letters };
})(globalThis);
