"""From a graph to order k: which tuples of its nodes there are."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import permutations
from math import factorial
from pathlib import Path

import torch
from torch import Tensor

from anyorder.layouts.hops import connected_sets, distinct, near_sets, refuse_above, unions
from anyorder.layouts.index_set import IndexSet
from anyorder.layouts.sparse import SparseIndexSet

WORKING = 8
"""Bytes that are needed per byte of tuples, about: to sort, to group and to look them up."""


@dataclass(frozen=True)
class Tuples(ABC):
    """A rule for the tuples of a graph, which is an index set of order 2: its nodes (v, v) and its edges (u, v).

    >>> path = SparseIndexSet(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    >>> [rule.count(path, 2) for rule in (AllTuples(), DistinctTuples(), TuplesWithin(hops=1))]
    [9, 6, 4]
    """

    @abstractmethod
    def count(self, graph: IndexSet, order: int) -> int:
        """How many tuples of ``order`` nodes there are."""

    @abstractmethod
    def _write(self, graph: IndexSet, order: int, limit: int) -> IndexSet: ...

    def index_set(self, graph: IndexSet, order: int, *, limit: int | None = None) -> IndexSet:
        """The tuples of ``order`` nodes; refused where they are more than ``limit``, or than memory holds."""
        _check(graph, order)
        most = room(order) if limit is None else limit
        refuse_above(most, self.count(graph, order), f"{type(self).__name__} of order {order}")
        return self._write(graph, order, most)


@dataclass(frozen=True)
class AllTuples(Tuples):
    """All tuples, also those with a node twice: n^k of them.

    >>> path = SparseIndexSet(torch.tensor([[0, 1], [1, 0], [1, 2], [2, 1]]), num_nodes=3)
    >>> AllTuples().count(path, 4), DistinctTuples().count(path, 3), ConnectedTuples().count(path, 2)
    (81, 6, 4)
    """

    def count(self, graph: IndexSet, order: int) -> int:
        _check(graph, order)
        return sum(size**order for size in _sizes(graph))

    def _write(self, graph: IndexSet, order: int, limit: int) -> IndexSet:
        from anyorder.layouts.sparse import complete_index_set

        return complete_index_set(order, graph.node_graph, num_graphs=graph.num_graphs)


@dataclass(frozen=True)
class DistinctTuples(Tuples):
    """All tuples of distinct nodes: n (n - 1) ... (n - k + 1) of them.

    >>> path = SparseIndexSet(torch.tensor([[0, 1], [1, 0], [1, 2], [2, 1]]), num_nodes=3)
    >>> DistinctTuples().count(path, 2)
    6
    """

    def count(self, graph: IndexSet, order: int) -> int:
        _check(graph, order)
        return sum(_falling(size, order) for size in _sizes(graph))

    def _write(self, graph: IndexSet, order: int, limit: int) -> IndexSet:
        sizes = torch.tensor(_sizes(graph), device=graph.device)
        counts = torch.tensor([_falling(size, order) for size in _sizes(graph)], device=graph.device)
        of_graph = torch.repeat_interleave(torch.arange(graph.num_graphs, device=graph.device), counts)
        rank = torch.arange(len(of_graph), device=graph.device) - (counts.cumsum(0) - counts)[of_graph]
        nodes = torch.argsort(graph.node_graph, stable=True)
        first, size = (sizes.cumsum(0) - sizes)[of_graph], sizes[of_graph]
        columns = _distinct_columns(rank, size, order)
        tuples = torch.stack([nodes[first + column] for column in columns], 1)
        return SparseIndexSet._trusted(tuples, graph.num_nodes, graph.node_graph, graph.num_graphs)


@dataclass(frozen=True)
class _TuplesOfSets(Tuples):
    """A rule that does not look at the order of the nodes: it names sets, and tuples are these in all orders."""

    @abstractmethod
    def _sets(self, graph: IndexSet, order: int, limit: int) -> Tensor:
        """(sets, order): each in ascending order."""

    def count(self, graph: IndexSet, order: int) -> int:
        _check(graph, order)
        return len(self._sets(graph, order, room(order))) * factorial(order)

    def _write(self, graph: IndexSet, order: int, limit: int) -> IndexSet:
        return _all_orders(self._sets(graph, order, limit), graph)


@dataclass(frozen=True)
class ConnectedTuples(_TuplesOfSets):
    """Tuples of distinct nodes that induce a connected subgraph, or one of at most ``components`` connected parts.

    >>> path = SparseIndexSet(torch.tensor([[0, 1], [1, 0], [1, 2], [2, 1]]), num_nodes=3)
    >>> ConnectedTuples().count(path, 3)
    6

    Args:
        components: how many connected parts the subgraph may have.
    """

    components: int = 1

    def __post_init__(self) -> None:
        if self.components < 1:
            raise ValueError(f"a subgraph has at least 1 component, got {self.components}")

    def _sets(self, graph: IndexSet, order: int, limit: int) -> Tensor:
        return graph._once(("connected", self.components, order), lambda: _parts(graph, order, self.components, limit))


@dataclass(frozen=True)
class TuplesWithin(_TuplesOfSets):
    """Tuples of distinct nodes that are pairwise at most ``hops`` apart.

    >>> path = SparseIndexSet(torch.tensor([[0, 1], [1, 0], [1, 2], [2, 1]]), num_nodes=3)
    >>> TuplesWithin(hops=1).count(path, 2)
    4

    Args:
        hops: the largest distance between two nodes of a tuple.
    """

    hops: int

    def __post_init__(self) -> None:
        if self.hops < 1:
            raise ValueError(f"tuples within a number of hops take at least 1 hop, got {self.hops}")

    def _sets(self, graph: IndexSet, order: int, limit: int) -> Tensor:
        return graph._once(("within", self.hops, order), lambda: near_sets(graph, order, self.hops, limit))


def room(order: int) -> int:
    """How many tuples of an order fit into the memory that is free now, with what layers need to know of them."""
    return _free_memory() // (8 * order * WORKING)


def _free_memory() -> int:
    """Bytes that a process may take; what the system holds copies of files in is free, and so is what it kept itself."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
        return available + _kept_memory()
    except (OSError, StopIteration, ValueError, IndexError):
        return 4 * 2**30  # a system that does not say: what a small machine has


class _Mallinfo(ctypes.Structure):
    """What glibc says of its memory: ten numbers, of which the ninth is what is free."""

    _fields_ = [(name, ctypes.c_size_t) for name in (*"abcdefgh", "free", "j")]


def _kept_memory() -> int:
    """Bytes that were freed and that the C library keeps for what comes next, as commands tell it to."""
    try:
        mallinfo = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):  # not glibc, or an old one
        return 0
    mallinfo.restype = type(
        "Mallinfo", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in "abcdefghij"]}
    )
    return int(mallinfo().i)  # fordblks, the ninth of ten


def _parts(graph: IndexSet, order: int, components: int, limit: int) -> Tensor:
    """The sets of nodes with at most so many connected parts."""
    found = [connected_sets(graph, order, limit)]
    for size in range(1, order if components > 1 else 1):
        rest = _parts(graph, order - size, components - 1, limit)
        found.append(unions(connected_sets(graph, size, limit), rest, graph.node_graph, graph.num_graphs, limit))
    return found[0] if len(found) == 1 else distinct(torch.cat(found), graph.num_nodes)


def _all_orders(sets: Tensor, graph: IndexSet) -> SparseIndexSet:
    """Each set of nodes as a tuple in all orders, in ascending order of the tuples' sets."""
    orders = torch.tensor(list(permutations(range(sets.shape[1]))), device=sets.device)
    tuples = sets[:, orders].flatten(0, 1)
    return SparseIndexSet._trusted(tuples, graph.num_nodes, graph.node_graph, graph.num_graphs)


def _distinct_columns(rank: Tensor, size: Tensor, order: int) -> list[Tensor]:
    """The tuple of distinct numbers below ``size`` that stands at each rank, column by column.

    A digit counts the nodes that are left, so it is raised past those that are taken, from the lowest on.
    """
    digits: list[Tensor] = []
    for axis in reversed(range(order)):
        left = (size - axis).clamp(min=1)
        digits.append(rank % left)
        rank = rank // left
    columns: list[Tensor] = []
    for digit in reversed(digits):
        node = digit
        for taken in torch.stack(columns, 1).sort(1).values.unbind(1) if columns else ():
            node = node + (node >= taken)
        columns.append(node)
    return columns


def _falling(size: int, order: int) -> int:
    product = 1
    for taken in range(order):
        product *= max(size - taken, 0)
    return product


def _sizes(graph: IndexSet) -> list[int]:
    return torch.bincount(graph.node_graph, minlength=graph.num_graphs).tolist()


def _check(graph: IndexSet, order: int) -> None:
    if not isinstance(graph, IndexSet) or graph.order != 2:
        got = f"order {graph.order}" if isinstance(graph, IndexSet) else type(graph).__name__
        raise ValueError(f"a graph is an index set of order 2: its nodes (v, v) and its edges (u, v); got {got}")
    if not isinstance(order, int) or order < 1:
        raise ValueError(f"tuples have at least 1 node, got order {order!r}")
