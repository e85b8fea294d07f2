"""Feature maps of linear-time attention, and one call of it as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from anyorder.layouts import Queries, Segments
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


@dataclass(frozen=True, eq=False)
class Problem:
    """Queries, keys and values (row, class, head, channel), how they are grouped, and how they are compared."""

    query: Tensor
    key: Tensor
    value: Tensor
    keys: Segments
    queries: Queries
    features: FeatureMap
    normalize: bool
    classes: int = field(init=False)
    heads: int = field(init=False)
    num_features: int = field(init=False)
    size: int = field(init=False)
    """Numbers in the products of features and values of all keys, and in what the queries read of them."""

    def flat(self) -> tuple[Any, ...]:
        """The arguments of the operator that torch knows."""
        f, k, q = self.features, self.keys, self.queries
        indices = (k.rows, k.pointer, q.rows, q.pointer)
        return (self.query, self.key, self.value, f.directions, *indices, f.kind, f.eps, self.normalize)

    @classmethod
    def of(cls, flat: Sequence[Any]) -> Problem:
        """The reverse of ``flat``."""
        query, key, value, directions, key_order, key_pointer, query_order, query_pointer, kind, eps, normalize = flat
        groups = Segments(key_order, key_pointer), Queries(query_order, query_pointer)
        return cls(query, key, value, *groups, FeatureMap(kind, directions, eps), normalize)

    def __post_init__(self) -> None:
        """Numbers that every backend asks for."""
        _, classes, heads, channels = self.query.shape
        directions = self.features.directions
        features = channels if directions is None else directions.shape[0]
        rows = self.key.shape[0] * classes + self.queries.rows.shape[0]
        known = {"classes": classes, "heads": heads, "num_features": features}
        known["size"] = rows * heads * features * (self.value.shape[3] + 1)
        for name, value in known.items():
            object.__setattr__(self, name, value)

    @property
    def sums_shape(self) -> tuple[int, ...]:
        """(query, class, head, channel)."""
        return (len(self.query), *self.value.shape[1:])
