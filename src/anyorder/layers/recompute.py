"""Recomputing a layer in its backward pass, part by part, all but what attention answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from anyorder.algebra import Program
from anyorder.ops.gather import Parts

Result = TypeVar("Result")


def recomputed(work: Callable[..., Result], *given: Any, keeps_answers: bool = False) -> Result:
    """What ``work`` returns; all that its backward pass needs is computed again there."""
    if not torch.is_grad_enabled():
        return work(*given)
    contexts = keep_answers if keeps_answers else lambda: (nullcontext(), nullcontext())
    found: Result = checkpoint(work, *given, use_reentrant=False, context_fn=contexts)
    return found


def in_parts(run: Callable[[Program], Parts], parts: Sequence[Program], keeps_answers: bool) -> Parts:
    """The sum of what some programs write, each recomputed on its own: little is held at a time."""
    total: Parts = {}
    for part in parts:
        for pattern, rows in recomputed(partial(run, part), keeps_answers=keeps_answers).items():
            total[pattern] = rows if pattern not in total else total[pattern] + rows
    return total


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
