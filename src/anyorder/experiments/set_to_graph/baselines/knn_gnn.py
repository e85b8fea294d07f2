"""GNN k: graph convolutions on the graph of the k nearest neighbours; a logit is an inner product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from anyorder.experiments.set_to_graph.baselines.pairs import PairModel
from anyorder.experiments.set_to_graph.sets import SetBatch


@torch.no_grad()
def nearest_neighbours(batch: SetBatch, number: int) -> Tensor:
    """Which nodes (batch, i, j) j are among the ``number`` nearest others of i in the padded view, 1 or 0.

    >>> nearest_neighbours(SetBatch(torch.tensor([[0.0], [1.0], [3.0]]), torch.tensor([3])), 1).tolist()
    [[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    """
    points = batch.pad(batch.points)
    # the direct formula: products would lose the digits that tell near points apart
    distance = torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")
    others = batch.mask[:, None] & ~torch.eye(batch.max_size, dtype=torch.bool, device=points.device)
    distance = distance.masked_fill(~others, torch.inf)
    nearest = distance.topk(min(number, batch.max_size), largest=False)
    found = nearest.values.isfinite() & batch.mask[:, :, None]  # small sets have fewer neighbours
    return torch.zeros_like(distance).scatter(2, nearest.indices, found.to(distance.dtype))


class GraphConvolution(nn.Module):
    r"""The graph convolution :math:`y_i = W_1 x_i + W_2 \sum_{j \in N(i)} x_j + b`."""

    def __init__(self, *, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.own = nn.Linear(channels_in, channels_out, bias=False)
        self.neighbours = nn.Linear(channels_in, channels_out)

    def forward(self, nodes: Tensor, adjacency: Tensor, batch: SetBatch) -> Tensor:
        """The new node values (total nodes, channels_out)."""
        gathered = batch.unpad(adjacency @ batch.pad(nodes))
        y: Tensor = self.own(nodes) + self.neighbours(gathered)
        return y


class KnnGraphNetwork(PairModel):
    r"""Graph convolutions with ReLU between them on the k-nearest-neighbour graph; logits :math:`x_i \cdot x_j`.

    With ``neighbours=0`` no node sees another.
    """

    def __init__(self, *, channels_in: int, widths: Sequence[int], neighbours: int) -> None:
        super().__init__()
        if neighbours < 0:
            raise ValueError(f"neighbours must be 0 or more, got {neighbours}")
        self.neighbours = neighbours
        self.layers = nn.ModuleList(
            GraphConvolution(channels_in=before, channels_out=after) for before, after in pairwise((channels_in, *widths))
        )

    def forward(self, batch: SetBatch) -> Tensor:
        """The logits (pairs,)."""
        adjacency = nearest_neighbours(batch, self.neighbours)
        first, *others = self.layers
        nodes = first(batch.points, adjacency, batch)
        for layer in others:
            nodes = layer(nodes.relu(), adjacency, batch)
        padded = batch.pad(nodes)
        return batch.flatten_pairs(padded @ padded.mT)


@dataclass(frozen=True)
class KnnGraphNetworkConfig:
    """The arguments of :class:`KnnGraphNetwork` as a value."""

    channels_in: int
    widths: tuple[int, ...]
    neighbours: int

    def build(self) -> KnnGraphNetwork:
        """The model with fresh parameters."""
        return KnnGraphNetwork(**vars(self))
