"""The Transformer encoder layer of any order."""

from __future__ import annotations

from torch import nn

from anyorder.algebra import Selection
from anyorder.layers.attention import Coupling, EquivariantAttention
from anyorder.layers.checks import check_input, check_positive
from anyorder.layers.kernels import Kernel
from anyorder.layers.linear import EquivariantLinear
from anyorder.layouts import Features, IndexSet


class EncoderLayer(nn.Module):
    r"""Attention and a lightweight MLP, each after a LayerNorm (Eq. 5, 6 and A.2.1).

    .. math:: H = [X +] Attn_{k \to l}(LN(X)), \quad Y = H + MLP_{l \to l}(LN(H))

    X is added where input and output stand on the same index set.

    Args:
        channels_hidden: width inside the MLP; ``channels`` unless told.
        norm: LayerNorm before attention and MLP.
        residual: add the input where it has the output's index set.
    """

    def __init__(
        self,
        *,
        order_in: int,
        order_out: int,
        channels: int,
        heads: int,
        head_channels: int,
        kernel: Kernel | None = None,
        coupling: Coupling | None = None,
        normalize: bool = True,
        dropout: float = 0.0,
        channels_hidden: int | None = None,
        classes: Selection = "all",
        norm: bool = True,
        residual: bool = True,
    ) -> None:
        super().__init__()
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
            classes=classes,
        )
        self.widen = EquivariantLinear(
            order_in=order_out, order_out=order_out, channels_in=channels, channels_out=hidden, classes="pointwise"
        )
        self.narrow = EquivariantLinear(
            order_in=order_out, order_out=order_out, channels_in=hidden, channels_out=channels, classes="pointwise"
        )
        self.norm_attention: nn.Module = nn.LayerNorm(channels) if norm else nn.Identity()
        self.norm_mlp: nn.Module = nn.LayerNorm(channels) if norm else nn.Identity()
        self.activation = nn.GELU()
        self.dropout = nn.Dropout(dropout)

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        """Work out now what a pass over ``index`` needs to know of it; returns the index set that the layer writes to."""
        written = self.attention.prepare(index, target)
        self.widen.prepare(written)
        return self.narrow.prepare(written)

    def forward(self, x: Features, target: IndexSet | None = None) -> Features:
        check_input(self, x, self.order_in, self.channels_in, self.widen.weight)
        h = self.attention(x.with_rows(self.norm_attention(x.rows)), target)
        if self.residual and h.index is x.index:
            h = h.with_rows(x.rows + h.rows)
        hidden = self.widen(h.with_rows(self.norm_mlp(h.rows)))
        hidden = hidden.with_rows(self.dropout(self.activation(hidden.rows)))
        return h.with_rows(h.rows + self.dropout(self.narrow(hidden).rows))
