"""Lightweight linear maps (Prop. 2): pointwise classes only, nothing is summed over."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anyorder.algebra import EquivalenceClass, SetPartition
from anyorder.algebra.program import Project
from anyorder.layouts import Spread
from anyorder.ops.gather import add_spread, beside
from anyorder.saving import saved_value

saved_value(SetPartition)
saved_value(EquivalenceClass)
Parts = dict[SetPartition, Tensor]
"""Rows by pattern."""


def init_uniform(weight: Tensor, fan_in: int) -> None:
    """Draw a weight for its own fan-in, as ``nn.Linear`` does."""
    bound = 1 / math.sqrt(max(fan_in, 1))
    nn.init.uniform_(weight, -bound, bound)


class PointwiseProjection(nn.Module):
    r"""The lightweight linear map from order k to the entries of one pattern (Prop. 2).

    .. math:: Y_j = \sum_{\mu \in M} A_{fix_\mu(j)} w_\mu + b

    M holds pointwise classes into the pattern; ``fix(j)`` is the one input tuple that a class reads.
    ``weight[class, in, out]`` is None where there is no class: the rows of order 0 are the bias, a learned query.
    """

    def __init__(
        self, *, classes: Sequence[EquivalenceClass], channels_in: int, channels_out: int, bias: bool = True
    ) -> None:
        super().__init__()
        self.classes = tuple(classes)
        self.channels_in, self.channels_out = channels_in, channels_out
        self.weight = nn.Parameter(torch.empty(len(self.classes), channels_in, channels_out)) if classes else None
        self.bias = nn.Parameter(torch.empty(channels_out)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for weight in (self.weight, self.bias):
            if weight is not None:
                init_uniform(weight, self.channels_in)

    def _load_from_state_dict(self, state_dict, prefix, *rest):  # type: ignore[no-untyped-def]
        if self.weight is None:  # files of earlier versions hold a tensor without elements
            state_dict.pop(f"{prefix}weight", None)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        return f"classes={[cls.name for cls in self.classes]}, {self.channels_in} -> {self.channels_out}"


def project(
    step: Project, known: tuple[int, Sequence[Spread]], parts: Parts, weight: Tensor | None, bias: Tensor | None
) -> Tensor:
    """Rows (entry, out) of one pattern: input rows ``parts`` read by the classes of a step, with ``weight[class, in, out]``.

    ``known`` is the number of entries, and for each class which input row each of them reads.
    """
    count, reads = known
    if weight is None:
        assert bias is not None
        return bias.expand(count, -1)
    if len(step.whole) == len(step.classes):
        wide = beside([(parts[cls.source], read) for cls, read in zip(step.classes, reads, strict=True)])
        return _product(wide, weight.flatten(0, 1), bias)
    tall, each = _apart(weight, step.whole)
    # the bias goes with the least rows, if each output entry reads one of them
    host: int | None = None
    total: Tensor | None = None
    for n in each:
        if reads[n].missing is None:
            host = n
            break
    if step.whole:
        wide = beside([(parts[step.classes[n].source], reads[n]) for n in step.whole])
        total = _product(wide, tall[0] if len(tall) == 1 else torch.cat(tall), bias if host is None else None)
    products = [(_product(parts[step.classes[n].source], w, bias if n == host else None), reads[n]) for n, w in each.items()]
    total = add_spread(total, products)
    assert total is not None
    return total + bias if bias is not None and not step.whole and host is None else total


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
