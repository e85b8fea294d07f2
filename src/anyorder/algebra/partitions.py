"""Set partitions: which axes of an index tuple hold the same node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property


@dataclass(frozen=True, order=True)
class SetPartition:
    """Which axes of an index tuple are tied, as a restricted growth string.

    >>> SetPartition((0, 0, 1)).blocks
    ((0, 1), (2,))
    >>> SetPartition.of((7, 7, 3))
    SetPartition(labels=(0, 0, 1))

    Args:
        labels: the block of each axis; blocks are numbered in order of first appearance.
    """

    labels: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.labels != _canonical(self.labels):
            raise ValueError(
                f"labels must number the blocks in order of first appearance: "
                f"expected {_canonical(self.labels)}, got {self.labels}; SetPartition.of renumbers"
            )

    @classmethod
    def of(cls, values: tuple[int, ...]) -> SetPartition:
        """The pattern of equal values of a tuple."""
        return cls(_canonical(tuple(values)))

    @property
    def order(self) -> int:
        """Number of axes."""
        return len(self.labels)

    @cached_property
    def num_blocks(self) -> int:
        """Number of distinct nodes in a tuple of this pattern."""
        return 1 + max(self.labels) if self.labels else 0

    @cached_property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """The axes of each block."""
        return tuple(
            tuple(axis for axis, label in enumerate(self.labels) if label == block) for block in range(self.num_blocks)
        )

    @cached_property
    def representatives(self) -> tuple[int, ...]:
        """The first axis of each block: reading these turns a tuple into its compact form (Prop. 1)."""
        return tuple(axes[0] for axes in self.blocks)

    @property
    def is_distinct(self) -> bool:
        """Whether no two axes are tied."""
        return self.num_blocks == self.order

    @property
    def name(self) -> str:
        """Letters, equal where axes are tied.

        >>> SetPartition((0, 0, 1)).name
        '(i,i,j)'
        """
        return f"({','.join(self.expand(tuple('ijklmnopqrstuvwxyzabcdefgh'[: self.num_blocks])))})"

    def expand(self, compact: tuple[str, ...]) -> tuple[str, ...]:
        """The tuple whose blocks hold these names.

        >>> SetPartition((0, 0, 1)).expand(("i", "j"))
        ('i', 'i', 'j')
        """
        return tuple(compact[label] for label in self.labels)


def _canonical(values: tuple[int, ...]) -> tuple[int, ...]:
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(value, len(seen)) for value in values)


def _growth_strings(order: int) -> Iterator[tuple[int, ...]]:
    if order == 0:
        yield ()
        return
    for prefix in _growth_strings(order - 1):
        for label in range(max(prefix, default=-1) + 2):
            yield (*prefix, label)


@cache
def set_partitions(order: int) -> tuple[SetPartition, ...]:
    """All patterns of an order, Bell(order) of them.

    >>> [len(set_partitions(order)) for order in range(6)]
    [1, 1, 2, 5, 15, 52]

    Args:
        order: number of axes.
    """
    if order < 0:
        raise ValueError(f"order must be at least 0, got {order}")
    return tuple(SetPartition(labels) for labels in _growth_strings(order))
