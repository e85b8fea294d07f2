"""Set-to-graph models as programs of plain operators: the points of one set, as users have them, to logits of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from anyorder.experiments.set_to_graph.models import IndexedSets
from anyorder.experiments.set_to_graph.sets import SetShapes
from anyorder.layouts import DenseIndexSet


@dataclass(frozen=True, eq=False)
class OneSet(IndexedSets):
    """A set whose size is that of a tensor, so that a program serves sets of any size."""

    def __post_init__(self) -> None:
        """Nothing to check: sizes may be symbols."""

    @classmethod
    def of(cls, points: Tensor) -> OneSet:
        """The set with these points."""
        everywhere = torch.ones(1, points.shape[0], dtype=torch.bool, device=points.device)
        sizes = torch.full((1,), points.shape[0], device=points.device)
        return cls(points, sizes, nodes=DenseIndexSet(1, everywhere))

    @cached_property
    def max_size(self) -> int:
        return self.points.shape[0]

    @cached_property
    def num_pairs(self) -> int:
        return self.points.shape[0] ** 2

    @cached_property
    def same_size(self) -> bool:
        return True

    @cached_property
    def node_set(self) -> Tensor:
        return torch.zeros_like(self._nodes)

    @cached_property
    def diagonal(self) -> Tensor:
        return self._nodes * (self.points.shape[0] + 1)


class PairProgram(nn.Module):
    """A model of pairs with tensors for input and output: points (n, channels) to logits (n, n)."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, model: nn.Module, shapes: SetShapes) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("mean", torch.tensor(shapes.mean or (0.0,) * shapes.channels))
        self.register_buffer("deviation", torch.tensor(shapes.deviation or (1.0,) * shapes.channels))

    def forward(self, points: Tensor) -> Tensor:
        logits: Tensor = self.model(OneSet.of((points - self.mean) / self.deviation))
        return logits.view(points.shape[0], points.shape[0])
