"""Rows in another order."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _Reorder(torch.autograd.Function):
    """A gather by a permutation, whose gradient is a gather too: nothing is cleared and nothing is added up."""

    generate_vmap_rule = True

    @staticmethod
    def forward(rows: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        return rows.index_select(0, order)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        order, inverse = ctx.saved_tensors
        return reorder(grad, inverse, order), None, None


def reorder(rows: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
    """``rows[order]`` for a permutation and its inverse.

    >>> reorder(torch.tensor([10, 20, 30]), torch.tensor([2, 0, 1]), torch.tensor([1, 2, 0])).tolist()
    [30, 10, 20]
    """
    made: Tensor = _Reorder.apply(rows, order, inverse)
    return made
