"""Finding tuples and grouping entries, by sorting."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_LIMIT = 2**62


@dataclass(frozen=True, eq=False)
class TupleIndex:
    """Where each tuple of a list stands, found by binary search.

    Tuples are folded into integers column by column; before an integer could overflow, the values so far are replaced
    by their rank, so that any order and any number of nodes fit.
    """

    num_nodes: int
    ranks: tuple[Tensor | None, ...]
    codes: Tensor
    order: Tensor

    @classmethod
    def build(cls, tuples: Tensor, num_nodes: int) -> TupleIndex:
        ranks: list[Tensor | None] = []
        code = tuples.new_zeros(len(tuples))
        bound = 1
        for column in tuples.unbind(1):
            rank = None
            if bound * max(num_nodes, 1) > _LIMIT:
                rank, code = torch.unique(code, return_inverse=True)
                bound = len(rank)
            ranks.append(rank)
            code = code * num_nodes + column
            bound *= max(num_nodes, 1)
        codes, order = torch.sort(code, stable=True)
        return cls(num_nodes, tuple(ranks), codes, order)

    @property
    def first(self) -> Tensor:
        """Which of the sorted tuples is the first of those that are the same."""
        first = torch.ones_like(self.codes, dtype=torch.bool)
        first[1:] = self.codes[1:] != self.codes[:-1]
        return first

    def find(self, tuples: Tensor) -> Tensor:
        """The position of each tuple in the list, -1 where it is not in it."""
        code = tuples.new_zeros(len(tuples))
        known = torch.ones_like(code, dtype=torch.bool)
        for rank, column in zip(self.ranks, tuples.unbind(1), strict=True):
            if rank is not None:
                code, hit = _search(rank, code)
                known &= hit
            code = code * self.num_nodes + column
        position, hit = _search(self.codes, code)
        if len(self.order) == 0:
            return torch.full_like(code, -1)
        return torch.where(known & hit, self.order[position], -1)

    def repeated(self) -> Tensor | None:
        """The positions of two equal tuples, if there are any."""
        same = (self.codes[1:] == self.codes[:-1]).nonzero().flatten()
        return None if len(same) == 0 else self.order[same[0] : same[0] + 2]


def _search(ordered: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    if len(ordered) == 0:
        return torch.zeros_like(values), torch.zeros_like(values, dtype=torch.bool)
    position = torch.searchsorted(ordered, values).clamp_(max=len(ordered) - 1)
    return position, ordered[position] == values


@dataclass(frozen=True, eq=False)
class Segments:
    """Rows sorted by group: group g holds ``order[pointer[g]:pointer[g + 1]]``; rows of no group are left out."""

    order: Tensor
    pointer: Tensor

    @classmethod
    def build(cls, group: Tensor, num_groups: int) -> Segments:
        """Sort rows by group; a negative group means none.

        >>> segments = Segments.build(torch.tensor([1, -1, 0, 1]), 3)
        >>> segments.order.tolist(), segments.pointer.tolist()
        ([2, 0, 3], [0, 1, 3, 3])
        """
        counts = torch.bincount(group + 1, minlength=num_groups + 1)
        ends = counts.cumsum(0)
        skipped = int(counts[0])
        narrow = group.to(torch.int32) if num_groups < 2**31 else group
        order = torch.argsort(narrow, stable=True)[skipped:]
        return cls(order, ends - skipped)

    @property
    def num_groups(self) -> int:
        return len(self.pointer) - 1

    @property
    def sizes(self) -> Tensor:
        return self.pointer.diff()
