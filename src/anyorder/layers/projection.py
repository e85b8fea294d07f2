"""Lightweight linear maps (Prop. 2): pointwise classes only, nothing is summed over."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from anyorder.algebra import EquivalenceClass, SetPartition
from anyorder.saving import saved_value

saved_value(SetPartition)
saved_value(EquivalenceClass)


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
