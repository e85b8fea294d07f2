"""EHNN-Transformer (Kim, Oh, Cho, Hong, "Equivariant hypergraph neural networks", ECCV 2022)."""

from __future__ import annotations

from math import log
from typing import Any

import torch
from torch import Tensor, nn

from anyorder.experiments.hypergraphs.literature.star import Perceptron, RowsLinear, Star, drop
from anyorder.ops.dropout import Dropout


def sinusoids(orders: Tensor, channels: int) -> Tensor:
    """Positional encodings of orders: (order, channel).

    >>> sinusoids(torch.tensor([0, 3]), 4).shape
    torch.Size([2, 4])
    """
    rates = torch.exp(torch.arange(0, channels, 2, device=orders.device) * (-log(10_000.0) / channels))
    angles = orders.to(rates.dtype).unsqueeze(1) * rates
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)[:, :channels]


class HyperNetwork(nn.Module):
    """An MLP of the encodings of an order: what depends on the size of a hyperedge and on the size of an overlap."""

    def __init__(self, channels: int, channels_out: int, *, layers: int, dropout: float) -> None:
        super().__init__()
        widths = {"channels_in": channels, "channels": channels, "channels_out": channels_out, "layers": layers}
        self.channels, self.mlp = channels, Perceptron(**widths, dropout=dropout, norm=True)

    def forward(self, orders: Tensor) -> Tensor:
        dtype = next(self.parameters()).dtype
        return self.mlp(sinusoids(orders, self.channels).to(dtype))


class OrderAttention(nn.Module):
    r"""From sets of one kind to sets of another, by the size I of their overlap.

    .. math:: Y_j = \phi_3\Big(l, \sum_{I=0}^{1} \sum_h \sum_{i : |i \cap j| = I} \alpha^{hI}_{ij} \phi_1(k, X_i) V_{hI}\Big)

    Queries are generated from the size l of the output and from I, scores are their products with keys, and an overlap of 0
    is taken as all inputs, which has the same span and linear cost.
    """

    def __init__(self, *, channels: int, heads: int, hyper_layers: int, hyper_dropout: float) -> None:
        super().__init__()
        if channels % heads:
            raise ValueError(f"channels must be a multiple of the heads, got {channels} channels and {heads} heads")
        self.heads = heads

        def hyper(width: int) -> HyperNetwork:
            return HyperNetwork(channels, width, layers=hyper_layers, dropout=hyper_dropout)

        self.of_input, self.of_output = hyper(channels), hyper(channels)
        self.query = hyper(2 * channels)
        self.key_value = nn.Linear(channels, 4 * channels)
        self.output = nn.Linear(2 * channels, channels)

    def forward(self, rows: Tensor, sizes: Tensor, target_sizes: Tensor, reads: Tensor, writes: Tensor) -> Tensor:
        """``reads[n]`` is the input and ``writes[n]`` the output of incidence n."""
        kinds, kind = target_sizes.unique(return_inverse=True)
        known, each = sizes.unique(return_inverse=True)
        rows = rows + self.of_input(known)[each]
        key, every_key, value, every_value = (
            part.unflatten(1, (self.heads, -1)) for part in self.key_value(rows).chunk(4, 1)
        )
        query, every_query = (part.unflatten(1, (self.heads, -1)) for part in self.query(kinds).chunk(2, 1))
        scale = key.shape[2] ** -0.5
        scores = torch.einsum("shc,nhc->nsh", query, key).mul(scale)[reads, kind[writes]]
        weights = grouped_softmax(scores, writes, len(target_sizes))
        taken = (weights.unsqueeze(2) * value.index_select(0, reads)).flatten(1)
        local = rows.new_zeros(len(target_sizes), taken.shape[1]).index_add(0, writes, taken)
        over_all = torch.einsum("shc,nhc->shn", every_query, every_key).mul(scale).softmax(2)
        all_ = torch.einsum("shn,nhc->shc", over_all, every_value).flatten(1)[kind]
        return self.output(torch.cat([local, all_], 1)) + self.of_output(kinds)[kind]


def grouped_softmax(scores: Tensor, groups: Tensor, count: int) -> Tensor:
    """Softmax over the rows of each group."""
    index = groups.unsqueeze(1).expand_as(scores)
    top = scores.detach().new_full((count, scores.shape[1]), -torch.inf).scatter_reduce(0, index, scores.detach(), "amax")
    weights = (scores - top[groups]).exp()
    return weights / weights.new_zeros(count, scores.shape[1]).index_add(0, groups, weights)[groups]


class EHNNetwork(nn.Module):
    """Attention from nodes to hyperedges and back, each with an MLP after it; then a classifier."""

    def __init__(
        self,
        *,
        channels_in: int,
        channels: int,
        channels_out: int,
        layers: int,
        heads: int,
        dropout: float,
        hyper_layers: int,
        hyper_dropout: float,
        classifier: int,
    ) -> None:
        super().__init__()
        self.project = RowsLinear(channels_in, channels)
        sizes: dict[str, Any] = {
            "channels": channels,
            "heads": heads,
            "hyper_layers": hyper_layers,
            "hyper_dropout": hyper_dropout,
        }
        self.attentions = nn.ModuleList(OrderAttention(**sizes) for _ in range(2 * layers))
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(4 * layers))
        widths = {"channels_in": channels, "channels": channels, "channels_out": channels}
        self.mlps = nn.ModuleList(Perceptron(**widths, layers=2, dropout=dropout, norm=False) for _ in range(2 * layers))
        ends = {"channels_in": channels, "channels": classifier, "channels_out": channels_out}
        self.classifier = Perceptron(**ends, layers=2, dropout=dropout, norm=True)
        self.dropout, self.layers = Dropout(dropout), layers

    def forward(self, x: Star) -> Tensor:
        nodes = self.project(drop(x.features, 0.0, training=self.training))
        one = torch.ones_like(x.degrees)
        for number in range(0, 2 * self.layers, 2):
            edges = self._step(number, nodes, one, x.sizes, x.node, x.edge)
            nodes = nodes + self._step(number + 1, edges, x.sizes, one, x.edge, x.node)
        return self.classifier(self.dropout(nodes.relu()))

    def _step(self, number: int, rows: Tensor, sizes: Tensor, target: Tensor, reads: Tensor, writes: Tensor) -> Tensor:
        moved = self.dropout(self.attentions[number](self.norms[2 * number](rows), sizes, target, reads, writes))
        return moved + self.dropout(self.mlps[number](self.norms[2 * number + 1](moved)))
