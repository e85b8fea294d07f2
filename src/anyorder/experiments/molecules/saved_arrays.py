"""Arrays of whole numbers in a pickle, read by Python: numpy's own functions end the process on states that are damaged."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder.errors import InputError


class SavedKind:
    """Stands for ``numpy.dtype``: a kind of whole numbers."""

    def __init__(self, code: object = "", *given: object) -> None:
        if not isinstance(code, str) or not re.fullmatch("[iu][1248]", code):
            raise InputError(f"expected an array of whole numbers, got the kind {code!r:.60}")
        self.code, self.order = code, "="

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("<", ">", "=", "|"):
            raise InputError(f"expected the order of bytes of a kind of numbers, got {state!r:.60}")
        self.order = state[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.code)


class SavedArray:
    """Stands for an array that was pickled."""

    rows: NDArray[Any] = np.empty(0, np.int64)

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise InputError(f"expected the five parts of an array, got {state!r:.60}")
        _, shape, kind, _, data = state
        sizes = isinstance(shape, tuple) and all(type(size) is int and size >= 0 for size in shape)
        if not sizes or not isinstance(kind, SavedKind) or not isinstance(data, bytes):
            raise InputError(f"expected the shape, the kind and the bytes of an array, got {state!r:.100}")
        if math.prod(shape) * kind.dtype.itemsize != len(data):
            raise InputError(f"an array of shape {shape!r:.60} and kind {kind.dtype} has {len(data):,} bytes")
        self.rows = np.frombuffer(data, kind.dtype).reshape(-1)


def _begun(*given: object) -> SavedArray:
    """What numpy makes first of an array, which its state then fills."""
    return SavedArray()


def saved_arrays() -> list[Any]:
    """What torch may make of the names in a pickle with arrays."""
    names = ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")  # numpy 1 and 2
    return [np.ndarray, (SavedKind, "numpy.dtype"), (SavedArray, "anyorder.SavedArray"), *((_begun, name) for name in names)]
