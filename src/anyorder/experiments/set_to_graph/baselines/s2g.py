"""S2G and S2G+: a DeepSet, a broadcast to pairs and an MLP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyorder.experiments.set_to_graph.baselines.pairs import PairBasis, PairHead, PairModel, Pooling
from anyorder.experiments.set_to_graph.sets import SetBatch


class PointAttention(nn.Module):
    r"""An average over each set with learned weights, applied to the input itself.

    .. math:: y_i = \sum_j \mathrm{softmax}_j(\tanh(q(x_i)) \cdot k(x_j) / \sqrt{d})\, x_j
    """

    def __init__(self, *, channels: int) -> None:
        super().__init__()
        small = max(channels // 10, 1)
        self.query, self.key = nn.Linear(channels, small), nn.Linear(channels, small)

    def forward(self, nodes: Tensor, batch: SetBatch) -> Tensor:
        """The weighted averages (total nodes, channels)."""
        query, key = batch.pad(self.query(nodes).tanh()), batch.pad(self.key(nodes))
        scores = torch.einsum("bic,bjc->bij", query, key) / query.shape[-1] ** 0.5
        weights = scores.masked_fill(~batch.mask[:, None], -torch.inf).softmax(-1)
        return batch.unpad(weights @ batch.pad(nodes))


class DeepSetLayer(nn.Module):
    r"""The equivariant layer :math:`z_i = W_1 x_i + W_2 (x_i - m_i)`, then :math:`z_i / \lVert z_i \rVert_2`.

    :math:`m_i` is the mean of the set, or with ``attention`` a learned average.
    """

    def __init__(self, *, channels_in: int, channels_out: int, attention: bool = False) -> None:
        super().__init__()
        self.own = nn.Linear(channels_in, channels_out)
        self.centred = nn.Linear(channels_in, channels_out)
        self.attention = PointAttention(channels=channels_in) if attention else None

    def forward(self, nodes: Tensor, batch: SetBatch) -> Tensor:
        """The new node values (total nodes, channels_out), each of length one."""
        average = batch.set_mean(nodes)[batch.node_set] if self.attention is None else self.attention(nodes, batch)
        return F.normalize(self.own(nodes) + self.centred(nodes - average), dim=-1)


class SetToGraphNetwork(PairModel):
    """A DeepSet with ReLU between its layers, spread to pairs by a basis of 2 (S2G) or 5 (S2G+) maps, then an MLP.

    With ``own_diagonal`` a second head of the same shape answers for the pairs (i, i).
    """

    def __init__(
        self,
        *,
        channels_in: int,
        widths: Sequence[int],
        head: Sequence[int],
        basis: PairBasis = PairBasis.BOTH_ENDS,
        pooling: Pooling = Pooling.MEAN,
        attention: bool = False,
        own_diagonal: bool = True,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            DeepSetLayer(channels_in=before, channels_out=after, attention=attention)
            for before, after in pairwise((channels_in, *widths))
        )
        self.head = PairHead(channels_in=widths[-1], widths=head, basis=basis, pooling=pooling)
        self.diagonal_head = (
            PairHead(channels_in=widths[-1], widths=head, basis=basis, pooling=pooling) if own_diagonal else None
        )

    def forward(self, batch: SetBatch) -> Tensor:
        """The logits (pairs,)."""
        first, *others = self.layers
        nodes = first(batch.points, batch)
        for layer in others:
            nodes = layer(nodes.relu(), batch)
        logits: Tensor = self.head(nodes, batch)
        if self.diagonal_head is None:
            return logits
        return logits.index_copy(0, batch.diagonal, self.diagonal_head.diagonal(nodes, batch))


@dataclass(frozen=True)
class SetToGraphConfig:
    """The arguments of :class:`SetToGraphNetwork` as a value."""

    channels_in: int
    widths: tuple[int, ...]
    head: tuple[int, ...]
    basis: PairBasis = PairBasis.BOTH_ENDS
    pooling: Pooling = Pooling.MEAN
    attention: bool = False
    own_diagonal: bool = True

    def build(self) -> SetToGraphNetwork:
        """The model with fresh parameters."""
        return SetToGraphNetwork(**vars(self))
