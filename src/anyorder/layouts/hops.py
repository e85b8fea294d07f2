"""Who is near whom in a graph: neighbours, pairs within a number of hops, connected sets of nodes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.errors import InputError
from anyorder.layouts.index_set import IndexSet
from anyorder.layouts.lookup import TupleIndex


@dataclass(frozen=True, eq=False)
class Adjacency:
    """The neighbours of each node, in either direction and without loops: ``nodes[pointer[v]:pointer[v + 1]]``."""

    nodes: Tensor
    pointer: Tensor

    @classmethod
    def of(cls, graph: IndexSet) -> Adjacency:
        """From the entries of order 2 that join two nodes."""
        links = graph.tuples[graph.tuples[:, 0] != graph.tuples[:, 1]]
        return cls.of_pairs(torch.cat([links, links.flip(1)]), graph.num_nodes)

    @classmethod
    def of_pairs(cls, pairs: Tensor, num_nodes: int) -> Adjacency:
        ordered = distinct(pairs, num_nodes)
        counts = torch.bincount(ordered[:, 0], minlength=num_nodes)
        return cls(ordered[:, 1].contiguous(), torch.cat([counts.new_zeros(1), counts.cumsum(0)]))

    @property
    def degrees(self) -> Tensor:
        return self.pointer.diff()

    def expand(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """All neighbours of some nodes, one below the other, and which of the nodes each belongs to."""
        degrees = self.degrees[nodes]
        owner = torch.repeat_interleave(torch.arange(len(nodes), device=nodes.device), degrees)
        first = degrees.cumsum(0) - degrees
        step = torch.arange(len(owner), device=nodes.device) - first[owner]
        return self.nodes[self.pointer[nodes[owner]] + step], owner


def distinct(tuples: Tensor, num_nodes: int) -> Tensor:
    """Rows in ascending order, each once."""
    index = TupleIndex.build(tuples, num_nodes)
    return tuples[index.numbers()[1]]


@dataclass(frozen=True, eq=False)
class Distances:
    """Pairs of nodes at most ``most`` hops apart, and how far."""

    index: TupleIndex
    pairs: Tensor
    hops: Tensor
    most: int

    @classmethod
    def of(cls, graph: IndexSet, most: int) -> Distances:
        """By a search from all nodes at once, one hop at a time."""
        near, count = Adjacency.of(graph), graph.num_nodes
        nodes = torch.arange(count, device=graph.device)
        pairs = frontier = torch.stack([nodes, nodes], 1)
        hops = torch.zeros_like(nodes)
        for step in range(1, most + 1):
            reached, owner = near.expand(frontier[:, 1])
            further = distinct(torch.stack([frontier[owner, 0], reached], 1), count)
            frontier = further[TupleIndex.build(pairs, count).find(further) < 0]
            if len(frontier) == 0:
                break
            pairs = torch.cat([pairs, frontier])
            hops = torch.cat([hops, hops.new_full((len(frontier),), step)])
        return cls(TupleIndex.build(pairs, count), pairs, hops, most)

    def find(self, pairs: Tensor) -> Tensor:
        """How far apart the nodes of each pair are; ``most + 1`` where farther or not connected."""
        rows = self.index.find(pairs)
        return torch.where(rows < 0, self.most + 1, self.hops[rows.clamp(min=0)])


class TooManyTuples(InputError):
    """There would be more tuples than fit.

    >>> from anyorder import DistinctTuples, SparseIndexSet
    >>> path = SparseIndexSet(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    >>> DistinctTuples().index_set(path, 3, limit=5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    anyorder.layouts.hops.TooManyTuples: DistinctTuples of order 3: 6 tuples, and 5 fit: use connected tuples...

    Args:
        message: how many there would be, and how many fit.
    """


def refuse_above(limit: int, count: int, what: str) -> None:
    """Refuse to write more tuples than fit, and say how many there would be."""
    if count > limit:
        raise TooManyTuples(
            f"{what}: {count:,} tuples, and {limit:,} fit: use connected tuples, fewer hops, a lower order, "
            "smaller batches, or a higher limit"
        )


def connected_sets(graph: IndexSet, size: int, limit: int) -> Tensor:
    """(sets, size): the sets of nodes that induce a connected subgraph, each in ascending order."""
    near = Adjacency.of(graph)
    found = torch.arange(graph.num_nodes, device=graph.device).unsqueeze(1)
    for reached in range(2, size + 1):
        ahead = int(near.degrees[found].sum())
        refuse_above(limit, ahead, f"connected sets of {reached} nodes, some of them more than once")
        members = torch.arange(len(found), device=found.device).repeat_interleave(found.shape[1])
        added, owner = near.expand(found.flatten())
        base = found[members[owner]]
        fresh = (base != added.unsqueeze(1)).all(1)
        sets = torch.cat([base[fresh], added[fresh].unsqueeze(1)], 1).sort(1).values
        found = distinct(sets, graph.num_nodes)
    return found


def near_sets(graph: IndexSet, size: int, hops: int, limit: int) -> Tensor:
    """(sets, size): the sets of nodes that are pairwise at most ``hops`` apart, each in ascending order."""
    distances = Distances.of(graph, hops)
    later = distances.pairs[distances.pairs[:, 0] < distances.pairs[:, 1]]
    near = Adjacency.of_pairs(later, graph.num_nodes)
    found = torch.arange(graph.num_nodes, device=graph.device).unsqueeze(1)
    for reached in range(2, size + 1):
        ahead = int(near.degrees[found[:, -1]].sum())
        refuse_above(limit, ahead, f"candidates for sets of {reached} nodes within {hops} hops")
        added, owner = near.expand(found[:, -1])
        base = found[owner]
        for place in range(reached - 2):
            keep = distances.find(torch.stack([base[:, place], added], 1)) <= hops
            base, added = base[keep], added[keep]
        found = torch.cat([base, added.unsqueeze(1)], 1)
    return found


def unions(first: Tensor, second: Tensor, node_graph: Tensor, num_graphs: int, limit: int) -> Tensor:
    """All unions of a set of the first list and a disjoint one of the second, of the same graph."""
    of_first, of_second = node_graph[first[:, 0]], node_graph[second[:, 0]]
    sizes = torch.bincount(of_second, minlength=num_graphs)
    refuse_above(limit, int(sizes[of_first].sum()), "unions of connected sets, some of them more than once")
    order = torch.argsort(of_second, stable=True)
    starts = sizes.cumsum(0) - sizes
    owner = torch.repeat_interleave(torch.arange(len(first), device=first.device), sizes[of_first])
    repeats = sizes[of_first]
    step = torch.arange(len(owner), device=first.device) - (repeats.cumsum(0) - repeats)[owner]
    left, right = first[owner], second[order[starts[of_first[owner]] + step]]
    apart = (left.unsqueeze(2) != right.unsqueeze(1)).flatten(1).all(1)
    return distinct(torch.cat([left[apart], right[apart]], 1).sort(1).values, len(node_graph))
