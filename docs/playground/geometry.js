// The exact Delaunay triangulation, by adding one point after another (Bowyer and Watson).
(function (root) {
  "use strict";

  function inCircle(points, [a, b, c], p) {
    const rows = [a, b, c].map((n) => [points[n][0] - p[0], points[n][1] - p[1]]);
    const [[ax, ay], [bx, by], [cx, cy]] = rows, [as, bs, cs] = rows.map(([x, y]) => x * x + y * y);
    return ax * (by * cs - bs * cy) - ay * (bx * cs - bs * cx) + as * (bx * cy - by * cx) > 0;
  }

  const turn = (p, q, r) => (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]);

  // Edges i < j of points [[x, y], ...] between 0 and 1.
  function triangulate(given) {
    const n = given.length;
    if (n < 2) return [];
    if (n === 2) return [[0, 1]];
    const far = 1e5, points = [...given, [-far, -far], [far, -far], [0.3, far]];
    let triangles = [[n, n + 1, n + 2]];
    for (let p = 0; p < n; p++) {
      const border = new Map();
      triangles = triangles.filter((triangle) => {
        if (!inCircle(points, triangle, points[p])) return true;
        for (let side = 0; side < 3; side++) {
          const from = triangle[side], to = triangle[(side + 1) % 3];
          if (!border.delete(`${to},${from}`)) border.set(`${from},${to}`, [from, to]);
        }
        return false;
      });
      for (const [from, to] of border.values()) if (turn(points[from], points[to], points[p]) > 0) triangles.push([from, to, p]);
    }
    const edges = new Map();
    for (const triangle of triangles) {
      for (let side = 0; side < 3; side++) {
        const [i, j] = [triangle[side], triangle[(side + 1) % 3]].sort((a, b) => a - b);
        if (j < n) edges.set(`${i},${j}`, [i, j]);
      }
    }
    return [...edges.values()];
  }

  // Which edges are right, missed and wrong, and F1.
  function compare(exact, predicted) {
    const known = new Set(exact.map(String)), said = new Set(predicted.map(String));
    const right = predicted.filter((edge) => known.has(String(edge)));
    const total = exact.length + predicted.length;
    return {
      right,
      missed: exact.filter((edge) => !said.has(String(edge))),
      wrong: predicted.filter((edge) => !known.has(String(edge))),
      f1: total ? (2 * right.length) / total : 0,
    };
  }

  const api = { triangulate, compare };
  root.AnyorderGeometry = api;
  if (typeof module !== "undefined") module.exports = api;
})(globalThis);
