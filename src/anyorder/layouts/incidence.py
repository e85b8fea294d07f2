"""Hypergraphs with edges of many sizes, as incidences between nodes and unordered hyperedges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.layouts.segments import Queries, Segments
from anyorder.layouts.transfer import Transferable


@dataclass(frozen=True, eq=False)
class IncidenceSet(Transferable):
    """Which node is in which hyperedge, sorted both ways.

    >>> incidence = IncidenceSet.build(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), num_nodes=2, num_edges=2)
    >>> incidence.sizes.tolist()
    [2, 1]
    """

    node: Tensor
    edge: Tensor
    by_node: Segments
    by_edge: Segments
    each_node: Queries
    each_edge: Queries
    sizes: Tensor

    @classmethod
    def build(cls, node: Tensor, edge: Tensor, *, num_nodes: int, num_edges: int) -> IncidenceSet:
        """From pairs (node, edge), which must be distinct."""
        if node.shape != edge.shape or node.ndim != 1:
            shapes = f"{tuple(node.shape)} and {tuple(edge.shape)}"
            raise ValueError(f"node and edge must be two lists of one length, got {shapes}")
        for name, values, bound in (("node", node, num_nodes), ("edge", edge, num_edges)):
            if len(values) and not (int(values.min()) >= 0 and int(values.max()) < bound):
                raise ValueError(f"{name} must lie in 0..{bound - 1}, got {int(values.min())} to {int(values.max())}")
        sizes = torch.bincount(edge, minlength=num_edges)
        by_node, by_edge = Segments.build(node, num_nodes), Segments.build(edge, num_edges)
        return cls(node, edge, by_node, by_edge, _every(num_nodes), _every(num_edges), sizes)

    def shared(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """The hyperedges that hold both nodes of a pair: the number of the pair and the hyperedge, one row for each.

        >>> incidence = IncidenceSet.build(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), num_nodes=2, num_edges=2)
        >>> incidence.shared(torch.tensor([0, 1]), torch.tensor([1, 1]))
        (tensor([0, 1, 1]), tensor([0, 0, 1]))
        """
        degrees = self.by_node.sizes[first]
        pair = torch.arange(len(first), device=first.device).repeat_interleave(degrees)
        place = torch.arange(len(pair), device=first.device) - (degrees.cumsum(0) - degrees)[pair]
        edge = self.edge[self.by_node.rows[self.by_node.pointer[first][pair] + place]]
        found = torch.isin(second[pair] * len(self.sizes) + edge, self.node * len(self.sizes) + self.edge)
        return pair[found], edge[found]


def _every(count: int) -> Queries:
    """Each row asks the group of its own number."""
    return Queries(torch.arange(count), torch.arange(count + 1)[None])
