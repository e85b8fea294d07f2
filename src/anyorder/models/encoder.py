"""Stacks of layers that pass through a sequence of orders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from torch import nn

from anyorder.algebra import Projecting, Selection, Sharing
from anyorder.layers import EncoderLayer, EquivariantLinear
from anyorder.layers.linear import Reduction
from anyorder.layers.module import FeatureModule, check_input, check_orders, check_positive
from anyorder.layers.named_kernels import Coupling, Kernels
from anyorder.layouts import Features, IndexSet
from anyorder.ops.dropout import Dropout


class Encoder(FeatureModule):
    """A higher-order Transformer: input projection, encoder layers, LayerNorm, linear head.

    >>> model = Encoder(order_in=2, orders=(2, 0), channels_in=7, channels=8, channels_out=1, heads=2, head_channels=4)
    >>> [(layer.order_in, layer.order_out) for layer in model.layers]
    [(2, 2), (2, 0)]

    Args:
        channels_in: width of the input.
        channels: width of the layers.
        heads, head_channels: number of heads and width of each.
        channels_hidden: width inside the MLPs (default: ``channels``).
        order_in: order of the input.
        orders: order after each layer.
        channels_out: width of the head; None leaves the head out.
        kernel, coupling, classes, dropout, recompute: as in ``EncoderLayer``.
        sharing, projection_classes, output_rank, mlp_classes, direct: as in ``EncoderLayer``.
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
        kernel: Kernels | None = None,
        coupling: Coupling | None = None,
        dropout: float = 0.0,
        channels_hidden: int | None = None,
        classes: Selection = "all",
        recompute: bool | None = None,
        sharing: Sharing = "none",
        projection_classes: Projecting = "pointwise",
        output_rank: int | None = None,
        mlp_classes: Selection = "pointwise",
        direct: bool = True,
    ) -> None:
        super().__init__()
        steps = _check_steps(order_in, orders)
        check_positive(channels_in=channels_in, channels=channels)
        self.order_in, self.order_out, self.orders = order_in, steps[-1][1], tuple(orders)
        self.channels_in = channels_in
        self.channels_out = channels if channels_out is None else channels_out
        self.project = EquivariantLinear(
            order_in=order_in, order_out=order_in, channels_in=channels_in, channels_out=channels, classes="pointwise"
        )
        self.layers = nn.ModuleList(
            EncoderLayer(
                order_in=k,
                order_out=l,
                channels=channels,
                heads=heads,
                head_channels=head_channels,
                kernel=kernel,
                coupling=coupling,
                dropout=dropout,
                channels_hidden=channels_hidden,
                classes=classes if l else "all",
                recompute=recompute,
                sharing=sharing,
                projection_classes=projection_classes,
                output_rank=output_rank,
                mlp_classes=mlp_classes,
                direct=direct,
            )
            for k, l in steps
        )
        self.norm = nn.LayerNorm(channels)
        self.head = _head(channels, channels_out)

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        _check_target(target, self.orders)
        self.mark_prepared(index, target)
        self.project.prepare(index)
        for layer in self.layers:
            index = layer.prepare(index, _target(target, layer.order_out))  # type: ignore[arg-type,operator]
        return index

    def forward(self, x: Features, target: IndexSet | None = None) -> Features:
        """Features of the last order; ``target`` is the index set of the layers that write its order."""
        check_input(self, x, self.order_in, self.channels_in, self.project.weight)
        _check_target(target, self.orders)
        self.prepare_outside(x, target)
        x = self.project(x)
        for layer in self.layers:
            x = layer(x, _target(target, layer.order_out))  # type: ignore[arg-type]
        return x.with_rows(self.head(self.norm(x.rows)))


class EquivariantMLP(FeatureModule):
    """The invariant or equivariant MLP of Maron et al. (MLP_pi): equivariant linear layers with ReLU between.

    >>> model = EquivariantMLP(order_in=2, orders=(2, 2, 0), channels_in=3, channels=8, channels_out=1)
    >>> [len(layer.classes) for layer in model.layers]
    [15, 15, 2]

    Args:
        order_in: order of the input.
        orders: order after each layer.
        channels_in: width of the input.
        channels: width of the layers.
        channels_out: width of the linear head; None leaves it out.
        classes: which equivalence classes to use: names, a predicate or the classes.
        reduce: whether a class takes the ``"mean"`` of its entries or their ``"sum"``, which grows with the number of nodes.
        dropout: share that is dropped in training.
        start: weights that keep the ``"variance"`` from layer to layer, or ``"uniform"`` as of ``nn.Linear``, under which
            the output of eight layers of sums is 1e7 and more.
    """

    def __init__(
        self,
        *,
        order_in: int,
        orders: Sequence[int],
        channels_in: int,
        channels: int,
        channels_out: int | None = None,
        classes: Selection = "all",
        reduce: Reduction = "mean",
        dropout: float = 0.0,
        start: Literal["variance", "uniform"] = "variance",
    ) -> None:
        super().__init__()
        steps = _check_steps(order_in, orders)
        check_positive(channels_in=channels_in, channels=channels)
        self.order_in, self.order_out, self.orders = order_in, steps[-1][1], tuple(orders)
        self.channels_in = channels_in
        self.channels_out = channels if channels_out is None else channels_out
        widths = [channels_in] + [channels] * len(steps)
        self.layers = nn.ModuleList(
            EquivariantLinear(
                order_in=k,
                order_out=l,
                channels_in=width,
                channels_out=channels,
                classes=classes if l else "all",
                reduce=reduce,
            )
            for (k, l), width in zip(steps, widths[:-1], strict=True)
        )
        if start not in ("variance", "uniform"):
            raise ValueError(f"start must be 'variance' or 'uniform', got {start!r}")
        for number, layer in enumerate(self.layers):
            if start == "variance":
                layer.keep_variance(gain=2.0 if number else 1.0)  # type: ignore[operator]
        self.activation = nn.ReLU()
        self.dropout = Dropout(dropout)
        self.head = _head(channels, channels_out)

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        _check_target(target, self.orders)
        self.mark_prepared(index, target)
        for layer in self.layers:
            index = layer.prepare(index, _target(target, layer.order_out))  # type: ignore[arg-type,operator]
        return index

    def forward(self, x: Features, target: IndexSet | None = None) -> Features:
        """Features of the last order; ``target`` is the index set of the layers that write its order."""
        check_input(self, x, self.order_in, self.channels_in, next(self.parameters()))
        _check_target(target, self.orders)
        self.prepare_outside(x, target)
        for number, layer in enumerate(self.layers):
            if number:
                x = x.with_rows(self.dropout(self.activation(x.rows)))
            x = layer(x, _target(target, layer.order_out))  # type: ignore[arg-type]
        return x.with_rows(self.head(x.rows))


def _check_steps(order_in: int, orders: Sequence[int]) -> list[tuple[int, int]]:
    check_orders(order_in=order_in)
    if isinstance(orders, str) or not isinstance(orders, Sequence):
        hint = f"; for one layer write orders=({orders},)" if isinstance(orders, int) else ""
        raise TypeError(f"orders must be a tuple with the order after each layer, got {orders!r}{hint}")
    if len(orders) == 0:
        raise ValueError("orders must name the order after each layer, got none")
    check_orders(**{f"orders[{n}]": order for n, order in enumerate(orders)})
    return list(pairwise((order_in, *orders)))


def _head(channels: int, channels_out: int | None) -> nn.Module:
    if channels_out is None:
        return nn.Identity()
    check_positive(channels_out=channels_out)
    return nn.Linear(channels, channels_out)


def _check_target(target: IndexSet | None, steps: Sequence[int]) -> None:
    if target is not None and not isinstance(target, IndexSet):
        raise TypeError(f"target must be an index set, got {type(target).__name__}")
    if target is not None and target.order not in steps:
        known = sorted({*steps})
        raise ValueError(f"target must be of an order that a layer writes: expected one of {known}, got {target.order}")


def _target(target: IndexSet | None, order: int) -> IndexSet | None:
    return target if target is not None and target.order == order else None
