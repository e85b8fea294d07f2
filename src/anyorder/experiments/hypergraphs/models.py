"""Models that classify the nodes of a hypergraph, as configurations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from anyorder.experiments.hypergraphs.base import HypergraphModel
from anyorder.experiments.hypergraphs.baselines import node_features
from anyorder.experiments.hypergraphs.data import Hypergraph
from anyorder.experiments.hypergraphs.literature.models import EDHNN, EHNN, AllSet, UniGCNII
from anyorder.experiments.hypergraphs.literature.star import Rows, rows_of
from anyorder.experiments.hypergraphs.sampling import Part, restricted
from anyorder.experiments.hypergraphs.shapes import HypergraphShapes
from anyorder.layers import Elu, RandomFeatures
from anyorder.layouts.incidence import IncidenceSet
from anyorder.layouts.neighbours import Neighbours
from anyorder.layouts.transfer import Transferable
from anyorder.models.propagation import PropagationEncoder
from anyorder.ops.sparse_matrix import SparseMatrix
from anyorder.training.config import configurable


@configurable
@dataclass(frozen=True)
class HypergraphMLP(HypergraphModel):
    """MLP: each node by itself."""

    layers: int = 2
    channels: int = 64
    dropout: float = 0.5

    def prepare(self, hypergraph: Hypergraph) -> Transferable:
        from anyorder.experiments.hypergraphs.baselines import with_loops

        return with_loops(hypergraph)

    def build(self, shapes: HypergraphShapes) -> nn.Module:
        from anyorder.experiments.hypergraphs.baselines import Pointwise, build_network

        return build_network(Pointwise, **_widths(self, shapes))


@configurable
@dataclass(frozen=True)
class CliqueGCN(HypergraphModel):
    """GCN (clique): a graph convolution on the clique expansion."""

    layers: int = 2
    channels: int = 64
    dropout: float = 0.5
    pairs: Literal["count", "mean"] = "count"
    """How much an edge adds to each of its pairs: 1, or 1 / (size - 1)."""

    @property
    def hops(self) -> int:
        return self.layers + 1  # the degrees of nodes that are read

    def prepare(self, hypergraph: Hypergraph) -> Transferable:
        from anyorder.experiments.hypergraphs.baselines import clique_expansion

        return clique_expansion(hypergraph, self.pairs)

    def build(self, shapes: HypergraphShapes) -> nn.Module:
        from anyorder.experiments.hypergraphs.baselines import CliqueConvolution, build_network

        return build_network(CliqueConvolution, **_widths(self, shapes))


@configurable
@dataclass(frozen=True)
class HypergraphConvNet(HypergraphModel):
    """HypergraphConv of PyTorch Geometric; with ``heads``, its attention."""

    layers: int = 2
    channels: int = 64
    dropout: float = 0.5
    heads: int = 0
    attention_dropout: float = 0.0
    """PyTorch Geometric applies it twice, to nodes and to edges: 0.5 costs 25 points on NTU2012."""
    neighbours: int = 0
    """One more edge for each node, with as many others whose features are most like its."""

    def prepare(self, hypergraph: Hypergraph) -> Transferable:
        from anyorder.experiments.hypergraphs.baselines import with_loops, with_neighbours

        return with_loops(with_neighbours(hypergraph, self.neighbours) if self.neighbours else hypergraph)

    def build(self, shapes: HypergraphShapes) -> nn.Module:
        from anyorder.experiments.hypergraphs.baselines import HypergraphConvolution, attention_network, build_network

        if self.heads:
            return attention_network(heads=self.heads, attention_dropout=self.attention_dropout, **_widths(self, shapes))

        def layer(channels_in: int, channels_out: int) -> nn.Module:
            return HypergraphConvolution(channels_in, channels_out, heads=0, concat=True, dropout=0.0)

        return build_network(layer, **_widths(self, shapes))


@configurable
@dataclass(frozen=True)
class HypergraphTransformer(HypergraphModel):
    """Ours: attention that moves rows between nodes and hyperedges of any size, and between nodes alike.

    The only model here that reads features of hyperedges.
    """

    layers: int = 2
    channels: int = 64
    heads: int = 4
    dropout: float = 0.5
    kernel: Elu | RandomFeatures = field(default_factory=Elu)
    query_channels: int = 4
    """Of a query and a key in a head; the cost of attention grows with them."""
    gate: float = 0.05
    """The scale of the keys at the start: how soon attention tells members of a hyperedge apart. Small for few labels."""
    keep: float = 0.5
    """The share of its own row that a node keeps in a layer, at the start of the training."""
    neighbours: int = 20
    """How many nodes with the most similar features a node attends to, in a hyperedge with it or not."""
    update: bool = False
    """An MLP for every hyperedge and node in a layer, and weights generated from the size of a hyperedge."""

    def prepare(self, hypergraph: Hypergraph) -> Transferable:
        return PreparedIncidence.of(hypergraph, self.links(hypergraph))

    def links(self, hypergraph: Hypergraph) -> SparseMatrix | None:
        if not self.neighbours:
            return None
        return hypergraph.once(("alike", self.neighbours), lambda graph: alike_nodes(graph, self.neighbours))

    def prepare_part(self, whole: Hypergraph, part: Part) -> Transferable:
        links = self.links(whole)
        return PreparedIncidence.of(part.graph, None if links is None else restricted(links, part.nodes))

    def build(self, shapes: HypergraphShapes) -> nn.Module:
        return OnIncidence(
            PropagationEncoder(
                channels_in=shapes.channels_in,
                channels=self.channels,
                channels_out=shapes.channels_out,
                layers=self.layers,
                heads=self.heads,
                dropout=self.dropout,
                keep=self.keep,
                kernel=self.kernel,
                query_channels=self.query_channels,
                gate=self.gate,
                update=self.update,
                edge_channels_in=0 if shapes.edges is None else len(shapes.edges.mean),
            )
        )


@dataclass(frozen=True, eq=False)
class PreparedIncidence(Transferable):
    """Node features and incidences of a hypergraph, and what there is besides: nodes alike, features, weights of edges."""

    features: Rows
    incidence: IncidenceSet
    alike: SparseMatrix | None = None
    edge_features: Tensor | None = None
    edge_weights: Tensor | None = None

    @classmethod
    def of(cls, graph: Hypergraph, alike: SparseMatrix | None = None) -> PreparedIncidence:
        members, edges = graph.members, graph.edge_of
        incidence = IncidenceSet.build(members, edges, num_nodes=graph.num_nodes, num_edges=graph.num_edges)
        return cls(rows_of(graph), incidence, alike, graph.edge_features, graph.edge_weights)


def alike_nodes(graph: Hypergraph, count: int) -> SparseMatrix:
    """The nodes with the most similar features, with weights that sum to 1."""
    near, number = Neighbours.build(node_features(graph), count), graph.num_nodes
    rows = torch.arange(number).repeat_interleave(near.rows.shape[1])
    return SparseMatrix.build(rows, near.rows.flatten(), near.weights.flatten(), (number, number))


class OnIncidence(nn.Module):
    """A model of features, incidence and more that takes all as one value."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: PreparedIncidence) -> Tensor:
        return self.model(x.features, x.incidence, x.alike, x.edge_features, x.edge_weights)


def _widths(model: HypergraphMLP | CliqueGCN | HypergraphConvNet, shapes: HypergraphShapes) -> dict[str, Any]:
    if model.layers < 1:
        raise ValueError(f"a model needs at least one layer, got {model.layers}")
    channels = {"channels_in": shapes.channels_in, "channels": model.channels, "channels_out": shapes.channels_out}
    return {**channels, "num_layers": model.layers, "dropout": model.dropout}


# The rows of the table, and the models of `anyorder train hypergraph`; one more model is one more entry.
MODELS: dict[str, HypergraphModel] = {
    "MLP": HypergraphMLP(),
    "GCN (clique)": CliqueGCN(),
    "HypergraphConv": HypergraphConvNet(),
    "HypergraphConv (attention)": HypergraphConvNet(heads=8),
    "HypergraphConv (neighbours)": HypergraphConvNet(neighbours=20),
    "AllDeepSets": AllSet(heads=0),
    "AllSetTransformer": AllSet(),
    "UniGCNII": UniGCNII(),
    "EHNN-Transformer": EHNN(),
    "ED-HNN": EDHNN(),
    "Ours": HypergraphTransformer(),
}
DEFAULT = "Ours"
"""The model of a user who names none."""
