"""Which unordered hyperedges share how many nodes: groups by shared subsets, and pairs with an exact overlap."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from anyorder.layouts.segments import Queries, Segments
from anyorder.layouts.symmetric import SymmetricIndexSet
from anyorder.layouts.tiles import EntryPairs, Tiling, pairs_within
from anyorder.layouts.transfer import Transferable


@dataclass(frozen=True, eq=False)
class SharedSubsets(Transferable):
    """Hyperedges of two index sets by the subsets of one size that they share.

    >>> edges = SymmetricIndexSet(torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=4)
    >>> shared = SharedSubsets.build(edges, edges, 2)
    >>> shared.keys.sizes.tolist()
    [1, 1, 2, 1, 1]

    Args:
        sources, targets: (hyperedge x subset,), the hyperedge of each pair of a hyperedge and one of its subsets.
        keys, queries: such pairs of the input and of the output, by subset.
    """

    sources: Tensor
    targets: Tensor
    keys: Segments
    queries: Queries

    @classmethod
    def build(cls, source: SymmetricIndexSet, target: SymmetricIndexSet, size: int) -> SharedSubsets:
        """By the subsets of ``size`` nodes."""
        known = source.subsets(size)
        found = source.find_subsets(target, size)
        sources = torch.arange(source.num_entries, device=source.device).repeat_interleave(known.ids.shape[1])
        targets = torch.arange(target.num_entries, device=source.device).repeat_interleave(found.shape[1])
        queries = Segments.build(found.flatten(), known.count)
        return cls(sources, targets, Segments.build(known.ids.flatten(), known.count), Queries.build([queries]))


@dataclass(frozen=True, eq=False)
class OverlapPairs(EntryPairs):
    """Pairs of a target and a source hyperedge with exactly so many nodes in common.

    >>> edges = SymmetricIndexSet(torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=4)
    >>> pairs = OverlapPairs.build(SharedSubsets.build(edges, edges, 2), edges, edges, 2)
    >>> pairs.target.tolist(), pairs.source.tolist()
    ([0, 1], [1, 0])

    Args:
        target, source: (pair,), its hyperedge of the output and of the input.
        num_targets: number of hyperedges of the output.
    """

    @classmethod
    def build(cls, shared: SharedSubsets, source: SymmetricIndexSet, target: SymmetricIndexSet, size: int) -> OverlapPairs:
        """Those that share a subset of this size and nothing else."""
        query, key = pairs_within(shared.keys, shared.queries)
        left, right = _rest(target, size)[query], _rest(source, size)[key]
        apart = (left[:, :, None] != right[:, None, :]).all(-1).all(-1)
        return cls(shared.targets[query[apart]], shared.sources[key[apart]], target.num_entries)


def _rest(index: SymmetricIndexSet, size: int) -> Tensor:
    """(hyperedge x subset, node): the nodes outside of each subset of this size."""
    axes = range(index.order)
    rest = [[axis for axis in axes if axis not in some] for some in combinations(axes, size)]
    return torch.stack([index.tuples[:, some] for some in rest], 1).flatten(0, 1)


def disjoint_tiles(source: SymmetricIndexSet, target: SymmetricIndexSet) -> Tiling:
    """Queries and keys of one graph without a common node, tile by tile."""
    keys = Segments.build(source.entry_graph, source.num_graphs)
    queries = Segments.build(target.entry_graph, source.num_graphs)
    return Tiling.build(keys, queries, source.tuples, target.tuples)
