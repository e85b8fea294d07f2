"""AllDeepSets and AllSetTransformer (Chien, Pan, Peng, Milenkovic, "You are AllSet", ICLR 2022)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyorder.experiments.hypergraphs.literature.star import Perceptron, Rows, RowsLinear, Star, drop
from anyorder.ops.dropout import Dropout
from anyorder.ops.sparse_matrix import SparseMatrix

INPUT_DROPOUT = 0.2


class SetAttention(nn.Module):
    r"""A multiset function by attention with a learned query.

    .. math:: f(S) = LN(Y + \mathrm{MLP}(Y)), \quad Y = LN(\theta + \Vert_h \mathrm{softmax}(\theta_h K_h(S)^T) V_h(S))

    The query is the same for all sets, so an element has one score, and the sums over a set are products with its means.
    """

    def __init__(self, *, channels_in: int, channels: int, heads: int, layers: int) -> None:
        super().__init__()
        if channels % heads:
            raise ValueError(f"channels must be a multiple of the heads, got {channels} channels and {heads} heads")
        self.heads = heads
        self.key, self.value = RowsLinear(channels_in, channels), RowsLinear(channels_in, channels)
        self.query = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, heads, channels // heads)))
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(2))
        widths = {"channels_in": channels, "channels": channels, "channels_out": channels}
        self.mlp = Perceptron(**widths, layers=layers, dropout=0.0, norm=False)

    def forward(self, rows: Rows, means: SparseMatrix) -> Tensor:
        key, value = (linear(rows).unflatten(1, (self.heads, -1)) for linear in (self.key, self.value))
        scores = functional.leaky_relu((key * self.query).sum(2), 0.2)
        weights = (scores - scores.amax(0)).exp()
        both = means(torch.cat([(weights.unsqueeze(2) * value).flatten(1), weights], 1))
        sums, totals = both[:, : -self.heads].unflatten(1, (self.heads, -1)), both[:, -self.heads :]
        found = sums / totals.clamp(min=torch.finfo(totals.dtype).tiny).unsqueeze(2)
        out = self.norms[0]((self.query + found).flatten(1))
        return self.norms[1](out + self.mlp(out).relu())


class SetSum(nn.Module):
    r"""A multiset function by a sum, :math:`f(S) = \mathrm{MLP}(\sum_{x \in S} \mathrm{MLP}(x))`."""

    def __init__(self, *, channels_in: int, channels: int, layers: int, dropout: float) -> None:
        super().__init__()
        widths: dict[str, Any] = {"channels": channels, "channels_out": channels, "layers": layers, "dropout": dropout}
        self.inner, self.outer = (Perceptron(channels_in=c, norm=True, **widths) for c in (channels_in, channels))
        self.norm, self.dropout = nn.LayerNorm(channels), Dropout(dropout)

    def forward(self, rows: Rows, means: SparseMatrix, sizes: Tensor) -> Tensor:
        inner = self.dropout(self.inner(rows).relu())
        return self.outer(self.norm(means(inner) * sizes.unsqueeze(1)))


class AllSetNetwork(nn.Module):
    """Multiset functions from nodes to hyperedges and back, ReLU and dropout after each; then a classifier."""

    def __init__(
        self,
        *,
        channels_in: int,
        channels: int,
        channels_out: int,
        layers: int,
        mlp_layers: int,
        heads: int,
        dropout: float,
        classifier: int,
        classifier_layers: int,
    ) -> None:
        """No ``heads``: sums (AllDeepSets) instead of attention."""
        super().__init__()
        self.attends = heads > 0

        def function(width: int) -> nn.Module:
            if heads:
                return SetAttention(channels_in=width, channels=channels, heads=heads, layers=mlp_layers)
            return SetSum(channels_in=width, channels=channels, layers=mlp_layers, dropout=dropout)

        widths = [channels_in, *[channels] * (layers - 1)]
        self.to_edges = nn.ModuleList(function(width) for width in widths)
        self.to_nodes = nn.ModuleList(function(channels) for _ in widths)
        ends = {"channels_in": channels, "channels": classifier, "channels_out": channels_out}
        self.classifier = Perceptron(**ends, layers=classifier_layers, dropout=dropout, norm=True)
        self.dropout = Dropout(dropout)

    def forward(self, x: Star) -> Tensor:
        rows = drop(x.features, INPUT_DROPOUT, training=self.training)
        for to_edges, to_nodes in zip(self.to_edges, self.to_nodes, strict=True):
            edges = to_edges(rows, x.to_edges) if self.attends else to_edges(rows, x.to_edges, x.sizes)
            edges = self.dropout(edges.relu())
            nodes = to_nodes(edges, x.to_nodes) if self.attends else to_nodes(edges, x.to_nodes, x.degrees)
            rows = self.dropout(nodes.relu())
        return self.classifier(rows)
