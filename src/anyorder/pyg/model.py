"""A whole model for graphs of PyTorch Geometric."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from anyorder.algebra import Projecting, Selection
from anyorder.layers.named_kernels import Coupling, Kernels
from anyorder.layouts import Features
from anyorder.models import Encoder
from anyorder.pyg.columns import ColumnEncoder, Columns
from anyorder.pyg.conv import width_of_heads
from anyorder.pyg.pairs import PairSet
from anyorder.saving import SavedModule

Level = Literal["graph", "node", "edge"]


class GraphTransformer(SavedModule):
    """A higher-order Transformer from graphs to a row per graph, per node or per edge.

    >>> model = GraphTransformer(7, 16, 1, edge_dim=3, num_layers=2, heads=2)
    >>> model(torch.randn(3, 7), torch.tensor([[0, 1], [1, 0]]), torch.randn(2, 3)).shape
    torch.Size([1, 1])

    Args:
        in_channels: width of ``x``; for categories, how many each column of ``x`` has, e.g. ``(119, 4)``: they are embedded.
        hidden_channels: width inside.
        out_channels: width of the answer; None leaves the linear head out.
        edge_dim: width of ``edge_attr``, or how many categories each of its columns has; None where edges carry nothing.
        num_layers: layers 2 -> 2.
        heads: number of heads.
        head_channels: width of each head (default: ``hidden_channels // heads``).
        level: what a row of the answer belongs to: a ``"graph"``, a ``"node"`` or an ``"edge"``.
        position_channels: width of ``positions``, which are added to nodes; 0 where there are none.
        dropout: share that is dropped in training.
        kernel: how queries and keys are compared, as in ``Encoder``; ``"relu"`` takes linear time.
        coupling: as in ``Encoder``.
        classes, projection_classes, mlp_classes: as in ``EncoderLayer``; ``**INTO_NODES`` sets all three for sparse graphs,
            where time matters.
    """

    def __init__(
        self,
        in_channels: Columns,
        hidden_channels: int,
        out_channels: int | None,
        *,
        edge_dim: Columns | None = None,
        num_layers: int = 4,
        heads: int = 4,
        head_channels: int | None = None,
        level: Level = "graph",
        position_channels: int = 0,
        dropout: float = 0.0,
        kernel: Kernels = "relu",
        coupling: Coupling | None = None,
        classes: Selection = "all",
        projection_classes: Projecting = "pointwise",
        mlp_classes: Selection = "pointwise",
    ) -> None:
        super().__init__()
        if level not in ("graph", "node", "edge"):
            raise ValueError(f"level must be 'graph', 'node' or 'edge', got {level!r}")
        if num_layers < 1:
            raise ValueError(f"num_layers must be a positive integer, got {num_layers!r}")
        self.level = level
        self.nodes = ColumnEncoder(in_channels, hidden_channels, "x")
        self.edges = None if edge_dim is None else ColumnEncoder(edge_dim, hidden_channels, "edge_attr")
        self.positions = nn.Linear(position_channels, hidden_channels, bias=False) if position_channels else None
        self.bare = nn.Parameter(torch.zeros(hidden_channels)) if edge_dim is None else None
        self.encoder = Encoder(
            order_in=2,
            orders=(2,) * num_layers + ((0,) if level == "graph" else ()),
            channels_in=hidden_channels,
            channels=hidden_channels,
            channels_out=out_channels,
            heads=heads,
            head_channels=width_of_heads(hidden_channels, heads, head_channels),
            kernel=kernel,
            coupling=coupling,
            dropout=dropout,
            classes=classes,
            projection_classes=projection_classes,
            mlp_classes=mlp_classes,
        )

    def prepare(self, pairs: PairSet) -> None:
        """Build now what a pass over these pairs needs to know of them."""
        self.encoder.prepare(pairs.index)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        positions: Tensor | None = None,
        batch_size: int | None = None,
        pairs: PairSet | None = None,
    ) -> Tensor:
        """A row per graph, node or edge; ``pairs`` is what ``PreparePairs`` has made of the batch, if it has."""
        if pairs is None:
            pairs = PairSet.of(edge_index, num_nodes=x.shape[0], batch=batch, batch_size=batch_size)
        nodes: Tensor = self.nodes(x)
        if (positions is None) != (self.positions is None):
            width = 0 if self.positions is None else self.positions.in_features
            given = "none" if positions is None else f"some of shape {tuple(positions.shape)}"
            raise ValueError(f"this model takes positions with {width} channels (position_channels), got {given}")
        if self.positions is not None:
            nodes = nodes + self.positions(positions)
        made: Features = self.encoder(pairs.join(nodes, self._edges(edge_attr, edge_index.shape[1])))
        if self.level == "graph":
            return made.rows
        return pairs.split(made.rows)[self.level == "edge"]

    def _edges(self, edge_attr: Tensor | None, count: int) -> Tensor:
        if (edge_attr is None) != (self.edges is None):
            given = "none" if edge_attr is None else f"some of shape {tuple(edge_attr.shape)}"
            wanted = "no edge_attr (edge_dim=None)" if self.edges is None else f"edge_attr of {self.edges.wanted}"
            raise ValueError(f"this model takes {wanted}, got {given}")
        if self.edges is None:
            assert self.bare is not None
            return self.bare.expand(count, -1)
        made: Tensor = self.edges(edge_attr)
        return made
