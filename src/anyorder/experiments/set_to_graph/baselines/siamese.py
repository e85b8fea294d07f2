"""SIAM and SIAM-3: every point is embedded alone; pairs are judged by an MLP or by their distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.experiments.set_to_graph.baselines.pairs import PairHead, PairModel, mlp
from anyorder.experiments.set_to_graph.sets import SetBatch


class Siamese(PairModel):
    """SIAM: one MLP for every point, then an MLP on the concatenation of both ends of each pair."""

    def __init__(self, *, channels_in: int, widths: Sequence[int], head: Sequence[int], batch_norm: bool = True) -> None:
        super().__init__()
        self.embed = mlp((channels_in, *widths), batch_norm=batch_norm)
        self.head = PairHead(channels_in=widths[-1], widths=head)

    def forward(self, batch: SetBatch) -> Tensor:
        """The logits (pairs,)."""
        logits: Tensor = self.head(self.embed(batch.points), batch)
        return logits


class SiameseTriplet(PairModel):
    r"""SIAM-3: points are related when their embeddings are near, :math:`1 - \lVert z_i - z_j \rVert^2 \geq 0`.

    Trained by :meth:`triplet_loss`.
    """

    def __init__(
        self,
        *,
        channels_in: int,
        widths: Sequence[int],
        batch_norm: bool = False,
        margin: float = 2.0,
        num_triplets: int = 200,
    ) -> None:
        super().__init__()
        self.embed = mlp((channels_in, *widths), batch_norm=batch_norm)
        self.margin, self.num_triplets = margin, num_triplets

    def forward(self, batch: SetBatch) -> Tensor:
        """The logits (pairs,): 1 minus the squared distance."""
        padded = batch.pad(self.embed(batch.points))
        distance = torch.cdist(padded, padded, compute_mode="donot_use_mm_for_euclid_dist")
        return batch.flatten_pairs(1 - distance.square())

    def triplet_loss(self, batch: SetBatch, generator: torch.Generator | None = None) -> Tensor:
        r"""The mean of :math:`\max(0, m + d_{ij}^2 - d_{ik}^2)` over triplets with (i, j) related and (i, k) not.

        Each set draws ``num_triplets`` triplets of distinct nodes (published: each batch; so a set counts the same in
        batches of any size); those whose pairs are alike teach nothing, and neither do sets of fewer than three nodes.
        """
        if batch.targets is None:
            raise ValueError("the triplet loss needs targets, but this batch has none")
        anchor, near, far = draw_triplets(batch, self.num_triplets, generator)
        position = batch.row_start[anchor] - batch.offsets[batch.node_set[anchor]]
        sign = batch.targets[position + near] - batch.targets[position + far]
        told = sign.nonzero().squeeze(1)
        embedded: Tensor = self.embed(batch.points)
        if len(told) == 0:
            return embedded.sum() * 0  # a graph is there for backward, whatever was drawn
        anchor, near, far, sign = anchor[told], near[told], far[told], sign[told]
        start = embedded[anchor]
        gap = (start - embedded[near]).square().sum(-1) - (start - embedded[far]).square().sum(-1)
        return (self.margin + sign * gap).relu().mean()


def draw_triplets(batch: SetBatch, number: int, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
    """Three distinct nodes of a set, uniform over ordered triples, ``number`` times for each set of three or more.

    >>> draw_triplets(SetBatch(torch.zeros(5, 1), torch.tensor([3, 2])), 1)[0].shape
    torch.Size([1])
    """
    large = (batch.sizes >= 3).nonzero().squeeze(1).repeat_interleave(number)
    size, start = batch.sizes[large], batch.offsets[large]
    device = batch.points.device if generator is None else generator.device
    uniform = torch.rand(3, len(large), generator=generator, device=device, dtype=torch.float64).to(size.device)
    spare = torch.arange(3, device=size.device)[:, None]  # each draw has one choice fewer than the one before
    choice = (uniform * (size - spare)).long()
    first = choice[0]
    second = choice[1] + (choice[1] >= first)
    low, high = torch.minimum(first, second), torch.maximum(first, second)
    third = choice[2] + (choice[2] >= low)
    third = third + (third >= high)
    return start + first, start + second, start + third


@dataclass(frozen=True)
class SiameseConfig:
    """The arguments of :class:`Siamese` as a value."""

    channels_in: int
    widths: tuple[int, ...]
    head: tuple[int, ...]
    batch_norm: bool = True

    def build(self) -> Siamese:
        """The model with fresh parameters."""
        return Siamese(**vars(self))


@dataclass(frozen=True)
class SiameseTripletConfig:
    """The arguments of :class:`SiameseTriplet` as a value."""

    channels_in: int
    widths: tuple[int, ...]
    batch_norm: bool = False
    margin: float = 2.0
    num_triplets: int = 200

    def build(self) -> SiameseTriplet:
        """The model with fresh parameters."""
        return SiameseTriplet(**vars(self))
