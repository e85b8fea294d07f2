"""For each row the rows most like it: attention by what rows contain, cut off after the largest weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from anyorder.layouts.transfer import Transferable

BLOCK_PAIRS = 1 << 25  # pairs of rows that are compared at once
MOST_ROWS = 200_000  # all pairs of so many take minutes


@dataclass(frozen=True, eq=False)
class Neighbours(Transferable):
    """The other rows nearest to each row, and weights that sum to 1, or to 0 where no other row is like it.

    >>> near = Neighbours.build(torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), count=1)
    >>> near.rows.tolist()
    [[1], [0], [1]]
    """

    rows: Tensor
    weights: Tensor

    @classmethod
    def build(cls, features: Tensor, count: int, *, sharpness: float = 10.0) -> Neighbours:
        r"""Weights softmax(sharpness * cos(x_u, x_v)) over the ``count`` nearest u of each v.

        Where most features are zero, as with words, a column counts as much as it tells: it is scaled by log(n / f) if f of
        n rows are not zero in it. Rows with nothing in common, cos <= 0, are no neighbours and have the weight 0. Where
        more rows are equally near than there is room for, the choice among them depends on their numbers.
        """
        if features.ndim != 2:
            raise ValueError(f"features must be (row, channel), got {tuple(features.shape)}")
        if count < 1:
            raise ValueError(f"count must be at least 1, got {count}")
        number = len(features)
        if number > MOST_ROWS:
            raise ValueError(
                f"finding neighbours compares all pairs of rows: expected at most {MOST_ROWS:,} rows, got {number:,}; "
                "a model does without them with neighbours=0"
            )
        count = min(count, max(number - 1, 0))
        seen = (features != 0).sum(0).to(features.dtype)
        sparse = 2 * seen.sum() < features.numel()
        scaled = functional.normalize(features * (number / seen.clamp(min=1)).log() if sparse else features, dim=1)
        found = [_nearest(scaled, block, count) for block in _blocks(number)]
        if not found:
            return cls(torch.empty(0, 0, dtype=torch.long), features.new_empty(0, 0))
        rows, likeness = (torch.cat(parts) for parts in zip(*found, strict=True))
        weights = (sharpness * likeness).exp() * (likeness > 0)
        return cls(rows, weights / weights.sum(1, keepdim=True).clamp(min=1))

    def __call__(self, rows: Tensor) -> Tensor:
        """The weighted mean of the neighbours of each row."""
        if self.rows.shape[1] == 0:
            return torch.zeros_like(rows)
        mean: Tensor = functional.embedding_bag(self.rows, rows, per_sample_weights=self.weights.to(rows.dtype), mode="sum")
        return mean


def _blocks(number: int) -> list[Tensor]:
    return [] if number == 0 else list(torch.arange(number).split(max(1, BLOCK_PAIRS // number)))


def _nearest(scaled: Tensor, block: Tensor, count: int) -> tuple[Tensor, Tensor]:
    likeness = scaled[block] @ scaled.T
    likeness[torch.arange(len(block)), block] = -torch.inf  # a row is no neighbour of its own
    values, rows = likeness.topk(count, 1)
    return rows, values
