"""Wrong answers to train against: some that look right, some of all, weighed so that they stand for all entities."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.experiments.hyperedges.fact_batches import GapBatch
from anyorder.experiments.hyperedges.pair_counts import PairCounts, SeenWith


@dataclass(frozen=True, eq=False)
class WrongAnswers:
    """Entities (gaps, some), the logarithm of how many each stands for, and their counts of pairs where there are any.

    Softmax over all entities is a sum over three groups: those seen with the other entities of the fact, others that were
    seen at the place of the relation, and the rest. Each is estimated by a sample of its own: few are in the first two.
    """

    entities: Tensor
    weight: Tensor
    seen: SeenWith | None = None

    @classmethod
    def anyone(cls, batch: GapBatch, num_entities: int, count: int) -> WrongAnswers:
        """The same random entities for all gaps."""
        drawn = torch.randint(num_entities, (min(count, num_entities),)).to(batch.target.device).expand(len(batch), -1)
        return cls(drawn, _stands_for(batch, drawn, num_entities / drawn.shape[1]))

    @classmethod
    def likely(cls, batch: GapBatch, counts: PairCounts, count: int) -> WrongAnswers:
        """A quarter seen with another entity, a quarter seen at the place, half of all."""
        some = max(1, count // 4)
        other, sizes = _others(batch, counts)
        first, _ = counts.draw("together", other, some)
        second, at_place = counts.draw("at_place", counts.place_of(batch), some)
        third = torch.randint(counts.num_entities, (2 * some,)).to(first.device).expand(len(batch), -1)
        drawn = torch.cat([first, second, third], 1)
        seen, others = counts.seen_with(batch, drawn)
        group = torch.arange(4, device=drawn.device).repeat_interleave(some).clamp(max=2)
        true_group = torch.where(seen.together > 0, 0, torch.where(seen.at_place > 0, 1, 2))
        size = torch.stack([sizes / some, at_place / some, torch.full_like(sizes, counts.num_entities / (2 * some))], 1)
        weight = _stands_for(batch, drawn, size[:, group] / torch.where(group == 0, others.clamp(min=1), 1.0))
        return cls(drawn, weight.masked_fill(group != true_group, -torch.inf), seen)


def _others(batch: GapBatch, counts: PairCounts) -> tuple[Tensor, Tensor]:
    """One of the other entities of each fact, drawn by how many were seen with it, and how many were seen with all."""
    entity = batch.entities.clamp(min=0)
    sizes = counts.lists("together", entity)[1] * ((batch.entities >= 0) & ~batch.is_gap)
    total = sizes.sum(1)
    drawn = (torch.rand(len(batch)).to(total.device) * total).long().unsqueeze(1)
    which = (sizes.cumsum(1) <= drawn).sum(1).clamp(max=entity.shape[1] - 1)
    return entity.gather(1, which.unsqueeze(1)).squeeze(1), total.float()


def _stands_for(batch: GapBatch, drawn: Tensor, number: Tensor | float) -> Tensor:
    """Logarithms; nothing for what fills the gap."""
    weight = torch.as_tensor(number, device=drawn.device).expand(drawn.shape).log()
    return weight.masked_fill(drawn == batch.target.unsqueeze(1), -torch.inf)
