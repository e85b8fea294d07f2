"""Layers between direct sums of orders: block matrices of layers between two orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from anyorder.layers.attention import EquivariantAttention
from anyorder.layers.linear import EquivariantLinear, lightweight_mlp
from anyorder.layouts import Features, IndexSet
from anyorder.layouts.mixed import MixedFeatures
from anyorder.ops.dropout import Dropout
from anyorder.saving import SavedModule

Targets = Mapping[int, IndexSet]


class MixedLayer(nn.Module):
    """A block matrix: the output of order l is the sum over input orders k of a layer k -> l."""

    def __init__(self, blocks: Mapping[tuple[int, int], nn.Module]) -> None:
        super().__init__()
        self.orders_in = tuple(sorted({k for k, _ in blocks}))
        self.orders_out = tuple(sorted({l for _, l in blocks}))
        self.blocks = nn.ModuleDict({f"{k}to{l}": block for (k, l), block in sorted(blocks.items())})

    def forward(self, x: MixedFeatures, targets: Targets | None = None) -> MixedFeatures:
        if x.orders != self.orders_in:
            raise ValueError(f"this layer takes features of orders {self.orders_in}, got {x.orders}")
        parts: dict[int, Features] = {}
        for order in targets or ():
            if order not in self.orders_out and order not in self.orders_in:
                raise ValueError(f"this layer has no order {order}: it takes {self.orders_in} and writes {self.orders_out}")
        for l in self.orders_out:
            target = resolve(x, l, targets)
            rows = [self.blocks[f"{k}to{l}"](x[k], target).rows for k in self.orders_in]
            parts[l] = Features.of_rows(target, rows[0] if len(rows) == 1 else torch.stack(rows).sum(0))
        return MixedFeatures(parts)


def resolve(x: MixedFeatures, order: int, targets: Targets | None) -> IndexSet:
    """The index set of an output order: given, that of the input, or what follows from the highest order above it."""
    if targets is not None and order in targets:
        return targets[order]
    if order in x.orders:
        return x[order].index
    for source in reversed(x.orders):
        follows = x[source].index.with_order(order)
        if follows is not None:
            return follows
    raise ValueError(f"a target index set is needed: none of order {order} follows from orders {x.orders}")


def mixed_linear(*, orders_in: Sequence[int], orders_out: Sequence[int], **options: Any) -> MixedLayer:
    """Every equivariant linear map between direct sums of orders; options as of ``EquivariantLinear``.

    >>> layer = mixed_linear(orders_in=(1, 2), orders_out=(1, 2), channels_in=3, channels_out=4)
    >>> sum(len(block.classes) for block in layer.blocks.values())
    27

    Args:
        orders_in, orders_out: the orders of the input and of the output.
        options: ``channels_in``, ``channels_out``, ``classes``, ``reduce`` and ``bias`` of ``EquivariantLinear``.
    """
    bias = options.pop("bias", True)
    return MixedLayer(
        {
            (k, l): EquivariantLinear(order_in=k, order_out=l, bias=bias and k == min(orders_in), **options)
            for k in orders_in
            for l in orders_out
        }
    )


class MixedEncoderLayer(nn.Module):
    """Attention between all pairs of orders and a lightweight MLP within each, after LayerNorms of each order."""

    def __init__(
        self, *, orders_in: Sequence[int], orders_out: Sequence[int], channels: int, dropout: float, **options: Any
    ) -> None:
        super().__init__()
        self.attention = MixedLayer(
            {
                (k, l): EquivariantAttention(order_in=k, order_out=l, channels=channels, dropout=dropout, **options)
                for k in orders_in
                for l in orders_out
            }
        )

        def linear(order: int) -> EquivariantLinear:
            return EquivariantLinear(
                order_in=order, order_out=order, channels_in=channels, channels_out=channels, classes="pointwise"
            )

        self.widen = nn.ModuleDict({str(l): linear(l) for l in orders_out})
        self.narrow = nn.ModuleDict({str(l): linear(l) for l in orders_out})
        self.norm_in = nn.ModuleDict({str(k): nn.LayerNorm(channels) for k in orders_in})
        self.norm_out = nn.ModuleDict({str(l): nn.LayerNorm(channels) for l in orders_out})
        self.activation, self.dropout = nn.GELU(), Dropout(dropout)

    def forward(self, x: MixedFeatures, targets: Targets | None = None) -> MixedFeatures:
        h = self.attention(x.with_rows({k: self.norm_in[str(k)](x[k].rows) for k in x}), targets)
        return MixedFeatures({l: self._finish(l, x, h[l]) for l in h})

    def _finish(self, order: int, x: MixedFeatures, h: Features) -> Features:
        if order in x.orders and x[order].index is h.index:
            h = h.with_rows(h.rows + x[order].rows)
        widen: EquivariantLinear = self.widen[str(order)]  # type: ignore[assignment]
        narrow: EquivariantLinear = self.narrow[str(order)]  # type: ignore[assignment]
        normed = h.with_rows(self.norm_out[str(order)](h.rows))
        update = lightweight_mlp(widen, narrow, lambda hidden: self.dropout(self.activation(hidden)), normed)
        return h.with_rows(h.rows + self.dropout(update))


class MixedEncoder(SavedModule):
    """A Transformer on direct sums of orders: input projections, layers, LayerNorm and head for each order.

    >>> model = MixedEncoder(orders_in=(1, 2), orders=((1, 2), (1,)), channels_in=3, channels=8, channels_out=2,
    ...                      heads=2, head_channels=4)
    >>> [layer.attention.orders_out for layer in model.layers]
    [(1, 2), (1,)]

    Args:
        channels_in: width of the input, or of each of its orders.
        channels, channels_out: widths of the layers and of the output.
        heads, head_channels, dropout: as in ``EquivariantAttention``.
        options: further ones of ``EquivariantAttention``.
        orders_in: orders of the input.
        orders: orders after each layer.
    """

    def __init__(
        self,
        *,
        orders_in: Sequence[int],
        orders: Sequence[Sequence[int]],
        channels_in: int | Mapping[int, int],
        channels: int,
        channels_out: int,
        heads: int,
        head_channels: int,
        dropout: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__()
        if not orders:
            raise ValueError("orders must name the orders after each layer, got none")
        self.orders_in = tuple(sorted(orders_in))
        widths = channels_in if isinstance(channels_in, Mapping) else dict.fromkeys(orders_in, channels_in)
        if {*widths} != {*orders_in}:
            raise ValueError(f"channels_in must name the orders of the input: expected {[*orders_in]}, got {[*widths]}")
        self.project = nn.ModuleDict(
            {
                str(k): EquivariantLinear(
                    order_in=k, order_out=k, channels_in=widths[k], channels_out=channels, classes="pointwise"
                )
                for k in orders_in
            }
        )
        steps = zip([tuple(orders_in), *map(tuple, orders[:-1])], map(tuple, orders), strict=True)
        sizes = {"channels": channels, "heads": heads, "head_channels": head_channels, "dropout": dropout, **options}
        self.layers = nn.ModuleList(MixedEncoderLayer(orders_in=a, orders_out=b, **sizes) for a, b in steps)
        self.norm = nn.ModuleDict({str(l): nn.LayerNorm(channels) for l in orders[-1]})
        self.head = nn.ModuleDict({str(l): nn.Linear(channels, channels_out) for l in orders[-1]})

    def forward(self, x: MixedFeatures, targets: Targets | None = None) -> MixedFeatures:
        if x.orders != self.orders_in:
            raise ValueError(f"this model takes features of orders {self.orders_in}, got {x.orders}")
        x = MixedFeatures({k: self.project[str(k)](x[k]) for k in x})
        for layer in self.layers:
            x = layer(x, targets)
        return x.with_rows({l: self.head[str(l)](self.norm[str(l)](x[l].rows)) for l in x})
