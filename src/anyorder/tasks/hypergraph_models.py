"""Models that classify the nodes of a hypergraph, as configurations."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor, nn

from anyorder.data.hypergraphs import Hypergraph
from anyorder.layers import Elu, RandomFeatures
from anyorder.layers.hypergraph import HypergraphEncoder
from anyorder.layouts.incidence import IncidenceSet
from anyorder.layouts.transfer import Transferable
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
        from anyorder.baselines.hypergraphs import with_loops

        return with_loops(hypergraph)

    def build(self, shapes: dict[str, Any]) -> nn.Module:
        from anyorder.baselines.hypergraphs import Pointwise, build_network

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
        from anyorder.baselines.hypergraphs import clique_expansion

        return clique_expansion(hypergraph, self.pairs)

    def build(self, shapes: dict[str, Any]) -> nn.Module:
        from anyorder.baselines.hypergraphs import CliqueConvolution, build_network

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

    def prepare(self, hypergraph: Hypergraph) -> Transferable:
        from anyorder.baselines.hypergraphs import with_loops

        return with_loops(hypergraph)

    def build(self, shapes: dict[str, Any]) -> nn.Module:
        from anyorder.baselines.hypergraphs import HypergraphConvolution, attention_network, build_network

        if self.heads:
            return attention_network(heads=self.heads, attention_dropout=self.attention_dropout, **_widths(self, shapes))

        def layer(channels_in: int, channels_out: int) -> nn.Module:
            return HypergraphConvolution(channels_in, channels_out, heads=0, concat=True, dropout=0.0)

        return build_network(layer, **_widths(self, shapes))


@configurable
@dataclass(frozen=True)
class HypergraphTransformer(HypergraphModel):
    """Ours: attention along incidences and over all nodes, with weights generated from the size of a hyperedge."""

    layers: int = 2
    channels: int = 64
    heads: int = 4
    dropout: float = 0.5
    kernel: Elu | RandomFeatures = field(default_factory=Elu)
    with_global: bool = True

    def prepare(self, hypergraph: Hypergraph) -> Transferable:
        incidence = IncidenceSet.build(
            hypergraph.members, hypergraph.edge_of, num_nodes=hypergraph.num_nodes, num_edges=hypergraph.num_edges
        )
        return PreparedIncidence(hypergraph.node_features, incidence)

    def build(self, shapes: dict[str, Any]) -> nn.Module:
        return OnIncidence(
            HypergraphEncoder(
                channels_in=shapes["channels_in"],
                channels=self.channels,
                channels_out=shapes["channels_out"],
                layers=self.layers,
                heads=self.heads,
                head_channels=max(1, self.channels // self.heads),
                dropout=self.dropout,
                kernel=self.kernel,
                global_=self.with_global,
            )
        )


@dataclass(frozen=True, eq=False)
class PreparedIncidence(Transferable):
    """Node features and the incidences of a hypergraph."""

    features: Tensor | None
    incidence: IncidenceSet


class OnIncidence(nn.Module):
    """A model of (features, incidence) that takes both as one value."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: PreparedIncidence) -> Tensor:
        return self.model(x.features, x.incidence)


def _widths(model: HypergraphMLP | CliqueGCN | HypergraphConvNet, shapes: dict[str, Any]) -> dict[str, Any]:
    if model.layers < 1:
        raise ValueError(f"a model needs at least one layer, got {model.layers}")
    channels = {"channels_in": shapes["channels_in"], "channels": model.channels, "channels_out": shapes["channels_out"]}
    return {**channels, "num_layers": model.layers, "dropout": model.dropout}


# The rows of the table, and the models of `anyorder train hypergraph`; one more model is one more entry.
MODELS: dict[str, HypergraphModel] = {
    "MLP": HypergraphMLP(),
    "GCN (clique)": CliqueGCN(),
    "HypergraphConv": HypergraphConvNet(),
    "HypergraphConv (attention)": HypergraphConvNet(heads=8),
    "Ours": HypergraphTransformer(),
}
DEFAULT = "HypergraphConv"
"""The model of a user who names none."""
