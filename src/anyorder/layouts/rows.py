"""Rows dealt out to parts, and collected from them: each row is moved once, and the gradient of one is the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from anyorder.layouts.memory import is_exported, is_transformed


class _Deal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Tensor) -> tuple[Tensor, ...]:  # with names, torch.compile would leave ctx out
        rows, *places = given
        ctx.save_for_backward(*places)
        return tuple(rows.index_select(0, place) for place in places)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return collect(grads, ctx.saved_tensors), *[None] * len(grads)


class _Collect(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Tensor) -> Tensor:
        parts, places = given[: len(given) // 2], given[len(given) // 2 :]
        ctx.save_for_backward(*places)
        rows = parts[0].new_empty(sum(map(len, parts)), *parts[0].shape[1:])
        for part, place in zip(parts, places, strict=True):
            rows.index_copy_(0, place, part)
        return rows

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        places = ctx.saved_tensors
        return *deal(grad, places), *[None] * len(places)


def deal(rows: Tensor, places: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """``rows[place]`` for each of some places that together are all rows, each once.

    >>> [part.tolist() for part in deal(torch.tensor([10, 20, 30]), [torch.tensor([2]), torch.tensor([0, 1])])]
    [[30], [10, 20]]
    """
    if is_exported() or is_transformed():
        return tuple(rows.index_select(0, place) for place in places)
    parts: tuple[Tensor, ...] = _Deal.apply(rows, *places)
    return parts


def collect(parts: Sequence[Tensor], places: Sequence[Tensor]) -> Tensor:
    """The rows of which ``deal`` makes these parts.

    >>> collect([torch.tensor([30]), torch.tensor([10, 20])], [torch.tensor([2]), torch.tensor([0, 1])]).tolist()
    [10, 20, 30]
    """
    if is_transformed():
        return torch.cat([*parts]).index_select(0, torch.cat([*places]).argsort())
    rows: Tensor = _Collect.apply(*parts, *places)
    return rows
