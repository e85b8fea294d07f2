"""From node channels to a logit for every ordered pair: what the set-to-graph baselines share."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from itertools import pairwise
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyorder.experiments.set_to_graph.sets import SetBatch


class PairModel(nn.Module):
    """A model of sets with a logit for each ordered pair, flat in the order of ``SetBatch.pair_index``."""

    def forward(self, batch: SetBatch) -> Tensor:
        """The logits (pairs,)."""
        raise NotImplementedError(f"{type(self).__name__} does not define its logits")


class PairModelConfig(Protocol):
    """A value that builds a model; ``dataclasses.replace`` makes narrower ones."""

    def build(self) -> PairModel:
        """The model with fresh parameters."""
        ...


class PairBasis(Enum):
    """Which equivariant maps lead from nodes u to pairs (i, j); p is the mean or the sum of u over its set.

    >>> PairBasis.FULL.num_maps
    5
    """

    BOTH_ENDS = "[u_j, u_i]"
    FULL = "[u_j, u_i, p, [i = j] u_i, [i = j] p]"

    @property
    def num_maps(self) -> int:
        """The number of basis maps."""
        return 2 if self is PairBasis.BOTH_ENDS else 5


class Pooling(Enum):
    """How the nodes of a set are brought together for the pair basis."""

    MEAN = "mean"
    SUM = "sum"


def mlp(widths: Sequence[int], batch_norm: bool = False) -> nn.Sequential:
    """Linear layers of the given widths, the first being the input's, with ReLU (after batch norm) between them.

    >>> [type(layer).__name__ for layer in mlp((2, 8, 1))]
    ['Linear', 'ReLU', 'Linear']
    """
    layers: list[nn.Module] = []
    for channels_in, channels_out in pairwise(widths):
        layers.append(nn.Linear(channels_in, channels_out))
        if batch_norm:
            layers.append(nn.BatchNorm1d(channels_out))
        layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers[: -2 if batch_norm else -1])


def add_ends(first: Tensor, second: Tensor, batch: SetBatch) -> Tensor:
    """The pair values first_i + second_j (pairs, channels) of node values (total nodes, channels)."""
    if batch.same_size:
        first, second = batch.pad(first), batch.pad(second)
        return (first[:, :, None] + second[:, None]).flatten(0, 2)
    row, column = batch.pair_index
    return first.index_select(0, row).add_(second.index_select(0, column))


class PairHead(nn.Module):
    r"""An MLP on the pair basis of node channels.

    .. math:: y_{ij} = \mathrm{MLP}([u_j, u_i, p, \delta_{ij} u_i, \delta_{ij} p])

    The first layer is linear, so it is applied to nodes and then spread: the concatenation is never built.
    """

    def __init__(
        self,
        *,
        channels_in: int,
        widths: Sequence[int],
        basis: PairBasis = PairBasis.BOTH_ENDS,
        pooling: Pooling = Pooling.MEAN,
    ) -> None:
        super().__init__()
        if not widths:
            raise ValueError("the pair head needs at least one hidden layer, got widths ()")
        self.channels_in, self.basis, self.pooling = channels_in, basis, pooling
        self.spread = nn.Linear(basis.num_maps * channels_in, widths[0])
        self.rest = nn.Sequential(nn.ReLU(inplace=True), *mlp((*widths, 1)))

    def forward(self, nodes: Tensor, batch: SetBatch) -> Tensor:
        """The logits (pairs,) of node values (total nodes, channels)."""
        other, own, *pooled_maps = self._weights()
        row, column = F.linear(nodes, own, self.spread.bias), F.linear(nodes, other)
        if not pooled_maps:
            return self._logits(add_ends(row, column, batch))
        everywhere, loop, loop_pooled = pooled_maps
        pooled = self._pool(nodes, batch)
        row = row + F.linear(pooled, everywhere)[batch.node_set]
        loops = F.linear(nodes, loop) + F.linear(pooled, loop_pooled)[batch.node_set]
        return self._logits(add_ends(row, column, batch).index_add_(0, batch.diagonal, loops))

    def diagonal(self, nodes: Tensor, batch: SetBatch) -> Tensor:
        """The logits (total nodes,) of the pairs (i, i) alone."""
        other, own, *pooled_maps = self._weights()
        if not pooled_maps:
            return self._logits(F.linear(nodes, other + own, self.spread.bias))
        everywhere, loop, loop_pooled = pooled_maps
        pooled = F.linear(self._pool(nodes, batch), everywhere + loop_pooled)
        return self._logits(F.linear(nodes, other + own + loop, self.spread.bias) + pooled[batch.node_set])

    def _weights(self) -> tuple[Tensor, ...]:
        return torch.split(self.spread.weight, self.channels_in, dim=1)

    def _pool(self, nodes: Tensor, batch: SetBatch) -> Tensor:
        return batch.set_mean(nodes) if self.pooling is Pooling.MEAN else batch.set_sum(nodes)

    def _logits(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.rest(hidden)
        return logits.squeeze(-1)
