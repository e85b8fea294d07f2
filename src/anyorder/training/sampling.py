"""Batches that are the same whatever the number of processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import torch
from torch.utils.data import Sampler


class GlobalBatches(Sampler[list[int]]):
    """Global batches drawn by (seed, epoch) and cut into one slice per process: nothing is dropped or repeated.

    The last slices of an epoch are empty where items are fewer than processes.

    >>> [list(GlobalBatches(5, batch_size=2, seed=0, shuffle=False, rank=rank, world=2)) for rank in (0, 1)]
    [[[0], [2], []], [[1], [3], [4]]]
    """

    def __init__(
        self, num_items: int, *, batch_size: int, seed: int = 0, shuffle: bool = True, rank: int = 0, world: int = 1
    ) -> None:
        if batch_size < world:
            raise ValueError(
                f"batch_size must be at least the number of processes times accumulated steps, {world}, got {batch_size}"
            )
        if shuffle and num_items < world:
            raise ValueError(f"{num_items} training items cannot be shared by {world} processes times accumulated steps")
        self.num_items, self.batch_size, self.seed, self.shuffle = num_items, batch_size, seed, shuffle
        self.rank, self.world = rank, world
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-self.num_items // self.batch_size)

    def order(self) -> list[int]:
        """The items of this epoch as they come."""
        if not self.shuffle:
            return list(range(self.num_items))
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self.epoch) % 2**63)
        return torch.randperm(self.num_items, generator=generator).tolist()

    def cut(self, order: list[int]) -> Iterator[list[int]]:
        """This process's slice of each global batch of some items."""
        for begin in range(0, len(order), self.batch_size):
            size = min(self.batch_size, len(order) - begin)
            low, high = begin + size * self.rank // self.world, begin + size * (self.rank + 1) // self.world
            yield order[low:high]

    def __iter__(self) -> Iterator[list[int]]:
        return self.cut(self.order())


class Shares(Sampler[list[int]]):
    """What one process sees: its share of each global batch, in as many parts as gradients are accumulated over.

    Each part is the share of a process of its own, so that a step sees the same items whatever the number of processes
    and parts. An epoch can begin at any batch, where an interrupted run stopped. Empty shares are left out of evaluations;
    in training another item stands in, so that all processes take the step together, and ``idle`` has the batch's
    number: it must count for nothing.

    >>> both = [GlobalBatches(5, batch_size=4, shuffle=False, rank=part, world=2) for part in (0, 1)]
    >>> list(Shares(both)), list(Shares(both, training=True, start=1))
    ([[0, 1], [2, 3], [4]], [[2, 3], [0], [4]])
    """

    def __init__(self, parts: Sequence[Any], *, training: bool = False, epoch: int = 0, start: int = 0) -> None:
        self.parts, self.training, self._begin = parts, training, (epoch, start)
        self.idle: set[int] = set()
        self.set_epoch(epoch)

    @property
    def sampler(self) -> Shares:
        """Itself: the trainer looks here for ``set_epoch``, before training and evaluation alike."""
        return self

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        for part in self.parts:
            part.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.parts) * len(self.parts[0])

    def __iter__(self) -> Iterator[list[int]]:
        first, start = self._begin
        batches = list(chain.from_iterable(zip(*self.parts, strict=True)))
        self.idle.clear()
        if self.training:
            self.idle.update(number for number, batch in enumerate(batches) if not len(batch))
        spare: list[int] = next((batch[:1] for batch in batches if len(batch)), [])
        for number in range(start if self.epoch == first else 0, len(batches)):
            batch = spare if number in self.idle else batches[number]
            if len(batch):
                yield batch
