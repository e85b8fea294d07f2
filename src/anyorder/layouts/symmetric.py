"""Unordered hyperedges: index sets that store each set of nodes once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, permutations
from math import factorial

import torch
from torch import Tensor

from anyorder.layouts.index_set import MOST_PLANS, IndexSet
from anyorder.layouts.lookup import TupleIndex
from anyorder.layouts.memory import Built, is_exported, refuse_in_graph
from anyorder.layouts.sparse import SparseIndexSet
from anyorder.layouts.transfer import Transferable

MOST_ORDERINGS = 10**7


def check_orderings(edges: int, order: int) -> None:
    """Refuse to write out more orders of hyperedges than memory holds."""
    number = edges * factorial(order)
    if number > MOST_ORDERINGS:
        raise ValueError(
            f"{edges:,} hyperedges of {order} nodes have {number:,} orderings, more than {MOST_ORDERINGS:,}: "
            "keep one of each (orderings='one'), or use SymmetricIndexSet or IncidenceSet, which need none"
        )


class SymmetricIndexSet(SparseIndexSet):
    """Hyperedges of one size whose nodes have no order; each row holds its distinct nodes in ascending order.

    >>> edges = SymmetricIndexSet(torch.tensor([[2, 0], [1, 2]]), num_nodes=3)
    >>> edges.tuples.tolist(), edges.ordered().num_entries
    ([[0, 2], [1, 2]], 4)

    Args:
        tuples: (hyperedges, size), int64, distinct nodes in any order.
        num_nodes, node_graph, num_graphs: as in ``SparseIndexSet``.
    """

    def __init__(
        self, tuples: Tensor, *, num_nodes: int, node_graph: Tensor | None = None, num_graphs: int | None = None
    ) -> None:
        if isinstance(tuples, Tensor) and tuples.ndim == 2 and tuples.dtype == torch.int64:
            tuples = tuples.sort(1).values
            repeated = (tuples[:, 1:] == tuples[:, :-1]).any(1).nonzero().flatten()
            if not is_exported() and len(repeated):
                row = int(repeated[0])
                raise ValueError(f"an unordered hyperedge has distinct nodes: row {row} is {tuples[row].tolist()}")
        super().__init__(tuples, num_nodes=num_nodes, node_graph=node_graph, num_graphs=num_graphs)

    @property
    def unordered(self) -> bool:
        return self.order > 1

    def _project(self, order: int) -> SparseIndexSet:
        """The sets of so many nodes inside one of these hyperedges."""
        if order < 2:
            return super()._project(order)
        every = torch.cat([self.tuples[:, list(some)] for some in combinations(range(self.order), order)])
        index = TupleIndex.build(every, self.num_nodes)
        return self._trusted(every[index.numbers()[1]], self.num_nodes, self.node_graph, self.num_graphs)

    def towards(self, target: SymmetricIndexSet, what: object, build: Callable[[], Built]) -> Built:
        """Keep what is derived from this index set and another."""
        known = self._once("towards", list[tuple[SymmetricIndexSet | None, dict[object, object]]])
        wanted = None if target is self else target  # to hold itself it would never be freed
        found = next((made for other, made in known if other is wanted), None)
        if found is None:
            found = {}
            del known[: 1 - MOST_PLANS]
            known.append((wanted, found))
        if what not in found:
            refuse_in_graph()
            found[what] = build()
        return found[what]  # type: ignore[return-value]

    def ordered(self) -> SparseIndexSet:
        """The same hyperedges with every order of their nodes; row e * order! + p is order p of hyperedge e."""
        check_orderings(self.num_entries, self.order)
        every = [list(axes) for axes in permutations(range(self.order))]
        tuples = torch.stack([self.tuples[:, axes] for axes in every], 1).flatten(0, 1)
        return SparseIndexSet(tuples, num_nodes=self.num_nodes, node_graph=self.node_graph, num_graphs=self.num_graphs)

    def subsets(self, size: int) -> Subsets:
        """The subsets of each hyperedge with so many nodes."""
        return self._once(("subsets", size), lambda: self._subsets(size))

    def _subsets(self, size: int) -> Subsets:
        axes = list(combinations(range(self.order), size))
        if size == 0:
            return Subsets(self.entry_graph[:, None], self.num_graphs, None)
        if size == 1:
            return Subsets(self.tuples, self.num_nodes, None)
        every = torch.stack([self.tuples[:, list(some)] for some in axes], 1).flatten(0, 1)
        ids, distinct = TupleIndex.build(every, self.num_nodes).distinct(every)
        return Subsets(ids.view(-1, len(axes)), distinct.count, distinct)

    def find_subsets(self, target: SymmetricIndexSet, size: int) -> Tensor:
        """(target entry, subset): which subset of this index set equals each subset of a target entry, -1 for none."""
        known = self.subsets(size)
        if known.index is None:
            return target.subsets(size).ids
        axes = combinations(range(target.order), size)
        every = torch.stack([target.tuples[:, list(some)] for some in axes], 1)
        return known.index.find(every.flatten(0, 1)).view(every.shape[:2])


@dataclass(frozen=True, eq=False)
class Subsets(Transferable):
    """(entry, subset): the number of each subset of each hyperedge."""

    ids: Tensor
    count: int
    index: TupleIndex | None


def check_symmetric(index: IndexSet) -> SymmetricIndexSet:
    """Refuse index sets whose tuples are ordered."""
    if not isinstance(index, SymmetricIndexSet):
        raise TypeError(f"a symmetric layer takes a SymmetricIndexSet, got {type(index).__name__}")
    return index
