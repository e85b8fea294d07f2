"""ED-HNN (Wang, Yang, Liu, Wang, Li, "Equivariant hypergraph diffusion neural operators", ICLR 2023)."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from anyorder.experiments.hypergraphs.literature.star import Perceptron, RowsLinear, Star, drop
from anyorder.ops.dropout import Dropout

INPUT_DROPOUT = 0.2


class Messages(nn.Module):
    r"""The mean over the edges of a node of :math:`\rho(x_v, z_e)`, an MLP of one hidden layer.

    The first map is a sum of one of nodes and one of edges, and the last one goes after the mean, with which it commutes:
    incidences cost an addition, a ReLU and a LayerNorm each. No ``rho``: the mean of z_e itself.
    """

    def __init__(self, *, channels: int, layers: int, norm: bool) -> None:
        super().__init__()
        if layers not in (0, 1, 2):
            raise ValueError(f"the message of ED-HNN has 0, 1 or 2 layers here, got {layers}")
        self.of_node = nn.Linear(channels, channels) if layers else None
        self.of_edge = nn.Linear(channels, channels, bias=False) if layers else None
        self.norm = nn.LayerNorm(channels) if norm and layers == 2 else nn.Identity()
        self.last = nn.Linear(channels, channels) if layers == 2 else None

    def forward(self, nodes: Tensor, edges: Tensor, x: Star) -> Tensor:
        if self.of_node is None or self.of_edge is None:
            return x.to_nodes(edges)
        ours, theirs = self.of_node(nodes), self.of_edge(edges)
        if self.last is None:
            return ours + x.to_nodes(theirs)
        messages = self.norm((ours.index_select(0, x.node) + theirs.index_select(0, x.edge)).relu())
        sums = nodes.new_zeros(len(nodes), messages.shape[1]).index_add(0, x.node, messages)
        return self.last(sums / x.degrees.unsqueeze(1).to(sums.dtype))


class EDHNNetwork(nn.Module):
    r"""Diffusion steps that share their weights, with means for the sums of the paper, as it was published to run.

    .. math:: z_e = \sum_{v \in e} \phi(x_v), \quad x_v \leftarrow \psi((1 - a) \sum_{e \ni v} \rho(x_v, z_e) + a x^0_v)
    """

    def __init__(
        self,
        *,
        channels_in: int,
        channels: int,
        channels_out: int,
        layers: int,
        mlp_layers: tuple[int, int, int],
        restart: float,
        dropout: float,
        classifier: int,
        classifier_layers: int,
        norm: bool,
    ) -> None:
        """``mlp_layers`` are those of phi, rho and psi."""
        super().__init__()
        first, second, third = mlp_layers
        widths: dict[str, Any] = {
            "channels_in": channels,
            "channels": channels,
            "channels_out": channels,
            "dropout": dropout,
            "norm": norm,
        }
        self.project = RowsLinear(channels_in, channels)
        self.phi, self.psi = Perceptron(layers=first, **widths), Perceptron(layers=third, **widths)
        self.rho = Messages(channels=channels, layers=second, norm=norm)
        ends = {"channels_in": channels, "channels": classifier, "channels_out": channels_out}
        self.classifier = Perceptron(**ends, layers=classifier_layers, dropout=dropout, norm=norm)
        self.layers, self.restart, self.dropout = layers, restart, Dropout(dropout)

    def forward(self, x: Star) -> Tensor:
        rows = self.project(drop(x.features, INPUT_DROPOUT, training=self.training)).relu()
        start = rows
        for _ in range(self.layers):
            rows = self.dropout(rows)
            edges = x.to_edges(self.phi(rows))
            mixed = (1 - self.restart) * self.rho(rows, edges, x) + self.restart * start
            rows = self.psi(mixed).relu()
        return self.classifier(self.dropout(rows))
