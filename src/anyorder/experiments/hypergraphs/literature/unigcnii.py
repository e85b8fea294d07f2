"""UniGCNII (Huang, Yang, "UniGNN: a unified framework for graph and hypergraph neural networks", IJCAI 2021)."""

from __future__ import annotations

from math import log

from torch import Tensor, nn

from anyorder.experiments.hypergraphs.literature.star import RowsLinear, Star, drop
from anyorder.ops.dropout import Dropout


class UniGCNIINetwork(nn.Module):
    r"""Layers :math:`x \leftarrow ((1 - \beta) I + \beta W)((1 - \alpha) P x + \alpha x^0)`, beta = log(lambda / l + 1).

    .. math:: (P x)_v = d_v^{-1/2} \sum_{e \ni v} d_e^{-1/2} z_e

    with z_e the mean over the nodes of e and d_e the mean of their degrees.
    """

    def __init__(
        self,
        *,
        channels_in: int,
        channels: int,
        channels_out: int,
        layers: int,
        alpha: float,
        lambda_: float,
        dropout: float,
        input_dropout: float,
    ) -> None:
        super().__init__()
        self.project = RowsLinear(channels_in, channels)
        self.layers = nn.ModuleList(nn.Linear(channels, channels, bias=False) for _ in range(layers))
        self.head = nn.Linear(channels, channels_out)
        self.alpha, self.lambda_, self.input_dropout = alpha, lambda_, input_dropout
        self.dropout = Dropout(dropout)

    def forward(self, x: Star) -> Tensor:
        degrees = x.degrees.to(self.head.weight.dtype).unsqueeze(1)
        of_edges = x.to_edges(degrees).rsqrt()
        rows = self.project(drop(x.features, self.input_dropout, training=self.training)).relu()
        start = rows
        for number, layer in enumerate(self.layers, 1):
            rows = self.dropout(rows)
            moved = degrees.sqrt() * x.to_nodes(of_edges * x.to_edges(rows))  # d^-1/2 times a sum: d^1/2 times a mean
            mixed = (1 - self.alpha) * moved + self.alpha * start
            beta = log(self.lambda_ / number + 1)
            rows = ((1 - beta) * mixed + beta * layer(mixed)).relu()
        return self.head(self.dropout(rows))
