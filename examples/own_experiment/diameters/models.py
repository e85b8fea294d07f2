"""From a set of points (order 1) to one number (order 0): ours, and equivariant linear layers."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from anyorder import Encoder, EquivariantMLP
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig
from anyorder.training.shapes import Shapes


@dataclass(frozen=True)
class PointShapes(Shapes):
    """What a model must know of the data."""

    channels: int


@configurable
@dataclass(frozen=True)
class PointEncoder(ModelConfig):
    """Encoder layers on the points, the last one pools them."""

    layers: int = 2
    channels: int = 32
    heads: int = 4
    head_channels: int = 8

    def build(self, shapes: PointShapes) -> nn.Module:
        return Encoder(
            order_in=1,
            orders=(1,) * (self.layers - 1) + (0,),
            channels_in=shapes.channels,
            channels=self.channels,
            channels_out=1,
            heads=self.heads,
            head_channels=self.head_channels,
        )


@configurable
@dataclass(frozen=True)
class PointMLP(ModelConfig):
    """Equivariant linear layers with ReLU."""

    layers: int = 2
    channels: int = 32

    def build(self, shapes: PointShapes) -> nn.Module:
        orders = (1,) * (self.layers - 1) + (0,)
        widths = {"channels_in": shapes.channels, "channels": self.channels, "channels_out": 1}
        return EquivariantMLP(order_in=1, orders=orders, reduce="mean", **widths)
