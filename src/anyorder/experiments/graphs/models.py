"""Models of graphs as configurations: ours and the baselines, for all levels."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import nn

from anyorder.experiments.graphs.batch import GraphInputs
from anyorder.experiments.graphs.goals import Goal
from anyorder.experiments.graphs.positions import position_channels
from anyorder.experiments.graphs.shapes import GraphShapes
from anyorder.layers import Elu, RandomFeatures
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig

Position = Literal["degree", "walk", "laplacian"]


@dataclass(frozen=True)
class GraphModel(ModelConfig):
    """A model of graphs: a network from batches to rows of nodes, and what reads the answers off them."""

    positions: tuple[Position, ...] = ()

    @property
    def order(self) -> Literal[0, 2]:
        """Of the index set that the network takes."""
        return 0

    @property
    def inputs(self) -> GraphInputs:
        return GraphInputs(self.order, self.positions)

    @abstractmethod
    def network(self, shapes: GraphShapes) -> nn.Module:
        """From a `GraphBatch` to rows of nodes, with ``channels_out`` channels."""

    def build(self, shapes: GraphShapes) -> nn.Module:
        from anyorder.experiments.graphs.networks import GraphPredictor, ReadOut

        goal, network = Goal(shapes.goal), self.network(shapes)
        width: int = network.channels_out  # type: ignore[assignment]
        return GraphPredictor(network, ReadOut(shapes, width, goal.channels, **self.read_out), goal)

    @property
    def read_out(self) -> dict[str, Any]:
        return {}


@configurable
@dataclass(frozen=True)
class PairTransformer(GraphModel):
    """Ours: nodes on the diagonal and edges off it, kernel attention over these pairs, an MLP of nodes beside."""

    layers: int | None = None
    """None: 3 for graphs, 2 for nodes and links."""
    channels: int | None = None
    """None: 32 for fewer than 1,000 rows to train on, else 64."""
    heads: int = 4
    head_channels: int = 8
    kernel: Elu | RandomFeatures = field(default_factory=Elu)
    through: Literal["nodes", "pairs"] = "nodes"
    """Layers from pairs to nodes, whose rows make the pairs of the next layer, or from pairs to pairs, which cost more."""
    dropout: float = 0.1
    input_dropout: float = 0.0
    beside: bool = True
    """An MLP that sees each node by itself, whose rows stand beside those of the encoder."""

    @property
    def order(self) -> Literal[0, 2]:
        return 2

    @property
    def read_out(self) -> dict[str, Any]:
        return {"dropout": self.dropout}

    def network(self, shapes: GraphShapes) -> nn.Module:
        from anyorder.experiments.graphs.networks import PairNetwork

        return PairNetwork(
            level=shapes.level,
            channels_in=shapes.channels_in,
            channels_edge=shapes.channels_edge,
            channels_position=position_channels(self.positions),
            laplacian="laplacian" in self.positions,
            through=self.through,
            layers=self.layers or (3 if shapes.level == "graphs" else 2),
            size={
                "channels": self.channels or (32 if shapes.rows < 1_000 else 64),
                "heads": self.heads,
                "head_channels": self.head_channels,
                "kernel": self.kernel,
                "dropout": self.dropout,
            },
            input_dropout=self.input_dropout,
            beside=self.beside,
        )


@configurable
@dataclass(frozen=True)
class GraphMessagePassing(GraphModel):
    """GIN (with features of edges where there are some) and GCN of PyTorch Geometric, or an MLP of each node by itself."""

    convolution: Literal["gin", "gcn", "mlp"] = "gin"
    layers: int = 3
    channels: int = 64
    dropout: float = 0.5
    input_dropout: float = 0.0
    dot: bool = False
    """Links by the product of their ends' rows; otherwise by an MLP of both."""

    @property
    def read_out(self) -> dict[str, Any]:
        return {"dropout": self.dropout, "pooling": "mean" if self.convolution == "gcn" else "sum", "dot": self.dot}

    def network(self, shapes: GraphShapes) -> nn.Module:
        from anyorder.experiments.graphs.baselines import NodeNetwork

        return NodeNetwork(
            self.convolution,
            channels_in=shapes.channels_in + position_channels(self.positions),
            channels_edge=shapes.channels_edge,
            layers=self.layers,
            channels=self.channels,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
        )
