// Products of matrices: in WebAssembly with four numbers at a time where the browser has it, else in plain JavaScript.
(function (root) {
  "use strict";

  // The text of a small WebAssembly module, written here byte by byte so that the page needs no other file.
  const I32 = 0x7f, V128 = 0x7b;
  const get = (n) => [0x20, n], set = (n) => [0x21, n], number = (n) => [0x41, ...signed(n)];
  const ADD = [0x6a], SUB = [0x6b], MUL = [0x6c], LESS = [0x49], END = [0x0b], LOOP = [0x03, 0x40], AGAIN = [0x0d, 0];
  const SPLAT = [0xfd, 0x09, 2, 0], LANES_ADD = [0xfd, 0xe4, 1], LANES_MUL = [0xfd, 0xe6, 1];
  const load = (offset) => [0xfd, 0x00, 4, ...unsigned(offset)], store = (offset) => [0xfd, 0x0b, 4, ...unsigned(offset)];
  const ZERO = [0xfd, 0x0c, ...new Array(16).fill(0)];

  function unsigned(n) {
    const bytes = [];
    do {
      bytes.push((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
      n >>>= 7;
    } while (n);
    return bytes;
  }

  function signed(n) {
    return n < 64 ? [n] : [(n & 0x7f) | 0x80, n >> 7];
  }

  // c = a b for a of n x k, b of k x m, c of n x m, with n even and m a multiple of 16: two rows by sixteen columns at a time.
  function body() {
    const [a, b, c, n, k, m] = [0, 1, 2, 3, 4, 5];
    const [i, j, left, first, second, at] = [6, 7, 8, 9, 10, 11];
    const [one, two, held] = [12, 13, 14];
    const sums = [15, 16, 17, 18, 19, 20, 21, 22];
    const quads = [0, 1, 2, 3];
    const step = (local, by) => [...get(local), ...by, ...ADD, ...set(local)];
    const times4 = [...number(4), ...MUL];
    return [
      ...number(0), ...set(i), ...LOOP,
      ...number(0), ...set(j), ...LOOP,
      ...sums.flatMap((sum) => [...ZERO, ...set(sum)]),
      ...get(a), ...get(i), ...get(k), ...MUL, ...times4, ...ADD, ...set(first),
      ...get(first), ...get(k), ...times4, ...ADD, ...set(second),
      ...get(b), ...get(j), ...times4, ...ADD, ...set(at), ...get(k), ...set(left),
      ...LOOP,
      ...get(first), ...SPLAT, ...set(one), ...get(second), ...SPLAT, ...set(two),
      ...quads.flatMap((q) => [
        ...get(at), ...load(16 * q), ...set(held),
        ...get(sums[q]), ...get(one), ...get(held), ...LANES_MUL, ...LANES_ADD, ...set(sums[q]),
        ...get(sums[q + 4]), ...get(two), ...get(held), ...LANES_MUL, ...LANES_ADD, ...set(sums[q + 4]),
      ]),
      ...step(first, number(4)), ...step(second, number(4)), ...step(at, [...get(m), ...times4]),
      ...get(left), ...number(1), ...SUB, ...set(left), ...get(left), ...AGAIN, ...END,
      ...get(c), ...get(i), ...get(m), ...MUL, ...get(j), ...ADD, ...times4, ...ADD, ...set(first),
      ...quads.flatMap((q) => [...get(first), ...get(sums[q]), ...store(16 * q)]),
      ...step(first, [...get(m), ...times4]),
      ...quads.flatMap((q) => [...get(first), ...get(sums[q + 4]), ...store(16 * q)]),
      ...step(j, number(16)), ...get(j), ...get(m), ...LESS, ...AGAIN, ...END,
      ...step(i, number(2)), ...get(i), ...get(n), ...LESS, ...AGAIN, ...END,
      ...END,
    ];
  }

  function bytes() {
    const part = (id, content) => [id, ...unsigned(content.length), ...content];
    const text = (word) => [word.length, ...[...word].map((letter) => letter.charCodeAt(0))];
    const code = [2, 6, I32, 11, V128, ...body()];
    return new Uint8Array([
      0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
      ...part(1, [1, 0x60, 6, I32, I32, I32, I32, I32, I32, 0]),
      ...part(2, [1, ...text("host"), ...text("memory"), 2, 0, 1]),
      ...part(3, [1, 0]),
      ...part(7, [1, ...text("multiply"), 0, 0]),
      ...part(10, [1, ...unsigned(code.length), ...code]),
    ]);
  }

  function compiled() {
    try {
      const memory = new WebAssembly.Memory({ initial: 64 });
      const made = new WebAssembly.Instance(new WebAssembly.Module(bytes()), { host: { memory } });
      return { memory, multiply: made.exports.multiply };
    } catch (error) {
      return null; // no WebAssembly, or none with lanes
    }
  }

  const fast = compiled();

  function plain(a, n, k, b, m) {
    const c = new Float64Array(n * m);
    for (let i = 0; i < n; i++) {
      for (let p = 0; p < k; p++) {
        const value = a[i * k + p];
        if (value === 0) continue;
        for (let j = 0, at = p * m, to = i * m; j < m; j++) c[to + j] += value * b[at + j];
      }
    }
    return c;
  }

  function lanes(a, n, k, b, m) {
    const rows = n + (n & 1), columns = (m + 15) & ~15;
    const startB = 4 * rows * k, startC = startB + 4 * k * columns, end = startC + 4 * rows * columns;
    const aligned = [0, (startB + 15) & ~15, (startC + 31) & ~15];
    const missing = Math.ceil((end + 64 - fast.memory.buffer.byteLength) / 65536);
    if (missing > 0) fast.memory.grow(missing);
    const heap = new Float32Array(fast.memory.buffer);
    const [toA, toB, toC] = aligned.map((place) => place / 4);
    heap.set(a.length === n * k ? a : a.subarray(0, n * k), toA);
    heap.fill(0, toA + n * k, toA + rows * k);
    if (columns === m) heap.set(b, toB);
    else {
      heap.fill(0, toB, toB + k * columns);
      for (let p = 0; p < k; p++) heap.set(b.subarray(p * m, (p + 1) * m), toB + p * columns);
    }
    fast.multiply(...aligned, rows, k, columns);
    const c = new Float64Array(n * m);
    if (columns === m) c.set(heap.subarray(toC, toC + n * m));
    else for (let i = 0; i < n; i++) c.set(heap.subarray(toC + i * columns, toC + i * columns + m), i * m);
    return c;
  }

  // a (n x k) times b (k x m), row by row. Small products keep double precision.
  function multiply(a, n, k, b, m) {
    return fast && n && k && m && n * k * m > 100000 ? lanes(a, n, k, b, m) : plain(a, n, k, b, m);
  }

  const api = { multiply, plain, lanes, hasLanes: fast !== null };
  root.AnyorderMatrices = api;
  if (typeof module !== "undefined") module.exports = api;
})(globalThis);
