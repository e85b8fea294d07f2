"""Values that are built once and kept."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, wraps
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad

Built = TypeVar("Built")


class Owner:
    """A reference to whoever holds this value, without holding it in return: both are freed when nobody else needs them.

    Without it they would wait for Python's collector of cycles, which counts objects and not the bytes of their tensors.
    It is copied and pickled together with its owner.
    """

    def __init__(self, owner: Any) -> None:
        self._there = weakref.ref(owner)

    def __call__(self) -> Any:
        owner = self._there()
        if owner is None:
            raise ReferenceError("the index set of this plan is gone: keep a reference to it as long as the plan is used")
        return owner

    def __getstate__(self) -> dict[str, Any]:
        return {"owner": self()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._there = weakref.ref(state["owner"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Owner:
        return Owner(copy.deepcopy(self(), memo))


class Memory:
    """Keeps what is derived from it. Sorting and searching are for the host: a compiled graph only reads what is kept."""

    def __init__(self) -> None:
        self._cache: dict[object, object] = {}

    def _once(self, key: object, build: Callable[[], Built]) -> Built:
        if key not in self._cache:
            refuse_in_graph()
            with outside_inference_mode():
                self._cache[key] = build()
        return self._cache[key]  # type: ignore[return-value]


def outside_inference_mode() -> AbstractContextManager[object]:
    """For what is kept: a training may use it later, and refuses tensors that were made in inference mode."""
    if not torch.compiler.is_compiling() and torch.is_inference_mode_enabled():
        return torch.inference_mode(False)
    return nullcontext()


def kept(build: Callable[[Any], Built]) -> cached_property[Built]:
    """A property that is built once and kept."""

    @wraps(build)
    def outside(holder: Any) -> Built:
        if torch.compiler.is_compiling():
            return build(holder)
        with outside_inference_mode():
            return build(holder)

    return cached_property(outside)


is_exported = torch.compiler.is_exporting
"""Whether a graph is exported: plans become part of it, sizes are symbols, and no choice may hang on a number."""


def is_transformed() -> bool:
    """Whether torch.func or forward-mode differentiation looks inside: plain tensor operations alone can be batched, carry
    tangents and be differentiated again."""
    return bool(torch._C._are_functorch_transforms_active()) or forward_ad._current_level >= 0


def repeat_numbers(counts: Tensor, total: int) -> Tensor:
    """(total,): the number of each place as often as it counts, 0 ``counts[0]`` times, 1 ``counts[1]`` times and so on.

    >>> repeat_numbers(torch.tensor([2, 0, 1]), 3).tolist()
    [0, 0, 2]
    """
    if not is_exported():
        return torch.repeat_interleave(torch.arange(counts.shape[0], device=counts.device), counts, output_size=total)
    starts = counts.cumsum(0) - counts
    return counts.new_zeros(total + 1).index_add(0, starts, torch.ones_like(starts)).cumsum(0).narrow(0, 0, total) - 1


def with_zeros(rows: Tensor) -> Tensor:
    """Rows and one of zeros at the end, for those that read none.

    >>> with_zeros(torch.ones(1, 2)).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    return torch.cat([rows, rows.new_zeros(1, *rows.shape[1:])])


def refuse_in_graph() -> None:
    """Refuse to build something while a graph is compiled: its result would hold for one batch only."""
    if torch.compiler.is_compiling() and not is_exported():
        raise RuntimeError(
            "a compiled model reads plans that are made before: call model.prepare(x.index) on each new index set"
        )
