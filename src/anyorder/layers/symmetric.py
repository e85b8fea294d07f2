"""Layers on unordered hyperedges: classes are overlap sizes, min(k, l) + 1 of them instead of Bell(k + l)."""

from __future__ import annotations

from math import comb
from typing import Literal

import torch
from torch import Tensor, nn

from anyorder.layers.module import FeatureModule, check_input, check_orders, check_positive
from anyorder.layers.projection import init_uniform
from anyorder.layouts import Features, IndexSet, Spread
from anyorder.layouts.symmetric import SymmetricIndexSet, check_symmetric
from anyorder.ops.gather import read_rows


class SymmetricLinear(FeatureModule):
    r"""Every equivariant linear map between unordered hyperedges of k and of l nodes.

    .. math:: Y_e = \sum_{t=0}^{\min(k,l)} \sum_{f : |f \cap e| = t} X_f W_t + b

    Sums over exact overlaps take linear time: with ``P_r(e)`` the sum over all r-subsets of e of the hyperedges that hold
    them, which counts f ``C(|f & e|, r)`` times, ``O_t = sum_{r >= t} (-1)^(r - t) C(r, t) P_r``.

    >>> SymmetricLinear(order_in=3, order_out=2, channels_in=4, channels_out=5).weight.shape
    torch.Size([3, 4, 5])

    Args:
        order_in, order_out: sizes of the hyperedges that are read and written.
        channels_in, channels_out: widths.
        reduce: take the sum or the mean over the hyperedges of an overlap.
        bias: add a learned vector.
    """

    def __init__(
        self,
        *,
        order_in: int,
        order_out: int,
        channels_in: int,
        channels_out: int,
        reduce: Literal["sum", "mean"] = "sum",
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_orders(order_in=order_in, order_out=order_out)
        check_positive(channels_in=channels_in, channels_out=channels_out)
        if reduce not in ("sum", "mean"):
            raise ValueError(f"reduce must be 'sum' or 'mean', got {reduce!r}")
        self.order_in, self.order_out = order_in, order_out
        self.channels_in, self.channels_out, self.reduce = channels_in, channels_out, reduce
        self.overlaps = min(order_in, order_out) + 1
        self.weight = nn.Parameter(torch.empty(self.overlaps, channels_in, channels_out))
        self.bias = nn.Parameter(torch.empty(channels_out)) if bias else None
        init_uniform(self.weight, channels_in)
        if self.bias is not None:
            init_uniform(self.bias, channels_in)

    def prepare(self, index: IndexSet, target: IndexSet | None = None) -> IndexSet:
        source = check_symmetric(index)
        wanted = check_symmetric(symmetric_target(source, self.order_out, target))
        for size in range(self.overlaps):
            source.subsets(size)
            wanted.subsets(size)
        self.mark_prepared(index, target)
        return wanted

    def forward(self, x: Features, target: IndexSet | None = None) -> Features:
        check_input(self, x, self.order_in, self.channels_in, self.weight)
        source = check_symmetric(x.index)
        wanted = check_symmetric(symmetric_target(source, self.order_out, target))
        if self.reduce == "sum":
            signs = inversion(self.overlaps).to(self.weight.dtype).to(self.weight.device)
            weight = torch.einsum("tr,tio->rio", signs, self.weight)
            pooled = [subset_sums(source, r, x.rows) @ weight[r] for r in range(self.overlaps)]
            rows = torch.stack([gather_subsets(source, wanted, r, part) for r, part in enumerate(pooled)]).sum(0)
        else:
            sums = overlap_sums(source, wanted, self.overlaps, x.rows.double()).to(x.dtype)
            counts = overlap_counts(source, wanted, self.overlaps).clamp(min=1)
            rows = torch.einsum("tei,tio->eo", sums / counts, self.weight)
        return Features.of_rows(wanted, rows if self.bias is None else rows + self.bias)


def inversion(overlaps: int) -> Tensor:
    """(t, r): the coefficient of P_r in O_t.

    >>> inversion(3).tolist()
    [[1.0, -1.0, 1.0], [0.0, 1.0, -2.0], [0.0, 0.0, 1.0]]
    """
    signs = [[(-1) ** (r - t) * comb(r, t) if r >= t else 0 for r in range(overlaps)] for t in range(overlaps)]
    return torch.tensor(signs, dtype=torch.float32)


def subset_sums(source: SymmetricIndexSet, size: int, rows: Tensor) -> Tensor:
    """(subset, channel): the sum of the hyperedges that hold each subset."""
    subsets = source.subsets(size)
    total = rows.new_zeros(subsets.count, rows.shape[1])
    for column in subsets.ids.unbind(1):
        total = total.index_add(0, column, rows)
    return total


def gather_subsets(source: SymmetricIndexSet, target: SymmetricIndexSet, size: int, values: Tensor) -> Tensor:
    """(target entry, channel): values of subsets, summed over the subsets of each target entry."""
    found = source.find_subsets(target, size)
    if found.shape[1] == 0:
        return values.new_zeros(found.shape[0], values.shape[1])
    return torch.stack([read_rows(values, Spread.build(column, values.shape[0])) for column in found.unbind(1)]).sum(0)


def overlap_sums(source: SymmetricIndexSet, target: SymmetricIndexSet, overlaps: int, rows: Tensor) -> Tensor:
    """(overlap, target entry, channel): sums over the hyperedges that share exactly so many nodes."""
    shared = [gather_subsets(source, target, r, subset_sums(source, r, rows)) for r in range(overlaps)]
    return torch.einsum("tr,rec->tec", inversion(overlaps).to(rows), torch.stack(shared))


def overlap_counts(source: SymmetricIndexSet, target: SymmetricIndexSet, overlaps: int) -> Tensor:
    """(overlap, target entry, 1): how many hyperedges share exactly so many nodes."""
    ones = torch.ones(source.num_entries, 1, dtype=torch.float64, device=source.device)
    return overlap_sums(source, target, overlaps, ones).round().long()


def symmetric_target(source: SymmetricIndexSet, order: int, given: IndexSet | None) -> IndexSet:
    """The given target, or the one that follows: the same hyperedges, or the sets of fewer nodes inside one of them."""
    if given is not None:
        if given.order != order:
            raise ValueError(f"target must be of the layer's output order: expected {order}, got {given.order}")
        source.check_target(given)
        return given
    if order == source.order:
        return source
    if order > source.order:
        raise ValueError(f"a target index set is needed: none of order {order} follows from hyperedges of {source.order}")
    return source.project(order)
