"""Which tuples exist: what sparse and dense index sets have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from anyorder.algebra import Program, SetPartition, set_partitions
from anyorder.layouts.entries import Entries
from anyorder.layouts.memory import Memory, is_exported, refuse_in_graph
from anyorder.layouts.plan import Plan
from anyorder.layouts.rows import collect, deal
from anyorder.layouts.transfer import Transferable

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
        self._plans: list[tuple[IndexSet | None, Plan]] = []  # None is this index set itself

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

    @abstractmethod
    def complete(self, order: int) -> IndexSet:
        """All tuples of an order within each graph."""

    def target(self, order: int, given: IndexSet | None = None) -> IndexSet:
        """The index set that a layer of this output order writes to: the given one, or the one that follows."""
        if given is None:
            if order == self.order:
                return self
            follows: Any = self._cache.get(("order", order))  # kept by ``with_order``
            if follows is None:
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
        """Where the tuples are."""
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
        return self._once(pattern, lambda: self._select(pattern))

    def _select(self, pattern: SetPartition) -> Entries:
        tuples = self.tuples
        if self.order < 2:
            return Entries(0, None, tuples, self.entry_graph)
        keep = torch.ones(tuples.shape[0], dtype=torch.bool, device=self.device)
        for a in range(self.order):
            for b in range(a):
                tied = pattern.labels[a] == pattern.labels[b]
                keep &= (tuples[:, a] == tuples[:, b]) == tied
        rows = keep.nonzero().flatten()
        compact = tuples[rows][:, list(pattern.representatives)]
        if is_exported():
            return Entries(0, rows, compact, self.entry_graph[rows])
        start = int(rows[0]) if len(rows) else 0
        together = len(rows) == 0 or int(rows[-1]) - start == len(rows) - 1
        return Entries(start, None if together else rows, compact, self.entry_graph[rows])

    def split(self, rows: Tensor) -> dict[SetPartition, Tensor]:
        """The rows of each pattern, read once, so that their gradients are put together in one step."""
        patterns, counts, places = self._sorted()
        return dict(zip(patterns, rows.split(counts) if places is None else deal(rows, places), strict=True))

    def assemble(self, parts: dict[SetPartition, Tensor]) -> Tensor:
        """Rows of the whole index set from the rows of each pattern."""
        patterns, _, places = self._sorted()
        if len(patterns) == 1:
            return parts[patterns[0]]
        every = [parts[pattern] for pattern in patterns]
        if is_exported() and places is not None:
            rows = every[0].new_zeros(self.num_entries, *every[0].shape[1:])
            for part, place in zip(every, places, strict=True):
                rows = rows.index_copy(0, place, part)
            return rows
        return torch.cat(every) if places is None else collect(every, places)

    def counts(self) -> dict[SetPartition, int]:
        """The number of entries of each pattern."""
        patterns, counts, _ = self._sorted()
        return dict(zip(patterns, counts, strict=True))

    def arrange(self) -> None:
        """Sort the entries by pattern now."""
        self._sorted()

    def _sorted(self) -> tuple[tuple[SetPartition, ...], list[int], list[Tensor] | None]:
        """The patterns, their numbers of entries, and where those stand; None if they are sorted."""
        known: Any = self._cache.get("sorted")
        return self._once("sorted", self._sort) if known is None else known

    def _sort(self) -> tuple[tuple[SetPartition, ...], list[int], list[Tensor] | None]:
        patterns = set_partitions(self.order)
        places = [self.entries(pattern).places for pattern in patterns]
        rows = torch.cat(places)
        if is_exported():
            return patterns, [part.shape[0] for part in places], None if self.order < 2 else places
        together = torch.equal(rows, torch.arange(self.num_entries, device=rows.device))
        return patterns, [len(part) for part in places], None if together else places

    def plan(self, target: IndexSet) -> Plan:
        """What a layer from this index set to ``target`` needs to know, built once and kept."""
        other = None if target is self else target
        for known, plan in self._plans:
            if known is other:
                return plan
        refuse_in_graph()
        self.check_target(target)
        for index in (self, target):
            if index.unordered:
                raise TypeError(
                    "a layer for ordered tuples cannot take hyperedges without an order: use SymmetricLinear, or .ordered() "
                    f"to write out all orders, got {type(index).__name__}"
                )
        made = Plan(self, target, self)
        self._plans = [*self._plans[1 - MOST_PLANS :], (other, made)]
        return made

    def known(self, program: Program, target: IndexSet) -> tuple[Any, ...]:
        """What each step of a program from here to ``target`` needs to know, built once; a data-loader worker may do so."""
        plan = self.plan(target)
        found: Any = plan._cache.get(program.key)
        return plan.prepare(program) if found is None else found

    def check_target(self, target: IndexSet) -> None:
        """Refuse a target on other nodes, graphs or another device."""
        if is_exported():
            return
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
