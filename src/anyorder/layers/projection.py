"""Lightweight linear maps (Prop. 2): pointwise classes only, nothing is summed over."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anyorder.algebra import EquivalenceClass, SetPartition, select
from anyorder.layouts import Plan
from anyorder.ops.gather import add_spread, beside

Parts = dict[SetPartition, Tensor]
"""Rows by pattern."""


def init_uniform(weight: Tensor, fan_in: int) -> None:
    """Draw a weight for its own fan-in, as ``nn.Linear`` does."""
    bound = 1 / math.sqrt(max(fan_in, 1))
    nn.init.uniform_(weight, -bound, bound)


def pointwise_into(order_in: int, pattern: SetPartition) -> tuple[EquivalenceClass, ...]:
    """The pointwise classes into a pattern.

    >>> [cls.name for cls in pointwise_into(2, SetPartition((0, 1)))]
    ['(i,i) -> (i,j)', '(j,j) -> (i,j)', '(i,j) -> (i,j)', '(j,i) -> (i,j)']
    """
    every = select(order_in, pattern.order, lambda cls: True)
    return tuple(cls for cls in every if cls.target == pattern and cls.kind == "pointwise")


class PointwiseProjection(nn.Module):
    r"""The lightweight linear map from order k to the entries of one pattern (Prop. 2).

    .. math:: Y_j = \sum_{\mu \in M} A_{fix_\mu(j)} w_\mu + b

    M holds pointwise classes into the pattern; ``fix(j)`` is the one input tuple that a class reads.
    ``weight[class, in, out]`` is in the order of ``classes``.
    """

    def __init__(
        self, *, classes: Sequence[EquivalenceClass], channels_in: int, channels_out: int, bias: bool = True
    ) -> None:
        super().__init__()
        self.classes = tuple(classes)
        self.channels_in, self.channels_out = channels_in, channels_out
        self.weight = nn.Parameter(torch.empty(len(self.classes), channels_in, channels_out))
        self.bias = nn.Parameter(torch.empty(channels_out)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init_uniform(self.weight, self.channels_in)
        if self.bias is not None:
            init_uniform(self.bias, self.channels_in)

    def extra_repr(self) -> str:
        return f"classes={[cls.name for cls in self.classes]}, {self.channels_in} -> {self.channels_out}"


def project(
    plan: Plan,
    pattern: SetPartition,
    parts: Parts,
    classes: Sequence[EquivalenceClass],
    weight: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """Rows (entry, out) of one output pattern from pointwise classes into it, with ``weight[class, in, out]``.

    ``parts`` are the input rows of each pattern.

    Classes that keep all nodes read as many entries as they write: their narrow inputs are gathered first and multiplied
    by one tall matrix. The others read fewer entries (nodes, when edges are written): they are multiplied first, once
    per input entry, and the results are gathered.
    """
    same = [n for n, cls in enumerate(classes) if cls.source.num_blocks == pattern.num_blocks]
    fewer = [(n, cls) for n, cls in enumerate(classes) if n not in same and len(parts[cls.source])]
    # the bias goes with the least rows, if each output entry reads one of them
    host = next((n for n, cls in fewer if plan.pointwise(cls).missing is None), None)
    total: Tensor | None = None
    tall, each = _apart(weight, same)
    if same:
        wide = beside([(parts[classes[n].source], plan.pointwise(classes[n])) for n in same])
        total = _product(wide, tall[0] if len(tall) == 1 else torch.cat(tall), bias if host is None else None)
    products = [_product(parts[cls.source], each[n], bias if n == host else None) for n, cls in fewer]
    total = add_spread(total, [(rows, plan.pointwise(cls)) for rows, (_, cls) in zip(products, fewer, strict=True)])
    count = len(plan.target.entries(pattern))
    if total is None:
        return weight.new_zeros(count, weight.shape[2]) if bias is None else bias.repeat(count, 1)
    return total + bias if bias is not None and not same and host is None else total


def _apart(weight: Tensor, same: Sequence[int]) -> tuple[list[Tensor], dict[int, Tensor]]:
    """The matrices of some classes, neighbours as one tall matrix, and each of the others by its number.

    All are cut at once, so that their gradients are put together once; each index would have a gradient of the whole size.
    """
    runs: list[list[int]] = []
    for n in range(len(weight)):
        if n in same and runs and runs[-1][-1] in same:
            runs[-1].append(n)
        else:
            runs.append([n])
    pieces = list(zip(runs, weight.split([len(run) for run in runs]), strict=True))
    tall = [piece.flatten(0, 1) for run, piece in pieces if run[0] in same]
    return tall, {run[0]: piece[0] for run, piece in pieces if run[0] not in same}


def _product(rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return rows @ weight if bias is None else torch.addmm(bias, rows, weight)


def add_product(total: Tensor, rows: Tensor, weight: Tensor) -> Tensor:
    """``total + rows @ weight``, which may be written over ``total``: it must be the caller's own."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or torch.is_autocast_enabled(total.device.type):
        return torch.addmm(total, rows, weight)
    return total.addmm_(rows, weight)


def project_together(plan: Plan, pattern: SetPartition, parts: Parts, maps: Sequence[PointwiseProjection]) -> list[Tensor]:
    """Several lightweight maps into the same pattern; those over the same classes share their products."""
    results: dict[int, Tensor] = {}
    for classes in dict.fromkeys(each.classes for each in maps):
        members = [n for n, each in enumerate(maps) if each.classes == classes]
        some = [maps[n] for n in members]
        weight = some[0].weight if len(some) == 1 else torch.cat([each.weight for each in some], 2)
        bias = None
        if any(each.bias is not None for each in some):
            bias = torch.cat([weight.new_zeros(each.channels_out) if each.bias is None else each.bias for each in some])
        wide = project(plan, pattern, parts, classes, weight, bias)
        results.update(zip(members, wide.split([each.channels_out for each in some], 1), strict=True))
    return [results[n] for n in range(len(maps))]
