"""The index set of a PyTorch Geometric graph: a loop for each node, then its edges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from anyorder.layouts import Features, SparseIndexSet
from anyorder.layouts.memory import is_exported
from anyorder.layouts.transfer import Transferable

_KNOWN: WeakIdKeyDictionary = WeakIdKeyDictionary()


@dataclass(frozen=True, eq=False)
class PairSet(Transferable):
    """Nodes and edges as entries of order 2: entry v is node v, for all nodes; the edges follow.

    Edges that occur twice share an entry, and a self loop has the entry of its node: their features are added.

    >>> pairs = PairSet.build(torch.tensor([[0, 1], [1, 1]]), num_nodes=3)
    >>> pairs.index.tuples.tolist(), pairs.entry.tolist()
    ([[0, 0], [1, 1], [2, 2], [0, 1]], [3, 1])

    Attributes:
        index: the index set.
        entry: (num_edges,), the entry of each edge; None where edges are the entries after the nodes, in their order.
        num_edges: how many edges there are.
    """

    index: SparseIndexSet
    entry: Tensor | None
    num_edges: int

    @classmethod
    def build(
        cls, edge_index: Tensor, *, num_nodes: int, batch: Tensor | None = None, batch_size: int | None = None
    ) -> PairSet:
        """The pairs of a graph, or of the graphs that ``batch`` tells apart."""
        _check(edge_index)
        nodes = torch.arange(num_nodes, device=edge_index.device)
        width = num_nodes if is_exported() else max(num_nodes, 1)
        code = edge_index[0] * width + edge_index[1]
        loop = edge_index[0] == edge_index[1]
        proper = (~loop).nonzero().flatten()
        distinct, place = torch.unique(code[proper], return_inverse=True)
        entry, edges = None, edge_index
        if is_exported() or len(distinct) < len(code):
            edges = torch.stack([distinct // width, distinct % width])
            entry = edge_index[0].index_copy(0, proper, num_nodes + place)
        tuples = torch.cat([nodes[:, None].expand(-1, 2), edges.T])
        return cls(
            SparseIndexSet(tuples, num_nodes=num_nodes, node_graph=batch, num_graphs=batch_size), entry, code.shape[0]
        )

    @torch.compiler.disable
    @staticmethod
    def of(edge_index: Tensor, *, num_nodes: int, batch: Tensor | None = None, batch_size: int | None = None) -> PairSet:
        """The pairs of a batch, kept as long as its ``edge_index``: layers that share it share their plans."""
        if is_exported():
            return PairSet.build(edge_index, num_nodes=num_nodes, batch=batch, batch_size=batch_size)
        asked = (edge_index._version, num_nodes, None if batch is None else (id(batch), batch._version), batch_size)
        known = _KNOWN.get(edge_index)
        if known is None or known[0] != asked:
            made = PairSet.build(edge_index, num_nodes=num_nodes, batch=batch, batch_size=batch_size)
            known = _KNOWN[edge_index] = (asked, made, batch)  # holds batch, whose id would be given away otherwise
        found: PairSet = known[1]
        return found

    def join(self, x: Tensor, edges: Tensor) -> Features:
        """Features of order 2 from rows of nodes and of edges."""
        if not is_exported() and (len(x), len(edges)) != (self.index.num_nodes, self.num_edges):
            expected = f"{self.index.num_nodes} nodes and {self.num_edges} edges"
            raise ValueError(
                f"x and edge_attr need a row per node and per edge: expected {expected}, got {len(x)} and {len(edges)}"
            )
        if self.entry is None:
            return Features.of_rows(self.index, torch.cat([x, edges]))
        rows = torch.cat([x, x.new_zeros(self.index.num_entries - x.shape[0], x.shape[1])])
        return Features.of_rows(self.index, rows.index_add(0, self.entry, edges.to(x.dtype)))

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Rows of nodes and of edges, from those of the entries."""
        nodes = rows[: self.index.num_nodes]
        return nodes, rows[self.index.num_nodes :] if self.entry is None else rows[self.entry]


def _check(edge_index: Tensor) -> None:
    if not isinstance(edge_index, Tensor):
        raise TypeError(f"edge_index must be a tensor of shape (2, num_edges), got {type(edge_index).__name__}")
    if edge_index.dtype != torch.int64 or edge_index.ndim != 2 or edge_index.shape[0] != 2:
        got = f"{edge_index.dtype} of shape {tuple(edge_index.shape)}"
        raise ValueError(f"edge_index must be int64 of shape (2, num_edges), got {got}")
