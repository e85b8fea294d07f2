"""Completing facts of a knowledge hypergraph: every place in turn is a gap, and all entities are ranked for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from anyorder.arrays import digest
from anyorder.experiments.hyperedges.fact_batches import FactShapes, GapBatch, Gaps, TrainingFacts
from anyorder.experiments.hyperedges.facts import FactData, KnownAnswers, read_facts
from anyorder.experiments.hyperedges.pair_counts import PairCounts
from anyorder.experiments.hyperedges.ranking import rank_metrics, ranked
from anyorder.training.config import configurable
from anyorder.training.outcome import collect
from anyorder.training.run import Answers, ModelConfig, PredictRequest, Run, Selection, Splits, Task, check_least

PAIR_COUNTS = "pair counts"


@configurable
@dataclass(frozen=True)
class OwnFacts(Task):
    """Cross-entropy of the entity in a random place against ``negatives`` random ones; filtered MRR chooses the epoch."""

    shapes_type = FactShapes
    predict_options: ClassVar[tuple[str, ...]] = ("candidates", "complete", "top", "skip_unknown")

    path: str = ""
    relation: str = ""
    """The column of the relation, where the file is a table with a header."""
    validation: float = 0.1
    test: float = 0.1
    """Shares of the facts of one file; a folder has files for them."""
    everything: bool = False
    """Train on all facts of the file and choose nothing: what follows where there is no test part (``test=0``)."""
    negatives: int = 256
    asked: int = 2000
    """Gaps of the validation part that are ranked in an evaluation, drawn once."""
    tested: int = 10_000
    """Gaps of the test part that are ranked at most, drawn once; 0 for all."""
    folds: int = 0
    """In place of shares: so many parts, of which number ``fold`` tests and the next one chooses the epoch."""
    fold: int = 0

    def __post_init__(self) -> None:
        check_least(self, {"negatives": 1, "asked": 1, "tested": 0})

    @property
    def selection(self) -> Selection | None:
        return None if self.everything else Selection("MRR", "max")

    @property
    def _is_split(self) -> bool:
        return Path(self.path).is_dir() or self.test > 0

    @property
    def without_test(self) -> bool:
        return not self._is_split and not self.everything

    def read(self, seed: int) -> FactData:
        fold = (self.folds, self.fold) if self.folds else None
        shares: dict[str, Any] = {"valid": self.validation, "test": self.test, "fold": fold}
        data = read_facts(Path(self.path), **shares, seed=seed, relation=self.relation)
        return replace(data, train=data.train.joined(data.valid)) if self.everything else data

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        data = self.read(seed)
        known = KnownAnswers([data.train, data.valid, data.test])
        asked, tested = (
            np.sort(np.random.default_rng(seed).permutation(len(part.queries))[:most])
            for part, most in ((data.valid, self.asked), (data.test, self.tested or None))
        )
        told = digest(*(array for part in (data.train, data.valid, data.test) for array in (part.relation, part.entities)))
        valid, test = Gaps(data.valid, known, 1, asked), Gaps(data.test, known, 2, tested)
        return Splits(TrainingFacts(data.train), None if self.everything else valid, test, FactShapes.of(data), digest=told)

    def describe(self, splits: Splits) -> list[str]:
        data = self.read(0)
        tested = data.test if self._is_split else data.test.chosen(np.arange(0))
        parts = ((data.train, "to train on"), (data.valid, "to validate"), (tested, "to test"))
        sizes = np.bincount(data.train.arity)
        by_arity = ", ".join(f"{sizes[k]:,} of {k}" for k in np.flatnonzero(sizes))
        return [
            *data.notes,
            f"{len(data.entities):,} entities, {len(data.relations):,} relations, training facts: {by_arity} entities",
            ", ".join(f"{len(part):,} facts {what}" for part, what in parts),
            f"{len(splits.test):,} of {len(data.test.queries):,} gaps of {'test' if self._is_split else 'validation'} "  # type: ignore[arg-type]
            "facts are ranked (task.tested)",
        ]

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        return _as_it_is

    def loss(self, model: nn.Module, batch: GapBatch) -> Tensor:
        gap = (torch.rand(len(batch)).to(batch.arity.device) * batch.arity).long()
        target = batch.entities.gather(1, gap.unsqueeze(1)).squeeze(1)
        logits = model.told_apart(replace(batch, gap=gap, target=target), self.negatives)  # type: ignore[operator]
        return functional.cross_entropy(logits, torch.zeros_like(target))

    def evaluate(self, model: nn.Module, batch: GapBatch) -> dict[str, Tensor]:
        return ranked(model(batch), batch)

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        return rank_metrics(collected)

    def conclude(self, run: Run, model: nn.Module, splits: Splits, folder: Path) -> list[Answers]:
        """The model beside counts of pairs."""
        shapes = splits.shapes
        assert isinstance(shapes, FactShapes)
        counts = PairCounts(shapes.facts, len(shapes.relations), len(shapes.entities))
        return [
            Answers("model", collect(run, model, splits.test)),
            Answers(PAIR_COUNTS, count_answers(counts, splits.test)),
        ]

    def predict(self, model: nn.Module, shapes: FactShapes, request: PredictRequest) -> str:
        from anyorder.experiments.hyperedges.completions import answer_facts

        return answer_facts(model, shapes, request)


def count_answers(counts: PairCounts, part: Any, size: int = 256) -> dict[str, Tensor]:
    """What an evaluation keeps of counts of pairs."""
    kept = []
    for begin in range(0, len(part), size):
        batch: GapBatch = part.__getitems__(range(begin, min(begin + size, len(part))))
        kept.append(ranked(counts.scores(batch), batch))
    return {name: torch.cat([rows[name] for rows in kept]) for name in kept[0]}


def _as_it_is(batch: Any) -> Any:
    return batch
