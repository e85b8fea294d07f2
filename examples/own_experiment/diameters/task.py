"""Data, loss, metrics and predictions."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from anyorder import Features, SparseIndexSet, collate
from anyorder.layouts.transfer import Transferable
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig, PredictRequest, Selection, Splits, Task
from diameters.models import PointShapes


@dataclass(frozen=True, eq=False)
class PointBatch(Transferable):
    """Sets of points (order 1) and the diameter of each; it moves between devices as a whole."""

    points: Features
    diameter: Tensor

    def __len__(self) -> int:
        return len(self.diameter)


def as_features(points: Tensor) -> Features:
    """The points (point, channel) of one set."""
    index = SparseIndexSet(torch.arange(len(points))[:, None], num_nodes=len(points))
    return Features.of_rows(index, points)


class RandomSets(Dataset[PointBatch]):
    """Sets of normal points."""

    def __init__(self, number: int, size: int, seed: int) -> None:
        self.points = torch.randn(number, size, 2, generator=torch.Generator().manual_seed(seed))

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, number: int) -> PointBatch:
        points = self.points[number]
        return PointBatch(as_features(points), torch.cdist(points, points).max().reshape(1))


def put_together(sets: Sequence[PointBatch]) -> PointBatch:
    """One batch from several sets."""
    return PointBatch(collate([each.points for each in sets]), torch.cat([each.diameter for each in sets]))


@configurable
@dataclass(frozen=True)
class Diameters(Task):
    """The epoch with the least validation error counts."""

    shapes_type = PointShapes

    size: int = 8
    train_sets: int = 2000
    test_sets: int = 500

    @property
    def selection(self) -> Selection:
        return Selection("MAE", "min")

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        sizes = (self.train_sets, self.test_sets, self.test_sets)
        train, valid, test = (RandomSets(number, self.size, 3 * seed + part) for part, number in enumerate(sizes))
        return Splits(train, valid, test, PointShapes(channels=2))

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        return put_together

    def loss(self, model: nn.Module, batch: PointBatch) -> Tensor:
        return functional.l1_loss(model(batch.points).values[:, 0], batch.diameter)

    def evaluate(self, model: nn.Module, batch: PointBatch) -> dict[str, Tensor]:
        return {"error": model(batch.points).values[:, 0] - batch.diameter}

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        return {"MAE": float(collected["error"].abs().mean())}

    def predict(self, model: nn.Module, shapes: PointShapes, request: PredictRequest) -> str:
        """Write the diameter of each set of a CSV file with the columns set, x, y."""
        if request.input is None:
            raise ValueError("--input is needed: a CSV file with the columns set, x, y")
        sets: dict[str, list[list[float]]] = {}
        with request.input.open(newline="") as file:
            for row in csv.DictReader(file):
                sets.setdefault(row["set"], []).append([float(row["x"]), float(row["y"])])
        with torch.no_grad():
            found = model(collate([as_features(torch.tensor(points)) for points in sets.values()])).values[:, 0]
        output = request.output or request.input.with_name("diameters.csv")
        with output.open("w", newline="") as file:
            csv.writer(file).writerows([("set", "diameter"), *zip(sets, found.tolist(), strict=True)])
        return f"diameters of {len(sets)} sets in {output}"
