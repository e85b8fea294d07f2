"""Batches that are the same whatever the number of processes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.utils.data import Sampler


class GlobalBatches(Sampler[list[int]]):
    """Global batches drawn by (seed, epoch) and cut into one slice per process: nothing is dropped or repeated.

    A last training batch smaller than the number of processes joins the one before it.

    >>> parts = [list(GlobalBatches(5, batch_size=2, seed=0, shuffle=False, rank=r, world=2)) for r in (0, 1)]
    >>> parts
    [[[0], [2]], [[1], [3, 4]]]
    """

    def __init__(
        self, num_items: int, *, batch_size: int, seed: int = 0, shuffle: bool = True, rank: int = 0, world: int = 1
    ) -> None:
        if batch_size < world:
            raise ValueError(f"batch_size must be at least the number of processes, {world}, got {batch_size}")
        self.num_items, self.batch_size, self.seed, self.shuffle = num_items, batch_size, seed, shuffle
        self.rank, self.world = rank, world
        self.epoch = 0
        self.start = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def _cuts(self) -> list[tuple[int, int]]:
        starts = list(range(0, self.num_items, self.batch_size))
        if len(starts) > 1 and self.num_items - starts[-1] < self.world:
            starts.pop()
        return list(zip(starts, [*starts[1:], self.num_items], strict=True))

    def __len__(self) -> int:
        return len(self._cuts())

    def __iter__(self) -> Iterator[list[int]]:
        if self.shuffle:
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
            order = torch.randperm(self.num_items, generator=generator).tolist()
        else:
            order = list(range(self.num_items))
        first, self.start = self.start, 0
        for begin, end in self._cuts()[first:]:
            size = end - begin
            low, high = begin + size * self.rank // self.world, begin + size * (self.rank + 1) // self.world
            yield order[low:high]
