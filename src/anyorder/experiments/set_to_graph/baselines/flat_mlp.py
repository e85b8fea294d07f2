"""The MLP baseline: a whole set, padded with zeros, as one flat vector; the only one that sees the order of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from anyorder.experiments.set_to_graph.baselines.pairs import PairModel, mlp
from anyorder.experiments.set_to_graph.sets import SetBatch


class FlatMLP(PairModel):
    """An MLP from the concatenated points of a set to the logits of all ``max_points`` squared pairs."""

    def __init__(self, *, channels_in: int, max_points: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.max_points = max_points
        self.layers = mlp((channels_in * max_points, *widths, max_points**2))

    def forward(self, batch: SetBatch) -> Tensor:
        """The logits (pairs,)."""
        missing = self.max_points - batch.max_size
        if missing < 0:
            raise ValueError(f"this model reads sets of at most {self.max_points} points, got one of {batch.max_size}")
        flat = F.pad(batch.pad(batch.points), (0, 0, 0, missing)).flatten(1)
        return batch.flatten_pairs(self.layers(flat).unflatten(1, (self.max_points, self.max_points)))


@dataclass(frozen=True)
class FlatMLPConfig:
    """The arguments of :class:`FlatMLP` as a value; ``widths`` are those of the hidden layers."""

    channels_in: int
    max_points: int
    widths: tuple[int, ...]

    def build(self) -> FlatMLP:
        """The model with fresh parameters."""
        return FlatMLP(**vars(self))
