"""Scores of candidate sets: from rows of their nodes (mean, max minus min, Hyper-SAGNN, attention) and from their pairs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyorder.experiments.hypergraphs.literature.ehnn import grouped_softmax
from anyorder.experiments.hypergraphs.prediction.sets import Candidates
from anyorder.layouts.incidence import IncidenceSet
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


class PairScore(nn.Module):
    """Ours: what the observed hyperedges say of the pairs of a set, the symmetric classes from pairs to a set.

    Rows of nodes do not tell whether two nodes were seen together, nor how often: that is a tensor of order 2. A pair has
    the number of hyperedges that hold both, weighted by their sizes too, and the degrees of its nodes; a set has the mean,
    the largest and the smallest of what an MLP makes of its pairs.
    """

    FEATURES = 5

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(self.FEATURES, channels), nn.GELU(), nn.Linear(channels, channels))
        self.head = nn.Sequential(nn.Linear(3 * channels + 2, channels), nn.GELU(), nn.Linear(channels, 1))

    def forward(self, observed: IncidenceSet, sets: Candidates) -> Tensor:
        first, second = pairs_of(sets)
        first, second = first[first < second], second[first < second]
        pairs = self.inner(self.features(observed, sets.members[first], sets.members[second]))
        set_of = sets.set_of[first]
        index, empty = set_of.unsqueeze(1).expand_as(pairs), pairs.new_zeros(len(sets), pairs.shape[1])
        pooled = [empty.scatter_reduce(0, index, pairs, how, include_self=False) for how in ("mean", "amax", "amin")]
        size = sets.sizes.unsqueeze(1).to(pairs.dtype)
        return self.head(torch.cat([*pooled, size.log(), 1 / size], 1)).squeeze(1)

    def features(self, observed: IncidenceSet, first: Tensor, second: Tensor) -> Tensor:
        """(pair, feature), the same for (first, second) and (second, first)."""
        dtype = next(self.parameters()).dtype
        pair, edge = observed.shared(first, second)
        together, weighted = (torch.zeros(len(first), dtype=dtype, device=first.device) for _ in range(2))
        together = together.index_add(0, pair, torch.ones(len(pair), dtype=dtype, device=first.device))
        weighted = weighted.index_add(0, pair, observed.sizes[edge].to(dtype).rsqrt())
        degrees = observed.by_node.sizes.to(dtype).log1p()
        low, high = torch.minimum(degrees[first], degrees[second]), torch.maximum(degrees[first], degrees[second])
        return torch.stack([together.log1p(), (together > 0).to(dtype), weighted, low, high], 1)
