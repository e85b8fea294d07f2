"""Data loaders of a run: the same items in every step, whatever the number of processes."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader, Dataset

from anyorder.training.run import Run
from anyorder.training.sampling import Shares


class Loaders:
    """Loaders of one process of a run."""

    def __init__(self, run: Run, *, rank: int, world: int, workers: int = 0) -> None:
        self.run, self.rank, self.world, self.workers = run, rank, world, workers

    def train(self, data: Dataset[Any], *, epoch: int = 0, start: int = 0) -> tuple[DataLoader[Any], Shares]:
        """Batches of the training items, from a place within an epoch on, and what chooses them."""
        count = self.run.accumulate
        places = [(self.rank * count + part, self.world * count) for part in range(count)]
        parts = [self._batches(data, self.run.batch_size, rank, world, shuffle=True) for rank, world in places]
        shares = Shares(parts, training=True, epoch=epoch, start=start)
        return self._loader(data, shares), shares

    def evaluation(self, data: Dataset[Any]) -> DataLoader[Any]:
        """Every item once, over all processes together."""
        size = max(self.world, self.run.eval_batch_size or self.run.batch_size)
        return self._loader(data, Shares([self._batches(data, size, self.rank, self.world, shuffle=False)]))

    def _batches(self, data: Dataset[Any], size: int, rank: int, world: int, *, shuffle: bool) -> Any:
        place = {"rank": rank, "world": world}
        return self.run.task.batches(data, batch_size=size, seed=self.run.seed, shuffle=shuffle, **place)

    def _loader(self, data: Dataset[Any], batches: Shares) -> DataLoader[Any]:
        return DataLoader(
            data,
            batch_sampler=batches,
            collate_fn=self.run.task.collate(self.run.model),
            num_workers=self.workers,
            persistent_workers=self.workers > 0,
        )
