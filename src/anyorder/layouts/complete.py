"""Complete index sets: all tuples of each graph, found by arithmetic instead of searching."""

from __future__ import annotations

import torch
from torch import Tensor

from anyorder.layouts.index_set import IndexSet
from anyorder.layouts.memory import is_exported, repeat_numbers


class CompleteIndexSet(IndexSet):
    """All tuples of an order within each graph, row by row, without padding; a graph's nodes stand together.

    >>> pairs = CompleteIndexSet(2, sizes=torch.tensor([1, 2]))
    >>> pairs.tuples.tolist()
    [[0, 0], [1, 1], [1, 2], [2, 1], [2, 2]]

    Args:
        order: number of nodes in a tuple.
        sizes: (graphs,), how many nodes each graph has.
    """

    def __init__(self, order: int, sizes: Tensor) -> None:
        super().__init__()
        if not isinstance(order, int) or order < 0:
            raise ValueError(f"order must be an integer of at least 0, got {order!r}")
        if not isinstance(sizes, Tensor) or sizes.dtype != torch.int64 or sizes.ndim != 1:
            got = f"{sizes.dtype} of shape {tuple(sizes.shape)}" if isinstance(sizes, Tensor) else type(sizes).__name__
            raise TypeError(f"sizes must be int64 of shape (graphs,), got {got}")
        if not is_exported():
            _check_sizes(order, sizes)
        self.order = order
        self.sizes = sizes
        self.num_graphs = sizes.shape[0]
        self.num_nodes = _total(sizes)
        self.node_graph = repeat_numbers(sizes, self.num_nodes)
        self.first_node = sizes.cumsum(0) - sizes
        self.first_entry = (sizes**order).cumsum(0) - sizes**order
        self._num_entries = _total(sizes**order)

    @property
    def num_entries(self) -> int:
        return self._num_entries

    @property
    def tuples(self) -> Tensor:
        return self._once("tuples", self._tuples)

    def _tuples(self) -> Tensor:
        graph = self.entry_graph
        rank = torch.arange(self.num_entries, device=self.device) - self.first_entry[graph]
        size, first = self.sizes[graph], self.first_node[graph]
        digits = [rank // size ** (self.order - 1 - axis) % size + first for axis in range(self.order)]
        return torch.stack(digits, 1) if digits else rank.new_empty(self.num_entries, 0)

    def _entry_graph(self) -> Tensor:
        return repeat_numbers(self.sizes**self.order, self.num_entries)

    def find(self, tuples: Tensor, graph: Tensor) -> Tensor:
        row = torch.zeros_like(graph)
        for column in tuples.unbind(1):
            row = row * self.sizes[graph] + column - self.first_node[graph]
        return row + self.first_entry[graph]

    def flatten(self, values: Tensor) -> Tensor:
        if values.ndim != 2 or (not is_exported() and len(values) != self.num_entries):
            raise ValueError(
                f"values must have one row per entry: expected shape ({self.num_entries}, channels), "
                f"got {tuple(values.shape)}"
            )
        return values

    def unflatten(self, rows: Tensor) -> Tensor:
        return rows

    def with_order(self, order: int) -> IndexSet:
        return self if order == self.order else self._once(("order", order), lambda: self._with_order(order))

    def _with_order(self, order: int) -> IndexSet:
        return CompleteIndexSet(order, self.sizes)

    def complete(self, order: int) -> IndexSet:
        """All tuples of an order within each graph."""
        return self.with_order(order)


def _check_sizes(order: int, sizes: Tensor) -> None:
    if bool((sizes < 0).any()):
        raise ValueError(f"sizes must be at least 0, got {sizes.tolist()}")
    if float((sizes.double() ** order).sum()) > 2**62:
        largest = int(sizes.max())
        raise ValueError(f"all tuples of {order} nodes of graphs of up to {largest} nodes are too many to count")


def _total(sizes: Tensor) -> int:
    return sizes.sum().item()  # type: ignore[return-value]  # int() would fix it where a graph is exported


class DenseIndexSet(CompleteIndexSet):
    """All tuples of the valid nodes of a padded grid.

    Values have shape (batch, node, ..., node, channel), with one node axis for each of the ``order`` axes.
    Padding is dropped on the way in and is zero on the way out, so no layer ever sees it.

    >>> pairs = DenseIndexSet(2, mask=torch.tensor([[True, True, False]]))
    >>> pairs.num_entries, pairs.unflatten(torch.ones(4, 1)).shape
    (4, torch.Size([1, 3, 3, 1]))

    Args:
        order: number of node axes.
        mask: (batch, node), bool, which nodes are there.
    """

    def __init__(self, order: int, mask: Tensor) -> None:
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.ndim != 2:
            got = f"{mask.dtype} of shape {tuple(mask.shape)}" if isinstance(mask, Tensor) else type(mask).__name__
            raise TypeError(f"mask must be bool of shape (batch, node), got {got}")
        super().__init__(order, mask.sum(1))
        self.mask = mask
        self._is_full = not is_exported() and bool(mask.all())

    @property
    def grid_shape(self) -> tuple[int, ...]:
        """(batch, node, ..., node)."""
        return (self.mask.shape[0], *[self.mask.shape[1]] * self.order)

    @property
    def _cells(self) -> Tensor:
        """(num_entries,): the position of each entry in the flattened grid."""
        return self._once("cells", self._find_cells)

    def _find_cells(self) -> Tensor:
        place = self.mask.nonzero()[:, 1]
        cell = self.entry_graph
        for column in self.tuples.unbind(1):
            cell = cell * self.mask.shape[1] + place[column]
        return cell

    def flatten(self, values: Tensor) -> Tensor:
        if tuple(values.shape[:-1]) != self.grid_shape:
            expected = ", ".join(str(size) for size in self.grid_shape)
            raise ValueError(f"values must have shape ({expected}, channels), got {tuple(values.shape)}")
        rows = values.reshape(-1, values.shape[-1])
        return rows if self._is_full else rows[self._cells]

    def unflatten(self, rows: Tensor) -> Tensor:
        if self._is_full:
            return rows.reshape(*self.grid_shape, rows.shape[-1])
        grid = rows.new_zeros(self.mask.shape[0] * self.mask.shape[1] ** self.order, rows.shape[-1])
        return grid.index_copy(0, self._cells, rows).reshape(*self.grid_shape, rows.shape[-1])

    def _with_order(self, order: int) -> IndexSet:
        return DenseIndexSet(order, self.mask)
