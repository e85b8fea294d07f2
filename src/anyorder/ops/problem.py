"""One call of segment linear attention, as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from anyorder.layouts import Queries, Segments
from anyorder.ops.features import FeatureMap


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

    @property
    def classes(self) -> int:
        return self.query.shape[1]

    @property
    def heads(self) -> int:
        return self.query.shape[2]

    @property
    def num_features(self) -> int:
        return self.features.width(self.query.shape[3])

    @property
    def sums_shape(self) -> tuple[int, ...]:
        """(query, class, head, channel)."""
        return (len(self.query), *self.value.shape[1:])

    @cached_property
    def size(self) -> int:
        """Numbers in the products of features and values of all keys, and in what the queries read of them."""
        rows = len(self.key) * self.classes + len(self.queries.rows)
        return rows * self.heads * self.num_features * (self.value.shape[3] + 1)
