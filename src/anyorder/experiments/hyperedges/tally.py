"""The cheap answer for tuples: how often their pairs were seen together."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn

from anyorder.experiments.hyperedges.batches import Known
from anyorder.experiments.hyperedges.tuples import Ints


class PairTally(nn.Module):
    """A score for each tuple: the sum over its pairs of columns of log(1 + how often the pair is in the training part)."""

    def __init__(self, known: Known) -> None:
        super().__init__()
        self.nodes = sum(known.sizes)
        self.seen = {
            pair: np.unique(self._codes(known.train, pair), return_counts=True)
            for pair in combinations(range(len(known.sizes)), 2)
        }

    def forward(self, tuples: Tensor) -> Tensor:
        rows = tuples.numpy()
        total = np.zeros(len(rows))
        for pair, (codes, counts) in self.seen.items():
            asked = self._codes(rows, pair)
            place = np.searchsorted(codes, asked).clip(max=len(codes) - 1)
            total += np.log1p(np.where(codes[place] == asked, counts[place], 0))
        return torch.from_numpy(total).float()

    def _codes(self, tuples: Ints, pair: tuple[int, int]) -> Ints:
        first, second = (tuples[:, place].astype(np.int64) for place in pair)
        return first * self.nodes + second
