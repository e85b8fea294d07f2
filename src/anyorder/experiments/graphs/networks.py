"""Networks on graphs: ours from pairs to rows of nodes, and what reads answers off rows of nodes."""

from __future__ import annotations

from typing import Literal, TypedDict

import torch
from torch import Tensor, nn

from anyorder.experiments.graphs.batch import GraphBatch
from anyorder.experiments.graphs.goals import Goal
from anyorder.experiments.graphs.links import with_unlinked
from anyorder.experiments.graphs.norms import RowNorm
from anyorder.experiments.graphs.positions import VECTORS
from anyorder.experiments.graphs.shapes import GraphShapes
from anyorder.layers import EncoderLayer, Kernel
from anyorder.layouts import Features
from anyorder.models import Encoder
from anyorder.positions import flip_signs


class LayerSize(TypedDict):
    """The size of an encoder layer."""

    channels: int
    heads: int
    head_channels: int
    kernel: Kernel | None
    dropout: float


class Pairs(nn.Module):
    r"""Order-2 features from rows of nodes: nodes on the diagonal, edges with both their ends off it.

    .. math:: X_{ii} = h_i, \quad X_{ij} = A e_{ij} + B h_i + C h_j
    """

    def __init__(self, channels_edge: int, channels: int) -> None:
        super().__init__()
        self.edges = nn.Linear(max(1, channels_edge), channels)
        self.ends = nn.Linear(channels, 2 * channels, bias=False)

    def forward(self, nodes: Tensor, batch: GraphBatch) -> Features:
        assert batch.index is not None
        first, second = self.ends(nodes).chunk(2, 1)
        edges = batch.pair_x if batch.pair_x.shape[1] else batch.pair_x.new_ones(batch.pairs.shape[1], 1)
        rows = self.edges(edges) + first[batch.pairs[0]] + second[batch.pairs[1]]
        return Features.of_rows(batch.index, torch.cat([nodes, rows]))


class NodeRounds(nn.Module):
    """Rounds from nodes to pairs and by attention back to nodes: the cost of a round is that of one layer from 2 to 1."""

    def __init__(self, channels_edge: int, layers: int, size: LayerSize) -> None:
        super().__init__()
        self.pairs = nn.ModuleList(Pairs(channels_edge, size["channels"]) for _ in range(layers))
        self.layers = nn.ModuleList(EncoderLayer(order_in=2, order_out=1, **size) for _ in range(layers))
        self.norm = nn.LayerNorm(size["channels"])

    def forward(self, nodes: Tensor, batch: GraphBatch) -> Features:
        for pairs, layer in zip(self.pairs, self.layers, strict=True):
            nodes = nodes + layer(pairs(nodes, batch), batch.nodes).rows
        assert batch.nodes is not None
        return Features.of_rows(batch.nodes, self.norm(nodes))


class PairLayers(nn.Module):
    """Encoder layers between pairs."""

    def __init__(self, channels_edge: int, layers: int, size: LayerSize) -> None:
        super().__init__()
        self.pairs = Pairs(channels_edge, size["channels"])
        width = size["channels"]
        self.body = Encoder(order_in=2, orders=(2,) * layers, channels_in=width, channels_out=None, **size)

    def forward(self, nodes: Tensor, batch: GraphBatch) -> Features:
        made: Features = self.body(self.pairs(nodes, batch))
        return made


class PairNetwork(nn.Module):
    """Ours: layers on pairs of nodes, for graphs one more to order 0, and an MLP of nodes beside."""

    def __init__(
        self,
        *,
        level: Literal["graphs", "nodes", "links"],
        channels_in: int,
        channels_edge: int,
        channels_position: int,
        laplacian: bool,
        through: Literal["nodes", "pairs"],
        layers: int,
        size: LayerSize,
        input_dropout: float,
        beside: bool,
    ) -> None:
        super().__init__()
        channels, dropout = size["channels"], size["dropout"]
        self.laplacian, self.drop = laplacian, nn.Dropout(input_dropout)
        self.embed = nn.Linear(channels_in, channels)
        self.positions = nn.Linear(channels_position, channels, bias=False) if channels_position else None
        self.body = (NodeRounds if through == "nodes" else PairLayers)(channels_edge, layers, size)
        order = 1 if through == "nodes" else 2
        last: LayerSize = {**size, "kernel": None}  # a learned query attends by softmax
        self.pool = EncoderLayer(order_in=order, order_out=0, **last) if level == "graphs" else None
        steps = (nn.Linear(channels_in, channels), nn.ReLU(), nn.Dropout(dropout), nn.Linear(channels, channels), nn.ReLU())
        self.beside = nn.Sequential(*steps) if beside else None
        self.channels_out = channels * (1 + beside + (self.pool is not None))

    def forward(self, batch: GraphBatch) -> Tensor:
        dropped = self.drop(batch.x)
        nodes = self.embed(dropped)
        if self.positions is not None:
            nodes = nodes + self.positions(node_positions(batch, flip=self.training and self.laplacian))
        made: Features = self.body(nodes, batch)
        rows = [made.rows[: len(batch.x)]]
        if self.pool is not None:
            rows.append(self.pool(made).rows[batch.graph])
        if self.beside is not None:
            rows.append(self.beside(dropped))
        return torch.cat(rows, 1)


class ReadOut(nn.Module):
    """Answers from rows of nodes: pooled for graphs, each by itself for nodes, two at a time for links."""

    def __init__(
        self,
        shapes: GraphShapes,
        channels: int,
        channels_out: int,
        *,
        dropout: float = 0.0,
        pooling: Literal["sum", "mean", "both"] = "both",
        dot: bool = False,
    ) -> None:
        super().__init__()
        self.level, self.directed, self.pooling = shapes.level, shapes.directed, pooling
        self.dot = dot and self.level == "links" and channels_out == 1
        wide = channels * {"graphs": 2 if pooling == "both" else 1, "nodes": 1, "links": 2 + self.directed}[self.level]
        if self.dot:
            self.head: nn.Module = nn.Linear(channels, channels)
        elif self.level == "nodes":
            self.head = nn.Sequential(nn.Dropout(dropout), nn.Linear(wide, channels_out))
        else:
            norm = RowNorm(wide) if self.level == "graphs" else nn.Identity()
            steps = (norm, nn.Linear(wide, channels), nn.ReLU(), nn.Dropout(dropout), nn.Linear(channels, channels_out))
            self.head = nn.Sequential(*steps)

    def forward(self, nodes: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        if self.level == "nodes":
            return self.head(nodes[batch.rows]), batch.targets
        if self.level == "graphs":
            return self.head(self._pooled(nodes, batch))[batch.rows], batch.targets
        links, targets = with_unlinked(batch, self.directed)
        if self.dot:
            rows = self.head(nodes)
            return (rows[links[0]] * rows[links[1]]).sum(1, keepdim=True), targets
        first, second = nodes[links[0]], nodes[links[1]]
        parts = (first * second, first, second) if self.directed else (first * second, first + second)
        return self.head(torch.cat(parts, 1)), targets

    def _pooled(self, nodes: Tensor, batch: GraphBatch) -> Tensor:
        sums = nodes.new_zeros(batch.num_graphs, nodes.shape[1]).index_add(0, batch.graph, nodes)
        if self.pooling == "sum":
            return sums
        sizes = torch.bincount(batch.graph, minlength=batch.num_graphs).clamp(min=1)[:, None]
        return sums / sizes if self.pooling == "mean" else torch.cat([sums, sums / sizes], 1)


class GraphPredictor(nn.Module):
    """A network on graphs and what is asked of it: (answers, targets)."""

    def __init__(self, network: nn.Module, read_out: ReadOut, goal: Goal) -> None:
        super().__init__()
        self.network, self.read_out, self.goal = network, read_out, goal

    def forward(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        out: tuple[Tensor, Tensor] = self.read_out(self.network(batch), batch)
        return out


def node_positions(batch: GraphBatch, *, flip: bool) -> Tensor:
    """The positions of a batch; the signs of its Laplacian vectors, which stand last, at random if asked."""
    assert batch.positions is not None
    if not flip:
        return batch.positions
    rest, vectors = batch.positions[:, :-VECTORS], batch.positions[:, -VECTORS:]
    return torch.cat([rest, flip_signs(vectors, batch.graph, batch.num_graphs)], 1)
