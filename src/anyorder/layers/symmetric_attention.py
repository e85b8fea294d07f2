"""Attention between unordered hyperedges: what a hyperedge receives does not depend on the order of anybody's nodes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from anyorder.layers.kernels import FeatureKernel, Kernel, Softmax
from anyorder.layers.module import FeatureModule, check_input, check_orders, check_positive
from anyorder.layers.named_kernels import Coupling
from anyorder.layers.symmetric import gather_subsets, inversion, overlap_counts, subset_sums, symmetric_target
from anyorder.layouts import Features, Grouped, IndexSet
from anyorder.layouts.overlaps import OverlapPairs, SharedSubsets, disjoint_tiles
from anyorder.layouts.symmetric import SymmetricIndexSet, check_symmetric
from anyorder.ops.dropout import Dropout
from anyorder.ops.features import FeatureMap
from anyorder.ops.segment import segment_attention
from anyorder.ops.softmax import softmax_pairs, softmax_tiles


class SymmetricAttention(FeatureModule):
    r"""Attention from hyperedges of k nodes to hyperedges of l nodes, one class for each overlap.

    >>> layer = SymmetricAttention(order_in=2, order_out=1, channels=4, heads=2, head_channels=2)
    >>> layer.order_in, layer.order_out
    (2, 1)

    .. math:: Y_e = \sum_{f \subseteq e} X_f w + \sum_{h} \sum_{t < k} \sum_{f : |f \cap e| = t}
        \alpha^{h,t}_{ef} X_f w^V_{h,t} w^O_{h,t}

    These are the classes of ``EquivariantAttention`` up to the order of nodes: hyperedges inside e are the pointwise
    classes, the others are told apart by how many nodes they share with e. The query of e is made of the hyperedges inside
    it, that of an output of order 0 is learned. Index sets are ``SymmetricIndexSet``; nodes (order 1) are hyperedges of
    one node.

    Args:
        order_in, order_out: k and l.
        channels: width of input and output.
        heads, head_channels: number of heads and width of each.
        kernel: ``Softmax()`` (default), or a kernel in linear time.
        coupling: ``"relaxed"`` (default) counts f once for each t-subset that it shares with e; ``"exact"`` takes those
            with exactly t nodes in common, as an alternating sum. Softmax is exact.
        normalize: divide by the sum of the weights.
        dropout: share of what the heads receive that is dropped in training.
    """

    directions: Tensor | None

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
    ) -> None:
        super().__init__()
        check_orders(order_in=order_in, order_out=order_out)
        check_positive(order_in=order_in, channels=channels, heads=heads, head_channels=head_channels)
        self.order_in, self.order_out = order_in, order_out
        self.channels_in = self.channels_out = channels
        self.heads, self.head_channels = heads, head_channels
        self.kernel: Kernel = Softmax() if kernel is None or order_out == 0 else kernel
        if not isinstance(self.kernel, (Softmax, FeatureKernel)):
            raise TypeError(f"kernel must be Softmax(), RandomFeatures(...), Elu() or a FeatureKernel, got {kernel!r}")
        if isinstance(self.kernel, Softmax) and order_out > 0 and (coupling == "relaxed" or not normalize):
            raise ValueError("softmax is exact and normalised: coupling='relaxed' and normalize=False need another kernel")
        self.coupling, self.normalize = coupling or "relaxed", normalize or order_out == 0
        self.classes = min(order_in - 1, order_out) + 1
        """Overlaps t = 0, 1, ... that are attended to."""
        width = self.classes * heads * head_channels
        self.query, self.key = nn.Linear(channels, width), nn.Linear(channels, width)
        self.value, self.output = nn.Linear(channels, width, bias=False), nn.Linear(width, channels, bias=False)
        self.direct = nn.Linear(channels, channels, bias=False) if order_in <= order_out else None
        self.dropout = Dropout(dropout)
        drawn = self.kernel.draw(head_channels)
        if self.kernel.is_learned and drawn is not None:
            self.directions = nn.Parameter(drawn)
        else:
            self.register_buffer("directions", drawn)

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        source = check_symmetric(index)
        wanted = check_symmetric(symmetric_target(source, self.order_out, target))
        for t in range(self.classes):
            if isinstance(self.kernel, Softmax):
                self._pairs(source, wanted, t)
            for r in range(t, self._last(t)):
                self._shared(source, wanted, r)
        self.mark_prepared(index, target)
        return wanted

    def forward(self, x: Features, target: IndexSet | None = None) -> Features:
        check_input(self, x, self.order_in, self.channels_in, self.query.weight)
        self.prepare_outside(x, target)
        source = check_symmetric(x.index)
        wanted = check_symmetric(symmetric_target(source, self.order_out, target))
        inside = x.rows.new_zeros(wanted.num_entries, self.channels_in)
        if self.order_in <= self.order_out:
            inside = gather_subsets(source, wanted, self.order_in, subset_sums(source, self.order_in, x.rows))
        query, key, value = (self._heads(rows) for rows in (self.query(inside), self.key(x.rows), self.value(x.rows)))
        received = [
            self._attend(source, wanted, t, query[:, t], key[:, t], value[:, t]).flatten(1) for t in range(self.classes)
        ]
        wide = torch.cat(received, 1)
        rows = self.output(self.dropout(wide) if self.dropout.p else wide)
        if self.direct is not None:
            rows = rows + self.direct(inside)
        return Features.of_rows(wanted, rows)

    def _heads(self, rows: Tensor) -> Tensor:
        return rows.unflatten(1, (self.classes, self.heads, self.head_channels))

    def _last(self, t: int) -> int:
        """Where the sizes of subsets end that the sums of an overlap need."""
        return min(self.order_in, self.order_out) + 1 if self.coupling == "exact" and self.kernel.is_linear else t + 1

    def _shared(self, source: SymmetricIndexSet, target: SymmetricIndexSet, size: int) -> SharedSubsets:
        return source.towards(target, ("shared", size), lambda: SharedSubsets.build(source, target, size))

    def _pairs(self, source: SymmetricIndexSet, target: SymmetricIndexSet, t: int) -> Any:
        if t == 0:
            return source.towards(target, "disjoint", lambda: disjoint_tiles(source, target))
        shared = self._shared(source, target, t)
        return source.towards(target, ("pairs", t), lambda: OverlapPairs.build(shared, source, target, t))

    def _attend(
        self, source: SymmetricIndexSet, target: SymmetricIndexSet, t: int, query: Tensor, key: Tensor, value: Tensor
    ) -> Tensor:
        """(target, head, channel): what hyperedges receive from those that share t nodes with them."""
        if isinstance(self.kernel, Softmax):
            known = self._pairs(source, target, t)
            attend = softmax_tiles if t == 0 else softmax_pairs
            return attend(known, query, key, value)
        assert isinstance(self.kernel, FeatureKernel)
        exact = self.coupling == "exact"
        if exact:
            query, key, value = query.double(), key.double(), value.double()
        features = self.kernel.feature_map(self.directions)
        query, key, left = self._transform(source, query, key, features.double() if exact else features)
        signs = inversion(min(self.order_in, self.order_out) + 1)[t] if exact else None
        sums = norms = query.new_zeros(())
        for r in range(t, self._last(t)):
            more = _subset_attention(self._shared(source, target, r), target.num_entries, query, key, value, left)
            sign = 1.0 if signs is None else float(signs[r])
            sums, norms = sums + sign * more[0], norms + sign * more[1]
        if self.normalize:
            sums = sums / norms.clamp(min=torch.finfo(norms.dtype).tiny).unsqueeze(-1)
        if exact:
            empty = overlap_counts(source, target, min(self.order_in, self.order_out) + 1)[t] == 0
            sums = sums.masked_fill(empty.view(-1, 1, 1), 0)
        return sums.to(self.value.weight.dtype)

    def _transform(
        self, source: SymmetricIndexSet, query: Tensor, key: Tensor, features: FeatureMap
    ) -> tuple[Tensor, Tensor, FeatureMap]:
        assert isinstance(self.kernel, FeatureKernel)
        nothing: Any = None
        known = Grouped(nothing, nothing, source.entry_graph, source.num_graphs)
        query, key, left = self.kernel.transform(known, query.unsqueeze(1), key.unsqueeze(1), features, self.normalize)
        return query[:, 0], key[:, 0], left

    def extra_repr(self) -> str:
        return (
            f"{self.order_in} -> {self.order_out}, channels={self.channels_in}, heads={self.heads} x {self.head_channels}, "
            f"overlaps={self.classes}, {self.kernel}, coupling={self.coupling!r}"
        )


def _subset_attention(
    shared: SharedSubsets, num_targets: int, query: Tensor, key: Tensor, value: Tensor, features: FeatureMap
) -> tuple[Tensor, Tensor]:
    """Sums and norms over all pairs of subsets that are equal: a hyperedge counts once for each subset that it shares."""
    asking, asked, answers = query[shared.targets], key[shared.sources], value[shared.sources]
    given = (asking.unsqueeze(1), asked.unsqueeze(1), answers.unsqueeze(1))
    sums, norms = segment_attention(*given, shared.keys, shared.queries, features, normalize=False)
    total = sums.new_zeros(num_targets, *sums.shape[2:]).index_add(0, shared.targets, sums[:, 0])
    return total, norms.new_zeros(num_targets, norms.shape[2]).index_add(0, shared.targets, norms[:, 0])


class SymmetricEncoderLayer(FeatureModule):
    """Attention between unordered hyperedges and an MLP on each, both after a LayerNorm.

    >>> layer = SymmetricEncoderLayer(order_in=2, order_out=1, channels=4, heads=2, head_channels=2)
    >>> layer.attention.order_out
    1

    Args:
        order_in, order_out, channels, heads, head_channels, kernel, coupling, normalize, dropout: of ``SymmetricAttention``.
        channels_hidden: width inside the MLP (default: ``channels``).
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
    ) -> None:
        super().__init__()
        self.order_in, self.order_out = order_in, order_out
        self.channels_in = self.channels_out = channels
        sizes: dict[str, Any] = {"channels": channels, "heads": heads, "head_channels": head_channels}
        options: dict[str, Any] = {"kernel": kernel, "coupling": coupling, "normalize": normalize, "dropout": dropout}
        self.attention = SymmetricAttention(order_in=order_in, order_out=order_out, **sizes, **options)
        hidden = channels if channels_hidden is None else channels_hidden
        self.norm_attention, self.norm_mlp = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.mlp = nn.Sequential(
            nn.Linear(channels, hidden), nn.GELU(), Dropout(dropout), nn.Linear(hidden, channels), Dropout(dropout)
        )

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        self.mark_prepared(index, target)
        return self.attention.prepare(index, target)

    def forward(self, x: Features, target: IndexSet | None = None) -> Features:
        check_input(self, x, self.order_in, self.channels_in, self.norm_mlp.weight)
        h = self.attention(x.with_rows(self.norm_attention(x.rows)), target)
        if h.index is x.index:
            h = h.with_rows(x.rows + h.rows)
        return h.with_rows(h.rows + self.mlp(self.norm_mlp(h.rows)))
