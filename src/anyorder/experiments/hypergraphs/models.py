"""Models that classify the nodes of a hypergraph, as configurations."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from torch import Tensor, nn

from anyorder.experiments.hypergraphs.data import Hypergraph
from anyorder.experiments.hypergraphs.shapes import HypergraphShapes
from anyorder.layers import Elu, RandomFeatures
from anyorder.layouts.incidence import IncidenceSet
from anyorder.layouts.neighbours import Neighbours
from anyorder.layouts.transfer import Transferable
from anyorder.models.hypergraph import HypergraphEncoder
from anyorder.models.propagation import PropagationEncoder
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig


@dataclass(frozen=True)
class HypergraphModel(ModelConfig):
    """A model of hypergraphs: ``build`` makes a module that takes what ``prepare`` gives and answers (node, class)."""

    @abstractmethod
    def prepare(self, hypergraph: Hypergraph) -> Transferable:
        """What the module takes: everything that follows from the hypergraph alone, worked out once."""


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
    """Ours: attention along incidences and over all nodes, with weights generated from the size of a hyperedge.

    The only model here that reads features of hyperedges.
    """

    layers: int = 2
    channels: int = 64
    heads: int = 4
    dropout: float = 0.5
    kernel: Elu | RandomFeatures = field(default_factory=Elu)
    with_global: bool = True

    def prepare(self, hypergraph: Hypergraph) -> Transferable:
        prepared = PreparedIncidence.of(hypergraph)
        return prepared if hypergraph.edge_features is None else replace(prepared, beside=(hypergraph.edge_features,))

    def build(self, shapes: HypergraphShapes) -> nn.Module:
        return OnIncidence(
            HypergraphEncoder(
                channels_in=shapes.channels_in,
                channels=self.channels,
                channels_out=shapes.channels_out,
                layers=self.layers,
                heads=self.heads,
                head_channels=max(1, self.channels // self.heads),
                dropout=self.dropout,
                kernel=self.kernel,
                global_=self.with_global,
                edge_channels_in=0 if shapes.edges is None else len(shapes.edges.mean),
            )
        )


@configurable
@dataclass(frozen=True)
class HypergraphPropagation(HypergraphModel):
    """Ours (light): attention that moves rows along incidences and between nodes alike, with few weights."""

    layers: int = 2
    channels: int = 64
    heads: int = 4
    dropout: float = 0.5
    kernel: Elu | RandomFeatures = field(default_factory=Elu)
    keep: float = 0.8
    """The share of its own row that a node keeps in a layer, at the start of the training."""
    neighbours: int = 20
    """How many nodes with the most similar features a node attends to, in a hyperedge with it or not."""

    def prepare(self, hypergraph: Hypergraph) -> Transferable:
        return PreparedIncidence.of(hypergraph, self.neighbours)

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
            )
        )


@dataclass(frozen=True, eq=False)
class PreparedIncidence(Transferable):
    """Node features and the incidences of a hypergraph, and what a model takes besides: nodes alike, features of edges."""

    features: Tensor | None
    incidence: IncidenceSet
    beside: tuple[Neighbours | Tensor, ...] = ()

    @classmethod
    def of(cls, graph: Hypergraph, neighbours: int = 0) -> PreparedIncidence:
        members, edges, features = graph.members, graph.edge_of, graph.node_features
        incidence = IncidenceSet.build(members, edges, num_nodes=graph.num_nodes, num_edges=graph.num_edges)
        alike = (Neighbours.build(features, neighbours),) if neighbours and features is not None else ()
        return cls(features, incidence, alike)


class OnIncidence(nn.Module):
    """A model of features, incidence and more that takes all as one value."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: PreparedIncidence) -> Tensor:
        return self.model(x.features, x.incidence, *x.beside)


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
    "Ours": HypergraphTransformer(),
    "Ours (light)": HypergraphPropagation(),
}
DEFAULT = "Ours (light)"
"""The model of a user who names none."""
