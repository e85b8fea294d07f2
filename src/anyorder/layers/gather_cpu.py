"""Gathers and scatters of rows on the CPU, compiled by Numba; any number of threads gives the same bits."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anyorder.extras import require
from anyorder.layers.segment_cpu import each

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
def _gather_alone(table, rows, out, first, last):  # type: ignore[no-untyped-def]
    for n in range(first, last):
        i = rows[n]
        for c in range(out.shape[1]):
            out[n, c] = table[i, c] if i >= 0 else 0


@_compiled
def _scatter(grad, rows, out, first, last):  # type: ignore[no-untyped-def]
    for n in range(len(rows)):
        i = rows[n]
        if i >= 0:
            for c in range(first, last):
                out[i, c] += grad[n, c]


def gather(base: Array | None, table: Array, rows: Array, out: Array) -> None:
    """out[n] = base[n] + table[rows[n]]; ``base`` may be ``out`` itself."""
    cuts = _cuts(len(rows))
    if base is None:
        each(cuts, lambda a, b: _gather_alone(table, rows, out, a, b))
    else:
        each(cuts, lambda a, b: _gather(base, table, rows, out, a, b))


def scatter(grad: Array, rows: Array, out: Array) -> None:
    """out[rows[n]] += grad[n], each thread for some of the channels."""
    each(_cuts(out.shape[1]), lambda a, b: _scatter(grad, rows, out, a, b))


def _cuts(length: int) -> list[tuple[int, int]]:
    marks = np.linspace(0, length, torch.get_num_threads() + 1).astype(int).tolist()
    return [(a, b) for a, b in pairwise(marks) if b > a]
