"""k-uniform hyperedge prediction (Table 4): which tuples of typed nodes belong together."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from anyorder.arrays import digest
from anyorder.datasets import registry
from anyorder.experiments.hyperedges.answers import Form, answer
from anyorder.experiments.hyperedges.batches import Known, NumberedBatches, Positives, TupleBatch, TupleSet
from anyorder.experiments.hyperedges.data import Part, TypedHyperedges, read_hyperedges
from anyorder.experiments.hyperedges.tables import read_table
from anyorder.experiments.hyperedges.vocabulary import Vocabulary
from anyorder.extras import require
from anyorder.training.config import configurable
from anyorder.training.parts import fold_parts
from anyorder.training.run import (
    Answers,
    ChoosesThenTrainsOnAll,
    ModelConfig,
    PredictRequest,
    Run,
    Selection,
    Splits,
    Task,
    check_least,
)

LAST_EPOCHS = 20


@dataclass(frozen=True)
class Hyperedges(Task):
    """Positives against ``negatives`` fresh negatives each; AUC and average precision pooled over all of a part.

    With ``selection_by="validation"`` a part of the training tuples chooses the epoch and the whole test set is scored once;
    what the test set scores in every epoch is written down, and chooses nothing. ``"published"`` is what papers before did:
    no tuple is kept from training, and the epoch with the best AUC on the test set counts. Both sets are shuffled anew for
    every epoch and lose their last batch if that is not whole: of the 282 test triples of GPS another random 192 are scored
    in every epoch, and no step is taken on the 2 training triples that 12 batches of 96 leave over.
    """

    shapes_type = Known
    predict_options: ClassVar[tuple[str, ...]] = ("candidates", "complete", "top")

    selection_by: Literal["validation", "published"] = "validation"
    validation: float = 0.1
    """Share of the training tuples that chooses the epoch."""
    negatives: int = 5
    positive_weight: float = 5.0
    """Of a training positive in the cross-entropy; a negative has 1."""
    reconstruction: float = 0.01
    """Weight of the autoencoders' loss."""
    watch_test: bool = True
    """Score the test set in every evaluation as well, for the record."""
    published_batch: int = 96

    def __post_init__(self) -> None:
        check_least(self, {"negatives": 1, "published_batch": 1})
        if not 0 < self.validation < 1:
            raise ValueError(f"the share for validation must lie between 0 and 1, got {self.validation}")

    @property
    def selection(self) -> Selection | None:
        return Selection("AUC", "max")

    @abstractmethod
    def read(self, *, seed: int, data_dir: Path | None) -> tuple[TypedHyperedges, Vocabulary | None]:
        """The training and test tuples, and the names of their nodes; None if they are called by their numbers."""

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        data, vocabulary = self.read(seed=seed, data_dir=data_dir)
        if self.selection_by == "validation":
            data = self._with_validation(data, seed)
        known_by = digest(data.train, data.validation, data.test, data.train_weights)
        train = self._positives(data, "train")
        test = self._positives(data, "test")
        shapes = replace(Known.of(data), vocabulary=None if vocabulary is None else vocabulary.names)
        return Splits(
            TupleSet([train], seed=seed), self._evaluated(data, seed), TupleSet([test], seed=seed), shapes, digest=known_by
        )

    def _with_validation(self, data: TypedHyperedges, seed: int) -> TypedHyperedges:
        return data.with_validation(self.validation, seed=seed)

    def _positives(self, data: TypedHyperedges, part: Part, **options: bool) -> Positives:
        return Positives.of(data, part, per_positive=self.negatives, **options)

    def _evaluated(self, data: TypedHyperedges, seed: int) -> TupleSet:
        """What is scored in every evaluation."""
        if self.selection_by == "published":
            scored = _in_whole_batches(len(data.test), self.published_batch)
            return TupleSet([self._positives(data, "test")], seed=seed, scored=scored)
        chosen = [self._positives(data, "validation", fresh=False)]
        if self.watch_test:
            chosen.append(self._positives(data, "test", watched=True))
        return TupleSet(chosen, seed=seed)

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        return _as_it_is

    def batches(self, data: Dataset[Any], *, batch_size: int, seed: int, shuffle: bool, rank: int, world: int) -> Any:
        items = cast(TupleSet, data)
        options = {"batch_size": batch_size, "seed": seed, "rank": rank, "world": world}
        training = shuffle and self.selection_by == "published"
        drawn = _in_whole_batches(len(items), batch_size) if training else items.scored
        return NumberedBatches(len(items), shuffle=shuffle, drawn=drawn, **options)

    def loss(self, model: nn.Module, batch: TupleBatch) -> Tensor:
        logits, auxiliary = model.with_auxiliary_loss(batch.tuples)  # type: ignore[operator]
        logits = logits[batch.place]
        weights = torch.ones_like(logits)
        weights[:, 0] = self.positive_weight * batch.weights
        label = torch.zeros_like(logits)
        label[:, 0] = 1
        return functional.binary_cross_entropy_with_logits(logits, label, weights) + self.reconstruction * auxiliary

    def evaluate(self, model: nn.Module, batch: TupleBatch) -> dict[str, Tensor]:
        return {"logits": model(batch.tuples)[batch.place], "unseen": batch.unseen, "watched": batch.watched}

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        logits, unseen, watched = (collected[name].numpy() for name in ("logits", "unseen", "watched"))
        found = _scores(logits[~watched])
        if 0 < unseen[~watched].sum() < len(unseen[~watched]):
            found |= {f"unseen/{name}": value for name, value in _scores(logits[~watched & unseen]).items()}
        if watched.any():
            found |= {f"test {name}": value for name, value in _scores(logits[watched]).items()}
        return found

    def from_history(self, history: Sequence[dict[str, float]]) -> dict[str, float]:
        """The test set's best epoch, and the mean of its last epochs; nothing where there are too few to speak of."""
        published = self.selection_by == "published"
        names = {"AUC": "AUC", "AUPR": "AUPR"} if published else {"AUC": "test AUC", "AUPR": "test AUPR"}
        seen = [entry for entry in history if names["AUC"] in entry]
        found = {}
        if len(seen) > (0 if published else 1):
            best = max(seen, key=lambda entry: entry[names["AUC"]])
            found = {f"{'' if published else 'best test epoch/'}{name}": best[key] for name, key in names.items()}
        if len(seen) >= LAST_EPOCHS:
            part = f"last {LAST_EPOCHS} epochs"
            found |= {f"{part}/{name}": float(np.mean([e[key] for e in seen[-LAST_EPOCHS:]])) for name, key in names.items()}
        return found

    def predict(self, model: nn.Module, shapes: Known, request: PredictRequest) -> str:
        return answer(model, shapes, request, self._form)

    @property
    def _form(self) -> Form:
        return Form()


def _in_whole_batches(items: int, batch_size: int) -> int:
    """How many items whole batches hold; all of them if they are fewer than one batch.

    >>> _in_whole_batches(282, 96), _in_whole_batches(50, 96)
    (192, 50)
    """
    return items // batch_size * batch_size or items


def _as_it_is(batch: Any) -> Any:
    return batch


def _scores(logits: NDArray[np.float32]) -> dict[str, float]:
    """AUC and average precision, the positives in the first column."""
    metrics = require("sklearn.metrics", "train")
    label = np.zeros(logits.shape, dtype=np.int64)
    label[:, 0] = 1
    flat = label.reshape(-1), logits.reshape(-1)
    return {"AUC": float(metrics.roc_auc_score(*flat)), "AUPR": float(metrics.average_precision_score(*flat))}


@configurable
@dataclass(frozen=True)
class PublishedHyperedges(Hyperedges):
    """GPS, MovieLens, drug or wordnet, with their published test sets; nodes are called by their numbers."""

    name: str = "GPS"

    def read(self, *, seed: int, data_dir: Path | None) -> tuple[TypedHyperedges, Vocabulary | None]:
        return read_hyperedges(registry.locate("dhne_hyperedges", part=self.name, data_dir=data_dir)), None


@configurable
@dataclass(frozen=True)
class TableHyperedges(ChoosesThenTrainsOnAll, Hyperedges):
    """The rows of a CSV file, repeated ones merged; a random part is kept to test on."""

    path: str = ""
    columns: tuple[str, ...] = ()
    weight: str | None = None
    header: bool = True
    delimiter: str = ","
    test: float = 0.1
    """Share of the distinct tuples to test on."""
    watch_test: bool = False
    """A test part of own data is looked at once."""
    everything: bool = False
    """Train on all tuples and choose nothing: what follows where there is no test part (``test=0``)."""
    folds: int = 0
    """In place of a share to test on: so many parts, of which number ``fold`` tests."""
    fold: int = 0

    @property
    def without_test(self) -> bool:
        return self.test == 0 and not self.everything

    def _with_validation(self, data: TypedHyperedges, seed: int) -> TypedHyperedges:
        found = super()._with_validation(data, seed)
        if self.test:
            return found
        kept = data if self.everything else found
        return replace(found, train=kept.train, weights=kept.weights, test=found.validation)

    def read(self, *, seed: int, data_dir: Path | None) -> tuple[TypedHyperedges, Vocabulary | None]:
        options = {"weight": self.weight, "header": self.header, "delimiter": self.delimiter}
        table = read_table(self.path, self.columns, progress=sys.stdout.isatty(), **options)  # type: ignore[arg-type]
        if self.folds:
            tested = fold_parts(np.arange(len(table)), None, folds=self.folds, fold=self.fold, seed=seed).test
            return table.tested_on(tested), table.vocabulary
        return table.split(self.test, seed=seed), table.vocabulary

    def describe(self, splits: Splits) -> list[str]:
        known = splits.shapes
        assert isinstance(known, Known)
        columns = ", ".join(f"{name} ({size:,})" for name, size in zip(known.names, known.sizes, strict=True))
        tested = splits.test if self.test else ()
        sizes = [len(part) for part in (splits.train, splits.valid or (), tested)]  # type: ignore[arg-type]
        return [f"tuples of {columns}: {sizes[0]:,} to train on, {sizes[1]:,} to validate, {sizes[2]:,} to test"]

    def conclude(self, run: Run, model: nn.Module, splits: Splits, folder: Path) -> list[Answers]:
        """The model, and how often the pairs of a tuple were seen together."""
        from anyorder.experiments.hyperedges.tally import PairTally
        from anyorder.training.outcome import collect

        assert isinstance(splits.shapes, Known)
        theirs = collect(run, PairTally(splits.shapes), splits.test)
        return [Answers("model", collect(run, model, splits.test)), Answers("baseline: pair counts", theirs)]

    @property
    def _form(self) -> Form:
        return Form(self.header, self.delimiter)
