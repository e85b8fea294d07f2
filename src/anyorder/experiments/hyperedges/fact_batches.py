"""Facts as batches: to train on, and with each place as a gap, to rank what fills it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from anyorder.experiments.hyperedges.batches import pack, unpack
from anyorder.experiments.hyperedges.facts import FactData, Facts, KnownAnswers
from anyorder.experiments.hyperedges.tuples import Ints
from anyorder.layouts.transfer import Transferable
from anyorder.training.shapes import Shapes


@dataclass(frozen=True, eq=False)
class GapBatch(Transferable):
    """Facts with a gap each, what fills it, and other entities that are known to fill it as (gap, entity)."""

    relation: Tensor
    entities: Tensor
    gap: Tensor
    target: Tensor
    arity: Tensor
    others: Tensor

    def __len__(self) -> int:
        return len(self.relation)

    @property
    def rows(self) -> tuple[Tensor, ...]:
        """What has a row for each gap; of the others known, none."""
        return self.relation, self.entities, self.gap, self.target, self.arity, self.others[:0]

    @property
    def is_gap(self) -> Tensor:
        """(gaps, places)."""
        return torch.arange(self.entities.shape[1], device=self.gap.device) == self.gap.unsqueeze(1)

    @classmethod
    def of(cls, facts: Facts, gap: Ints, others: tuple[Ints, Ints] | None = None) -> GapBatch:
        target = facts.entities[np.arange(len(facts)), gap]
        pairs = np.zeros((0, 2), np.int64) if others is None else np.column_stack(others)
        pairs = pairs[pairs[:, 1] != target[pairs[:, 0]]]
        return cls(*map(torch.from_numpy, (facts.relation, facts.entities, gap, target, facts.arity, pairs)))


class TrainingFacts(Dataset[GapBatch]):
    """Facts to train on; the gap is the first place, and training draws another."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def __len__(self) -> int:
        return len(self.facts)

    def __getitem__(self, number: int) -> GapBatch:
        return self.__getitems__([number])

    def __getitems__(self, numbers: Sequence[int]) -> GapBatch:
        """A whole batch, which the loader asks for at once."""
        return GapBatch.of(self.facts.chosen(np.asarray(numbers)), np.zeros(len(numbers), np.int64))


class Gaps(Dataset[GapBatch]):
    """Every place of the facts of a part as a gap, or some of them."""

    def __init__(self, facts: Facts, known: KnownAnswers, part: int, chosen: Ints | None = None) -> None:
        self.facts, self.known, self.part = facts, known, part
        self.chosen = np.arange(len(facts.queries)) if chosen is None else chosen

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, number: int) -> GapBatch:
        return self.__getitems__([number])

    def __getitems__(self, numbers: Sequence[int]) -> GapBatch:
        """A whole batch, which the loader asks for at once."""
        queries = self.chosen[np.asarray(numbers)]
        row, gap = self.facts.queries[queries].T
        return GapBatch.of(self.facts.chosen(row), gap.copy(), self.known.of(self.part, queries))


@dataclass(frozen=True, eq=False)
class FactShapes(Shapes):
    """Names of relations and entities, and the training facts, which completions are told apart from."""

    relations: tuple[str, ...]
    entities: tuple[str, ...]
    relation: Ints = field(repr=False)
    train: Ints = field(repr=False)

    @classmethod
    def of(cls, data: FactData) -> FactShapes:
        return cls(data.relations, data.entities, data.train.relation, data.train.entities)

    @property
    def places(self) -> int:
        """The largest number of entities in a fact."""
        return int(self.train.shape[1])

    @property
    def facts(self) -> Facts:
        return Facts(self.relation, self.train)

    def to_data(self) -> dict[str, Any]:
        packed = {"relation": pack(self.relation.astype("<i8")), "train": pack(self.train.astype("<i8").T)}
        return {"relations": list(self.relations), "entities": list(self.entities), "places": self.places, **packed}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> FactShapes:
        train = np.frombuffer(unpack(data["train"]), "<i8").reshape(int(data["places"]), -1).T.astype(np.int64)
        relation = np.frombuffer(unpack(data["relation"]), "<i8").astype(np.int64)
        return cls(tuple(data["relations"]), tuple(data["entities"]), relation, train)
