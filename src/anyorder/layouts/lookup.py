"""Finding tuples by sorting."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.layouts.memory import is_exported
from anyorder.layouts.transfer import Transferable

_LIMIT = 2**62


@dataclass(frozen=True, eq=False)
class TupleIndex(Transferable):
    """Where each tuple of a list stands, found by binary search.

    Tuples are folded into integers column by column; before an integer could overflow, the values so far are replaced
    by their rank, so that any order and any number of nodes fit.

    >>> index = TupleIndex.build(torch.tensor([[2, 0], [1, 1]]), num_nodes=3)
    >>> index.find(torch.tensor([[1, 1], [0, 0]])).tolist()
    [1, -1]

    Args:
        num_nodes: nodes are 0, ..., num_nodes - 1.
        ranks: per column, the values so far where they are replaced by their ranks.
        codes: (tuple,), the integers in ascending order.
        rows: (tuple,), where the tuple of each integer stands in the list.
    """

    num_nodes: int
    ranks: tuple[Tensor | None, ...]
    codes: Tensor
    rows: Tensor

    @classmethod
    def build(cls, tuples: Tensor, num_nodes: int) -> TupleIndex:
        """The index of a list of tuples (tuple, axis)."""
        ranks: list[Tensor | None] = []
        code = tuples.new_zeros(tuples.shape[0])
        bound = 1
        for number, column in enumerate(tuples.unbind(1)):
            rank = None
            if number > 1 if is_exported() else bound * max(num_nodes, 1) > _LIMIT:
                rank, code = torch.unique(code, return_inverse=True)
                bound = rank.shape[0]
            ranks.append(rank)
            code = code * num_nodes + column
            bound = bound if is_exported() else bound * max(num_nodes, 1)
        codes, rows = torch.sort(code) if is_exported() else torch.sort(code, stable=True)
        return cls(num_nodes, tuple(ranks), codes, rows)

    @property
    def count(self) -> int:
        """Number of tuples."""
        return self.codes.shape[0]

    def numbers(self) -> tuple[Tensor, Tensor]:
        """The number of each of the sorted tuples among the distinct ones, and the position of one tuple of each number."""
        if is_exported():
            distinct, ids = torch.unique(self.codes, return_inverse=True)
            return ids, self.rows.new_zeros(distinct.shape[0]).index_copy(0, ids, self.rows)
        first = torch.ones_like(self.codes, dtype=torch.bool)
        first[1:] = self.codes[1:] != self.codes[:-1]
        return first.cumsum(0) - 1, self.rows[first]

    def find(self, tuples: Tensor) -> Tensor:
        """The position of each tuple in the list, -1 where it is not in it."""
        code = tuples.new_zeros(tuples.shape[0])
        known = torch.ones_like(code, dtype=torch.bool)
        for rank, column in zip(self.ranks, tuples.unbind(1), strict=True):
            if rank is not None:
                code, hit = _search(rank, code)
                known &= hit
            code = code * self.num_nodes + column
        position, hit = _search(self.codes, code)
        if is_exported():  # a position of -1 reads the end
            return torch.where(known & hit, torch.cat([self.rows, self.rows.new_full((1,), -1)])[position], -1)
        if len(self.rows) == 0:
            return torch.full_like(code, -1)
        return torch.where(known & hit, self.rows[position], -1)

    def distinct(self, tuples: Tensor) -> tuple[Tensor, TupleIndex]:
        """The number of each of the indexed tuples among the distinct ones, and an index of those."""
        numbers, firsts = self.numbers()
        ids = torch.empty_like(self.rows)
        ids[self.rows] = numbers
        return ids, TupleIndex.build(tuples[firsts], self.num_nodes)

    def repeated(self) -> Tensor | None:
        """The positions of two equal tuples, if there are any."""
        same = (self.codes[1:] == self.codes[:-1]).nonzero().flatten()
        return None if len(same) == 0 else self.rows[same[0] : same[0] + 2]


def _search(ordered: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Where each value stands in a sorted list, and whether it is in it."""
    if is_exported():  # by ranks among both, with operators that ONNX has, too
        distinct, ranks = torch.unique(torch.cat([ordered, values]), return_inverse=True)
        count = ordered.shape[0]
        places = ordered.new_full((distinct.shape[0],), -1)
        found = places.index_copy(0, ranks[:count], torch.arange(count, device=ordered.device))[ranks[count:]]
        return found, found >= 0
    if len(ordered) == 0:
        return torch.zeros_like(values), torch.zeros_like(values, dtype=torch.bool)
    position = torch.searchsorted(ordered, values).clamp_(max=len(ordered) - 1)
    return position, ordered[position] == values
