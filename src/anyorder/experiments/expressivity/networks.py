"""Networks on tuples that answer for graphs, or for each of their nodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anyorder.experiments.expressivity.baselines import NODES
from anyorder.layers import EquivariantLinear
from anyorder.layouts import Features


class StandardisedMLP(nn.Module):
    """Equivariant linear layers whose channels have mean 0 and deviation 1 over the tuples of each graph.

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
    ) -> None:
        super().__init__()
        self.frequency = frequency
        self.layers = nn.ModuleList(
            EquivariantLinear(
                order_in=order,
                order_out=order,
                channels_in=channels if n else channels_in,
                channels_out=channels,
                classes=classes,
            )
            for n in range(layers)
        )
        self.head = nn.Linear(channels, channels_out)

    def forward(self, x: Features) -> Tensor:
        graph = x.index.entry_graph
        counts = torch.bincount(graph, minlength=x.num_graphs).clamp(min=1).to(x.dtype).unsqueeze(1)
        for layer in self.layers:
            x = layer(x)
            rows = _standardise(x.rows, graph, counts)
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


class NodeMLP(nn.Module):
    r"""Equivariant linear layers that count: sums over tuples, scaled by one number for all graphs.

    .. math:: x \leftarrow relu(relu(BN(x W + L(x) / 10)) V)

    .. math:: y_v = \sum_{layers} head(\sum_{i: i_1 = v} x_i / 10^{k - 1})

    with L the layer of the chosen classes. Nodes read the tuples that they are first in. Batch norm is over all tuples of a
    batch: the same map for all graphs, so that sums still count. Without it training takes many times as long.
    """

    def __init__(self, *, order: int, layers: int, channels_in: int, channels: int, channels_out: int, classes: str) -> None:
        super().__init__()
        widths = [channels_in, *[channels] * (layers - 1)]
        self.own = nn.ModuleList(nn.Linear(width, channels) for width in widths)
        self.sums = nn.ModuleList(
            EquivariantLinear(order_in=order, order_out=order, channels_in=width, channels_out=channels, classes=classes)
            for width in widths
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(channels) for _ in widths)
        self.inner = nn.ModuleList(nn.Linear(channels, channels) for _ in widths)
        self.heads = nn.ModuleList(nn.Linear(channels, channels_out) for _ in widths)

    def forward(self, x: Features) -> Tensor:
        answers = []
        parts = zip(self.own, self.sums, self.norms, self.inner, self.heads, strict=True)
        for own, sums, norm, inner, head in parts:
            hidden = torch.relu(norm(own(x.rows) + sums(x.with_rows(x.rows / NODES)).rows))
            x = x.with_rows(torch.relu(inner(hidden)))
            answers.append(head(sums_at_nodes(x)))
        return torch.stack(answers).sum(0)


class AnswersAtNodes(nn.Module):
    """A model of tuples, read at each node by an MLP of the sums over the tuples that it is first in."""

    def __init__(self, model: nn.Module, channels: int, channels_out: int) -> None:
        super().__init__()
        self.model = model
        self.head = nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, channels_out))

    def forward(self, x: Features) -> Tensor:
        return self.head(sums_at_nodes(self.model(x)))


def sums_at_nodes(x: Features) -> Tensor:
    """(node, channel): the sum over the tuples that a node is first in, of about one row's size."""
    if x.order == 1:
        return x.rows
    sums = x.rows.new_zeros(x.num_nodes, x.channels).index_add(0, x.index.tuples[:, 0], x.rows)
    return sums / NODES ** (x.order - 1)
