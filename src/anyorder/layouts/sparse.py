"""Sparse index sets: any list of tuples over a disjoint union of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from anyorder.layouts.complete import CompleteIndexSet
from anyorder.layouts.index_set import IndexSet
from anyorder.layouts.lookup import TupleIndex
from anyorder.layouts.memory import is_exported

MOST_AXES = 8  # two tuples of a higher order than this are edges of shape (2, num_edges)


class SparseIndexSet(IndexSet):
    """Distinct tuples of nodes, in any order.

    >>> edges = SparseIndexSet(torch.tensor([[0, 1], [1, 0], [2, 2]]), num_nodes=3)
    >>> edges.find(torch.tensor([[1, 0], [0, 0]]), torch.tensor([0, 0])).tolist()
    [1, -1]

    A set of a lower order that follows from this one (``project``, an output of order 1) has the nodes that occur in tuples,
    and no others: give every node a loop (v, v), as ``from_edge_index`` does, or pass a ``target`` with all nodes,
    ``edges.complete(1)``.

    Args:
        tuples: (entries, order), int64.
        num_nodes: nodes of all graphs together.
        node_graph: (num_nodes,), the graph of each node; None for one graph.
        num_graphs: number of graphs; needed only where the last graphs have no nodes.
    """

    def __init__(
        self, tuples: Tensor, *, num_nodes: int, node_graph: Tensor | None = None, num_graphs: int | None = None
    ) -> None:
        super().__init__()
        _check_tuples(tuples, num_nodes)
        if node_graph is None:
            node_graph = torch.zeros(num_nodes, dtype=torch.int64, device=tuples.device)
            num_graphs = 1 if num_graphs is None else num_graphs
        self.num_graphs = _check_graphs(node_graph, num_nodes, num_graphs, tuples.device)
        self.order = tuples.shape[1]
        self.num_nodes = num_nodes
        self.node_graph = node_graph
        self._tuples = tuples.clone()  # what a caller does to theirs later must not change this set
        if is_exported():
            return
        if self.order == 0 and len(tuples) != self.num_graphs:
            raise ValueError(
                f"an index set of order 0 has one entry per graph: expected {self.num_graphs}, got {len(tuples)}"
            )
        self._check_entries()

    @classmethod
    def from_edge_index(
        cls, edge_index: Tensor, *, num_nodes: int, node_graph: Tensor | None = None, loops: bool = True
    ) -> SparseIndexSet:
        """Pairs from edges of shape (2, num_edges), as PyTorch Geometric has them, after a loop for each node.

        With ``loops`` the first ``num_nodes`` rows are the nodes, so that each has a row whether it has edges or not.

        >>> SparseIndexSet.from_edge_index(torch.tensor([[0, 1], [1, 0]]), num_nodes=2).tuples.tolist()
        [[0, 0], [1, 1], [0, 1], [1, 0]]
        """
        if not isinstance(edge_index, Tensor) or edge_index.ndim != 2 or edge_index.shape[0] != 2:
            got = tuple(edge_index.shape) if isinstance(edge_index, Tensor) else type(edge_index).__name__
            raise ValueError(f"edge_index must have shape (2, num_edges), got {got}")
        pairs = edge_index.T
        if loops:
            nodes = torch.arange(num_nodes, device=edge_index.device)
            pairs = torch.cat([nodes[:, None].expand(-1, 2), pairs])
        return cls(pairs, num_nodes=num_nodes, node_graph=node_graph)

    @classmethod
    def _trusted(cls, tuples: Tensor, num_nodes: int, node_graph: Tensor, num_graphs: int) -> SparseIndexSet:
        """An index set of tuples that are known to be right."""
        made = cls.__new__(cls)
        IndexSet.__init__(made)
        made.order, made.num_nodes, made.num_graphs = tuples.shape[1], num_nodes, num_graphs
        made.node_graph, made._tuples = node_graph, tuples
        return made

    @property
    def tuples(self) -> Tensor:
        return self._tuples

    @property
    def num_entries(self) -> int:
        return self._tuples.shape[0]

    @property
    def index(self) -> TupleIndex:
        """Binary search over the tuples."""
        return self._once("index", lambda: TupleIndex.build(self._tuples, self.num_nodes))

    def find(self, tuples: Tensor, graph: Tensor) -> Tensor:
        if self.order == 0:
            return graph
        if self.order == 1:
            return self._once("row_of_node", self._row_of_node)[tuples[:, 0]]
        return self.index.find(tuples)

    def _row_of_node(self) -> Tensor:
        rows = torch.full((self.num_nodes,), -1, dtype=torch.int64, device=self.device)
        rows[self._tuples[:, 0]] = torch.arange(self.num_entries, device=self.device)
        return rows

    def flatten(self, values: Tensor) -> Tensor:
        if values.ndim != 2 or (values.shape[0] != self.num_entries and not is_exported()):
            raise ValueError(
                f"values must have one row per entry: expected shape ({self.num_entries}, channels), "
                f"got {tuple(values.shape)}"
            )
        return values

    def unflatten(self, rows: Tensor) -> Tensor:
        return rows

    def with_order(self, order: int) -> IndexSet | None:
        if order == self.order:
            return self
        return self.project(order) if order < self.order else None

    def project(self, order: int) -> SparseIndexSet:
        """All tuples of a lower order whose nodes lie inside one tuple of this set (Sec. 4.2).

        >>> triangle = SparseIndexSet(torch.tensor([[0, 1, 2]]), num_nodes=3)
        >>> triangle.project(1).tuples.flatten().tolist()
        [0, 1, 2]
        """
        if not 0 <= order <= self.order:
            raise ValueError(f"can only project to an order between 0 and {self.order}, got {order}")
        return self if order == self.order else self._once(("order", order), lambda: self._project(order))

    def _project(self, order: int) -> SparseIndexSet:
        if order == 0:
            tuples = self._tuples.new_empty(self.num_graphs, 0)
        else:
            choices = product(range(self.order), repeat=order)
            every = torch.cat([self._tuples[:, list(axes)] for axes in choices])
            index = TupleIndex.build(every, self.num_nodes)
            tuples = every[index.numbers()[1]]
        return self._trusted(tuples, self.num_nodes, self.node_graph, self.num_graphs)

    def complete(self, order: int) -> IndexSet:
        """All tuples of an order within each graph."""
        return self._once(
            ("complete", order), lambda: complete_index_set(order, self.node_graph, num_graphs=self.num_graphs)
        )

    def _check_entries(self) -> None:
        if self.order == 0:
            return
        repeated = self.index.repeated()
        if repeated is not None:
            first, second = repeated.tolist()
            raise ValueError(f"tuples must be distinct: rows {first} and {second} are both {self._tuples[first].tolist()}")
        graphs = self.node_graph[self._tuples]
        spans = (graphs != graphs[:, :1]).any(1).nonzero().flatten()
        if len(spans):
            row = int(spans[0])
            raise ValueError(
                f"a tuple must stay within one graph: row {row} is {self._tuples[row].tolist()}, "
                f"whose nodes are of graphs {graphs[row].tolist()}"
            )

    @staticmethod
    def collate(sets: Sequence[SparseIndexSet]) -> SparseIndexSet:
        """The disjoint union of index sets of one order."""
        orders = {part.order for part in sets}
        if len(orders) != 1:
            raise ValueError(f"can only collate index sets of one order, got orders {sorted(orders)}")
        nodes, graphs = [0], [0]
        for part in sets:
            nodes.append(nodes[-1] + part.num_nodes)
            graphs.append(graphs[-1] + part.num_graphs)
        tuples = torch.cat([part.tuples + start for part, start in zip(sets, nodes[:-1], strict=True)])
        node_graph = torch.cat([part.node_graph + start for part, start in zip(sets, graphs[:-1], strict=True)])
        kinds = {type(part) for part in sets}
        if len(kinds) != 1:
            raise TypeError(f"can only collate index sets of one kind, got {sorted(kind.__name__ for kind in kinds)}")
        return kinds.pop()._trusted(tuples, nodes[-1], node_graph, graphs[-1])


def complete_index_set(order: int, node_graph: Tensor, *, num_graphs: int) -> IndexSet:
    """All tuples of an order within each graph, also where the nodes of a graph do not stand together.

    >>> complete_index_set(2, torch.tensor([0, 1, 0]), num_graphs=2).tuples.tolist()
    [[0, 0], [0, 2], [2, 0], [2, 2], [1, 1]]

    Args:
        order: the length of a tuple.
        node_graph: (nodes,), the graph of each node.
        num_graphs: number of graphs.
    """
    if is_exported():
        sizes = node_graph.new_zeros(num_graphs).index_add(0, node_graph, torch.ones_like(node_graph))
    else:
        sizes = torch.bincount(node_graph, minlength=num_graphs)
    together = CompleteIndexSet(order, sizes)
    if not is_exported() and bool((node_graph.diff() >= 0).all()):
        return together
    nodes = torch.argsort(node_graph, stable=True)
    return SparseIndexSet._trusted(nodes[together.tuples], node_graph.shape[0], node_graph, num_graphs)


def _check_tuples(tuples: Tensor, num_nodes: int) -> None:
    if not isinstance(tuples, Tensor):
        raise TypeError(f"tuples must be a tensor of int64, got {type(tuples).__name__}")
    if tuples.dtype != torch.int64:
        raise TypeError(f"tuples must be int64, got {tuples.dtype}")
    if tuples.ndim != 2:
        raise ValueError(
            f"tuples must have one column per axis: expected shape (num_entries, order), got {tuple(tuples.shape)}"
        )
    if is_exported():
        return
    if tuples.shape[0] == 2 and tuples.shape[1] > MOST_AXES:
        raise ValueError(
            f"tuples must have one row per tuple: shape {tuple(tuples.shape)} would be of order {tuples.shape[1]}; pass the "
            "transpose, or use SparseIndexSet.from_edge_index for edges of shape (2, num_edges)"
        )
    if not isinstance(num_nodes, int) or num_nodes < 0:
        raise ValueError(f"num_nodes must be an integer of at least 0, got {num_nodes!r}")
    if tuples.numel() == 0:
        return
    low, high = (int(bound) for bound in tuples.aminmax())
    if low < 0 or high >= num_nodes:
        row = int(((tuples < 0) | (tuples >= num_nodes)).any(1).nonzero()[0])
        raise ValueError(f"nodes must lie in 0..{num_nodes - 1}: row {row} is {tuples[row].tolist()}")


def _check_graphs(node_graph: Tensor, num_nodes: int, num_graphs: int | None, device: torch.device) -> int:
    if not isinstance(node_graph, Tensor) or node_graph.dtype != torch.int64:
        got = node_graph.dtype if isinstance(node_graph, Tensor) else type(node_graph).__name__
        raise TypeError(f"node_graph must be a tensor of int64, got {got}")
    if is_exported():
        last: Any = torch.cat([node_graph, node_graph.new_full((1,), -1)]).max()
        return (last + 1).item() if num_graphs is None else num_graphs
    if num_graphs is not None and (not isinstance(num_graphs, int) or num_graphs < 0):
        raise ValueError(f"num_graphs must be an integer of at least 0, got {num_graphs!r}")
    if tuple(node_graph.shape) != (num_nodes,):
        raise ValueError(f"node_graph must give a graph per node: expected ({num_nodes},), got {tuple(node_graph.shape)}")
    if node_graph.device != device:
        raise ValueError(f"node_graph must be on the device of tuples: expected {device}, got {node_graph.device}")
    low, high = (int(bound) for bound in node_graph.aminmax()) if num_nodes else (0, -1)
    graphs = high + 1 if num_graphs is None else num_graphs
    if low < 0 or high >= graphs:
        raise ValueError(f"node_graph must lie in 0..{graphs - 1} for {graphs} graphs, got values from {low} to {high}")
    return graphs
