"""A hypergraph as its star expansion: means from nodes to hyperedges and back, and layers that read sparse features."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from anyorder.experiments.hypergraphs.baselines import node_features, with_loops
from anyorder.experiments.hypergraphs.data import Hypergraph
from anyorder.layers.module import check_positive
from anyorder.layouts.transfer import Transferable
from anyorder.ops.dropout import Dropout
from anyorder.ops.sparse_matrix import SparseMatrix

Rows = Tensor | SparseMatrix
SPARSE = 0.1
"""Features with a smaller share of entries that are not zero are multiplied as a sparse matrix."""


@dataclass(frozen=True, eq=False)
class Star(Transferable):
    """Node features and incidences, with one more edge {i} for each node i that has none, as the papers have it."""

    features: Rows
    node: Tensor
    edge: Tensor
    to_edges: SparseMatrix
    """The mean over the nodes of each edge."""
    to_nodes: SparseMatrix
    """The mean over the edges of each node."""
    sizes: Tensor
    degrees: Tensor

    @classmethod
    def of(cls, graph: Hypergraph) -> Star:
        looped = with_loops(graph)
        node, edge, num_edges = looped.nodes, looped.edges, len(looped.edge_scale)
        sizes, degrees = torch.bincount(edge, minlength=num_edges), torch.bincount(node, minlength=graph.num_nodes)
        to_edges = SparseMatrix.build(edge, node, 1.0 / sizes[edge], (num_edges, graph.num_nodes))
        to_nodes = SparseMatrix.build(node, edge, 1.0 / degrees[node], (graph.num_nodes, num_edges))
        return cls(rows_of(graph), node, edge, to_edges, to_nodes, sizes, degrees)


def rows_of(graph: Hypergraph) -> Rows:
    """The node features, as a sparse matrix where most are zero."""
    dense = node_features(graph)
    few = int(dense.count_nonzero()) < SPARSE * dense.numel()
    return SparseMatrix.of_dense(dense) if few else dense


def drop(rows: Rows, share: float, *, training: bool) -> Rows:
    """Dropout of dense or sparse rows."""
    if isinstance(rows, SparseMatrix):
        return rows.dropped(share, training=training)
    return nn.functional.dropout(rows, share, training)


class RowsLinear(nn.Linear):
    """x W + b for dense rows, and for sparse ones at the cost of what is not zero."""

    def forward(self, rows: Rows) -> Tensor:
        if not isinstance(rows, SparseMatrix):
            return super().forward(rows)
        product = rows(self.weight.T)
        return product if self.bias is None else product + self.bias


class Perceptron(nn.Module):
    """Linear maps with ReLU, LayerNorm and dropout between them; no layer at all leaves rows as they are."""

    def __init__(
        self, *, channels_in: int, channels: int, channels_out: int, layers: int, dropout: float, norm: bool
    ) -> None:
        super().__init__()
        check_positive(channels_in=channels_in, channels=channels, channels_out=channels_out)
        widths = [channels_in, *[channels] * (layers - 1), channels_out] if layers else []
        self.linears = nn.ModuleList(RowsLinear(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.LayerNorm(width) if norm else nn.Identity() for width in widths[1:-1])
        self.dropout = Dropout(dropout)

    def forward(self, rows: Rows) -> Tensor:
        if not self.linears:
            assert isinstance(rows, Tensor)
            return rows
        first, *others = self.linears
        out: Tensor = first(rows)
        for norm, linear in zip(self.norms, others, strict=True):
            out = linear(self.dropout(norm(out.relu())))
        return out
