"""Batch normalisation that takes a batch of one row, as the last of an epoch may be."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class RowNorm(nn.BatchNorm1d):
    """BatchNorm over rows; a row that is alone is normalised by the running mean and variance."""

    def forward(self, input: Tensor) -> Tensor:
        if self.training and len(input) == 1:
            return functional.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(input)
