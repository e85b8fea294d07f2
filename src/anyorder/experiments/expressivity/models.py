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
from anyorder.layers import EquivariantLinear, Kernel, Softmax
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
    """How many numbers a model answers with for a graph."""

    channels_out: int


@dataclass(frozen=True)
class GraphModel(ModelConfig):
    """A model of whole graphs, and what it reads of them."""

    @abstractmethod
    def inputs(self, graphs: Sequence[Graph], dtype: torch.dtype) -> Any:
        """What the model reads, for some graphs at once."""

    def fitting(self, graphs: Sequence[Graph], most: int) -> tuple[GraphModel | None, int]:
        """The model with at most so many rows for each graph, None if it has more, and how many it has."""
        rows = max(graph.num_nodes for graph in graphs) ** 2
        return self if rows <= most else None, rows


@dataclass(frozen=True)
class OrderModel(GraphModel):
    """What models of tuples have in common: order, which tuples there are, which classes a layer has."""

    order: int = 3
    layers: int = 4
    channels: int = 8
    tuples: Tuples = field(default_factory=DistinctTuples)
    otherwise: tuple[Tuples, ...] = ()
    """What to use in its place where there would be too many tuples, in this order."""
    classes: str = NEIGHBOURHOODS
    sizes: bool = False
    """Whether tuples know how many nodes their graph has: means over tuples can then count."""

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

    def fitting(self, graphs: Sequence[Graph], most: int) -> tuple[GraphModel | None, int]:
        """The model with the first of its rules by which no graph has too many tuples: the same rule for all."""
        indexes = [as_features([graph], torch.float32).index for graph in graphs]
        least = 0
        for rule in (self.tuples, *self.otherwise):
            try:
                count = max(rule.count(index, self.order) for index in indexes)
            except TooManyTuples:
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
    """MLP_pi: equivariant linear layers of one order, then the mean over all tuples."""

    frequency: float | None = None
    """Of a sine in place of the ReLU. A steep one keeps close values apart, as a hash would: for random weights."""
    standardise: bool = True
    """Over the tuples of each graph, which tells graphs apart better but hides how much there is of something."""

    def build(self, shapes: Width) -> nn.Module:
        return StandardisedMLP(
            order=self.order,
            layers=self.layers,
            channels_in=self.channels_in,
            channels=self.channels,
            channels_out=shapes.channels_out,
            classes=self.classes,
            frequency=self.frequency,
            standardise=self.standardise,
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
            orders=self.orders,
            channels_in=self.channels_in,
            channels=self.channels,
            channels_out=shapes.channels_out,
            heads=self.heads,
            head_channels=self.head_channels,
            kernel=self.kernel,
            coupling=self.coupling,
            classes=self.classes,
        )
        with torch.no_grad():
            for weight in (weight for weight in made.parameters() if weight.ndim > 1):
                weight.mul_(self.gain)
        return OnGraphs(made)


@configurable
@dataclass(frozen=True)
class MessagePassingBaseline(GraphModel):
    """GIN (Xu et al. 2019): as strong as 1-WL."""

    layers: int = 4
    channels: int = 16

    def inputs(self, graphs: Sequence[Graph], dtype: torch.dtype) -> Tensor:
        return as_matrices(graphs, dtype)

    def build(self, shapes: Width) -> nn.Module:
        return GraphIsomorphismNetwork(layers=self.layers, channels=self.channels, channels_out=shapes.channels_out)


@configurable
@dataclass(frozen=True)
class MatrixBaseline(GraphModel):
    """PPGN (Maron et al. 2019): products of matrices, as strong as 3-WL."""

    blocks: int = 4
    channels: int = 16
    frequency: float | None = None
    """As for MLP_pi."""

    def inputs(self, graphs: Sequence[Graph], dtype: torch.dtype) -> Tensor:
        return as_matrices(graphs, dtype)

    def build(self, shapes: Width) -> nn.Module:
        return ProvablyPowerfulNetwork(
            blocks=self.blocks, channels=self.channels, channels_out=shapes.channels_out, frequency=self.frequency
        )


class StandardisedMLP(nn.Module):
    """Equivariant linear layers whose channels may have mean 0 and deviation 1 over the tuples of each graph.

    Sums over many tuples are much larger than what they differ by. Without this, all tuples of a graph lie on one side of a
    ReLU, and layers that stay linear tell nothing apart. Mean and deviation are functions of the multiset of rows: they give
    a layer nothing that k-WL does not have.
    """

    def __init__(
        self,
        *,
        order: int,
        layers: int,
        channels_in: int,
        channels: int,
        channels_out: int,
        classes: str,
        frequency: float | None,
        standardise: bool,
    ) -> None:
        super().__init__()
        self.frequency, self.standardise = frequency, standardise
        self.layers = nn.ModuleList(
            EquivariantLinear(
                order_in=order,
                order_out=order,
                channels_in=channels if n else channels_in,
                channels_out=channels,
                classes=classes,
                reduce="sum" if standardise else "mean",
            )
            for n in range(layers)
        )
        self.head = nn.Linear(channels, channels_out)

    def forward(self, x: Features) -> Tensor:
        graph = x.index.entry_graph
        counts = torch.bincount(graph, minlength=x.num_graphs).clamp(min=1).to(x.dtype).unsqueeze(1)
        for layer in self.layers:
            x = layer(x)
            rows = _standardise(x.rows, graph, counts) if self.standardise else x.rows
            x = x.with_rows(torch.relu(rows) if self.frequency is None else torch.sin(self.frequency * rows))
        return self.head(_mean(x.rows, graph, counts))


def _mean(rows: Tensor, graph: Tensor, counts: Tensor) -> Tensor:
    return rows.new_zeros(len(counts), rows.shape[1]).index_add(0, graph, rows) / counts


def _standardise(rows: Tensor, graph: Tensor, counts: Tensor) -> Tensor:
    """Rows by the mean and deviation of their graph; a deviation that is rounding, 1e-6 of the mean, stays small."""
    mean = _mean(rows, graph, counts)
    rows = rows - mean[graph]
    deviation = (_mean(rows * rows, graph, counts) + 1e-24).sqrt()
    return rows / (deviation + 1e-6 * mean.abs())[graph]


class OnGraphs(nn.Module):
    """A model that ends in order 0, as one tensor (graph, channel)."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Features) -> Tensor:
        return self.model(x).rows


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
