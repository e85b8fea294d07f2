"""Set to graph: from the points of a set to its edges, or to a partition of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import Dataset, Subset

from anyorder.errors import InputError
from anyorder.experiments.set_to_graph.baselines.s2g import SetToGraphNetwork
from anyorder.experiments.set_to_graph.baselines.siamese import SiameseTriplet
from anyorder.experiments.set_to_graph.edge_metrics import edge_loss, edge_scores, partition_loss, predicted_edges, soft_f1
from anyorder.experiments.set_to_graph.files import LabelKind, read_sets, stream_sets
from anyorder.experiments.set_to_graph.models import MOST_PAIRS, PairEncoder, PairModelSettings
from anyorder.experiments.set_to_graph.partitions import Labels, connected_components_ragged, partition_scores
from anyorder.experiments.set_to_graph.program import PairProgram
from anyorder.experiments.set_to_graph.sets import SetBatch, SetSample, SetShapes, collate_sets
from anyorder.experiments.set_to_graph.writers import write_predictions
from anyorder.extras import require
from anyorder.files import file_digest
from anyorder.ops.allocation import without_holes
from anyorder.training.answers import finite_answers
from anyorder.training.config import configurable
from anyorder.training.parts import fold_parts
from anyorder.training.run import Answers, ModelConfig, PredictRequest, Run, Selection, Splits, Task

SoftF1 = Literal["sum", "mean"]


@dataclass(frozen=True)
class PairTask(Task):
    """Data aside, everything about predicting edges or a partition from logits over ordered pairs."""

    shapes_type = SetShapes

    @property
    @abstractmethod
    def answers(self) -> LabelKind:
        """What is predicted."""

    @property
    def soft_f1(self) -> SoftF1:
        """How the soft F1 of the partition loss goes over the sets of a batch."""
        return "sum"

    @property
    def edges_with_f1(self) -> bool:
        """Whether the loss of edges has a soft F1 beside the cross-entropy."""
        return False

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        if not isinstance(model, PairModelSettings):
            raise TypeError(f"a set-to-graph task needs a model of pairs, got {type(model).__name__}")
        return model.collate()

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        if isinstance(model, SiameseTriplet):
            return model.triplet_loss(batch)
        logits = model(batch)
        if self.answers is LabelKind.EDGES:
            return edge_loss(logits, batch, self.edges_with_f1)
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

    def read_input(self, path: Path, shapes: SetShapes) -> Iterator[SetSample | None]:
        """The sets of a user's file one by one, as the model wants them; None is a set without points."""
        for sets in stream_sets(path):
            if sets.channels != shapes.channels:
                raise InputError(
                    f"{path}: the model was trained on points of {shapes.channels} features, got {sets.channels}"
                )
            known = StandardisedSets(sets, shapes)
            yield from (known[number] for number in range(len(known)))

    def predict(self, model: nn.Module, shapes: SetShapes, request: PredictRequest) -> str:
        """Write the edges or partitions of the sets of a file, in their order."""
        if request.input is None:
            raise ValueError("name the sets with --input: a .parquet or .npz file with a set per row")
        output = request.output or request.input.with_name(f"{request.input.stem}.predicted.jsonl")
        apply = predict_edges if self.answers is LabelKind.EDGES else predict_partitions
        count = write_predictions(output, apply(model, self.read_input(request.input, shapes)), self.answers)
        return f"{self.answers.value} of {count} sets in {output}"

    def program(self, model: nn.Module, shapes: SetShapes) -> tuple[nn.Module, dict[str, Tensor]]:
        """From the points of a set (n, channels), as users have them, to a logit for each ordered pair (n, n)."""
        if not isinstance(model, PairEncoder | SetToGraphNetwork):
            raise InputError(f"only ours and S2G are programs of sets of any size, got {type(model).__name__}")
        return PairProgram(model, shapes), {"points": torch.linspace(0, 1, 5 * shapes.channels).view(5, -1)}


@configurable
@dataclass(frozen=True)
class SetsFromFile(PairTask):
    """A user's own sets, labelled by edges or by a partition; the epoch with the best validation F1 counts.

    A share of the rows, drawn by the seed, is kept for validation and another for the test; features are standardised by
    the training part.
    """

    data: str
    labels: Literal["edges", "partition"]
    valid: float = 0.1
    test: float = 0.1
    f1_over_sets: SoftF1 = "mean"
    everything: bool = False
    """Train on all sets and choose nothing: what follows where there is no test part (``test=0``)."""
    folds: int = 0
    """In place of shares: so many parts, of which number ``fold`` tests and the next one chooses the epoch."""
    fold: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.valid < 1 and 0 <= self.test < 1 and self.valid + self.test < 1):
            raise ValueError(f"the shares for validation and test must leave some: got {self.valid} and {self.test}")

    @property
    def answers(self) -> LabelKind:
        return LabelKind(self.labels)

    @property
    def soft_f1(self) -> SoftF1:
        return self.f1_over_sets

    @property
    def selection(self) -> Selection | None:
        return None if self.everything else Selection("F1", "max")

    @property
    def score_name(self) -> str:
        return "F1"

    @property
    def without_test(self) -> bool:
        return self.test == 0 and not self.everything

    def describe(self, splits: Splits) -> list[str]:
        shapes = splits.shapes
        assert isinstance(shapes, SetShapes)
        tested = splits.test if self.test else ()
        sizes = [len(part) for part in (splits.train, splits.valid or (), tested)]  # type: ignore[arg-type]
        points = f"sets of at most {shapes.max_points} points with {shapes.channels} features, labelled by {self.labels}"
        return [f"{points}: {sizes[0]:,} to train on, {sizes[1]:,} to validate, {sizes[2]:,} to test"]

    def conclude(self, run: Run, model: nn.Module, splits: Splits, folder: Path) -> list[Answers]:
        """The model, and a distance tuned on training sets."""
        from anyorder.experiments.set_to_graph.threshold import tuned_threshold
        from anyorder.training.outcome import collect

        cheap = tuned_threshold(self, splits.train)  # type: ignore[arg-type]
        theirs = collect(run, cheap, splits.test)
        return [Answers("model", collect(run, model, splits.test)), Answers("baseline: tuned distance", theirs)]

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        sets = read_sets(self.data)
        if sets.kind is not self.answers:
            raise ValueError(f"{self.data}: expected sets labelled by {self.labels}, got {sets.kind.value}")
        valid, test = (max(1, round(share * len(sets))) if share else 0 for share in (self.valid, self.test))
        if valid + test >= len(sets):
            raise ValueError(f"{self.data}: {len(sets)} sets are too few to train, validate and test: expected at least 3")
        order = np.random.default_rng(seed).permutation(len(sets)).tolist()
        parts = [order[valid + test :], order[:valid], order[valid : valid + test]]
        if self.folds:
            found = fold_parts(np.arange(len(sets)), None, folds=self.folds, fold=self.fold, seed=seed)
            parts = [part.tolist() for part in (found.train, found.valid, found.test)]
        elif self.test == 0:
            parts = [order if self.everything else parts[0], parts[1], parts[1]]
        _check_labels(sets, self.data)
        constants = standardise(sets[number] for number in parts[0])
        largest = max(len(sample.points) for sample in sets.sets)
        shapes = SetShapes(sets.channels, largest, **constants)
        train, held, tested = (Subset(StandardisedSets(sets, shapes), part) for part in parts)
        return Splits(train, None if self.everything else held, tested, shapes, digest=file_digest(self.data))


def _check_labels(sets: Any, path: str) -> None:
    """Refuse labels that say the same of all pairs."""
    seen = [sample.adjacency[~np.eye(len(sample.points), dtype=np.bool_)] for sample in sets.sets]
    found = np.concatenate([np.unique(each) for each in seen]) if seen else np.zeros(0)
    if len(found) and len(np.unique(found)) == 1:
        what = "all points of every set belong together" if found[0] else "no two points of any set belong together"
        raise ValueError(f"{path}: {what}: there is nothing to learn")


def summed_partition_loss(logits: Tensor, batch: SetBatch) -> Tensor:
    """Cross-entropy minus the sum of soft F1 over the sets of a batch, those of other processes included."""
    world = torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1
    loss = partition_loss(logits, batch, sum_f1=True)
    # gradients are averaged over processes: to sum over all of their sets, each counts its own so many times
    return loss if world == 1 else loss - (world - 1) * soft_f1(logits, batch).sum()


def standardise(samples: Iterable[SetSample]) -> dict[str, tuple[float, ...]]:
    """Mean and deviation of each feature over all points; a constant feature gets deviation 1."""
    points = np.concatenate([sample.points for sample in samples]).astype(np.float64)
    deviation = points.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    return {"mean": tuple(points.mean(axis=0).tolist()), "deviation": tuple(deviation.tolist())}


class StandardisedSets(Dataset[SetSample]):
    """Sets with (x - mean) / deviation for points, if ``shapes`` have these constants."""

    def __init__(self, sets: Any, shapes: SetShapes) -> None:
        self.sets = sets
        given = [values for values in (shapes.mean, shapes.deviation) if values is not None]
        self.constants = [np.asarray(values, dtype=np.float32) for values in given]

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, number: int) -> SetSample:
        sample: SetSample = self.sets[number]
        if not self.constants:
            return sample
        mean, deviation = self.constants
        return replace(sample, points=(sample.points - mean) / deviation)


def predict_edges(model: nn.Module, sets: Iterable[SetSample | None]) -> Iterator[NDArray[np.int64]]:
    """The edges i < j (m, 2) of each set, as the sets come; none of a set without points."""
    for batch, logits, there in _logits(model, sets):
        edges = iter(predicted_edges(logits, batch) if batch is not None and logits is not None else ())
        yield from (next(edges) if present else np.zeros((0, 2), dtype=np.int64) for present in there)


def predict_partitions(model: nn.Module, sets: Iterable[SetSample | None]) -> Iterator[Labels]:
    """A cluster number per point of each set, as the sets come."""
    for batch, logits, there in _logits(model, sets):
        parts: Iterator[Labels] = iter(())
        if batch is not None and logits is not None:
            bounds = _bounds(batch)
            parts = iter(np.split(connected_components_ragged(logits, bounds), bounds[1:-1]))
        yield from (next(parts) if present else np.zeros(0, dtype=np.int64) for present in there)


Answered = tuple[SetBatch | None, Tensor | None, list[bool]]


def _logits(model: nn.Module, sets: Iterable[SetSample | None]) -> Iterator[Answered]:
    """Batches with their logits, and which of the sets behind them have points."""
    progress = require("rich.progress", "train")
    columns = (progress.TextColumn("predicting"), progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
    with torch.inference_mode(), progress.Progress(*columns, transient=True) as bar:
        task = bar.add_task("predicting", total=None)
        for group in without_holes(batches_by_pairs(sets)):
            points = [SetSample(sample.points) for sample in group if sample is not None]
            batch = collate_sets(points) if points else None
            logits = None if batch is None else finite_answers(model(batch), "pairs of points")
            yield batch, logits, [sample is not None for sample in group]
            bar.advance(task, len(group))


def batches_by_pairs(
    sets: Iterable[SetSample | None], most_pairs: int = MOST_PAIRS, most_sets: int = 64
) -> Iterator[list[SetSample | None]]:
    """Sets in their order, together as long as they have few pairs: memory goes with these; one set alone may have more."""
    group: list[SetSample | None] = []
    pairs = 0
    for sample in sets:
        own = 0 if sample is None else len(sample.points) ** 2
        if group and (len(group) == most_sets or pairs + own > most_pairs):
            yield group
            group, pairs = [], 0
        group.append(sample)
        pairs += own
    if group:
        yield group


def _bounds(batch: SetBatch) -> NDArray[np.int64]:
    """Where each set begins, and where the last one ends."""
    return np.concatenate([[0], batch.sizes.cumsum(0).cpu().numpy()])
