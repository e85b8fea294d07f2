"""Recomputing a layer in its backward pass, all but what attention answered."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


def keep_answers() -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """For ``checkpoint``: answers of segment attention are kept, and given again as often as the backward pass asks.

    They are the most work to find again and little beside queries, keys and values.
    """
    answers: list[tuple[Tensor, ...]] = []
    return _Keep(answers), _Give(answers)


class _Keep(TorchDispatchMode):
    def __init__(self, answers: list[tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.answers = answers

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func in _kept():
            self.answers.append(_apart(found))
        return found


class _Give(TorchDispatchMode):
    def __init__(self, answers: list[tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.answers, self.given = answers, 0

    def __enter__(self) -> Any:
        self.given = 0
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in _kept():
            return func(*args, **(kwargs or {}))
        self.given += 1
        return _apart(self.answers[self.given - 1])


def _kept() -> tuple[Any, ...]:
    return torch.ops.anyorder.segment_attention.default, torch.ops.anyorder.exact_attention.default


def _apart(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The same numbers as tensors of their own, which autograd may claim."""
    return tuple(tensor.detach() for tensor in tensors)
