"""Features of several orders on the same nodes: a direct sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torch import Tensor

from anyorder.layouts.features import Features
from anyorder.layouts.transfer import Transferable


class MixedFeatures(Transferable):
    """Features of several orders, {1: nodes, 2: pairs, 3: triples, ...}, on the same nodes and graphs.

    >>> import torch
    >>> from anyorder.layouts import SparseIndexSet
    >>> nodes = Features(SparseIndexSet(torch.tensor([[0], [1]]), num_nodes=2), torch.zeros(2, 3))
    >>> pairs = Features(SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=2), torch.zeros(1, 3))
    >>> MixedFeatures({1: nodes, 2: pairs}).orders
    (1, 2)

    Args:
        parts: features by their order.
    """

    def __init__(self, parts: Mapping[int, Features]) -> None:
        if not parts:
            raise ValueError("mixed features need at least one order, got none")
        first = next(iter(parts.values()))
        for order, part in parts.items():
            if not isinstance(part, Features):
                raise TypeError(f"order {order} must be Features, got {type(part).__name__}")
            if part.order != order:
                raise ValueError(f"the features of order {order} are of order {part.order}")
            if (part.num_nodes, part.num_graphs) != (first.num_nodes, first.num_graphs):
                raise ValueError(
                    f"all orders must be on the same nodes and graphs: expected {first.num_nodes} and {first.num_graphs}, "
                    f"order {order} has {part.num_nodes} and {part.num_graphs}"
                )
        self.parts = dict(sorted(parts.items()))

    @property
    def orders(self) -> tuple[int, ...]:
        """The orders of the parts."""
        return tuple(self.parts)

    def __getitem__(self, order: int) -> Features:
        if order not in self.parts:
            raise KeyError(f"no features of order {order}: expected one of {self.orders}")
        return self.parts[order]

    def __iter__(self) -> Iterator[int]:
        return iter(self.parts)

    def with_rows(self, rows: Mapping[int, Tensor]) -> MixedFeatures:
        """Other rows on the same tuples."""
        return MixedFeatures({order: part.with_rows(rows[order]) for order, part in self.parts.items()})

    def __repr__(self) -> str:
        return f"MixedFeatures({self.parts})"
