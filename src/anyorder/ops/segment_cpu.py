"""Segment linear attention on the CPU: one fused pass over each group, compiled by Numba for its widths.

The state of a group (features x channels) stays in cache; phi(K) and the products phi(K) V^T are never stored. Long groups
are cut into pieces of fixed length whose states are added up, so that a hub or a whole graph is shared among threads and
the result does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from anyorder.ops.backends import Compiled
from anyorder.ops.compiling import build, build_ahead
from anyorder.ops.features import Problem
from anyorder.ops.threads import each

PIECE = 4096  # keys or queries of a piece; groups with more than this are cut
Array = NDArray[Any]
compiled = Compiled(build, build_ahead)


@dataclass(frozen=True)
class PosedLoops:
    """The arrays of one call, flat, with the strides of their rows."""

    query: Array
    key: Array
    value: Array
    query_stride: int
    key_stride: int
    value_stride: int
    turned: Array
    """(channel, feature)"""
    directions: Array
    """(feature, channel)"""
    eps: float
    key_order: Array
    key_pointer: Array
    query_order: Array
    query_pointer: Array
    heads: int
    sign: int
    loops: Any

    @property
    def state_size(self) -> int:
        """Numbers in the states of all classes and heads of a group."""
        return len(self.query_pointer) * self.heads * self.loops.state_size

    def long_groups(self) -> Sequence[int]:
        """Groups that are cut into pieces."""
        if max(len(self.key_order), len(self.query_order)) <= PIECE:
            return ()
        keys, queries = np.diff(self.key_pointer), np.diff(self.query_pointer, axis=1)
        return np.flatnonzero((keys > PIECE) | (queries > PIECE).any(0))  # type: ignore[return-value]

    @property
    def shared(self) -> tuple[Any, ...]:
        kind = self.directions.dtype.type
        tensors = (self.query, self.key, self.value, self.query_stride, self.key_stride, self.value_stride)
        constants = (self.eps, np.finfo(self.directions.dtype).tiny, 1, self.sign)
        numbers = (self.turned, self.directions, *map(kind, constants))
        return (*tensors, *numbers, self.key_order, self.key_pointer, self.query_order, self.query_pointer, self.heads)


def _widths(problem: Problem, added: bool) -> tuple[Any, ...]:
    """What loops are compiled for."""
    features = problem.features
    widths = (problem.query.shape[3], problem.value.shape[3], problem.num_features)
    dtype = str(problem.value.dtype).removeprefix("torch.")
    return *widths, features.kind, features.directions is not None, dtype, added


def ready(problem: Problem, added: bool = False) -> bool:
    """Whether the loops for a problem are compiled, those that write or those that add; if not, they may be under way."""
    return compiled.get(*_widths(problem, added)) is not None


def there(problem: Problem, added: bool = False) -> bool:
    """Whether the loops for a problem are compiled; one that is posed often has them compiled."""
    return compiled.has(*_widths(problem, added))


def flat(tensor: Tensor) -> tuple[Array, int, Tensor]:
    """A (row, class, head, channel) tensor as one flat array and its row stride, copied only if its rows are not whole."""
    rows, classes, heads, width = tensor.shape
    if rows == 0 or tensor.stride()[1:] != (heads * width, width, 1):
        tensor = tensor.contiguous()
    row = classes * heads * width
    stride = tensor.stride(0) if rows > 1 else row
    length = (rows - 1) * stride + row if rows else 0
    return tensor.detach().as_strided((length,), (1,), tensor.storage_offset()).numpy(), stride, tensor


def pose(problem: Problem, sign: int = 0) -> PosedLoops:
    """The arrays of a problem, and the loops for its widths; waits for the compiler where they are not there yet.

    Loops with a sign compute in double precision and add.
    """
    q, k, v = flat(problem.query), flat(problem.key), flat(problem.value)
    directions, dtype = problem.features.directions, torch.float64 if sign else problem.key.dtype
    given = problem.key.new_zeros(0, 0) if directions is None else directions.detach()
    given = given.to(dtype)
    keys, queries = problem.keys, problem.queries
    return PosedLoops(
        q[0],
        k[0],
        v[0],
        q[1],
        k[1],
        v[1],
        given.T.flatten().numpy(),
        given.flatten().numpy(),
        problem.features.eps,
        keys.rows.numpy(),
        keys.pointer.numpy(),
        queries.rows.numpy(),
        queries.pointer.numpy(),
        problem.heads,
        sign,
        compiled.get(*_widths(problem, bool(sign)), need=True),
    )


def forward(given: Problem, sums: Tensor, norms: Tensor, sign: int = 0) -> None:
    """Fill ``sums`` (query, class, head, channel) and ``norms`` (query, class, head) of all queries that are in groups.

    With a sign, add to them instead, in double precision and undivided.
    """
    problem = pose(given, sign)
    _forward(problem, sums.view(-1).numpy(), norms.view(-1).numpy(), given.normalize)


def _forward(problem: PosedLoops, sums: Array, norms: Array, normalize: bool) -> None:
    run = problem.loops
    each(
        _balanced(problem),
        lambda a, b: run.forward(*problem.shared, sums, norms, normalize, PIECE, a, b),
    )
    long = problem.long_groups()
    if len(long) == 0:
        return
    states = _long_states(problem, long)
    pieces = run.pieces(long, problem.query_pointer.reshape(-1), len(problem.key_pointer), PIECE)
    each(
        [(n, n + 1) for n in range(len(pieces))],
        lambda a, b: run.apply(*problem.shared, states, sums, norms, normalize, pieces, a, b),
    )


def backward(
    given: Problem,
    sums: Tensor,
    norms: Tensor,
    grad_sums: Tensor,
    grad_norms: Tensor,
    made: tuple[Tensor, ...],
    sign: int = 0,
) -> None:
    """Fill the gradients of query, key and value, which are zero before; with a sign, add to them in double precision."""
    results = [part.contiguous().view(-1).numpy() for part in (sums, norms, grad_sums, grad_norms)]
    targets = [part.view(-1).numpy() for part in made]
    _backward(pose(given, sign), (*results[:2], given.normalize, *results[2:], *targets), targets)


def _backward(problem: PosedLoops, given: tuple[Any, ...], grads: list[Array]) -> None:
    run = problem.loops
    each(_balanced(problem), lambda a, b: run.backward(*problem.shared, *given, PIECE, a, b))
    long = problem.long_groups()
    if len(long) == 0:
        return
    states = _long_states(problem, long)
    pieces = run.pieces(long, problem.query_pointer.reshape(-1), len(problem.key_pointer), PIECE)
    partial = np.zeros((len(pieces), *states.shape[1:]), states.dtype)
    each(
        [(n, n + 1) for n in range(len(pieces))],
        lambda a, b: run.query_backward(*problem.shared, states, *given, pieces, partial, a, b),
    )
    grad_states = np.zeros_like(states)
    for n, piece in enumerate(pieces):  # in order, so that the sum does not depend on threads
        grad_states[piece[0]] += partial[n]
    pieces = run.pieces(long, problem.key_pointer, 0, PIECE)
    each(
        [(n, n + 1) for n in range(len(pieces))],
        lambda a, b: run.key_backward(*problem.shared, grad_states, grads[1], grads[2], pieces, a, b),
    )


def _long_states(problem: PosedLoops, long: Sequence[int]) -> Array:
    run = problem.loops
    pieces = run.pieces(long, problem.key_pointer, 0, PIECE)
    partial = np.zeros((len(pieces), problem.state_size), problem.directions.dtype)
    each([(n, n + 1) for n in range(len(pieces))], lambda a, b: run.states(*problem.shared, pieces, partial, a, b))
    states = np.zeros((len(long), problem.state_size), problem.directions.dtype)
    for n, piece in enumerate(pieces):
        states[piece[0]] += partial[n]
    return states


def _balanced(problem: PosedLoops) -> list[tuple[int, int]]:
    """Ranges of groups with about the same number of keys and queries."""
    groups = len(problem.key_pointer) - 1
    threads = torch.get_num_threads()
    if threads == 1 or groups < 2:
        return [(0, groups)]
    starts = problem.query_pointer[:, :1]
    work = problem.key_pointer + (problem.query_pointer - starts).sum(0)
    marks = np.linspace(0, work[-1], 4 * threads + 1)[1:-1]
    cuts = sorted({0, groups, *np.searchsorted(work, marks).tolist()})
    return list(pairwise(cuts))
