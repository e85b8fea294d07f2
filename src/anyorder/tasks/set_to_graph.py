"""Set to graph: from the points of a set to its edges, or to a partition of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from anyorder.baselines.siamese import SiameseTriplet
from anyorder.data.own_sets import LabelKind, read_sets
from anyorder.data.set_writers import write_predictions
from anyorder.data.sets import SetBatch, SetSample, collate_sets
from anyorder.extras import require
from anyorder.tasks.edge_metrics import edge_loss, edge_scores, partition_loss, predicted_edges, soft_f1
from anyorder.tasks.pair_models import PairModelSettings
from anyorder.tasks.partitions import Labels, connected_components_ragged, partition_scores
from anyorder.training.run import ModelConfig, PredictRequest, Task

SoftF1 = Literal["sum", "mean"]


@dataclass(frozen=True)
class PairTask(Task):
    """Data aside, everything about predicting edges or a partition from logits over ordered pairs."""

    @property
    @abstractmethod
    def answers(self) -> LabelKind:
        """What is predicted."""

    @property
    def soft_f1(self) -> SoftF1:
        """How the soft F1 of the partition loss goes over the sets of a batch."""
        return "sum"

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        if not isinstance(model, PairModelSettings):
            raise TypeError(f"a set-to-graph task needs a model of pairs, got {type(model).__name__}")
        return model.collate()

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        if isinstance(model, SiameseTriplet):
            return model.triplet_loss(batch)
        logits = model(batch)
        if self.answers is LabelKind.EDGES:
            return edge_loss(logits, batch)
        return summed_partition_loss(logits, batch) if self.soft_f1 == "sum" else partition_loss(logits, batch, False)

    def evaluate(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        logits = model(batch)
        if self.answers is LabelKind.EDGES:
            edges = edge_scores(logits, batch)
            return {"Acc": edges.accuracy, "Prec": edges.precision, "Rec": edges.recall, "F1": edges.f1}
        bounds = _bounds(batch)
        truth = connected_components_ragged(batch.targets - 0.5, bounds)  # cliques: their components are the clusters
        scores = partition_scores(truth, connected_components_ragged(logits, bounds), bounds)
        found = {"F1": scores.f1, "RI": scores.rand_index, "ARI": scores.adjusted_rand_index}
        labels = {} if batch.labels is None else {"label": batch.labels}
        return {**{name: torch.from_numpy(values) for name, values in found.items()}, **labels}

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        """The mean over sets, and over the sets of each label."""
        label = collected.get("label")
        scores = {name: values for name, values in collected.items() if name != "label"}
        means = {name: float(values.mean()) for name, values in scores.items()}
        for number, part in self.parts.items() if label is not None else ():
            own = torch.as_tensor(label == number)
            if bool(own.any()):
                means |= {f"{part}/{name}": float(values[own].mean()) for name, values in scores.items()}
        return means

    @property
    def parts(self) -> dict[int, str]:
        """The names of the labels of sets."""
        return {}

    def num_items(self, batch: Any) -> int:
        return int(batch.num_sets)

    def read_input(self, path: Path, shapes: dict[str, Any]) -> Sequence[SetSample]:
        """The sets of a user's file, as the model wants them."""
        sets = read_sets(path)
        if sets.channels != shapes["channels"]:
            expected = shapes["channels"]
            raise ValueError(f"{path}: the model was trained on points of {expected} features, got {sets.channels}")
        return standardised(sets.sets, shapes)

    def predict(self, model: nn.Module, shapes: dict[str, Any], request: PredictRequest) -> str:
        """Write the edges or partitions of the sets of a file, in their order."""
        if request.input is None:
            raise ValueError("name the sets with --input: a .parquet or .npz file with a set per row")
        output = request.output or request.input.with_name(f"{request.input.stem}.predicted.jsonl")
        sets = self.read_input(request.input, shapes)
        found = predict_edges(model, sets) if self.answers is LabelKind.EDGES else predict_partitions(model, sets)
        write_predictions(output, found, self.answers)
        return f"{self.answers.value} of {len(found)} sets in {output}"


def summed_partition_loss(logits: Tensor, batch: SetBatch) -> Tensor:
    """Cross-entropy minus the sum of soft F1 over the sets of a batch, those of other processes included."""
    world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    loss = partition_loss(logits, batch, sum_f1=True)
    # gradients are averaged over processes: to sum over all of their sets, each counts its own so many times
    return loss if world == 1 else loss - (world - 1) * soft_f1(logits, batch).sum()


def standardise(samples: Sequence[SetSample]) -> dict[str, list[float]]:
    """Mean and deviation of each feature over all points; a constant feature gets deviation 1."""
    points = np.concatenate([sample.points for sample in samples]).astype(np.float64)
    deviation = points.std(axis=0)
    return {"mean": points.mean(axis=0).tolist(), "deviation": np.where(deviation > 0, deviation, 1.0).tolist()}


def standardised(samples: Sequence[SetSample], shapes: dict[str, Any]) -> Sequence[SetSample]:
    """Sets with (x - mean) / deviation for points, if ``shapes`` have these constants."""
    if "mean" not in shapes:
        return samples
    mean, deviation = (np.asarray(shapes[name], dtype=np.float32) for name in ("mean", "deviation"))
    return [SetSample((s.points - mean) / deviation, s.adjacency, s.label) for s in samples]


def predict_edges(model: nn.Module, sets: Sequence[SetSample]) -> list[NDArray[np.int64]]:
    """The edges i < j (m, 2) of each set."""
    return [edges for batch, logits in _logits(model, sets) for edges in predicted_edges(logits, batch)]


def predict_partitions(model: nn.Module, sets: Sequence[SetSample]) -> list[Labels]:
    """A cluster number per point of each set."""
    found = []
    for batch, logits in _logits(model, sets):
        bounds = _bounds(batch)
        found += np.split(connected_components_ragged(logits, bounds), bounds[1:-1])
    return found


def _logits(model: nn.Module, sets: Sequence[SetSample], batch_size: int = 64) -> Any:
    progress = require("rich.progress", "train")
    starts = range(0, len(sets), batch_size)
    with torch.inference_mode():
        for start in progress.track(starts, description="predicting", transient=True, disable=len(starts) < 4):
            batch = collate_sets([SetSample(s.points) for s in sets[start : start + batch_size]])
            yield batch, model(batch)


def _bounds(batch: SetBatch) -> NDArray[np.int64]:
    """Where each set begins, and where the last one ends."""
    return np.concatenate([[0], batch.sizes.cumsum(0).cpu().numpy()])
