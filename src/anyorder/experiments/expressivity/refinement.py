"""Colour refinement of tuples (k-WL): the exact answer to what an order can tell apart.

Two versions bear the same name. *Oblivious* k-WL gives a tuple, for each axis, the colours of the tuples that differ from
it there. *Folklore* k-WL gives it, for each node w, the k colours of the tuples with w put at each axis, together. k-IGNs,
and so the layers of this library at order k, are exactly as strong as oblivious k-WL (Maron et al. 2019, Geerts 2020), which
is as strong as folklore (k - 1)-WL (Cai, Fuerer and Immerman 1992). ``tell_apart`` uses the latter: n^(k-1) tuples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from anyorder.experiments.expressivity.graphs import Graph

Colours = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint64]
BLOCK = 2**16  # tuples that are hashed at a time: they stay in the cache


@dataclass(frozen=True)
class Refined:
    """What came of refining two graphs together: whether they differ, after how many rounds, of how many colours."""

    apart: bool
    rounds: int
    colours: int


def tell_apart(first: Graph, second: Graph, order: int, *, most_rounds: int | None = None) -> Refined:
    """Whether oblivious k-WL tells two graphs apart, for k = ``order``; orders 1 and 2 are the same test.

    >>> hexagon = Graph.from_edges(6, [(v, (v + 1) % 6) for v in range(6)])
    >>> triangles = Graph.from_edges(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    >>> [tell_apart(hexagon, triangles, order).apart for order in (1, 2, 3)]
    [False, False, True]
    """
    if order < 1:
        raise ValueError(f"colour refinement takes an order of at least 1, got {order}")
    if order < 3:
        return refine_pair(first, second, 1 if order == 1 else 2, "oblivious", most_rounds=most_rounds)
    return refine_pair(first, second, order - 1, "folklore", most_rounds=most_rounds)


def refine_pair(
    first: Graph, second: Graph, order: int, version: Literal["oblivious", "folklore"], *, most_rounds: int | None = None
) -> Refined:
    """Refine the tuples of two graphs together until their colours differ or do not change any more.

    Multisets of colours are compared by sums of 64-bit hashes. A collision could only make two colours one: that a pair is
    told apart is certain, that it is not holds but for a chance of about (number of tuples)^2 / 2^64 in each round.
    """
    if first.num_nodes != second.num_nodes:
        return Refined(True, 0, 2)
    random = np.random.default_rng(0)
    graphs = [first.adjacency, second.adjacency]
    colours, count = _joint([_atomic(adjacency, order) for adjacency in graphs])
    rounds = 0
    while not _differ(colours, count) and (most_rounds is None or rounds < most_rounds):
        codes = random.integers(0, 2**64, (order, count), dtype=np.uint64)
        if order == 1:
            sums = [_neighbours(c, adjacency, codes[0]) for c, adjacency in zip(colours, graphs, strict=True)]
        elif version == "oblivious":
            sums = [_oblivious(c, codes) for c in colours]
        else:
            sums = [_folklore(c, codes) for c in colours]
        keys = [_keys(c, s) for c, s in zip(colours, sums, strict=True)]
        known = count
        colours, count = _joint(keys)
        if count == known:
            break
        rounds += 1
    return Refined(_differ(colours, count), rounds, count)


def _atomic(adjacency: npt.NDArray[np.bool_], order: int) -> Codes:
    """What a tuple is by itself: which of its nodes are equal and which are joined, as one number."""
    size = len(adjacency)
    pair = adjacency.astype(np.uint64) + 2 * np.eye(size, dtype=np.uint64)
    total = np.zeros((size,) * order, dtype=np.uint64)
    for a in range(order):
        for b in range(a):
            shape = [size if axis in (a, b) else 1 for axis in range(order)]
            total = total * np.uint64(3) + pair.reshape(shape)
    return total


def _keys(colours: Colours, sums: Codes) -> Codes:
    """Old colour and sum as one number."""
    return _mix(sums + np.uint64(0x9E3779B97F4A7C15) * (colours.astype(np.uint64) + np.uint64(1)))


def _joint(keys: list[Codes]) -> tuple[list[Colours], int]:
    """Colours 0, 1, ... of both graphs from numbers that are equal where colours are."""
    distinct, inverse = np.unique(np.concatenate([key.reshape(-1) for key in keys]), return_inverse=True)
    parts = np.split(inverse.reshape(-1), [keys[0].size])
    return [part.reshape(key.shape) for part, key in zip(parts, keys, strict=True)], len(distinct)


def _differ(colours: list[Colours], count: int) -> bool:
    first, second = (np.bincount(c.reshape(-1), minlength=count) for c in colours)
    return bool((first != second).any())


def _neighbours(colours: Colours, adjacency: npt.NDArray[np.bool_], codes: Codes) -> Codes:
    """1-WL: the colours of a node's neighbours."""
    return (adjacency * codes[colours]).sum(1, dtype=np.uint64)


def _oblivious(colours: Colours, codes: Codes) -> Codes:
    """For each axis, the colours of all tuples that differ there."""
    total = np.zeros(colours.shape, dtype=np.uint64)
    for axis in range(colours.ndim):
        held = codes[axis][colours].sum(axis, keepdims=True, dtype=np.uint64)
        total += _mix(held + np.uint64(axis))
    return total


def _folklore(colours: Colours, codes: Codes) -> Codes:
    """For each node w, the colours of the tuples with w at each axis, together."""
    size, order = len(colours), colours.ndim
    coded = [codes[axis][colours] for axis in range(order)]
    total = np.zeros(colours.shape, dtype=np.uint64)
    step = max(1, BLOCK // size ** (order - 1))
    for node in range(size):
        for start in range(0, size, step):
            block = coded[0][start : start + step].copy()  # w at the first axis, the other axes as they are
            for axis in range(1, order):
                held = np.moveaxis(coded[axis][node], axis - 1, 0)[start : start + step]
                block += np.expand_dims(held, axis)
            total[node] += _mix(block).sum(0, dtype=np.uint64)
    return total


def _mix(values: Codes) -> Codes:
    """A one-to-one scrambling of 64 bits (splitmix64), in place."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values ^= values >> np.uint64(shift)
        values *= np.uint64(factor)
    values ^= values >> np.uint64(31)
    return values
