"""Who was seen with whom in training facts: pairs of entities, in any relation and in the same, and entities at a place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from anyorder.experiments.hyperedges.fact_batches import GapBatch
from anyorder.experiments.hyperedges.facts import NOTHING, Facts
from anyorder.experiments.hyperedges.tuples import Ints

FIRST = 1e6
"""More than any count."""


class SeenWith(NamedTuple):
    """How often candidates were seen, as matrices (gaps, candidates): of counts n, or sums over the other entities."""

    at_place: Tensor
    """Whether n > 0, at this place of the relation."""
    log_at_place: Tensor
    """log(1 + n)."""
    together: Tensor
    """Sum of log(1 + n) over the other entities, n facts with both."""
    others_alike: Tensor
    """With how many of the others in the same relation, both at their places."""
    alike: Tensor
    """Sum of log(1 + n) over these."""


class PairCounts(nn.Module):
    """Counts of pairs, and the trivial answer that they give.

    It has no weights, and its counts are made of the training facts anew wherever a model is built.
    """

    def __init__(self, train: Facts, num_relations: int, num_entities: int) -> None:
        super().__init__()
        self.places, self.num_entities = train.entities.shape[1], num_entities
        together, alike, at_place = [], [], []
        for gap in range(self.places):
            there = train.entities[:, gap] != NOTHING
            at_place.append(self._codes(train.relation[there] * self.places + gap, train.entities[there, gap]))
            for other in range(self.places):
                both = there & (train.entities[:, other] != NOTHING)
                if other != gap:
                    who, whom = train.entities[both, other], train.entities[both, gap]
                    together.append(self._codes(who, whom))
                    pair = (train.relation[both] * self.places + other) * self.places + gap
                    alike.append(self._codes(self._codes(pair, who), whom))
        for name, listed in (("together", together), ("alike", alike), ("at_place", at_place)):
            codes, counts = np.unique(np.concatenate(listed), return_counts=True)
            self.register_buffer(f"{name}_codes", torch.from_numpy(codes), persistent=False)
            self.register_buffer(f"{name}_counts", torch.from_numpy(counts.astype(np.float32)), persistent=False)

    def _codes(self, rows: Ints, entities: Ints) -> Ints:
        return rows * self.num_entities + entities

    def rows_of(self, batch: GapBatch) -> list[tuple[Tensor, Tensor, Tensor]]:
        """For each place, the gaps of other places, and the rows of the entity there: of its pairs, and of those alike."""
        found = []
        for place in range(self.places):
            gaps = ((batch.entities[:, place] >= 0) & (batch.gap != place)).nonzero().flatten()
            who = batch.entities[gaps, place]
            pair = (batch.relation[gaps] * self.places + place) * self.places + batch.gap[gaps]
            found.append((gaps, who, pair * self.num_entities + who))
        return found

    def place_of(self, batch: GapBatch) -> Tensor:
        """The place of the relation that each gap is."""
        return batch.relation * self.places + batch.gap

    def forward(self, batch: GapBatch, weights: Tensor) -> Tensor:
        """(gaps, entities): the sum of what ``SeenWith`` has of every entity, times the columns of ``weights`` (gaps, 5)."""
        every = torch.arange(len(batch), device=batch.gap.device)
        found = torch.zeros(len(batch), self.num_entities, device=batch.gap.device)
        first, logs, together, others, alike = weights.unbind(1)
        self._add("at_place", every, self.place_of(batch), found, logs, first)
        for gaps, who, pairs in self.rows_of(batch):
            self._add("together", gaps, who, found, together[gaps])
            self._add("alike", gaps, pairs, found, alike[gaps], others[gaps])
        return found

    def seen_with(self, batch: GapBatch, candidates: Tensor, *, own: float = 0.0) -> tuple[SeenWith, Tensor]:
        """What was seen of some entities for each gap (gaps, candidates), and with how many of the others.

        Every count is less ``own``: a fact is not its own evidence.
        """
        place = (self._count("at_place", self.place_of(batch), candidates) - own).clamp(min=0)
        together, others, alike, others_alike = (torch.zeros_like(place) for _ in range(4))
        for gaps, who, pairs in self.rows_of(batch):
            for name, rows, logs, number in (("together", who, together, others), ("alike", pairs, alike, others_alike)):
                count = (self._count(name, rows, candidates[gaps]) - own).clamp(min=0)
                logs.index_add_(0, gaps, count.log1p())
                number.index_add_(0, gaps, (count > 0).float())
        return SeenWith((place > 0).float(), place.log1p(), together, others_alike, alike), others

    def scores(self, batch: GapBatch) -> Tensor:
        """The trivial answer: those seen at the place come first, then counts with the others, then counts at the place."""
        found = torch.zeros(len(batch), self.num_entities, dtype=torch.float64, device=batch.gap.device)
        every = torch.arange(len(batch), device=batch.gap.device)
        tie = torch.full((len(batch),), 1 / (1 + float(self.get_buffer("at_place_counts").max())), device=every.device)
        self._add("at_place", every, self.place_of(batch), found, tie, FIRST * torch.ones_like(tie), logs=False)
        for gaps, who, _ in self.rows_of(batch):
            self._add("together", gaps, who, found, torch.ones_like(tie)[gaps], logs=False)
        return found

    def draw(self, name: str, rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """``count`` random entities of the list of each row, and how many the list has; any where it has none."""
        codes, (begin, sizes) = self.get_buffer(f"{name}_codes"), self.lists(name, rows)
        place = begin.unsqueeze(1) + (torch.rand(len(rows), count).to(rows.device) * sizes.unsqueeze(1)).long()
        return codes[place.clamp(max=len(codes) - 1)] % self.num_entities, sizes

    def lists(self, name: str, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Where the list of each row begins, and how many entities it has."""
        codes = self.get_buffer(f"{name}_codes")
        begin, end = (torch.searchsorted(codes, (rows + more) * self.num_entities) for more in (0, 1))
        return begin, end - begin

    def _add(
        self,
        name: str,
        gaps: Tensor,
        rows: Tensor,
        into: Tensor,
        weight: Tensor,
        each: Tensor | None = None,
        *,
        logs: bool = True,
    ) -> None:
        """Add ``weight`` times the counts in the lists of some rows, or their logarithms, and ``each`` for being there."""
        begin, sizes = self.lists(name, rows)
        start = (begin - sizes.cumsum(0) + sizes).repeat_interleave(sizes)
        places = start + torch.arange(len(start), device=start.device)
        counts = self.get_buffer(f"{name}_counts")[places]
        values = weight.repeat_interleave(sizes) * (counts.log1p() if logs else counts)
        values = values if each is None else values + each.repeat_interleave(sizes)
        where = gaps.repeat_interleave(sizes), self.get_buffer(f"{name}_codes")[places] % self.num_entities
        into.index_put_(where, values.to(into.dtype), accumulate=True)

    def _count(self, name: str, rows: Tensor, candidates: Tensor) -> Tensor:
        codes, counts = self.get_buffer(f"{name}_codes"), self.get_buffer(f"{name}_counts")
        wanted = rows.unsqueeze(1) * self.num_entities + candidates
        place = torch.searchsorted(codes, wanted).clamp(max=len(codes) - 1)
        return torch.where(codes[place] == wanted, counts[place], 0.0)
