"""Encoder layers on pairs of nodes with the call of a PyTorch Geometric convolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anyorder.algebra import Projecting, Selection
from anyorder.layers import EncoderLayer
from anyorder.layers.named_kernels import Coupling, Kernels
from anyorder.layouts import Features
from anyorder.pyg.pairs import PairSet
from anyorder.saving import SavedModule


class PairConv(SavedModule):
    """Attention between all nodes and edges of a graph, 2 -> 2: ``(x, edge_index, edge_attr, batch) -> (x, edge_attr)``.

    Every node has a row, with edges or without. Self loops and edges that occur twice are allowed: their features are
    added. Layers that are given the same ``edge_index`` share one index set and its plans.

    >>> conv = PairConv(8, heads=2)
    >>> x, edge_attr = conv(torch.randn(3, 8), torch.tensor([[0, 1], [1, 0]]), torch.randn(2, 8))
    >>> x.shape, edge_attr.shape
    (torch.Size([3, 8]), torch.Size([2, 8]))

    Args:
        channels: width of nodes and edges, in and out.
        heads: number of heads.
        head_channels: width of each head (default: ``channels // heads``).
        edge_dim: width of ``edge_attr`` if it is another than ``channels``; a linear layer brings it to ``channels``.
        dropout: share that is dropped in training.
        kernel: how queries and keys are compared, as in ``EncoderLayer``; ``"relu"`` takes linear time.
        coupling: as in ``EncoderLayer``.
        classes, projection_classes, mlp_classes: as in ``EncoderLayer``; ``**INTO_NODES`` sets all three for sparse graphs,
            where time matters.
    """

    def __init__(
        self,
        channels: int,
        heads: int = 4,
        *,
        head_channels: int | None = None,
        edge_dim: int | None = None,
        dropout: float = 0.0,
        kernel: Kernels = "relu",
        coupling: Coupling | None = None,
        classes: Selection = "all",
        projection_classes: Projecting = "pointwise",
        mlp_classes: Selection = "pointwise",
    ) -> None:
        super().__init__()
        self.channels, self.heads = channels, heads
        self.layer = EncoderLayer(
            order_in=2,
            order_out=2,
            channels=channels,
            heads=heads,
            head_channels=width_of_heads(channels, heads, head_channels),
            kernel=kernel,
            coupling=coupling,
            dropout=dropout,
            classes=classes,
            projection_classes=projection_classes,
            mlp_classes=mlp_classes,
        )
        self.project = nn.Linear(edge_dim, channels) if edge_dim is not None and edge_dim != channels else None
        self.edge = nn.Parameter(torch.zeros(channels))  # what edges carry beside their features

    def prepare(self, pairs: PairSet) -> None:
        """Build now what a pass over these pairs needs to know of them."""
        self.layer.prepare(pairs.index)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        pairs: PairSet | None = None,
    ) -> tuple[Tensor, Tensor]:
        """New rows of nodes and of edges; ``pairs`` is what ``PreparePairs`` has made of the batch, if it has."""
        if x.ndim != 2 or x.shape[1] != self.channels:
            raise ValueError(f"x must have shape (num_nodes, {self.channels}), got {tuple(x.shape)}")
        pairs = PairSet.of(edge_index, num_nodes=x.shape[0], batch=batch) if pairs is None else pairs
        edges = self.edge.expand(edge_index.shape[1], -1) if edge_attr is None else self._project(edge_attr) + self.edge
        made: Features = self.layer(pairs.join(x, edges))
        return pairs.split(made.rows)

    def _project(self, edge_attr: Tensor) -> Tensor:
        wanted = self.channels if self.project is None else self.project.in_features
        if edge_attr.ndim != 2 or edge_attr.shape[1] != wanted:
            raise ValueError(f"edge_attr must have shape (num_edges, {wanted}), got {tuple(edge_attr.shape)}")
        return edge_attr if self.project is None else self.project(edge_attr)


class DropInConv(PairConv):
    """``PairConv`` with the call of ``GPSConv``, ``(x, edge_index, batch, edge_attr=...) -> x``: one line changes.

    Edges keep their features from layer to layer, as in GPS; ``PairConv`` lets them learn, too. Args as of ``PairConv``.

    >>> conv = DropInConv(8, heads=2)  # was: GPSConv(8, GINEConv(mlp), heads=2)
    >>> conv(torch.randn(3, 8), torch.tensor([[0, 1], [1, 0]]), edge_attr=torch.randn(2, 8)).shape
    torch.Size([3, 8])
    """

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        edge_index: Tensor,
        batch: Tensor | None = None,
        *,
        edge_attr: Tensor | None = None,
        pairs: PairSet | None = None,
    ) -> Tensor:
        """New rows of nodes."""
        return super().forward(x, edge_index, edge_attr, batch, pairs=pairs)[0]


def width_of_heads(channels: int, heads: int, given: int | None) -> int:
    if given is None and (heads < 1 or channels % heads):
        raise ValueError(f"channels must be a multiple of heads, got {channels} and {heads}: give head_channels")
    return channels // heads if given is None else given
