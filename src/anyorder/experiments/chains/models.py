"""Models that answer with one row per node of a graph: ours, MLP_pi and message passing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor, nn

from anyorder.algebra import Lightweight, Projecting, Sharing
from anyorder.layers import Kernel, Softmax
from anyorder.layouts import Features
from anyorder.models import Encoder, EquivariantMLP
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig
from anyorder.training.shapes import Shapes


@dataclass(frozen=True)
class ChainShapes(Shapes):
    """Features of an entry, and classes of a node."""

    channels_in: int
    channels_out: int


class OnNodes(nn.Module):
    """A model that ends in order 1, as one tensor (node, channel)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Features) -> Tensor:
        return self.model(x).values


@configurable
@dataclass(frozen=True)
class GraphEncoder(ModelConfig):
    """Ours (S), Ours (S, phi): second-order encoder layers, the last from edges to nodes."""

    layers: int = 2
    channels: int = 16
    heads: int = 1
    head_channels: int = 16
    kernel: Kernel = field(default_factory=Softmax)
    coupling: Literal["relaxed", "exact"] | None = None
    classes: Literal["all", "without global", "into nodes"] = "all"
    dropout: float = 0.0
    sharing: Sharing = "none"
    projection_classes: Projecting = "pointwise"
    output_rank: int | None = None
    mlp_classes: Lightweight = "pointwise"
    direct: bool = True
    channels_hidden: int | None = None

    def build(self, shapes: ChainShapes) -> nn.Module:
        return OnNodes(
            Encoder(
                order_in=2,
                orders=(2,) * (self.layers - 1) + (1,),
                channels_in=shapes.channels_in,
                channels=self.channels,
                channels_out=shapes.channels_out,
                heads=self.heads,
                head_channels=self.head_channels,
                kernel=self.kernel,
                coupling=self.coupling,
                classes=self.classes,
                dropout=self.dropout,
                sharing=self.sharing,
                projection_classes=self.projection_classes,
                output_rank=self.output_rank,
                mlp_classes=self.mlp_classes,
                direct=self.direct,
                channels_hidden=self.channels_hidden,
            )
        )


@configurable
@dataclass(frozen=True)
class GraphMLP(ModelConfig):
    """MLP_pi (S): second-order equivariant linear layers with ReLU, the last from edges to nodes."""

    layers: int = 2
    channels: int = 16
    reduce: Literal["sum", "mean"] = "sum"

    def build(self, shapes: ChainShapes) -> nn.Module:
        return OnNodes(
            EquivariantMLP(
                order_in=2,
                orders=(2,) * (self.layers - 1) + (1,),
                channels_in=shapes.channels_in,
                channels=self.channels,
                channels_out=shapes.channels_out,
                reduce=self.reduce,
                start="uniform",  # as torch's layers; two layers are few enough for sums not to explode
            )
        )


@configurable
@dataclass(frozen=True)
class MessagePassing(ModelConfig):
    """GCN, GIN-0 and GAT."""

    convolution: Literal["gcn", "gin", "gat"] = "gcn"
    layers: int = 2
    channels: int = 16

    def build(self, shapes: ChainShapes) -> nn.Module:
        from anyorder.experiments.chains.baselines import NodeGNN

        return NodeGNN(
            convolution=self.convolution,
            num_layers=self.layers,
            channels_in=shapes.channels_in,
            channels=self.channels,
            channels_out=shapes.channels_out,
        )
