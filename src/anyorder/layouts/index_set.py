"""Which tuples exist: what sparse and dense index sets have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from anyorder.algebra import SetPartition, set_partitions
from anyorder.layouts.memory import Memory, refuse_in_graph
from anyorder.layouts.rows import collect, deal
from anyorder.layouts.transfer import Transferable

if TYPE_CHECKING:
    from anyorder.layouts.plan import Plan


@dataclass(frozen=True, eq=False)
class Entries:
    """The entries of one pattern: where they stand in the index set and their compact tuples (Prop. 1).

    ``rows`` is None where they stand together, from row ``start`` on: they are then read without a copy.
    """

    start: int
    rows: Tensor | None
    tuples: Tensor
    graph: Tensor

    def __len__(self) -> int:
        return len(self.tuples)

    @property
    def places(self) -> Tensor:
        """(entry,): the row of each entry."""
        if self.rows is not None:
            return self.rows
        return torch.arange(self.start, self.start + len(self), device=self.tuples.device)

    def read(self, values: Tensor) -> Tensor:
        """The rows of these entries."""
        return values.narrow(0, self.start, len(self)) if self.rows is None else values.index_select(0, self.rows)


MOST_PLANS = 32  # targets an index set remembers; a loop may ask for new ones in every step


class IndexSet(Memory, Transferable, ABC):
    """The tuples of nodes that carry features, for a disjoint union of graphs.

    Attributes:
        order: number of nodes in a tuple.
        num_nodes: nodes of all graphs together.
        num_graphs: graphs in the union.
        node_graph: (num_nodes,), the graph of each node.
    """

    order: int
    num_nodes: int
    num_graphs: int
    node_graph: Tensor

    @property
    def unordered(self) -> bool:
        """Whether a tuple stands for all orders of its nodes."""
        return False

    def __init__(self) -> None:
        super().__init__()
        self._plans: list[tuple[IndexSet, Plan]] = []

    @property
    @abstractmethod
    def tuples(self) -> Tensor:
        """(num_entries, order): the tuples, in the order of the rows of features."""

    @property
    @abstractmethod
    def num_entries(self) -> int:
        """Number of tuples."""

    @abstractmethod
    def find(self, tuples: Tensor, graph: Tensor) -> Tensor:
        """The row of each tuple, -1 where it is not in the set; ``graph`` says in which graph to look."""

    @abstractmethod
    def flatten(self, values: Tensor) -> Tensor:
        """Values as users hold them, to rows (entry, channel)."""

    @abstractmethod
    def unflatten(self, rows: Tensor) -> Tensor:
        """Rows (entry, channel) to values as users hold them."""

    @abstractmethod
    def with_order(self, order: int) -> IndexSet | None:
        """The index set of another order that follows from this one, if one does (Sec. 4.2)."""

    def target(self, order: int, given: IndexSet | None = None) -> IndexSet:
        """The index set that a layer of this output order writes to: the given one, or the one that follows."""
        if given is None:
            follows = self.with_order(order)
            if follows is None:
                raise ValueError(
                    f"a target index set is needed: none of order {order} follows from a sparse input of order {self.order}"
                )
            return follows
        if not isinstance(given, IndexSet):
            raise TypeError(f"target must be an IndexSet, got {type(given).__name__}")
        if given.order != order:
            raise ValueError(f"target must be of the layer's output order: expected {order}, got {given.order}")
        return given

    @property
    def device(self) -> torch.device:
        return self.node_graph.device

    @property
    def entry_graph(self) -> Tensor:
        """(num_entries,): the graph of each entry."""
        return self._once("entry_graph", self._entry_graph)

    def _entry_graph(self) -> Tensor:
        if self.order == 0:
            return torch.arange(self.num_graphs, device=self.device)
        return self.node_graph[self.tuples[:, 0]]

    def entries(self, pattern: SetPartition) -> Entries:
        """The entries whose equal axes are exactly those of the pattern."""
        return self._once(("entries", pattern.labels), lambda: self._select(pattern))

    def _select(self, pattern: SetPartition) -> Entries:
        tuples = self.tuples
        if self.order < 2:
            return Entries(0, None, tuples, self.entry_graph)
        keep = torch.ones(len(tuples), dtype=torch.bool, device=self.device)
        for a in range(self.order):
            for b in range(a):
                tied = pattern.labels[a] == pattern.labels[b]
                keep &= (tuples[:, a] == tuples[:, b]) == tied
        rows = keep.nonzero().flatten()
        compact = tuples[rows][:, list(pattern.representatives)]
        start = int(rows[0]) if len(rows) else 0
        together = len(rows) == 0 or int(rows[-1]) - start == len(rows) - 1
        return Entries(start, None if together else rows, compact, self.entry_graph[rows])

    def split(self, rows: Tensor) -> dict[SetPartition, Tensor]:
        """The rows of each pattern, read once, so that their gradients are put together in one step."""
        patterns, places = self._sorted()
        counts = [len(self.entries(pattern)) for pattern in patterns]
        return dict(zip(patterns, rows.split(counts) if places is None else deal(rows, places), strict=True))

    def assemble(self, parts: dict[SetPartition, Tensor], like: Tensor) -> Tensor:
        """Rows of the whole index set from the rows of its patterns; zero where a pattern is left out.

        ``like`` gives the width and the type where no pattern has an entry.
        """
        patterns, places = self._sorted()
        there = [pattern for pattern in patterns if len(self.entries(pattern))]
        like = next((parts[pattern] for pattern in there if pattern in parts), like)
        every = [parts[p] if p in parts else like.new_zeros(len(self.entries(p)), *like.shape[1:]) for p in there]
        if len(every) < 2:
            return every[0] if every else like.new_zeros(0, *like.shape[1:])
        if places is None:
            return torch.cat(every)
        return collect(every, [place for place in places if len(place)])

    def arrange(self) -> None:
        """Work out now how the entries are sorted by pattern."""
        self._sorted()

    def _sorted(self) -> tuple[tuple[SetPartition, ...], list[Tensor] | None]:
        """The patterns, the same for all index sets, and where the entries of each stand; None if they are sorted."""
        return self._once("sorted", self._sort)

    def _sort(self) -> tuple[tuple[SetPartition, ...], list[Tensor] | None]:
        patterns = set_partitions(self.order)
        places = [self.entries(pattern).places for pattern in patterns]
        order = torch.cat(places)
        together = torch.equal(order, torch.arange(self.num_entries, device=order.device))
        return patterns, None if together else places

    def plan(self, target: IndexSet) -> Plan:
        """What a layer from this index set to ``target`` needs to know, worked out once and kept."""
        for known, plan in self._plans:
            if known is target:
                return plan
        refuse_in_graph()
        from anyorder.layouts.plan import Plan

        self.check_target(target)
        for index in (self, target):
            if index.unordered:
                raise TypeError(
                    "a layer for ordered tuples cannot take hyperedges without an order: use SymmetricLinear, or .ordered() "
                    f"to write out all orders, got {type(index).__name__}"
                )
        made = Plan(self, target)
        self._plans = [*self._plans[1 - MOST_PLANS :], (target, made)]
        return made

    def check_target(self, target: IndexSet) -> None:
        """Refuse a target on other nodes, graphs or another device."""
        if target.num_nodes != self.num_nodes or target.num_graphs != self.num_graphs:
            raise ValueError(
                f"target must be on the same nodes and graphs: expected {self.num_nodes} nodes and {self.num_graphs} "
                f"graphs, got {target.num_nodes} and {target.num_graphs}"
            )
        if target.device != self.device:
            raise ValueError(f"target must be on the same device: expected {self.device}, got {target.device}")
        if target.node_graph is self.node_graph or torch.equal(target.node_graph, self.node_graph):
            return
        node = int((target.node_graph != self.node_graph).nonzero()[0])
        raise ValueError(
            f"target must have each node in the same graph: node {node} is of graph {int(self.node_graph[node])} "
            f"in the input and of graph {int(target.node_graph[node])} in the target"
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(order={self.order}, entries={self.num_entries}, nodes={self.num_nodes}, "
            f"graphs={self.num_graphs})"
        )
