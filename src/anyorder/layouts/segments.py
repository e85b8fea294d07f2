"""Rows sorted by group, and rows that read other rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.layouts.memory import is_exported, kept
from anyorder.layouts.transfer import Transferable


@dataclass(frozen=True, eq=False)
class Segments(Transferable):
    """Rows sorted by group: group g holds ``rows[pointer[g]:pointer[g + 1]]``; rows of no group are left out.

    >>> segments = Segments.build(torch.tensor([1, -1, 0, 1]), 3)
    >>> segments.rows.tolist(), segments.pointer.tolist()
    ([2, 0, 3], [0, 1, 3, 3])

    Args:
        rows: (sorted row,), those of the first group first.
        pointer: (groups + 1,), where each group begins.
    """

    rows: Tensor
    pointer: Tensor

    @classmethod
    def build(cls, group: Tensor, num_groups: int) -> Segments:
        """Sort rows by group; a negative group means none."""
        if is_exported():
            return cls._exported(group, num_groups)
        counts = torch.bincount(group + 1, minlength=num_groups + 1)
        ends = counts.cumsum(0)
        skipped = int(counts[0])
        narrow = group.to(torch.int32) if num_groups < 2**31 else group
        return cls(torch.argsort(narrow, stable=True)[skipped:], ends - skipped)

    @classmethod
    def _exported(cls, group: Tensor, num_groups: int) -> Segments:
        groups, order = torch.sort(group)
        there = (groups >= 0).nonzero().flatten()
        groups = groups[there]
        sizes = group.new_zeros(num_groups).index_add(0, groups, torch.ones_like(groups))
        made = cls(order[there], torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]))
        made.__dict__.update(group=groups, sizes=sizes)  # of the same symbolic sizes as rows and groups
        return made

    @property
    def num_groups(self) -> int:
        """The number of groups, empty ones too."""
        return self.pointer.shape[0] - 1

    @kept
    def sizes(self) -> Tensor:
        """The number of rows of each group."""
        return self.pointer.diff()

    @kept
    def group(self) -> Tensor:
        """The group of each of the sorted rows."""
        groups = torch.arange(self.num_groups, device=self.pointer.device)
        return torch.repeat_interleave(groups, self.sizes)


@dataclass(frozen=True, eq=False)
class Queries(Transferable):
    """Output entries by class and group: class c reads group g for ``rows[pointer[c, g]:pointer[c, g + 1]]``.

    >>> first, second = (Segments.build(torch.tensor(groups), 2) for groups in ([0, 1], [1, 1]))
    >>> queries = Queries.build([first, second])
    >>> queries.rows.tolist(), queries.pointer.tolist()
    ([0, 1, 0, 1], [[0, 1, 2], [2, 2, 4]])

    Args:
        rows: (query,), the entries of the first class first, by group.
        pointer: (classes, groups + 1), where each group begins.
    """

    rows: Tensor
    pointer: Tensor

    @classmethod
    def build(cls, classes: Sequence[Segments]) -> Queries:
        """The queries of several classes that share their groups."""
        starts = [0]
        for segments in classes:
            starts.append(starts[-1] + segments.rows.shape[0])
        pointer = torch.stack([part.pointer + start for part, start in zip(classes, starts[:-1], strict=True)])
        made = cls(torch.cat([part.rows for part in classes]), pointer)
        if is_exported():
            numbers = [torch.full_like(part.rows, number) for number, part in enumerate(classes)]
            made.__dict__.update(group=torch.cat([part.group for part in classes]), classes=torch.cat(numbers))
        return made

    @kept
    def classes(self) -> Tensor:
        """The class of each of the sorted rows."""
        classes = torch.arange(len(self.pointer), device=self.pointer.device)
        return torch.repeat_interleave(classes, self.pointer[:, -1] - self.pointer[:, 0])

    @kept
    def group(self) -> Tensor:
        """The group of each of the sorted rows."""
        groups = torch.arange(self.pointer.shape[1] - 1, device=self.pointer.device)
        return torch.repeat_interleave(groups.repeat(len(self.pointer)), self.pointer.diff().flatten())

    def of(self, first: int, last: int) -> Queries:
        """The queries of some classes."""
        if last - first == len(self.pointer):
            return self
        start, stop = int(self.pointer[first, 0]), int(self.pointer[last - 1, -1])
        return Queries(self.rows[start:stop], self.pointer[first:last] - start)


@dataclass(frozen=True, eq=False)
class Spread(Transferable):
    """Which row each target entry reads.

    >>> Spread.build(torch.tensor([2, -1, 2]), 3).signed.tolist()
    [2, -1, 2]

    Args:
        rows: (target entry,), the row that it reads; None: each its own.
        missing: (target entry,), true where there is no row; None: all are there.
        inverse: (row,), where no row is read twice: the entry that reads it, -1 for none.
    """

    rows: Tensor | None
    missing: Tensor | None
    inverse: Tensor | None = None

    @classmethod
    def build(cls, rows: Tensor, num_sources: int, *, one_to_one: bool = False) -> Spread:
        """From the row of each target entry, -1 for none; ``one_to_one`` says that no row is read twice."""
        missing = rows < 0
        if is_exported():
            return cls(rows.masked_fill(missing, num_sources), missing)
        some = bool(missing.any())
        if not some and len(rows) == num_sources and torch.equal(rows, torch.arange(num_sources, device=rows.device)):
            return cls(None, None)
        inverse = None
        if one_to_one:
            inverse = rows.new_full((num_sources + 1,), -1)
            inverse[rows] = torch.arange(len(rows), device=rows.device)  # those that read nothing, -1, write to the end
            inverse = inverse[:-1]
        return cls(rows.clamp(min=0), missing, inverse) if some else cls(rows, None, inverse)

    @property
    def signed(self) -> Tensor | None:
        """The rows with -1 where there is none."""
        return self.rows if self.rows is None or self.missing is None else self.rows.masked_fill(self.missing, -1)
