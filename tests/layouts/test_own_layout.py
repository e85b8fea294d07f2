"""A layout of one's own is one class: here the pairs (i, i) and (i, i + 1) of a ring, found by arithmetic."""

from __future__ import annotations

import torch
from torch import Tensor

from anyorder import Encoder, Features, IndexSet, SparseIndexSet
from anyorder.layouts import CompleteIndexSet


class Ring(IndexSet):
    """Loops and links to the next node of one ring."""

    order = 2

    def __init__(self, num_nodes: int) -> None:
        super().__init__()
        self.num_nodes, self.num_graphs = num_nodes, 1
        self.node_graph = torch.zeros(num_nodes, dtype=torch.int64)

    @property
    def num_entries(self) -> int:
        return 2 * self.num_nodes

    @property
    def tuples(self) -> Tensor:
        nodes = torch.arange(self.num_nodes)
        return torch.cat([torch.stack([nodes, nodes], 1), torch.stack([nodes, (nodes + 1) % self.num_nodes], 1)])

    def find(self, tuples: Tensor, graph: Tensor) -> Tensor:
        step = (tuples[:, 1] - tuples[:, 0]) % self.num_nodes
        return torch.where(step < 2, tuples[:, 0] + step * self.num_nodes, -1)

    def flatten(self, values: Tensor) -> Tensor:
        return values

    def unflatten(self, rows: Tensor) -> Tensor:
        return rows

    def complete(self, order: int) -> IndexSet:
        return CompleteIndexSet(order, torch.tensor([self.num_nodes]))

    def with_order(self, order: int) -> IndexSet | None:
        return self if order == 2 else self.complete(order) if order < 2 else None


def test_a_model_takes_it_as_it_takes_ours():
    torch.manual_seed(0)
    ring, x = Ring(6), torch.randn(12, 3)
    same = SparseIndexSet(ring.tuples, num_nodes=6)
    model = Encoder(order_in=2, orders=(2, 1, 0), channels_in=3, channels=4, channels_out=2, heads=2, head_channels=2)
    torch.testing.assert_close(model(Features(ring, x)).rows, model(Features(same, x)).rows)
