"""Tiles: queries and the keys that they may attend to, side by side in blocks of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.layouts.memory import is_exported, repeat_numbers, with_zeros
from anyorder.layouts.segments import Queries, Segments
from anyorder.layouts.transfer import Transferable

TILE_PAIRS = 1 << 20  # query-key pairs of a tile: bounds memory whatever the number of entries
TILE_QUERIES = 1024
PADDED_PAIRS = 1 << 13  # of padding that cost as much as the operators of one more tile


@dataclass(frozen=True, eq=False)
class EntryPairs(Transferable):
    """Pairs of an output and an input entry, one by one.

    >>> pairs = EntryPairs(torch.tensor([0, 0, 1]), torch.tensor([2, 3, 2]), num_targets=2)
    >>> pairs.source[pairs.target == 0].tolist()
    [2, 3]

    Args:
        target, source: (pair,), its entry of the output and of the input.
        num_targets: number of entries of the output.
    """

    target: Tensor
    source: Tensor
    num_targets: int


def pairs_within(keys: Segments, queries: Segments | Queries) -> tuple[Tensor, Tensor]:
    """The query and the key of each pair that share a group."""
    count = keys.sizes[queries.group]
    asking = repeat_numbers(count, count.sum().item())  # type: ignore[arg-type]
    first = (count.cumsum(0) - count)[asking]
    place = torch.arange(asking.shape[0], device=count.device) - first + keys.pointer[queries.group[asking]]
    return queries.rows[asking], keys.rows[place]


@dataclass(frozen=True, eq=False)
class Stretches(Transferable):
    """Stretches of one list of rows, side by side: where each begins, and how long it is, at most ``longest``.

    All tiles of a class hold the same list, so that their memory is linear, however often a key is read.
    """

    rows: Tensor
    begin: Tensor
    count: Tensor
    longest: int
    has_gaps: bool
    """Whether some are shorter than others."""

    @classmethod
    def of(cls, rows: Tensor, begin: Tensor, count: Tensor) -> Stretches:
        if is_exported():  # two places at least: PyTorch's compiler must know that no axis of a product has length 1
            longest = count.amax(0).clamp(min=2).item()
            torch._check(longest >= 2)
            return cls(with_zeros(rows), begin, count, longest, True)  # type: ignore[arg-type]
        longest = int(count.max()) if len(count) else 0
        return cls(rows, begin, count, longest, bool((count < longest).any()))

    def padded(self) -> Tensor:
        """(stretch, place): the rows, -1 after the end of a stretch."""
        step = torch.arange(self.longest, device=self.begin.device)
        place = (self.begin[:, None] + step).clamp(max=self.rows.shape[0] - 1)
        return torch.where(step < self.count[:, None], self.rows[place], -1) if self.has_gaps else self.rows[place]


@dataclass(frozen=True, eq=False)
class Tile(Transferable):
    """Queries (tile, query) and keys (tile, key), padded with -1 where they are fewer than elsewhere in the tile.

    >>> group = Segments.build(torch.zeros(2, dtype=torch.int64), 1)
    >>> tile = Tiling.build(group, group, torch.tensor([[5], [6]]), torch.tensor([[6], [7]])).tiles[0]
    >>> tile.allowed(tile.queries.padded(), tile.keys.padded()).tolist()
    [[[True, False], [True, True]]]

    Args:
        queries, keys: of each tile.
        source, target: (key, node) and (query, node), the unmatched nodes of all, which must differ within a pair.
    """

    queries: Stretches
    keys: Stretches
    source: Tensor
    target: Tensor

    def allowed(self, queries: Tensor, keys: Tensor) -> Tensor | None:
        """(tile, query, key): which pairs of the padded queries and keys are in the class; None where all are."""
        allowed = (keys >= 0)[:, None, :] if self.keys.has_gaps else None
        given, asking = self.source[keys.clamp(min=0)], self.target[queries.clamp(min=0)]
        for a in range(given.shape[-1]):
            for b in range(asking.shape[-1]):
                differ = given[:, None, :, a] != asking[:, :, None, b]
                allowed = differ if allowed is None else allowed & differ
        return allowed


@dataclass(frozen=True, eq=False)
class Tiling(Transferable):
    """The tiles of a class, and the query at each of their places, end to end.

    >>> keys, queries = Segments.build(torch.tensor([0, 0, 1]), 2), Segments.build(torch.tensor([1, 0]), 2)
    >>> [tile.keys.padded().tolist() for tile in Tiling.build(keys, queries, torch.empty(3, 0), torch.empty(2, 0))]
    [[[2, -1], [0, 1]]]

    Args:
        tiles: blocks of queries and keys.
        places: (query,), the places that hold a query; None: all do.
        queries: (query,), the queries there.
    """

    tiles: tuple[Tile, ...]
    places: Tensor | None
    queries: Tensor

    @classmethod
    def build(cls, keys: Segments, queries: Segments, source: Tensor, target: Tensor) -> Tiling:
        """Cut the groups of a class; ``source`` and ``target`` are the unmatched nodes of its keys and queries."""
        tiles = [_whole(keys, queries, source, target)] if is_exported() else _cut(keys, queries, source, target)
        asking = torch.cat([tile.queries.padded().flatten() for tile in tiles]) if tiles else queries.rows.new_empty(0)
        places = (asking >= 0).nonzero().flatten()
        if not is_exported() and len(places) == len(asking):
            return cls(tuple(tiles), None, asking)
        return cls(tuple(tiles), places, asking[places])

    @property
    def num_pairs(self) -> int:
        """Queries and keys side by side, padding included."""
        return sum(len(tile.queries.begin) * tile.queries.longest * tile.keys.longest for tile in self.tiles)

    def __len__(self) -> int:
        return len(self.tiles)

    def __iter__(self) -> Iterator[Tile]:
        return iter(self.tiles)


def _whole(keys: Segments, queries: Segments, source: Tensor, target: Tensor) -> Tile:
    """All groups side by side, as an exported graph has them: they are graphs there, of which a batch has few."""
    asking, asked = (Stretches.of(part.rows, part.sizes.cumsum(0) - part.sizes, part.sizes) for part in (queries, keys))
    return Tile(asking, asked, with_zeros(source), with_zeros(target))


def _cut(keys: Segments, queries: Segments, source: Tensor, target: Tensor) -> list[Tile]:
    """Groups of similar size stand side by side; a long list of queries is cut in pieces."""
    num_keys, num_queries = keys.sizes, queries.sizes
    groups = ((num_keys > 0) & (num_queries > 0)).nonzero().flatten()
    if len(groups) == 0:
        return []
    most = (TILE_PAIRS // num_keys[groups]).clamp(1, TILE_QUERIES)
    pieces = _divided_up(num_queries[groups], most)
    length = _divided_up(num_queries[groups], pieces).repeat_interleave(pieces)  # of equal pieces, which lie in one tile
    group = groups.repeat_interleave(pieces)
    number = torch.arange(len(group), device=groups.device) - (pieces.cumsum(0) - pieces).repeat_interleave(pieces)
    start = torch.minimum(queries.pointer[group] + number * length, queries.pointer[group + 1])
    count = torch.minimum(length, queries.pointer[group + 1] - start)
    cut = []
    for units in _similar(num_keys[group], count):
        pairs = int(num_keys[group[units]].max()) * int(count[units].max())
        for some in units.split(max(1, TILE_PAIRS // pairs)):
            read = group[some]
            asking = Stretches.of(queries.rows, start[some], count[some])
            asked = Stretches.of(keys.rows, keys.pointer[read], num_keys[read])
            cut.append(Tile(asking, asked, source, target))
    return cut


def _similar(num_keys: Tensor, count: Tensor) -> list[Tensor]:
    """Which pieces stand side by side: those of similar size, and others where padding costs less than one more tile."""
    found: list[tuple[Tensor, int, int]] = []
    similar = _bits(num_keys) * 64 + _bits(count)
    for kind in torch.unique(similar):
        units = (similar == kind).nonzero().flatten()
        longest = int(num_keys[units].max()), int(count[units].max())
        if found:
            before, *sizes = found[-1]
            both = torch.cat([before, units]), max(sizes[0], longest[0]), max(sizes[1], longest[1])
            padding = (
                len(both[0]) * both[1] * both[2] - len(before) * sizes[0] * sizes[1] - len(units) * longest[0] * longest[1]
            )
            if padding <= PADDED_PAIRS:
                found[-1] = both
                continue
        found.append((units, *longest))
    return [units for units, *_ in found]


def _divided_up(whole: Tensor, part: Tensor) -> Tensor:
    return (whole + part - 1) // part


def _bits(values: Tensor) -> Tensor:
    return values.double().log2().ceil().long()
