"""Attention on hypergraphs that moves rows and leaves them as they are: few weights for few labels, more for many."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from anyorder.layers.kernels import FeatureKernel, Kernel
from anyorder.layers.module import check_positive
from anyorder.layers.named_kernels import linear_kernel_of
from anyorder.layouts.incidence import IncidenceSet
from anyorder.models.hypergraph import SizeModulation
from anyorder.ops.dropout import Dropout
from anyorder.ops.sparse_matrix import SparseMatrix
from anyorder.saving import SavedModule

Alike = Callable[[Tensor], Tensor]
"""The weighted mean of the rows like each row: ``Neighbours``, or the same as a sparse matrix."""


class Gathering(nn.Module):
    r"""Rows gather others along incidences, :math:`y_e = \sum_{v \in e} \alpha_{ev} x_v`; a head has a part of the channels.

    .. math:: \alpha_{ev} \propto \sum_m \phi_m(q_e) \phi_m(k_v)

    A weight is a sum over features of products of an edge's and a node's part. So the sums over edges are one product of
    the incidence matrix with the rows weighted by each feature, and no incidence has a row of its own. The weights start
    equal: keys are all the same until training tells them apart, at a pace that ``gate`` sets. It is a learned scale of the
    keys: where it starts small, few labels cannot teach attention what chance put together.
    """

    directions: Tensor | None

    def __init__(self, *, channels: int, heads: int, query_channels: int, kernel: FeatureKernel, gate: float = 1.0) -> None:
        super().__init__()
        self.heads, self.kernel = heads, kernel
        self.gate = nn.Parameter(torch.full((heads, 1), gate))
        self.norm = nn.LayerNorm(channels, elementwise_affine=False)
        self.query, self.key = nn.Linear(channels, heads * query_channels), nn.Linear(channels, heads * query_channels)
        for weight in self.key.parameters():
            nn.init.zeros_(weight)
        self.register_buffer("directions", kernel.draw(query_channels))

    def forward(self, asks: Tensor, rows: Tensor, incidence: SparseMatrix) -> Tensor:
        """``incidence`` has 1 where a row of ``asks`` reads one of ``rows``; who reads none gets zeros."""
        features = self.kernel.feature_map(self.directions)
        query = features(self._heads(self.query(self.norm(asks))))
        key = features(self.gate * self._heads(self.key(self.norm(rows))))
        value = self._heads(rows)
        weighted = key.unsqueeze(3) * value.unsqueeze(2)
        both = incidence(torch.cat([weighted.flatten(1), key.flatten(1)], 1))
        sums, totals = both.split([weighted.shape[1:].numel(), key.shape[1:].numel()], 1)
        found = (query.unsqueeze(3) * sums.unflatten(1, weighted.shape[1:])).sum(2)
        norm = (query * totals.unflatten(1, key.shape[1:])).sum(2)
        return (found / norm.clamp(min=torch.finfo(norm.dtype).tiny).unsqueeze(2)).flatten(1)

    def _heads(self, rows: Tensor) -> Tensor:
        return rows.unflatten(1, (self.heads, -1))


class Update(nn.Module):
    """A row and an MLP of it, which is zero until training finds a use for it."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.mlp = nn.Sequential(nn.Linear(channels, channels), nn.GELU(), Dropout(dropout), nn.Linear(channels, channels))
        for weight in self.mlp[3].parameters():
            nn.init.zeros_(weight)

    def forward(self, rows: Tensor) -> Tensor:
        return rows + self.mlp(self.norm(rows))


class Propagation(nn.Module):
    r"""A node keeps a share of its row and takes shares from its hyperedges and from the nodes like it.

    .. math:: y_v = a_0 x_v + a_1 \sum_{e \ni v} \alpha_{ve} \sum_{u \in e} \alpha_{eu} x_u + a_2 \sum_u s_{uv} x_u

    The shares are learned and sum to 1; ``keep`` is a_0 at the start. A node in no hyperedge divides a_1 among the others.
    With ``update``, a hyperedge's row is scaled by its size and goes through an MLP, as a node's new row does.
    """

    def __init__(
        self,
        *,
        channels: int,
        heads: int,
        kernel: FeatureKernel,
        keep: float,
        query_channels: int = 4,
        gate: float = 1.0,
        update: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 < keep < 1:
            raise ValueError(f"keep must lie between 0 and 1, got {keep}")
        sizes = {"channels": channels, "heads": heads, "query_channels": query_channels}
        self.to_edges, self.to_nodes = (Gathering(**sizes, kernel=kernel, gate=gate) for _ in range(2))
        self.shares = nn.Parameter(torch.tensor([keep, 0.75 * (1 - keep), 0.25 * (1 - keep)]).log())
        self.modulate = SizeModulation(channels) if update else None
        self.updates = nn.ModuleList(Update(channels, dropout) for _ in range(2 if update else 0))

    def forward(
        self,
        nodes: Tensor,
        incidence: IncidenceSet,
        alike: Alike | None = None,
        of_edges: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> Tensor:
        """``of_edges`` is added to what hyperedges gather: their own features. A weight counts as so many hyperedges."""
        of_edge, of_node = both_ways(incidence, weights)
        means = of_edge(nodes) / incidence.sizes.clamp(min=1).unsqueeze(1).to(nodes.dtype)
        edges = self.to_edges(means, nodes, of_edge)
        edges = edges if of_edges is None else edges + of_edges
        if self.modulate is not None:
            edges = self.updates[0](self.modulate(edges, incidence.sizes))
        parts = [nodes, self.to_nodes(nodes, edges, of_node)]
        if alike is not None:
            parts.append(alike(nodes))
        mixed = self._mixed(parts, incidence.by_node.pointer.diff() == 0)
        return self.updates[1](mixed) if self.modulate is not None else mixed

    def _mixed(self, parts: list[Tensor], alone: Tensor) -> Tensor:
        """Shares of the parts; nodes ``alone`` have nothing in the second."""
        out = torch.zeros(len(alone), len(parts), dtype=torch.bool, device=alone.device)
        out[:, 1] = alone
        shares = self.shares[: len(parts)].expand(out.shape).masked_fill(out, -torch.inf).softmax(1)
        return torch.stack([share.unsqueeze(1) * part for share, part in zip(shares.unbind(1), parts, strict=True)]).sum(0)


def both_ways(incidence: IncidenceSet, weights: Tensor | None = None) -> tuple[SparseMatrix, SparseMatrix]:
    """The incidence matrices (edge, node) and (node, edge), which has ``weights`` of edges, from what is sorted already."""
    i, values = incidence, torch.ones(len(incidence.node), device=incidence.node.device)
    places = []
    for first, second in ((i.by_edge, i.by_node), (i.by_node, i.by_edge)):
        rank = torch.empty_like(first.rows)
        rank[first.rows] = torch.arange(len(rank), device=rank.device)
        places.append((i.edge[first.rows], i.node[first.rows], first.pointer, second.pointer, rank[second.rows]))
    (edges, nodes, *pointers), (edges_, nodes_, *pointers_) = places
    back = values if weights is None else weights[edges_]
    return SparseMatrix(edges, nodes, values, *pointers), SparseMatrix(nodes_, edges_, back, *pointers_)


class PropagationEncoder(SavedModule):
    """Node features of a hypergraph, dense or sparse, and perhaps features of its edges, to one row per node.

    As many linear maps as propagations, or two: the last one, to the output, is after the last propagation, the others are
    before one, so that two layers have no more weights than a perceptron of two layers and the attention; ``update`` adds
    an MLP to every hyperedge and node of a layer.

    >>> incidence = IncidenceSet.build(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 1, 1]), num_nodes=3, num_edges=2)
    >>> model = PropagationEncoder(channels_in=4, channels=8, channels_out=2, layers=2, heads=2)
    >>> model(torch.randn(3, 4), incidence).shape
    torch.Size([3, 2])

    Args:
        channels_in, channels, channels_out: widths of the input, the layers and the output.
        layers: number of propagations.
        heads: number of heads of attention.
        dropout: share that is dropped in training.
        keep: the share of its own row that a node keeps at the start.
        kernel: how queries and keys are compared, in linear time: a value or a name (default: ``Elu()``).
        query_channels: width of the queries and keys of a head.
        gate: scale of keys at the start: how fast attention learns to tell them apart.
        update: an MLP for every hyperedge and node of a layer.
        edge_channels_in: width of features of edges; 0 where they have none.
    """

    def __init__(
        self,
        *,
        channels_in: int,
        channels: int,
        channels_out: int,
        layers: int,
        heads: int,
        dropout: float = 0.0,
        keep: float = 0.8,
        kernel: Kernel | str | None = None,
        query_channels: int = 4,
        gate: float = 1.0,
        update: bool = False,
        edge_channels_in: int = 0,
    ) -> None:
        super().__init__()
        check_positive(channels_in=channels_in, channels=channels, channels_out=channels_out, layers=layers, heads=heads)
        check_positive(query_channels=query_channels)
        if channels % heads:
            raise ValueError(f"channels must be a multiple of the heads, got {channels} channels and {heads} heads")
        widths = [channels_in, *[channels] * max(1, layers - 1), channels_out]
        self.weights = nn.ParameterList(nn.init.xavier_uniform_(torch.empty(a, b)) for a, b in pairwise(widths))
        self.biases = nn.ParameterList(torch.zeros(width) for width in [*[channels] * (layers - 1), channels_out])
        sizes: dict[str, Any] = {"channels": channels, "heads": heads, "query_channels": query_channels}
        options: dict[str, Any] = {"kernel": linear_kernel_of(kernel), "keep": keep, "gate": gate, "update": update}
        self.layers = nn.ModuleList(Propagation(**sizes, **options, dropout=dropout) for _ in range(layers))
        self.project_edges = nn.Linear(edge_channels_in, channels) if edge_channels_in else None
        self.dropout = Dropout(dropout)

    def forward(
        self,
        features: Tensor | SparseMatrix,
        incidence: IncidenceSet,
        alike: Alike | None = None,
        edge_features: Tensor | None = None,
        edge_weights: Tensor | None = None,
    ) -> Tensor:
        of_edges = self._of_edges(edge_features)
        *between, last = self.layers
        first, *others, head = self.weights
        rows = self._dropped(features) @ first
        for layer, weight, bias in zip(between, [*others, None], self.biases, strict=False):
            rows = self.dropout((layer(rows, incidence, alike, of_edges, edge_weights) + bias).relu())
            rows = rows if weight is None else rows @ weight
        return last(rows, incidence, alike, of_edges, edge_weights) @ head + self.biases[-1]

    def _dropped(self, features: Tensor | SparseMatrix) -> Tensor | SparseMatrix:
        if isinstance(features, SparseMatrix):
            return features.dropped(self.dropout.p, training=self.training)
        dropped: Tensor = self.dropout(features)
        return dropped

    def _of_edges(self, edge_features: Tensor | None) -> Tensor | None:
        if (edge_features is None) != (self.project_edges is None):
            channels = 0 if self.project_edges is None else self.project_edges.in_features
            given = "none" if edge_features is None else f"some of {edge_features.shape[1]} channels"
            raise ValueError(f"this model takes features of edges with {channels} channels, got {given}")
        return None if self.project_edges is None else self.project_edges(edge_features)
