"""Moving index sets, plans, features and batches between devices and into pinned memory."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from anyorder.layouts.memory import Owner

Self = TypeVar("Self", bound="Transferable")


class Transferable:
    """A value made of tensors that moves as a whole, with everything that was derived from it.

    Derive your own batches from it: attributes that are tensors, other such values, dataclasses, PyTorch Geometric data, or
    lists, tuples and dictionaries of them move along; everything else stays as it is.
    """

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device. A floating dtype changes features only: indices stay integers."""
        device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"features must stay floating, got {dtype}")

        def move(tensor: Tensor) -> Tensor:
            kind = dtype if tensor.is_floating_point() else None
            return tensor.to(device=device, dtype=kind, non_blocking=non_blocking)

        return self.map_tensors(move)

    def cpu(self: Self) -> Self:
        """Move to the CPU."""
        return self.to("cpu")

    def cuda(self: Self, device: int | None = None) -> Self:
        """Move to a GPU."""
        return self.to("cuda" if device is None else f"cuda:{device}")

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
    if isinstance(value, Owner):
        is_along = id(value()) in seen  # an owner that does not come along would have nobody to hold it
        return Owner(seen[id(value())]) if is_along else _map(value(), change, seen)
    if isinstance(value, dict):
        return {key: _map(part, change, seen) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map(part, change, seen) for part in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_map(part, change, seen) for part in value)
    if isinstance(value, Transferable) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        return _map_parts(value, change, seen)
    if type(value).__module__.startswith("torch_geometric.") and hasattr(value, "apply"):
        return copy.copy(value).apply(change)
    return value


def _map_parts(value: Any, change: Callable[[Tensor], Tensor], seen: dict[int, Any]) -> Any:
    if not hasattr(value, "__dict__"):
        return value
    changed = copy.copy(value)
    seen[id(value)] = changed
    for name, part in vars(value).items():
        object.__setattr__(changed, name, _map(part, change, seen))
    return changed
