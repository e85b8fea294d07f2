"""A model that fills the gaps of facts: attention among a relation and its entities, with all entities as candidates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from anyorder.experiments.hyperedges.fact_batches import FactShapes, GapBatch
from anyorder.experiments.hyperedges.pair_counts import PairCounts
from anyorder.experiments.hyperedges.wrong_answers import WrongAnswers
from anyorder.layers import EncoderLayer, Kernel, Softmax
from anyorder.layouts import CompleteIndexSet, Features
from anyorder.ops.dropout import Dropout
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig

START = (10.0, 0.3, 1.0, 3.0, 1.0)
"""Weights at the start of what ``SeenWith`` has: who was at the place comes first."""


class FactNetwork(nn.Module):
    """A fact with a gap is a set: its relation, and its entities with their places, the gap with none.

    Layers from order 1 to order 1 attend within each set; the row of the gap is compared with the rows of all entities. So
    sets of any number of entities go through the same weights, and one pass scores every candidate. With ``counts``, how
    often a candidate was seen with the others and at the place is an input, too: a fact that is trained on does not count.
    """

    def __init__(
        self, shapes: FactShapes, layers: nn.ModuleList, *, channels: int, dropout: float, counts: PairCounts | None
    ) -> None:
        super().__init__()
        self.places = shapes.places
        num_relations, num_entities = len(shapes.relations), len(shapes.entities)
        self.entity = nn.Parameter(torch.randn(num_entities, channels) * channels**-0.5)
        self.relation = nn.Parameter(torch.randn(num_relations, channels) * channels**-0.5)
        self.place = nn.Parameter(torch.randn(num_relations * self.places, channels) * channels**-0.5)
        self.gap = nn.Parameter(torch.zeros(channels))
        self.bias = nn.Parameter(torch.zeros(num_entities))
        self.counts = counts
        if counts is not None:
            self.weights = nn.Parameter(torch.tensor(START))
            self.weights_of = nn.Parameter(torch.zeros(num_relations * self.places, len(START)))
        self.layers, self.dropout = layers, Dropout(dropout)
        self.into, self.norm, self.out = nn.LayerNorm(channels), nn.LayerNorm(channels), nn.Linear(channels, channels)
        if counts is not None:  # begin with what counts say
            nn.init.zeros_(self.out.weight)
            nn.init.zeros_(self.out.bias)

    def forward(self, batch: GapBatch) -> Tensor:
        """(gaps, entities): logits of all entities."""
        logits = self._asked(batch) @ self.entity.T + self.bias
        if self.counts is not None:
            logits = logits + self.counts(batch, self._weights(batch))
        return logits

    def told_apart(self, batch: GapBatch, count: int) -> Tensor:
        """(gaps, 1 + some): logits of what fills each gap, and of about ``count`` wrong answers.

        A fact does not count itself.
        """
        asked, right = self._asked(batch), batch.target.unsqueeze(1)
        if self.counts is None:
            wrong = WrongAnswers.anyone(batch, len(self.bias), count)
        else:
            wrong = WrongAnswers.likely(batch, self.counts, count)
        every = torch.cat([right, wrong.entities], 1)
        logits = torch.einsum("bd,bcd->bc", asked, self.entity[every]) + self.bias[every]
        if self.counts is not None:
            assert wrong.seen is not None
            own, _ = self.counts.seen_with(batch, right, own=1.0)
            seen = torch.stack([torch.cat(both, 1) for both in zip(own, wrong.seen, strict=True)], 2)
            logits = logits + torch.einsum("bcw,bw->bc", seen, self._weights(batch))
        return logits + torch.cat([torch.zeros_like(right), wrong.weight], 1)

    def _asked(self, batch: GapBatch) -> Tensor:
        """(gaps, channels): what each gap asks for."""
        there = batch.entities >= 0
        who = torch.where(batch.is_gap.unsqueeze(2), self.gap, self.entity[batch.entities.clamp(min=0)])
        where = self.place[batch.relation.unsqueeze(1) * self.places + torch.arange(self.places, device=there.device)]
        rows = torch.cat([self.relation[batch.relation].unsqueeze(1), who + where], 1)
        used = torch.cat([torch.ones_like(there[:, :1]), there], 1)
        sizes = used.sum(1)
        x = Features.of_rows(CompleteIndexSet(1, sizes), self.dropout(self.into(rows[used])))
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x.rows[sizes.cumsum(0) - sizes + 1 + batch.gap]))

    def _weights(self, batch: GapBatch) -> Tensor:
        """(gaps, 5): of what was seen, by the place of the relation."""
        return self.weights + self.weights_of[batch.relation * self.places + batch.gap]


@configurable
@dataclass(frozen=True)
class FactEncoder(ModelConfig):
    """Encoder layers from order 1 to order 1 on the relation and the entities of a fact."""

    layers: int = 2
    channels: int = 64
    heads: int = 4
    kernel: Kernel = field(default_factory=Softmax)
    dropout: float = 0.1
    counts: bool = True
    """Counts of pairs in the training facts as an input."""

    def build(self, shapes: FactShapes) -> nn.Module:
        if self.channels % self.heads:
            raise ValueError(f"channels must be a multiple of the heads, got {self.channels} and {self.heads}")
        width: dict[str, Any] = {
            "channels": self.channels,
            "heads": self.heads,
            "head_channels": self.channels // self.heads,
            "kernel": self.kernel,
            "dropout": self.dropout,
        }
        layers = nn.ModuleList(EncoderLayer(order_in=1, order_out=1, **width) for _ in range(self.layers))
        counts = PairCounts(shapes.facts, len(shapes.relations), len(shapes.entities)) if self.counts else None
        return FactNetwork(shapes, layers, channels=self.channels, dropout=self.dropout, counts=counts)
