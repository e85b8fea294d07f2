"""Moving index sets, plans and features between devices and into pinned memory."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

Self = TypeVar("Self", bound="Transferable")


class Transferable:
    """A value made of tensors that moves as a whole, with everything that was worked out from it."""

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device. A floating dtype changes features only: indices stay integers."""
        device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"features must stay floating, got {dtype}")

        def move(tensor: Tensor) -> Tensor:
            kind = dtype if tensor.is_floating_point() else None
            return tensor.to(device=device, dtype=kind, non_blocking=non_blocking)

        return self.map_tensors(move)

    def pin_memory(self: Self) -> Self:
        """Copy into page-locked memory, from which copies to a GPU do not wait."""
        return self.map_tensors(Tensor.pin_memory)

    def map_tensors(self: Self, change: Callable[[Tensor], Tensor]) -> Self:
        """The same value with every tensor changed; a tensor or part that occurs twice is changed once."""
        moved: Self = _map(self, change, {})
        return moved


def _map(value: Any, change: Callable[[Tensor], Tensor], seen: dict[int, Any]) -> Any:
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, Tensor):
        seen[id(value)] = change(value)
        return seen[id(value)]
    if isinstance(value, dict):
        return {key: _map(part, change, seen) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_map(part, change, seen) for part in value)
    if type(value).__module__.startswith("anyorder.") and hasattr(value, "__dict__"):
        changed = copy.copy(value)
        seen[id(value)] = changed
        for name, part in vars(value).items():
            object.__setattr__(changed, name, _map(part, change, seen))
        return changed
    return value
