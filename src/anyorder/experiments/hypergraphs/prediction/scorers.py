"""Scores of candidate sets from rows of their nodes: mean, max minus min, Hyper-SAGNN, and attention of ours."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyorder.experiments.hypergraphs.literature.ehnn import grouped_softmax
from anyorder.experiments.hypergraphs.prediction.sets import Candidates
from anyorder.models.hypergraph import SizeModulation


def set_mean(rows: Tensor, sets: Candidates) -> Tensor:
    """(set, channel): the mean of the rows of each set's members, which are given member by member."""
    sums = rows.new_zeros(len(sets), rows.shape[1]).index_add(0, sets.set_of, rows)
    return sums / sets.sizes.unsqueeze(1).to(rows.dtype)


def set_range(rows: Tensor, sets: Candidates) -> Tensor:
    """(set, channel): the largest minus the smallest value of each channel."""
    index = sets.set_of.unsqueeze(1).expand_as(rows)
    low, high = (rows.new_zeros(len(sets), rows.shape[1]) for _ in range(2))
    high = high.scatter_reduce(0, index, rows, "amax", include_self=False)
    return high - low.scatter_reduce(0, index, rows, "amin", include_self=False)


class MeanScore(nn.Module):
    """An MLP of the mean of the rows."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, 1))

    def forward(self, rows: Tensor, sets: Candidates) -> Tensor:
        return self.mlp(set_mean(rows[sets.members], sets)).squeeze(1)


class RangeScore(nn.Module):
    """NHP and CHESHIRE: rows refined by the others of their set, then max minus min and the norm of each channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.own, self.others = nn.Linear(channels, channels), nn.Linear(channels, channels, bias=False)
        self.head = nn.Linear(2 * channels, 1)

    def forward(self, rows: Tensor, sets: Candidates) -> Tensor:
        rows = rows[sets.members]
        size = sets.sizes[sets.set_of].unsqueeze(1).to(rows.dtype)
        others = (set_mean(rows, sets)[sets.set_of] * size - rows) / (size - 1).clamp(min=1)
        refined = torch.tanh(self.own(rows) + self.others(others))
        norm = (set_mean(refined.square(), sets) + 1e-12).sqrt()
        return self.head(torch.cat([set_range(refined, sets), norm], 1)).squeeze(1)


class SAGNNScore(nn.Module):
    """Hyper-SAGNN: the mean over a set of a linear map of (dynamic - static)^2, where dynamic attends to the others."""

    def __init__(self, channels: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.static = nn.Linear(channels, channels)
        self.query, self.key, self.value = (nn.Linear(channels, channels, bias=False) for _ in range(3))
        self.output, self.head = nn.Linear(channels, channels), nn.Linear(channels, 1)

    def forward(self, rows: Tensor, sets: Candidates) -> Tensor:
        rows = rows[sets.members]
        first, second = pairs_of(sets)
        query, key, value = (part(rows).unflatten(1, (self.heads, -1)) for part in (self.query, self.key, self.value))
        scores = (query[first] * key[second]).sum(2) * query.shape[2] ** -0.5
        weights = grouped_softmax(scores, first, len(rows))
        taken = (weights.unsqueeze(2) * value[second]).flatten(1)
        dynamic = torch.tanh(self.output(rows.new_zeros(rows.shape).index_add(0, first, taken)))
        return set_mean(self.head((dynamic - torch.tanh(self.static(rows))).square()), sets).squeeze(1)


def pairs_of(sets: Candidates) -> tuple[Tensor, Tensor]:
    """Places of members in the same set, each with each of the others.

    >>> pairs_of(Candidates.of([{4, 5}, {1}]))
    (tensor([0, 1]), tensor([1, 0]))
    """
    sizes = sets.sizes[sets.set_of]
    first = torch.arange(len(sets.members), device=sizes.device).repeat_interleave(sizes)
    starts = (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    second = sets.offsets[:-1][sets.set_of][first] + torch.arange(len(first), device=sizes.device) - starts
    apart = first != second
    return first[apart], second[apart]


class AttentionScore(nn.Module):
    """Ours: a set gathers its members by attention, as a hyperedge does, with weights generated from its size.

    Each member is seen beside the mean of the others and their products, the symmetric classes from pairs to a set.
    """

    def __init__(self, channels: int, heads: int = 4) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(3 * channels)
        self.inner = nn.Sequential(nn.Linear(3 * channels, channels), nn.GELU())
        self.score = nn.Linear(channels, heads)
        self.modulate = SizeModulation(channels)
        self.head = nn.Sequential(nn.Linear(3 * channels, channels), nn.GELU(), nn.Linear(channels, 1))

    def forward(self, rows: Tensor, sets: Candidates) -> Tensor:
        rows = rows[sets.members]
        size = sets.sizes[sets.set_of].unsqueeze(1).to(rows.dtype)
        others = (set_mean(rows, sets)[sets.set_of] * size - rows) / (size - 1).clamp(min=1)
        inner = self.inner(self.norm(torch.cat([rows, others, rows * others], 1)))
        weights = grouped_softmax(self.score(inner), sets.set_of, len(sets))
        weighted = (weights.unsqueeze(2) * inner.unflatten(1, (weights.shape[1], -1))).flatten(1)
        gathered = inner.new_zeros(len(sets), inner.shape[1]).index_add(0, sets.set_of, weighted)
        unit = functional.normalize(rows, dim=1)
        alike = set_mean(unit * (set_mean(unit, sets)[sets.set_of] * size - unit), sets)
        parts = [self.modulate(gathered, sets.sizes), alike, set_range(unit, sets)]
        return self.head(torch.cat(parts, 1)).squeeze(1)
