"""Dropout on the CPU, compiled by Numba; any number of threads gives the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from anyorder.extras import require
from anyorder.ops.gather_cpu import Array
from anyorder.ops.threads import cuts, each

numba: Any = require("numba", "fast")
_compiled = numba.njit(nogil=True, cache=True, error_model="numpy")


@_compiled
def _mix(x):  # type: ignore[no-untyped-def]
    """A hash of 32 bits: each bit of x changes half of the bits."""
    x = np.uint32(x ^ (x >> np.uint32(16)))
    x = np.uint32(x * np.uint32(0x7FEB352D))
    x = np.uint32(x ^ (x >> np.uint32(15)))
    x = np.uint32(x * np.uint32(0x846CA68B))
    return np.uint32(x ^ (x >> np.uint32(16)))


@_compiled
def _drop(x, out, low, high, limit, scale, first, last):  # type: ignore[no-untyped-def]
    for n in range(first, last):
        row = np.uint32(_mix(np.uint32(_mix(np.uint32(n ^ low)) ^ (n >> 32))) ^ high)
        for c in range(x.shape[1]):
            drawn = _mix(np.uint32(row + np.uint32(c) * np.uint32(0x9E3779B9)))
            out[n, c] = x[n, c] * scale if drawn >= limit else 0


def drop(x: Array, out: Array, seed: int, p: float) -> None:
    """out = x / (1 - p), or 0 with probability p."""
    low, high = np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32)
    limit, scale = np.uint32(min(int(p * 2**32), 2**32 - 1)), x.dtype.type(1 / (1 - p))
    each(cuts(len(x)), lambda a, b: _drop(x, out, low, high, limit, scale, a, b))
