"""Networks that others use on graphs: GIN, GCN, and an MLP that sees each node by itself."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from anyorder.experiments.graphs.batch import GraphBatch
from anyorder.experiments.graphs.norms import RowNorm
from anyorder.extras import require


class NodeNetwork(nn.Module):
    """Layers with BatchNorm (GIN), ReLU and dropout; the rows of the last one."""

    def __init__(
        self,
        kind: Literal["gin", "gcn", "mlp"],
        *,
        channels_in: int,
        channels_edge: int,
        layers: int,
        channels: int,
        dropout: float,
        input_dropout: float,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise ValueError(f"a model needs at least one layer, got {layers}")
        self.kind, self.channels_out = kind, channels
        self.with_edges = kind == "gin" and channels_edge > 0
        widths = [channels_in, *[channels] * layers]
        pairs = list(pairwise(widths))
        self.layers = nn.ModuleList(_layer(kind, a, b, channels_edge) for a, b in pairs)
        self.norms = nn.ModuleList(RowNorm(channels) if kind == "gin" else nn.Identity() for _ in pairs)
        self.drop_inputs, self.dropout = nn.Dropout(input_dropout), nn.Dropout(dropout)

    def forward(self, batch: GraphBatch) -> Tensor:
        rows = batch.x if batch.positions is None else torch.cat([batch.x, batch.positions], 1)
        rows = self.drop_inputs(rows)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            if self.kind == "mlp":
                rows = layer(rows)
            elif self.with_edges:
                rows = layer(rows, batch.pairs, batch.pair_x)
            else:
                rows = layer(rows, batch.pairs)
            rows = self.dropout(norm(rows).relu())
        return rows


def _layer(kind: str, channels_in: int, channels: int, channels_edge: int) -> nn.Module:
    if kind == "mlp":
        return nn.Linear(channels_in, channels)
    pyg = require("torch_geometric.nn", "pyg")
    if kind == "gcn":
        return pyg.GCNConv(channels_in, channels)
    inner = nn.Sequential(nn.Linear(channels_in, channels), RowNorm(channels), nn.ReLU(), nn.Linear(channels, channels))
    if channels_edge:
        return pyg.GINEConv(inner, train_eps=True, edge_dim=channels_edge)
    return pyg.GINConv(inner, train_eps=True)
