"""The entries of one pattern, and what a plan asks of an index set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from anyorder.algebra import SetPartition
from anyorder.layouts.transfer import Transferable


@dataclass(frozen=True, eq=False)
class Entries(Transferable):
    """The entries of one pattern: where they stand in the index set and their compact tuples (Prop. 1).

    >>> from anyorder.layouts import SparseIndexSet
    >>> index = SparseIndexSet(torch.tensor([[0, 0], [1, 1], [0, 1]]), num_nodes=2)
    >>> index.entries(SetPartition((0, 0))).tuples.tolist()
    [[0], [1]]

    Args:
        start: the row of the first entry.
        rows: (entry,), the row of each; None where they stand together: they are then read without a copy.
        tuples: (entry, block), the nodes.
        graph: (entry,), the graph of each.
    """

    start: int
    rows: Tensor | None
    tuples: Tensor
    graph: Tensor

    @property
    def count(self) -> int:
        """Number of entries; a symbol where a graph is exported, which ``len`` cannot give."""
        return self.tuples.shape[0]

    def __len__(self) -> int:
        return self.count

    @property
    def places(self) -> Tensor:
        """(entry,): the row of each entry."""
        if self.rows is not None:
            return self.rows
        return torch.arange(self.start, self.start + self.count, device=self.tuples.device)

    def read(self, values: Tensor) -> Tensor:
        """The rows of these entries."""
        return values.narrow(0, self.start, self.count) if self.rows is None else values.index_select(0, self.rows)


class Indexed(Protocol):
    """What a plan asks of an index set."""

    num_nodes: int
    num_graphs: int

    @property
    def num_entries(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    def entries(self, pattern: SetPartition) -> Entries: ...

    def find(self, tuples: Tensor, graph: Tensor) -> Tensor: ...
