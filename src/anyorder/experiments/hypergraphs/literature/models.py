"""The networks of the literature as configurations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from anyorder.experiments.hypergraphs.base import HypergraphModel
from anyorder.experiments.hypergraphs.data import Hypergraph
from anyorder.experiments.hypergraphs.shapes import HypergraphShapes
from anyorder.layouts.transfer import Transferable
from anyorder.training.config import configurable


@dataclass(frozen=True)
class OnStar(HypergraphModel):
    """A model that takes the star expansion of a hypergraph, with one more edge {i} for each node i that has none."""

    channels: int = 256
    layers: int = 1
    dropout: float = 0.5

    def prepare(self, hypergraph: Hypergraph) -> Transferable:
        from anyorder.experiments.hypergraphs.literature.star import Star

        return hypergraph.once("star", Star.of)

    def widths(self, shapes: HypergraphShapes) -> dict[str, Any]:
        if self.layers < 1:
            raise ValueError(f"a model needs at least one layer, got {self.layers}")
        ends = {"channels_in": shapes.channels_in, "channels_out": shapes.channels_out}
        return {**ends, "channels": self.channels, "layers": self.layers, "dropout": self.dropout}


@configurable
@dataclass(frozen=True)
class AllSet(OnStar):
    """AllSetTransformer; without ``heads``, AllDeepSets."""

    heads: int = 8
    mlp_layers: int = 2
    classifier: int = 128
    classifier_layers: int = 1

    def build(self, shapes: HypergraphShapes) -> nn.Module:
        from anyorder.experiments.hypergraphs.literature.allset import AllSetNetwork

        options = {"classifier": self.classifier, "classifier_layers": self.classifier_layers}
        return AllSetNetwork(**self.widths(shapes), mlp_layers=self.mlp_layers, heads=self.heads, **options)


@configurable
@dataclass(frozen=True)
class EDHNN(OnStar):
    """ED-HNN."""

    phi_layers: int = 0
    rho_layers: int = 0
    psi_layers: int = 1
    restart: float = 0.0
    """How much of the first row is added in each step."""
    classifier: int = 256
    classifier_layers: int = 1
    norm: bool = True

    def build(self, shapes: HypergraphShapes) -> nn.Module:
        from anyorder.experiments.hypergraphs.literature.edhnn import EDHNNetwork

        return EDHNNetwork(
            **self.widths(shapes),
            mlp_layers=(self.phi_layers, self.rho_layers, self.psi_layers),
            restart=self.restart,
            classifier=self.classifier,
            classifier_layers=self.classifier_layers,
            norm=self.norm,
        )


@configurable
@dataclass(frozen=True)
class UniGCNII(OnStar):
    """UniGCNII."""

    layers: int = 2
    alpha: float = 0.1
    """How much of the first row is added in each layer."""
    lambda_: float = 0.5
    """How much of a layer is its weight matrix, less in deeper layers."""
    input_dropout: float = 0.5

    @property
    def hops(self) -> int:
        return self.layers + 1  # the degrees of nodes that are read

    def build(self, shapes: HypergraphShapes) -> nn.Module:
        from anyorder.experiments.hypergraphs.literature.unigcnii import UniGCNIINetwork

        options: dict[str, Any] = {"alpha": self.alpha, "lambda_": self.lambda_, "input_dropout": self.input_dropout}
        return UniGCNIINetwork(**self.widths(shapes), **options)


@configurable
@dataclass(frozen=True)
class EHNN(OnStar):
    """EHNN-Transformer."""

    heads: int = 8
    hyper_layers: int = 3
    hyper_dropout: float = 0.2
    classifier: int = 64

    def build(self, shapes: HypergraphShapes) -> nn.Module:
        from anyorder.experiments.hypergraphs.literature.ehnn import EHNNetwork

        options: dict[str, Any] = {
            "hyper_layers": self.hyper_layers,
            "hyper_dropout": self.hyper_dropout,
            "classifier": self.classifier,
        }
        return EHNNetwork(**self.widths(shapes), heads=self.heads, **options)
