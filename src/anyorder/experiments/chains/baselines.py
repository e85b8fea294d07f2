"""Message-passing networks on graphs given as order-2 features (Table 1): GCN, GIN-0 and GAT."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from torch import Tensor, nn

from anyorder.algebra import SetPartition
from anyorder.extras import require
from anyorder.layouts import Features

NODE, EDGE = SetPartition((0, 0)), SetPartition((0, 1))
Convolution = Literal["gcn", "gin", "gat"]


class NodeGNN(nn.Module):
    """Graph convolutions on the diagonal of order-2 features along its off-diagonal entries, ReLU between, a linear head.

    GIN-0 updates with Linear-ReLU-Linear-ReLU-BatchNorm; GAT has 8 heads, which are summed.
    """

    def __init__(
        self, *, convolution: Convolution, num_layers: int, channels_in: int, channels: int, channels_out: int
    ) -> None:
        super().__init__()
        widths = [channels_in] + [channels] * num_layers
        self.layers = nn.ModuleList(_layer(convolution, a, b) for a, b in pairwise(widths))
        self.activation = nn.ReLU()
        self.head = nn.Linear(channels, channels_out)

    def forward(self, x: Features) -> Tensor:
        nodes, edges = x.index.entries(NODE), x.index.entries(EDGE)
        rows = nodes.read(x.rows).new_zeros(x.num_nodes, x.channels).index_copy(0, nodes.tuples[:, 0], nodes.read(x.rows))
        links = edges.tuples.T.contiguous()
        for number, layer in enumerate(self.layers):
            rows = layer(self.activation(rows) if number else rows, links)
        return self.head(rows)[x.index.target(1).tuples[:, 0]]


def _layer(convolution: Convolution, channels_in: int, channels: int) -> nn.Module:
    pyg = require("torch_geometric.nn", "pyg")
    if convolution == "gcn":
        return pyg.GCNConv(channels_in, channels)
    if convolution == "gin":
        update = nn.Sequential(
            nn.Linear(channels_in, channels), nn.ReLU(), nn.Linear(channels, channels), nn.ReLU(), nn.BatchNorm1d(channels)
        )
        return pyg.GINConv(update, eps=0.0)
    if convolution == "gat":
        return SummedHeads(pyg.GATConv(channels_in, channels, heads=8, concat=True), 8)
    raise ValueError(f"convolution must be 'gcn', 'gin' or 'gat', got {convolution!r}")


class SummedHeads(nn.Module):
    """A convolution whose heads are added up."""

    def __init__(self, convolution: nn.Module, heads: int) -> None:
        super().__init__()
        self.convolution, self.heads = convolution, heads

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.convolution(x, edge_index).unflatten(1, (self.heads, -1)).sum(1)
