"""Feature maps of linear-time attention."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.ops.activations import ACTIVATIONS

TORCH = {
    "where": torch.where,
    "exp": torch.exp,
    "positive": torch.relu,
    "where_above": torch.ops.aten.threshold_backward,  # ten times faster than a mask
}
"""What the formulas call when tensors are given."""


_BOUND = {name: activation.on(TORCH) for name, activation in ACTIVATIONS.items()}


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """phi(x) = activation(w.x, eps) over the last axis; without directions w, activation(x, eps)."""

    kind: str
    directions: Tensor | None = None
    eps: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in _BOUND:
            _BOUND[self.kind] = ACTIVATIONS[self.kind].on(TORCH)

    def __call__(self, x: Tensor) -> Tensor:
        scores = x if self.directions is None else x @ self.directions.to(x.dtype).T
        phi: Tensor = _BOUND[self.kind].value(scores, self.eps)
        return phi

    def backward(self, grad: Tensor, phi: Tensor) -> Tensor:
        """The gradient of x from that of phi(x)."""
        passed: Tensor = _BOUND[self.kind].gradient(grad, phi, self.eps)
        return passed if self.directions is None else passed @ self.directions.to(passed.dtype)

    def width(self, channels: int) -> int:
        """Number of features for heads of so many channels."""
        return channels if self.directions is None else len(self.directions)

    def double(self) -> FeatureMap:
        """The same map for numbers of double precision."""
        return FeatureMap(self.kind, None if self.directions is None else self.directions.double(), self.eps)
