"""Products in vector registers against NumPy, for lengths that fill registers, do not, and take loops."""

from __future__ import annotations

import numpy as np
import pytest

numba = pytest.importorskip("numba")
extending = pytest.importorskip("numba.extending")

from anyorder.ops.formulas import Numbers, exp  # noqa: E402
from anyorder.ops.segment_steps import pointer  # noqa: E402
from anyorder.ops.vectors import Writer, add_outer, add_scaled, dot, product, product_from, scaled  # noqa: E402

SIZES = [
    (1, 1, np.float64),
    (5, 7, np.float32),
    (8, 16, np.float64),
    (3, 70, np.float32),
    (101, 5, np.float32),
    (33, 130, np.float64),
]


@pytest.mark.parametrize(("rows", "columns", "dtype"), SIZES)
def test_every_product_is_that_of_numpy(rows, columns, dtype):
    @numba.njit
    def run(x, y, matrix, scale, results):
        p, q, m = pointer(x, 0), pointer(y, 0), pointer(matrix, 0)
        product(pointer(results[0], 0), p, m, rows, columns)
        product_from(pointer(results[1], 0), scale, q, p, m, rows, columns)
        scaled(pointer(results[2], 0), scale, q, columns)
        add_scaled(pointer(results[3], 0), scale, q, columns)
        add_outer(m, p, q, rows, columns)
        return dot(q, q, columns)

    draw = np.random.default_rng(0)
    x, y, matrix, results = (
        draw.normal(size=size).astype(dtype) for size in (rows, columns, (rows, columns), (4, columns + 1))
    )
    scale, before, changed = dtype(0.3), results.copy(), matrix.copy().reshape(-1)
    square = run(x, y, changed, scale, results)
    expected = [x @ matrix, scale * y + x @ matrix, scale * y, before[3, :columns] + scale * y]
    near = {"rtol": 1e-12, "atol": 1e-12} if dtype is np.float64 else {"rtol": 1e-5, "atol": 1e-5}
    for got, right in zip(results, expected):
        np.testing.assert_allclose(got[:columns], right, **near)
    np.testing.assert_array_equal(results[:, columns], before[:, columns])  # nothing is written beyond the end
    np.testing.assert_allclose(changed.reshape(rows, columns), matrix + np.outer(x, y), **near)
    np.testing.assert_allclose(square, (y * y).sum(), **near)


@extending.intrinsic(prefer_literal=True)
def exponential(context, out, x, length):
    def generate(target, *given):
        write = Writer(target, *given)
        for first, width in write.all_registers(length.literal_value):
            write.write(exp(Numbers(write, write.read(1, first, width))).value, first)
        return target.get_dummy_value()

    return numba.types.void(out, x, length), generate


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponentials_are_those_of_numpy_to_the_last_digits(dtype):
    @numba.njit
    def run(out, x):
        for start in range(0, len(x), 8):
            exponential(pointer(out, start), pointer(x, start), 8)

    most = np.log(np.finfo(dtype).max)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, -1e30, 1e30, most]
    x = np.concatenate([np.linspace(-1.25 * most, 1.01 * most, 4000), np.linspace(-1, 1, 4000), special]).astype(dtype)
    out = np.empty_like(x)
    run(out, x)
    with np.errstate(over="ignore", under="ignore"):
        expected = np.exp(x.astype(np.longdouble)).astype(dtype)
    normal = expected >= np.finfo(dtype).tiny
    np.testing.assert_allclose(out[normal], expected[normal], rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(out[~normal], expected[~normal], atol=np.finfo(dtype).tiny, rtol=0)
