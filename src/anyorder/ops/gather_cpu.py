"""Gathers and scatters of rows on the CPU, compiled by Numba; any number of threads gives the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from anyorder.extras import require
from anyorder.ops.threads import cuts, each

numba: Any = require("numba", "fast")
Array = NDArray[Any]
_compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


@_compiled
def _gather(base, table, rows, out, first, last):  # type: ignore[no-untyped-def]
    for n in range(first, last):
        i = rows[n]
        for c in range(out.shape[1]):
            out[n, c] = base[n, c] + table[i, c] if i >= 0 else base[n, c]


@_compiled
def _gather_two(base, table, rows, other, reads, out, first, last):  # type: ignore[no-untyped-def]
    for n in range(first, last):
        i, j = rows[n], reads[n]
        if i >= 0 and j >= 0:
            for c in range(out.shape[1]):
                out[n, c] = base[n, c] + table[i, c] + other[j, c]
        elif i >= 0 or j >= 0:
            for c in range(out.shape[1]):
                out[n, c] = base[n, c] + (table[i, c] if i >= 0 else other[j, c])
        else:
            for c in range(out.shape[1]):
                out[n, c] = base[n, c]


@_compiled
def _add(table, rows, out, first, last):  # type: ignore[no-untyped-def]
    for n in range(first, last):
        i = rows[n]
        if i >= 0:
            for c in range(out.shape[1]):
                out[n, c] += table[i, c]


@_compiled
def _add_two(table, rows, other, reads, out, first, last):  # type: ignore[no-untyped-def]
    for n in range(first, last):
        i, j = rows[n], reads[n]
        if i >= 0 and j >= 0:
            for c in range(out.shape[1]):
                out[n, c] += table[i, c] + other[j, c]
        elif i >= 0 or j >= 0:
            for c in range(out.shape[1]):
                out[n, c] += table[i, c] if i >= 0 else other[j, c]


@_compiled
def _gather_part(table, rows, out, read, write, width, first, last):  # type: ignore[no-untyped-def]
    for n in range(first, last):
        i = rows[n]
        to = out[n, write : write + width]  # indices from a range are known not to be negative: loops of them are vectorised
        if i >= 0:
            of = table[i, read : read + width]
            for c in range(width):
                to[c] = of[c]
        else:
            for c in range(width):
                to[c] = 0


@_compiled
def _scatter(grad, rows, out, first, last):  # type: ignore[no-untyped-def]
    for n in range(len(rows)):
        i = rows[n]
        if i >= 0:
            to, of = out[i, first:last], grad[n, first:last]
            for c in range(last - first):
                to[c] += of[c]


@_compiled
def _scatter_two(grad, rows, out, reads, other, first, last):  # type: ignore[no-untyped-def]
    for n in range(len(rows)):
        i, j = rows[n], reads[n]
        of = grad[n, first:last]
        if i >= 0 and j >= 0:
            to, too = out[i, first:last], other[j, first:last]
            for c in range(last - first):
                to[c] += of[c]
                too[c] += of[c]
        elif i >= 0 or j >= 0:
            to = out[i, first:last] if i >= 0 else other[j, first:last]
            for c in range(last - first):
                to[c] += of[c]


Read = tuple[Array, Array]
"""A table and the row of it that each output row reads, -1 for none."""


def gather(base: Array | None, reads: list[Read], out: Array) -> None:
    """out[n] = base[n] + the sum of table[rows[n]], two tables in a pass; if ``base`` is ``out``, it is added to."""
    left = list(reads)
    if base is None:
        gather_part(*left.pop(0), out, 0, 0, out.shape[1])
    elif base is not out:  # loops that read and write the same memory under two names are not vectorised
        _pass(_gather_two if len(left) > 1 else _gather, [base], left[:2], out)
        left = left[2:]
    for n in range(0, len(left), 2):
        _pass(_add_two if len(left) > n + 1 else _add, [], left[n : n + 2], out)


def _pass(loop: Callable[..., None], given: list[Array], reads: list[Read], out: Array) -> None:
    arrays = [*given, *[array for read in reads for array in read], out]
    each(cuts(len(out)), lambda a, b: loop(*arrays, a, b))


def gather_part(table: Array, rows: Array, out: Array, read: int, write: int, width: int) -> None:
    """out[n, write + c] = table[rows[n], read + c] for c < width, zero where there is no row."""
    each(cuts(len(rows)), lambda a, b: _gather_part(table, rows, out, read, write, width, a, b))


def scatter(grad: Array, sums: list[tuple[Array, Array]]) -> None:
    """out[rows[n]] += grad[n] for each (rows, out), two in a pass, each thread for some of the channels."""
    for n in range(0, len(sums), 2):
        arrays = [array for pair in sums[n : n + 2] for array in pair]
        loop = _scatter_two if len(arrays) > 2 else _scatter
        each(cuts(grad.shape[1]), lambda a, b, loop=loop, arrays=arrays: loop(grad, *arrays, a, b))  # type: ignore[misc]
