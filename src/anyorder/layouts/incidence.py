"""Hypergraphs with edges of many sizes, as incidences between nodes and unordered hyperedges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.layouts.segments import Queries, Segments
from anyorder.layouts.transfer import Transferable

PIECE = 2_000_000
"""Hyperedges that are looked up at a time."""


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
        degrees = self.by_node.sizes
        fewer, other = torch.where(
            degrees[first] <= degrees[second], torch.stack([first, second]), torch.stack([second, first])
        )
        work = degrees[fewer].cumsum(0)
        pieces = (work // PIECE).unique_consecutive(return_counts=True)[1].tolist()  # a hub's hyperedges are many
        known, pairs, edges, start = (self.node * len(self.sizes) + self.edge).sort().values, [], [], 0
        for few, rest in zip(fewer.split(pieces), other.split(pieces), strict=True):
            pair, edge = self._edges_of(few)
            asked = rest[pair] * len(self.sizes) + edge
            found = known[torch.searchsorted(known, asked).clamp(max=len(known) - 1)] == asked
            pairs.append(pair[found] + start)
            edges.append(edge[found])
            start += len(few)
        return torch.cat([*pairs, first[:0]]), torch.cat([*edges, first[:0]])

    def _edges_of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """The place of a node in ``nodes`` and a hyperedge of it, one row for each."""
        degrees = self.by_node.sizes[nodes]
        place = torch.arange(len(nodes), device=nodes.device).repeat_interleave(degrees)
        number = torch.arange(len(place), device=nodes.device) - (degrees.cumsum(0) - degrees)[place]
        return place, self.edge[self.by_node.rows[self.by_node.pointer[nodes][place] + number]]


def _every(count: int) -> Queries:
    """Each row asks the group of its own number."""
    return Queries(torch.arange(count), torch.arange(count + 1)[None])
