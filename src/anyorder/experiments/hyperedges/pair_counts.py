"""Who was seen with whom: pairs of entities in training facts, and entities at a place of a relation."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from anyorder.experiments.hyperedges.fact_batches import GapBatch
from anyorder.experiments.hyperedges.facts import NOTHING, Facts
from anyorder.experiments.hyperedges.tuples import Ints

FIRST = 1e6
"""More than any count."""


class PairCounts(nn.Module):
    """For a gap, how often each entity was in a fact with the other entities, and at this place of the relation.

    It has no weights, and its counts are made of the training facts anew wherever a model is built.
    """

    def __init__(self, train: Facts, num_relations: int, num_entities: int) -> None:
        super().__init__()
        self.places, self.num_entities = train.entities.shape[1], num_entities
        pairs, at = [], []
        for gap in range(self.places):
            there = train.entities[:, gap] != NOTHING
            at.append(np.stack([train.relation[there] * self.places + gap, train.entities[there, gap]]))
            for other in range(self.places):
                both = there & (train.entities[:, other] != NOTHING)
                if other != gap:
                    pairs.append(train.entities[both][:, [other, gap]].T)
        self._keep("together", np.hstack(pairs), num_entities)
        self._keep("at_place", np.hstack(at), num_relations * self.places)

    def _keep(self, name: str, pairs: Ints, rows: int) -> None:
        codes, counts = np.unique(pairs[0] * self.num_entities + pairs[1], return_counts=True)
        pointer = np.searchsorted(codes // self.num_entities, np.arange(rows + 1))
        for part, values in (("pointer", pointer), ("codes", codes), ("count", counts.astype(np.float32))):
            self.register_buffer(f"{name}_{part}", torch.from_numpy(values), persistent=False)

    def forward(self, batch: GapBatch) -> tuple[Tensor, Tensor]:
        """Two matrices (gaps, entities): counts with the other entities, and at the place."""
        together, place = (
            _matrix(row, entity, count, (len(batch), self.num_entities)) for row, entity, count in self._seen(batch)
        )
        return together, place

    def seen_with(self, batch: GapBatch, candidates: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Three matrices like ``candidates`` (gaps, some): both counts, and with how many of the others it was seen."""
        together, others = torch.zeros(candidates.shape), torch.zeros(candidates.shape)
        together, others = together.to(candidates.device), others.to(candidates.device)
        for place in range(self.places):
            there = (batch.entities[:, place] >= 0) & (batch.gap != place)
            found = self._count("together", batch.entities[there, place], candidates[there])
            together[there] += found
            others[there] += found > 0
        return together, self._count("at_place", self.row_of(batch), candidates), others

    def draw(self, name: str, rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """``count`` random entities of the list of each row, and how many the list has; any where it has none."""
        pointer, codes = self.get_buffer(f"{name}_pointer"), self.get_buffer(f"{name}_codes")
        sizes = pointer[rows + 1] - pointer[rows]
        place = pointer[rows].unsqueeze(1) + (torch.rand(len(rows), count).to(rows.device) * sizes.unsqueeze(1)).long()
        return codes[place.clamp(max=len(codes) - 1)] % self.num_entities, sizes

    def _count(self, name: str, rows: Tensor, candidates: Tensor) -> Tensor:
        codes, counts = self.get_buffer(f"{name}_codes"), self.get_buffer(f"{name}_count")
        wanted = rows.unsqueeze(1) * self.num_entities + candidates
        place = torch.searchsorted(codes, wanted).clamp(max=len(codes) - 1)
        return torch.where(codes[place] == wanted, counts[place], 0.0)

    def _seen(self, batch: GapBatch) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Gap, entity and count of all that was seen with the other entities, and at the place."""
        row, place = ((batch.entities >= 0) & ~batch.is_gap).nonzero().unbind(1)
        every = torch.arange(len(batch), device=row.device)
        asked = {"together": (row, batch.entities[row, place]), "at_place": (every, self.row_of(batch))}
        found = []
        for name, (gaps, which) in asked.items():
            pointer, codes, count = (self.get_buffer(f"{name}_{part}") for part in ("pointer", "codes", "count"))
            sizes = pointer[which + 1] - pointer[which]
            begin = (pointer[which] - sizes.cumsum(0) + sizes).repeat_interleave(sizes)
            places = begin + torch.arange(len(begin), device=begin.device)
            found.append((gaps.repeat_interleave(sizes), codes[places] % self.num_entities, count[places]))
        return found

    def row_of(self, batch: GapBatch) -> Tensor:
        """The place of the relation that each gap is."""
        return batch.relation * self.places + batch.gap

    def scores(self, batch: GapBatch) -> Tensor:
        """The trivial answer: those seen at the place come first, then counts with the others, then counts at the place."""
        together, place = self(batch)
        scores: Tensor = together.double() + place / (1 + place.amax(1, keepdim=True)) + FIRST * (place > 0)
        return scores


def _matrix(row: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """Values at their places, added up where there are several."""
    return torch.zeros(shape, device=row.device).index_put_((row, column), values, accumulate=True)
