"""The Transformer encoder layer of any order."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from anyorder.algebra import EquivalenceClass, Projecting, Selection, Sharing, select, select_mlp
from anyorder.layers.attention import EquivariantAttention
from anyorder.layers.linear import EquivariantLinear, lightweight_mlp
from anyorder.layers.module import FeatureModule, check_input, check_orders, check_positive
from anyorder.layers.named_kernels import Coupling, Kernels
from anyorder.layers.recompute import recomputed
from anyorder.layouts import Features, IndexSet
from anyorder.ops.dropout import Dropout

INTO_NODES: dict[str, Any] = {
    "classes": "into nodes",
    "projection_classes": "pointwise, in place",
    "mlp_classes": "pointwise, aligned",
}
"""Settings of layers for sparse graphs: nodes alone attend, entries make their own queries and keys, and edges read what
their nodes received in the MLP: ``Encoder(order_in=2, ..., **INTO_NODES)``."""


class EncoderLayer(FeatureModule):
    r"""Attention and a lightweight MLP, each after a LayerNorm (Eq. 8, 9 and A.2.1).

    >>> from anyorder.testing import random_features
    >>> layer = EncoderLayer(order_in=2, order_out=1, channels=4, heads=2, head_channels=2)
    >>> y = layer(random_features(order=2, channels=4, dtype=torch.float32))
    >>> y.order, y.channels
    (1, 4)

    .. math:: H = [X +] Attn_{k \to l}(LN(X)), \quad Y = H + MLP_{l \to l}(LN(H))

    X is added where input and output stand on the same index set.

    Args:
        order_in, order_out, channels, heads, head_channels: as in ``EquivariantAttention``.
        kernel, coupling, normalize, classes, sharing, projection_classes, output_rank: as in ``EquivariantAttention``.
        dropout: share that is dropped in training, in attention and in the MLP.
        channels_hidden: width inside the MLP (default: ``channels``).
        mlp_classes: pointwise classes of the MLP. ``"pointwise"`` (default) is the layer of the paper; with ``"pointwise, in
            place"`` each entry transforms itself alone, as in other Transformers, at less than half the cost for order 2;
            with ``"pointwise, aligned"`` an edge reads itself and its nodes and not its reversal, which in an undirected
            graph knows nothing more; ``", then in place"`` after either has the second map transform entries by themselves.
        direct: whether attention has a pointwise part. Without one, an entry reads its nodes and its reversal in the MLP
            alone; layers that add no residual keep theirs, since nothing else passes an entry on.
        norm: LayerNorm before attention and MLP.
        residual: add the input where it has the output's index set.
        recompute: go part by part, and recompute most of what the backward pass needs there (default: where attention
            in linear time would keep 256 MB).
    """

    def __init__(
        self,
        *,
        order_in: int,
        order_out: int,
        channels: int,
        heads: int,
        head_channels: int,
        kernel: Kernels | None = None,
        coupling: Coupling | None = None,
        normalize: bool = True,
        dropout: float = 0.0,
        channels_hidden: int | None = None,
        classes: Selection = "all",
        norm: bool = True,
        residual: bool = True,
        recompute: bool | None = None,
        sharing: Sharing = "none",
        projection_classes: Projecting = "pointwise",
        output_rank: int | None = None,
        mlp_classes: Selection = "pointwise",
        direct: bool = True,
    ) -> None:
        super().__init__()
        check_orders(order_in=order_in, order_out=order_out)
        self.order_in, self.order_out = order_in, order_out
        self.channels_in = self.channels_out = channels
        self.residual = residual
        hidden = channels if channels_hidden is None else channels_hidden
        check_positive(channels=channels, channels_hidden=hidden)
        self.attention = EquivariantAttention(
            order_in=order_in,
            order_out=order_out,
            channels=channels,
            heads=heads,
            head_channels=head_channels,
            kernel=kernel,
            coupling=coupling,
            normalize=normalize,
            dropout=dropout,
            classes=attended(order_in, order_out, classes, direct or not residual),
            sharing=sharing,
            projection_classes=projection_classes,
            output_rank=output_rank,
            recompute=recompute,
        )
        first, second = select_mlp(order_out, mlp_classes)
        self.widen, self.narrow = (
            EquivariantLinear(order_in=order_out, order_out=order_out, channels_in=before, channels_out=after, classes=some)
            for before, after, some in ((channels, hidden, first), (hidden, channels, second))
        )
        self.norm_attention: nn.Module = nn.LayerNorm(channels) if norm else nn.Identity()
        self.norm_mlp: nn.Module = nn.LayerNorm(channels) if norm else nn.Identity()
        self.activation = nn.GELU()
        self.dropout = Dropout(dropout)

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        written = self.attention.prepare(index, target)
        self.widen.prepare(written)
        self.mark_prepared(index, target)
        return self.narrow.prepare(written)

    def forward(self, x: Features, target: IndexSet | None = None) -> Features:
        check_input(self, x, self.order_in, self.channels_in, self.widen.weight)
        self.prepare_outside(x, target)
        h = self.attention(x.with_rows(self.norm_attention(x.rows)), target)
        if self.residual and h.index is x.index:
            h = h.with_rows(x.rows + h.rows)
        if self.attention.recomputes(x, h.index):
            return recomputed(self._transform, h)
        return self._transform(h)

    def _transform(self, h: Features) -> Features:
        update = lightweight_mlp(self.widen, self.narrow, self._between, h.with_rows(self.norm_mlp(h.rows)))
        if torch.is_grad_enabled() or self.training or torch.compiler.is_compiling() or update.dtype != h.rows.dtype:
            return h.with_rows(h.rows + (self.dropout(update) if self.dropout.p else update))
        return h.with_rows(update.add_(h.rows))  # nothing else needs it

    def _between(self, hidden: Tensor) -> Tensor:
        hidden = self.activation(hidden)
        return self.dropout(hidden) if self.dropout.p else hidden


def attended(order_in: int, order_out: int, chosen: Selection, direct: bool) -> tuple[EquivalenceClass, ...]:
    """The classes of a layer's attention: all that were chosen, or without the pointwise ones where a residual may stand in.

    >>> len(attended(2, 2, "all", True)), len(attended(2, 2, "all", False)), len(attended(1, 2, "all", False))
    (15, 10, 5)
    """
    every = select(order_in, order_out, chosen)
    if direct or order_in != order_out:
        return every
    return tuple(cls for cls in every if cls.kind != "pointwise") or every
