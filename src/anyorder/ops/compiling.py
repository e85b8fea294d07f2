"""Loops that are compiled before they are needed: by a process beside this one, so that no step waits.

``python -m anyorder.ops.compiling WIDTH VALUE FEATURES KIND DIRECTIONS DTYPE ADDED`` compiles one set of loops of
segment attention into Numba's cache, ``python -m anyorder.ops.compiling DTYPE`` those over rows.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from anyorder.ops.activations import ACTIVATIONS

if TYPE_CHECKING:
    from anyorder.ops.segment_loops import Loops

OURS = tuple(ACTIVATIONS)
"""Formulas that another process knows, too."""


def build(width: int, width_value: int, features: int, kind: str, has_directions: bool, dtype: str, added: bool) -> Loops:
    """The loops for some widths; each is compiled when it is first called."""
    from anyorder.ops.segment_loops import loops

    return loops(width, width_value, features, kind, has_directions, added)


def build_ahead(
    width: int, width_value: int, features: int, kind: str, has_directions: bool, dtype: str, added: bool
) -> Loops:
    """The loops for some widths, compiled elsewhere and loaded."""
    key = (width, width_value, features, kind, has_directions, dtype, added)
    if kind in OURS:
        _elsewhere(*key)
    return warm(*key)


def warm(width: int, width_value: int, features: int, kind: str, has_directions: bool, dtype: str, added: bool) -> Loops:
    """The loops for some widths, each called once with one key and one query."""
    made = build(width, width_value, features, kind, has_directions, dtype, added)
    number = np.float64 if added else np.dtype(dtype).type
    query, value = np.ones(width, dtype), np.ones(width_value, dtype)
    directions = np.ones(features * width if has_directions else 0, number)
    order, pointer = np.zeros(1, np.int64), np.array([0, 1])
    tensors = (query, query, value, width, width, width_value)
    shared: tuple[Any, ...] = (
        *tensors,
        directions,
        directions,
        number(1e-3),
        number(1e-30),
        number(1),
        number(1),
        order,
        pointer,
        order,
        pointer[None],
        1,
    )
    results = (np.zeros(width_value, number), np.zeros(1, number))
    grads = (np.zeros(width, number), np.zeros(width, number), np.zeros(width_value, number))
    given = (*results, True, *results, *grads)
    pieces, states = np.array([[0, 0, 0, 1]]), np.zeros((1, made.state_size), number)
    made.forward(*shared, *results, True, 1, 0, 1)
    made.backward(*shared, *given, 1, 0, 1)
    made.states(*shared, pieces, states, 0, 1)
    made.apply(*shared, states, *results, True, pieces, 0, 1)
    made.query_backward(*shared, states, *given, pieces, states.copy(), 0, 1)
    made.key_backward(*shared, states, grads[1], grads[2], pieces, 0, 1)
    return made


def build_rows(dtype: str) -> bool:
    """Loops that gather and scatter rows; each is compiled when it is first called."""
    return True


def build_rows_ahead(dtype: str) -> bool:
    """Loops that gather and scatter rows, compiled elsewhere and loaded."""
    _elsewhere(dtype)
    return warm_rows(dtype)


def warm_rows(dtype: str) -> bool:
    """Each loop over rows called once, with one row."""
    from anyorder.ops import dropout_cpu, gather_cpu

    table, rows = np.ones((1, 1), dtype), np.zeros(1, np.int64)
    for reads in ([(table, rows)], [(table, rows)] * 2):
        for base in (None, table.copy(), table):
            gather_cpu.gather(base, reads, table if base is table else np.empty_like(table))
        gather_cpu.scatter(table, [(rows, table.copy()) for _ in reads])
    dropout_cpu.drop(table, np.empty_like(table), 1, 0.5)
    return True


def _elsewhere(*key: object) -> None:
    """Compile in another process, which leaves its work in Numba's cache."""
    command = [sys.executable, "-m", "anyorder.ops.compiling", *map(str, key)]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _main(arguments: list[str]) -> None:
    if hasattr(os, "nice"):
        os.nice(10)
    if len(arguments) == 1:
        warm_rows(arguments[0])
    else:
        first, second, third, name, directed, precision, added = arguments
        warm(int(first), int(second), int(third), name, directed == "True", precision, added == "True")


if __name__ == "__main__":
    _main(sys.argv[1:])
