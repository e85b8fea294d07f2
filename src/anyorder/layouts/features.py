"""Features: an index set with values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._pytree import register_pytree_node

from anyorder.layouts.complete import CompleteIndexSet, DenseIndexSet
from anyorder.layouts.index_set import IndexSet
from anyorder.layouts.sparse import SparseIndexSet
from anyorder.layouts.transfer import Transferable


@dataclass(init=False, eq=False, repr=False)
class Features(Transferable):
    """Values on the tuples of an index set. Immutable: methods return new features.

    >>> nodes = SparseIndexSet(torch.tensor([[0], [1]]), num_nodes=2)
    >>> Features(nodes, torch.zeros(2, 5))
    Features(SparseIndexSet(order=1, entries=2, nodes=2, graphs=1), channels=5, dtype=torch.float32)

    Args:
        index: which tuples there are.
        values: (entries, channels); (batch, node, ..., node, channels) where the index set is dense.
        check: refuse values that are not finite.
        rows: (entry, channel), in place of ``values`` where they are known to fit; so ``dataclasses.replace`` works.
    """

    index: IndexSet
    rows: Tensor
    """(entry, channel)."""

    def __init__(
        self, index: IndexSet, values: Tensor | None = None, *, check: bool = True, rows: Tensor | None = None
    ) -> None:
        if rows is not None:
            self.index, self.rows = index, rows
            return
        if not isinstance(index, IndexSet):
            raise TypeError(f"index must be an IndexSet, got {type(index).__name__}")
        if not isinstance(values, Tensor) or not values.is_floating_point():
            got = values.dtype if isinstance(values, Tensor) else type(values).__name__
            raise TypeError(f"values must be a floating tensor, got {got}")
        if values.device != index.device:
            raise ValueError(f"values must be on the index set's device: expected {index.device}, got {values.device}")
        self.index = index
        self.rows = index.flatten(values)
        if check and not bool(self.rows.isfinite().all()):
            row = int((~self.rows.isfinite()).any(1).nonzero()[0])
            raise ValueError(f"values must be finite: entry {row}, tuple {index.tuples[row].tolist()}, is not")

    @classmethod
    def of_rows(cls, index: IndexSet, rows: Tensor) -> Features:
        """Features from rows (entry, channel) that are known to fit, as layers make them."""
        made = cls.__new__(cls)
        made.index, made.rows = index, rows
        return made

    @property
    def values(self) -> Tensor:
        """The values as the index set lays them out."""
        return self.index.unflatten(self.rows)

    @property
    def order(self) -> int:
        """The length of an index tuple."""
        return self.index.order

    @property
    def channels(self) -> int:
        """The width of a row."""
        return self.rows.shape[-1]

    @property
    def num_nodes(self) -> int:
        """The number of nodes, of all graphs of a batch."""
        return self.index.num_nodes

    @property
    def num_graphs(self) -> int:
        """The number of graphs of a batch."""
        return self.index.num_graphs

    @property
    def dtype(self) -> torch.dtype:
        """The type of the numbers."""
        return self.rows.dtype

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.rows.device

    @property
    def shape(self) -> torch.Size:
        """The shape of ``values``."""
        return self.index.unflatten(self.rows.detach()).shape

    def detach(self) -> Features:
        """The same values outside of the graph of gradients."""
        return self.with_rows(self.rows.detach())

    def clone(self) -> Features:
        """A copy of the values on the same tuples."""
        return self.with_rows(self.rows.clone())

    def target(self, order: int, given: IndexSet | None = None) -> IndexSet:
        """The index set a layer of this output order writes to: the given one, or the one that follows from the input."""
        return self.index.target(order, given)

    def with_values(self, values: Tensor) -> Features:
        """Other values on the same tuples."""
        return Features(self.index, values, check=False)

    def with_rows(self, rows: Tensor) -> Features:
        """Other rows (entry, channel) on the same tuples."""
        return Features.of_rows(self.index, rows)

    def __repr__(self) -> str:
        return f"Features({self.index}, channels={self.channels}, dtype={self.dtype})"


register_pytree_node(  # so that torch.func, FSDP and others find the tensor inside
    Features,
    lambda x: ([x.rows], x.index),
    lambda rows, index: Features.of_rows(index, next(iter(rows))),
    serialized_type_name="anyorder.Features",
)


def collate(items: Sequence[Features]) -> Features:
    """One batch from the features of several graphs: a disjoint union, or a wider grid where they are dense.

    >>> from anyorder import CompleteIndexSet
    >>> one = Features.of_rows(CompleteIndexSet(1, torch.tensor([3])), torch.zeros(3, 2))
    >>> collate([one, one]).num_graphs
    2

    Args:
        items: features of one order, width, type and layout.
    """
    _check_alike(items)
    if all(isinstance(item.index, SparseIndexSet) for item in items):
        index: IndexSet = SparseIndexSet.collate([item.index for item in items])  # type: ignore[misc]
        return Features.of_rows(index, torch.cat([item.rows for item in items]))
    rows = torch.cat([item.rows for item in items])
    if all(type(item.index) is CompleteIndexSet for item in items):
        sizes = [item.index.sizes for item in items]  # type: ignore[attr-defined]
        return Features.of_rows(CompleteIndexSet(items[0].order, torch.cat(sizes)), rows)
    dense = [item.index for item in items if isinstance(item.index, DenseIndexSet)]
    if len(dense) != len(items):
        raise ValueError(f"can only collate features of one layout, got {[item.index for item in items]}")
    width = max(index.mask.shape[1] for index in dense)
    masks = [torch.nn.functional.pad(index.mask, (0, width - index.mask.shape[1])) for index in dense]
    return Features.of_rows(DenseIndexSet(dense[0].order, torch.cat(masks)), rows)


def _check_alike(items: Sequence[Features]) -> None:
    if not items:
        raise ValueError("cannot collate an empty list")
    for item in items:
        if not isinstance(item, Features):
            raise TypeError(f"collate takes Features, got {type(item).__name__}")
    for name in ("order", "channels", "dtype", "device"):
        found = [getattr(item, name) for item in items]
        other = next((place for place, value in enumerate(found) if value != found[0]), None)
        if other is not None:
            raise ValueError(f"can only collate features of one {name}: item 0 has {found[0]}, item {other} {found[other]}")
