"""Tiles: queries and the keys that they may attend to, side by side in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.algebra import EquivalenceClass
from anyorder.layouts.lookup import Segments
from anyorder.layouts.plan import Plan

TILE_PAIRS = 1 << 20  # query-key pairs of a tile: bounds memory whatever the number of entries
TILE_QUERIES = 1024


@dataclass(frozen=True, eq=False)
class Tile:
    """Queries (tile, query) and keys (tile, key), padded with -1.

    ``source`` and ``target`` hold the unmatched nodes of all keys and queries, which must differ within a pair;
    ``is_padded`` says that some keys are padding.
    """

    queries: Tensor
    keys: Tensor
    source: Tensor
    target: Tensor
    is_padded: bool

    def allowed(self) -> Tensor | None:
        """(tile, query, key): which pairs are in the class; None where all are."""
        allowed = (self.keys >= 0)[:, None, :] if self.is_padded else None
        keys, queries = self.source[self.keys.clamp(min=0)], self.target[self.queries.clamp(min=0)]
        for a in range(keys.shape[-1]):
            for b in range(queries.shape[-1]):
                differ = keys[:, None, :, a] != queries[:, :, None, b]
                allowed = differ if allowed is None else allowed & differ
        return allowed


@dataclass(frozen=True, eq=False)
class Tiling:
    """The tiles of a class, and the query at each of their places, end to end.

    ``places`` are those that hold a query, None where all do; ``queries`` are the queries there.
    """

    tiles: tuple[Tile, ...]
    places: Tensor | None
    queries: Tensor

    @classmethod
    def build(cls, tiles: list[Tile], like: Tensor) -> Tiling:
        queries = torch.cat([tile.queries.flatten() for tile in tiles]) if tiles else like.new_empty(0)
        places = (queries >= 0).nonzero().flatten()
        if len(places) == len(queries):
            return cls(tuple(tiles), None, queries)
        return cls(tuple(tiles), places, queries[places])

    def __len__(self) -> int:
        return len(self.tiles)

    def __iter__(self) -> Iterator[Tile]:
        return iter(self.tiles)


def cut_tiles(plan: Plan, cls: EquivalenceClass) -> Tiling:
    """The tiles of a class, cut once per plan."""
    key = ("tiles", cls.source.labels, cls.target.labels, cls.matching)
    return plan.once(key, lambda: Tiling.build(_cut(plan, cls), plan.queries(cls).order))


def _cut(plan: Plan, cls: EquivalenceClass) -> list[Tile]:
    """Groups of similar size stand side by side; a long list of queries is cut in pieces."""
    keys, queries = plan.keys(cls), plan.queries(cls)
    num_keys, num_queries = keys.sizes, queries.sizes
    groups = ((num_keys > 0) & (num_queries > 0)).nonzero().flatten()
    if len(groups) == 0:
        return []
    piece = (TILE_PAIRS // num_keys[groups]).clamp(1, TILE_QUERIES)
    pieces = (num_queries[groups] + piece - 1) // piece
    group = torch.repeat_interleave(groups, pieces)
    number = torch.arange(len(group), device=groups.device) - torch.repeat_interleave(pieces.cumsum(0) - pieces, pieces)
    length = torch.repeat_interleave(piece, pieces)
    start = queries.pointer[group] + number * length
    count = torch.minimum(length, queries.pointer[group + 1] - start)
    similar = _bits(num_keys[group]) * 64 + _bits(count)
    source = plan.source.entries(cls.source).tuples[:, list(cls.unmatched_source)]
    target = plan.target.entries(cls.target).tuples[:, list(cls.unmatched_target)]
    cut = []
    for kind in torch.unique(similar):
        units = (similar == kind).nonzero().flatten()
        pairs = int(num_keys[group[units]].max()) * int(count[units].max())
        for some in units.split(max(1, TILE_PAIRS // pairs)):
            read = group[some]
            asking = _pad(queries, start[some], count[some])
            asked = _pad(keys, keys.pointer[read], num_keys[read])
            cut.append(Tile(asking, asked, source, target, bool((asked < 0).any())))
    return cut


def _bits(values: Tensor) -> Tensor:
    return values.double().log2().ceil().long()


def _pad(segments: Segments, start: Tensor, count: Tensor) -> Tensor:
    step = torch.arange(int(count.max()), device=start.device)
    place = (start[:, None] + step).clamp(max=len(segments.order) - 1)
    return torch.where(step < count[:, None], segments.order[place], -1)
