"""A Transformer on unordered hyperedges."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from anyorder.layers.kernels import Kernel
from anyorder.layers.module import FeatureModule, check_orders, check_positive
from anyorder.layers.named_kernels import Coupling
from anyorder.layers.symmetric_attention import SymmetricEncoderLayer
from anyorder.layouts import Features, IndexSet


class SymmetricEncoder(FeatureModule):
    """Input projection, layers between unordered hyperedges, LayerNorm, linear head.

    ``order_in=1, orders=(1, 1, 3)`` scores sets of three nodes: the score of {a, b, c} is the same in any order.

    >>> sizes = {"channels_in": 4, "channels": 8, "channels_out": 1, "heads": 2, "head_channels": 4}
    >>> model = SymmetricEncoder(order_in=1, orders=(1, 3), **sizes)
    >>> [(layer.order_in, layer.order_out) for layer in model.layers]
    [(1, 1), (1, 3)]

    Args:
        order_in: number of nodes of the input's hyperedges; 1 for nodes.
        orders: number of nodes after each layer; 0 for one row per graph.
        channels_in, channels, channels_out: width of the input, of the layers and of the output (None: no head).
        heads, head_channels, kernel, coupling, dropout: as in ``SymmetricAttention``.
    """

    def __init__(
        self,
        *,
        order_in: int,
        orders: Sequence[int],
        channels_in: int,
        channels: int,
        channels_out: int | None,
        heads: int,
        head_channels: int,
        kernel: Kernel | None = None,
        coupling: Coupling | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_orders(**{f"orders[{n}]": order for n, order in enumerate(orders)})
        check_positive(order_in=order_in, channels_in=channels_in, channels=channels)
        if not orders:
            raise ValueError("orders must name the number of nodes after each layer, got none")
        self.order_in, self.order_out, self.orders = order_in, orders[-1], tuple(orders)
        self.channels_in, self.channels_out = channels_in, channels if channels_out is None else channels_out
        self.project = nn.Linear(channels_in, channels)
        self.layers = nn.ModuleList(
            SymmetricEncoderLayer(
                order_in=k,
                order_out=l,
                channels=channels,
                heads=heads,
                head_channels=head_channels,
                kernel=kernel,
                coupling=coupling,
                dropout=dropout,
            )
            for k, l in pairwise((order_in, *orders))
        )
        self.norm = nn.LayerNorm(channels)
        self.head = nn.Identity() if channels_out is None else nn.Linear(channels, channels_out)

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        self.mark_prepared(index, target)
        for layer in self.layers:
            given = target if target is not None and target.order == layer.order_out else None
            index = layer.prepare(index, given)  # type: ignore[operator]
        return index

    def forward(self, x: Features, target: IndexSet | None = None) -> Features:
        """Features of the last order; ``target`` is the index set of the layers that write its order."""
        if x.channels != self.channels_in:
            raise ValueError(f"SymmetricEncoder takes features of {self.channels_in} channels, got {x.channels}")
        x = x.with_rows(self.project(x.rows))
        for layer in self.layers:
            x = layer(x, target if target is not None and target.order == layer.order_out else None)
        return x.with_rows(self.head(self.norm(x.rows)))
