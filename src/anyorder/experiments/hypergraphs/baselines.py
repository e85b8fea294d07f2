"""Node classifiers on hypergraphs: hypergraph convolution (with attention), GCN on the clique expansion, MLP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyorder.experiments.hypergraphs.data import Hypergraph
from anyorder.extras import require
from anyorder.layouts.neighbours import Neighbours
from anyorder.layouts.transfer import Transferable

Pairs = Literal["count", "mean"]


@dataclass(frozen=True, eq=False)
class Incidences(Transferable):
    """A hypergraph as pairs (node, edge), with node features: what the networks here take.

    ``node_scale`` and ``edge_scale`` are the coefficients of the network that it was prepared for.
    """

    features: Tensor
    nodes: Tensor
    edges: Tensor
    edge_scale: Tensor
    node_scale: Tensor
    nonzero: Tensor
    """Flat positions of the features that are not zero: those of texts are few, and only they need dropout."""

    def dropped(self, share: float) -> Tensor:
        """The features after dropout of training."""
        flat = self.features.reshape(-1)
        kept = functional.dropout(flat[self.nonzero], share)
        return flat.index_copy(0, self.nonzero, kept).reshape(self.features.shape)

    def to_edges(self, rows: Tensor) -> Tensor:
        """H^T x: the sum over the nodes of each edge."""
        return rows.new_zeros(len(self.edge_scale), rows.shape[1]).index_add(0, self.edges, rows.index_select(0, self.nodes))

    def to_nodes(self, rows: Tensor) -> Tensor:
        """H x: the sum over the edges of each node."""
        return rows.new_zeros(len(self.features), rows.shape[1]).index_add(0, self.nodes, rows.index_select(0, self.edges))


def with_loops(graph: Hypergraph) -> Incidences:
    """Incidences with one more edge {i} for each node i that has none: as is customary, so that each node sees itself.

    ``edge_scale`` is 1 / size: it makes the mean over an edge of a sum.
    """
    alone = graph.members[graph.sizes[graph.edge_of] == 1]
    looped = torch.ones(graph.num_nodes, dtype=torch.bool, device=alone.device).index_fill(0, alone, False)
    loops = looped.nonzero().flatten()
    edges = graph.num_edges + torch.arange(len(loops), device=loops.device)
    sizes = torch.cat([graph.sizes, torch.ones_like(loops)])
    features = node_features(graph)
    return Incidences(
        features,
        torch.cat([graph.members, loops]),
        torch.cat([graph.edge_of, edges]),
        1.0 / sizes.to(torch.float32),
        torch.ones(graph.num_nodes, device=loops.device),
        features.reshape(-1).nonzero().flatten(),
    )


def with_neighbours(graph: Hypergraph, count: int) -> Hypergraph:
    """The hypergraph with one more edge for each node: the node and the ``count`` others with the most similar features."""
    near = Neighbours.build(node_features(graph), count).rows
    edges = torch.cat([torch.arange(graph.num_nodes).unsqueeze(1), near], 1)
    ends = graph.offsets[-1] + edges.shape[1] * torch.arange(1, graph.num_nodes + 1)
    return Hypergraph(
        graph.num_nodes, torch.cat([graph.members, edges.flatten()]), torch.cat([graph.offsets, ends]), graph.node_features
    )


def clique_expansion(graph: Hypergraph, pairs: Pairs = "count") -> Incidences:
    """The coefficients of a GCN on the clique expansion, which is never written out.

    The expansion links i and j with the weight A_ij = sum over the edges e with both of c_e, where c_e = w_e ("count") or
    w_e / (size - 1) ("mean", so that an edge has the same say whatever its size). As A = H c H^T - diag(H c), a product with
    A costs as much as the incidences, not as the pairs: an edge of 2,241 nodes has 5 million of them.
    """
    if pairs not in ("count", "mean"):
        raise ValueError(f"pairs must be 'count' or 'mean', got {pairs!r}")
    features = node_features(graph)
    weights = graph.edge_weights if graph.edge_weights is not None else torch.ones_like(graph.sizes, dtype=torch.float32)
    others = (graph.sizes - 1).to(torch.float32)
    scale = torch.where(others > 0, weights / others.clamp(min=1), 0.0) if pairs == "mean" else weights
    own = scale.new_zeros(graph.num_nodes).index_add(0, graph.members, scale[graph.edge_of])
    degree = own.new_zeros(graph.num_nodes).index_add(0, graph.members, (scale * others)[graph.edge_of])
    # the loop of GCN, 1, less the diagonal of H c H^T, which is not in A
    nodes = torch.stack([(degree + 1).rsqrt(), 1 - own], 1)
    return Incidences(features, graph.members, graph.edge_of, scale, nodes, features.reshape(-1).nonzero().flatten())


def node_features(graph: Hypergraph) -> Tensor:
    """The features of a hypergraph's nodes, which these networks cannot do without."""
    if graph.node_features is None:
        raise ValueError("the nodes of this hypergraph have no features: give them some, such as their degree")
    return graph.node_features


class Pointwise(nn.Module):
    """x W + b for each node by itself."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(channels_in, channels_out)

    def forward(self, rows: Tensor, graph: Incidences) -> Tensor:
        return self.linear(rows)


class CliqueConvolution(nn.Module):
    """A layer of GCN, D^-1/2 (A + I) D^-1/2 x W + b, for the A of ``clique_expansion``."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(channels_in, channels_out)))
        self.bias = nn.Parameter(torch.zeros(channels_out))

    def forward(self, rows: Tensor, graph: Incidences) -> Tensor:
        scale, own = graph.node_scale[:, :1], graph.node_scale[:, 1:]
        rows = scale * (rows @ self.weight)
        linked = graph.to_nodes(graph.edge_scale[:, None] * graph.to_edges(rows)) + own * rows
        return scale * linked + self.bias


class HypergraphConvolution(nn.Module):
    """PyTorch Geometric's HypergraphConv, D^-1 H B^-1 H^T x W; with attention, an edge is the mean of its nodes.

    Weights and features of edges are not used: the operator leaves weights out of its sums, and its attention takes an edge
    for a row of the same channels as a node.
    """

    def __init__(self, channels_in: int, channels_out: int, *, heads: int, concat: bool, dropout: float) -> None:
        super().__init__()
        pyg = require("torch_geometric.nn", "pyg")
        self.heads = heads
        attention = {"use_attention": True, "heads": heads, "concat": concat, "dropout": dropout} if heads else {}
        self.convolution = pyg.HypergraphConv(channels_in, channels_out, **attention)
        self.linear, self.convolution.lin = self.convolution.lin, nn.Identity()  # project first: means of narrow rows

    def forward(self, rows: Tensor, graph: Incidences) -> Tensor:
        rows = self.linear(rows)
        means = graph.edge_scale[:, None] * graph.to_edges(rows) if self.heads else None
        index = torch.stack([graph.nodes, graph.edges])
        return self.convolution(rows, index, hyperedge_attr=means, num_edges=len(graph.edge_scale))


class HypergraphNetwork(nn.Module):
    """Layers with dropout before each and ReLU between them: (node, class)."""

    def __init__(self, layers: Sequence[nn.Module], *, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dropout, self.activation = nn.Dropout(dropout), nn.ReLU()

    def forward(self, graph: Incidences) -> Tensor:
        first, *others = self.layers
        drop = self.training and self.dropout.p > 0
        rows = first(graph.dropped(self.dropout.p) if drop else graph.features, graph)
        for layer in others:
            rows = layer(self.dropout(self.activation(rows)), graph)
        return rows


def build_network(
    layer: Callable[[int, int], nn.Module],
    *,
    num_layers: int,
    channels_in: int,
    channels: int,
    channels_out: int,
    dropout: float,
) -> HypergraphNetwork:
    """A network of equal layers."""
    widths = [channels_in, *[channels] * (num_layers - 1), channels_out]
    return HypergraphNetwork([layer(a, b) for a, b in pairwise(widths)], dropout=dropout)


def attention_network(
    *,
    num_layers: int,
    heads: int,
    attention_dropout: float,
    channels_in: int,
    channels: int,
    channels_out: int,
    dropout: float,
) -> HypergraphNetwork:
    """Hypergraph convolutions with attention: heads side by side, ``channels`` together; one head at the end."""
    if heads < 1 or channels % heads:
        raise ValueError(f"channels must be a multiple of the heads, got {channels} channels and {heads} heads")
    widths = [channels_in, *[channels] * (num_layers - 1)]
    layers = [
        HypergraphConvolution(a, b // heads, heads=heads, concat=True, dropout=attention_dropout)
        for a, b in pairwise(widths)
    ]
    last = HypergraphConvolution(widths[-1], channels_out, heads=1, concat=False, dropout=attention_dropout)
    return HypergraphNetwork([*layers, last], dropout=dropout)
