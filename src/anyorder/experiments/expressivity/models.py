"""Models that map graphs to one vector each: MLP_pi and ours at any order, GIN and PPGN."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import torch
from torch import Tensor, nn

from anyorder.experiments.expressivity.baselines import GraphIsomorphismNetwork, ProvablyPowerfulNetwork
from anyorder.experiments.expressivity.graphs import Graph
from anyorder.experiments.expressivity.networks import AnswersAtNodes, NodeMLP, OnGraphs, StandardisedMLP
from anyorder.layers import Kernel, Softmax
from anyorder.layouts import (
    AllTuples,
    ConnectedTuples,
    DistinctTuples,
    Features,
    IndexSet,
    SparseIndexSet,
    TooManyTuples,
    Tuples,
    TuplesWithin,
    lift,
)
from anyorder.models import Encoder
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig
from anyorder.training.shapes import Shapes

for _rule in (AllTuples, DistinctTuples, ConnectedTuples, TuplesWithin):
    configurable(_rule)

NEIGHBOURHOODS = "distinct, match all but one, in place"
"""The classes of k-WL: a tuple itself, and for each axis those that differ from it there."""


@dataclass(frozen=True)
class Width(Shapes):
    """How many numbers a model answers with for a graph, or for each of its nodes."""

    channels_out: int
    per_node: bool = False


@dataclass(frozen=True)
class WholeGraphModel(ModelConfig):
    """A model of whole graphs, and what it reads of them."""

    @abstractmethod
    def inputs(self, graphs: Sequence[Graph], dtype: torch.dtype) -> Any:
        """What the model reads, for some graphs at once."""

    def fitting(self, graphs: Sequence[Graph], most: int) -> tuple[WholeGraphModel | None, int]:
        """The model with at most so many rows for each graph, None if it has more, and how many it has."""
        rows = max(graph.num_nodes for graph in graphs) ** 2
        return self if rows <= most else None, rows


@dataclass(frozen=True)
class OrderModel(WholeGraphModel):
    """What models of tuples have in common: order, which tuples there are, which classes a layer has."""

    order: int = 3
    layers: int = 4
    channels: int = 8
    tuples: Tuples = field(default_factory=DistinctTuples)
    otherwise: tuple[Tuples, ...] = ()
    """What to use in its place where there would be too many tuples, in this order."""
    classes: str = NEIGHBOURHOODS
    sizes: bool = False
    """Whether tuples know how many nodes their graph has: attention, which takes means, can then count."""

    def __post_init__(self) -> None:
        if self.order < 1 or self.layers < 1:
            raise ValueError(f"a model of tuples has an order and layers of at least 1, got {self}")

    def inputs(self, graphs: Sequence[Graph], dtype: torch.dtype) -> Features:
        """Tuples that know which of their pairs are joined; at order 1 nodes know their degree, as they have no pair."""
        made = self._pairs(graphs, dtype)
        if not self.sizes:
            return made
        sizes = torch.tensor([graph.num_nodes for graph in graphs], dtype=dtype) / 10
        return made.with_rows(torch.cat([made.rows, sizes[made.index.entry_graph].unsqueeze(1)], 1))

    def _pairs(self, graphs: Sequence[Graph], dtype: torch.dtype) -> Features:
        sizes = tuple(graph.num_nodes for graph in graphs)
        if self.order == 1:
            degrees = torch.cat([torch.from_numpy(graph.degrees) for graph in graphs]).to(dtype)
            return Features.of_rows(complete_tuples(AllTuples(), 1, sizes), degrees.unsqueeze(1))
        if isinstance(self.tuples, (AllTuples, DistinctTuples)):
            return lift(as_features(graphs, dtype), self.order, complete_tuples(self.tuples, self.order, sizes))
        return lift(as_features(graphs, dtype), self.order, self.tuples)

    def fitting(self, graphs: Sequence[Graph], most: int) -> tuple[WholeGraphModel | None, int]:
        """The model with the first of its rules by which no graph has too many tuples: the same rule for all."""
        indexes = [as_features([graph], torch.float32).index for graph in graphs]
        least = 0
        for rule in (self.tuples, *self.otherwise):
            try:
                count = max(rule.count(index, self.order) for index in indexes)
            except TooManyTuples:
                continue
            if count == 0 and rule is not self.tuples:  # graphs without a clique, say: nothing is left to look at
                continue
            if count <= most:
                return replace(self, tuples=rule), count
            least = min(least or count, count)
        return None, least

    @property
    def channels_in(self) -> int:
        return max(1, self.order * (self.order - 1) // 2) + self.sizes

    @property
    def orders(self) -> tuple[int, ...]:
        return (self.order,) * self.layers + (0,)


@configurable
@dataclass(frozen=True)
class OrderMLP(OrderModel):
    """MLP_pi: equivariant linear layers of one order, then the mean over all tuples, or the sums at each node."""

    frequency: float | None = None
    """Of a sine in place of the ReLU. A steep one keeps close values apart, as a hash would: for random weights."""

    def build(self, shapes: Width) -> nn.Module:
        if shapes.per_node:
            return self._build_per_node(shapes)
        return StandardisedMLP(
            order=self.order,
            layers=self.layers,
            channels_in=self.channels_in,
            channels=self.channels,
            channels_out=shapes.channels_out,
            classes=self.classes,
            frequency=self.frequency,
        )

    def _build_per_node(self, shapes: Width) -> nn.Module:
        if self.frequency is not None:
            raise ValueError(f"sums at nodes take no frequency, which is for random weights: got {self}")
        return NodeMLP(
            order=self.order,
            layers=self.layers,
            channels_in=self.channels_in,
            channels=self.channels,
            channels_out=shapes.channels_out,
            classes=self.classes,
        )


@configurable
@dataclass(frozen=True)
class OrderEncoder(OrderModel):
    """Ours: encoder layers of one order, the last to one vector for the graph."""

    heads: int = 1
    head_channels: int = 8
    kernel: Kernel = field(default_factory=Softmax)
    coupling: Literal["relaxed", "exact"] | None = None
    gain: float = 1.0
    """Weights are drawn so many times as wide: random attention to few tuples rather than to all keeps colours apart."""

    def build(self, shapes: Width) -> nn.Module:
        made = Encoder(
            order_in=self.order,
            orders=self.orders[:-1] if shapes.per_node else self.orders,
            channels_in=self.channels_in,
            channels=self.channels,
            channels_out=None if shapes.per_node else shapes.channels_out,
            heads=self.heads,
            head_channels=self.head_channels,
            kernel=self.kernel,
            coupling=self.coupling,
            classes=self.classes,
        )
        with torch.no_grad():
            for weight in (weight for weight in made.parameters() if weight.ndim > 1):
                weight.mul_(self.gain)
        return AnswersAtNodes(made, self.channels, shapes.channels_out) if shapes.per_node else OnGraphs(made)


@configurable
@dataclass(frozen=True)
class MessagePassingBaseline(WholeGraphModel):
    """GIN (Xu et al. 2019): as strong as 1-WL."""

    layers: int = 4
    channels: int = 16

    def inputs(self, graphs: Sequence[Graph], dtype: torch.dtype) -> Tensor:
        return as_matrices(graphs, dtype)

    def build(self, shapes: Width) -> nn.Module:
        return GraphIsomorphismNetwork(
            layers=self.layers, channels=self.channels, channels_out=shapes.channels_out, per_node=shapes.per_node
        )


@configurable
@dataclass(frozen=True)
class MatrixBaseline(WholeGraphModel):
    """PPGN (Maron et al. 2019): products of matrices, as strong as 3-WL."""

    blocks: int = 4
    channels: int = 16
    frequency: float | None = None
    """As for MLP_pi."""

    def inputs(self, graphs: Sequence[Graph], dtype: torch.dtype) -> Tensor:
        return as_matrices(graphs, dtype)

    def build(self, shapes: Width) -> nn.Module:
        return ProvablyPowerfulNetwork(
            blocks=self.blocks,
            channels=self.channels,
            channels_out=shapes.channels_out,
            frequency=self.frequency,
            per_node=shapes.per_node,
        )


def as_features(graphs: Sequence[Graph], dtype: torch.dtype) -> Features:
    """The edges of some graphs as a batch of order 2 without channels: that they are there says all."""
    sizes = [graph.num_nodes for graph in graphs]
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    tuples = torch.cat([torch.from_numpy(graph.edges) + start for graph, start in zip(graphs, starts, strict=True)])
    node_graph = torch.repeat_interleave(torch.arange(len(graphs)), torch.tensor(sizes))
    index = SparseIndexSet(tuples, num_nodes=sum(sizes), node_graph=node_graph, num_graphs=len(graphs))
    return Features.of_rows(index, torch.zeros(len(tuples), 0, dtype=dtype))


def as_matrices(graphs: Sequence[Graph], dtype: torch.dtype) -> Tensor:
    """(graph, node, node, 2): adjacency and identity, zero beyond a graph's nodes."""
    most = max(graph.num_nodes for graph in graphs)
    made = torch.zeros(len(graphs), most, most, 2, dtype=dtype)
    for place, graph in enumerate(graphs):
        size = graph.num_nodes
        made[place, :size, :size, 0] = torch.from_numpy(graph.adjacency)
        made[place, range(size), range(size), 1] = 1
    return made


@lru_cache(maxsize=2)
def complete_tuples(rule: Tuples, order: int, sizes: tuple[int, ...]) -> IndexSet:
    """The tuples of graphs of these sizes by a rule that asks nothing of edges: kept, with the plans of layers on them."""
    node_graph = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    empty = torch.zeros(0, 2, dtype=torch.int64)
    nodes = SparseIndexSet(empty, num_nodes=sum(sizes), node_graph=node_graph, num_graphs=len(sizes))
    return rule.index_set(nodes, order)
