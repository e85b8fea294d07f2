"""Tuples of typed nodes as integers: codes for merging and exact membership, for any number of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
CODE_LIMIT = 2**63
SIEVE_FACTOR = 16  # marked cells are at most 1 in 16, so few strangers pass the sieve


def offsets_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """The first global id of every type.

    >>> offsets_of((146, 70, 5))
    (0, 146, 216)
    """
    return tuple(accumulate(sizes[:-1], initial=0))


def checked_tuples(tuples: NDArray[np.generic], sizes: Sequence[int], what: str) -> Ints:
    """Rows of global node ids as int64, or an error that names the first row whose column j is not of type j."""
    array = np.asarray(tuples)
    order = len(sizes)
    if array.ndim != 2 or array.shape[1] != order:
        raise ValueError(f"{what} must have one column per node type: expected shape (n, {order}), got {array.shape}")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what} must hold integer node ids, got dtype {array.dtype}")
    ids = array.astype(np.int64, copy=False)
    first = np.asarray(offsets_of(sizes), dtype=np.int64)
    wrong = (ids < first) | (ids >= first + np.asarray(sizes, dtype=np.int64))
    if wrong.any():
        row, column = (int(axis[0]) for axis in np.nonzero(wrong))
        low, high = int(first[column]), int(first[column]) + sizes[column] - 1
        raise ValueError(
            f"{what}: row {row} holds node {int(ids[row, column])} in column {column}, whose type has the ids {low}..{high}"
        )
    return ids


def _column_groups(sizes: Sequence[int], rows: int) -> Iterator[tuple[int, int]]:
    """Split columns into runs (start, stop) whose codes, ranks included, stay below 2^63."""
    start, product = 0, 1
    for column, size in enumerate(sizes):
        if size * max(rows, 1) >= CODE_LIMIT:
            raise ValueError(f"{size} nodes of one type with {rows} tuples do not fit 64-bit codes")
        if product * size * max(rows, 1) >= CODE_LIMIT:
            yield start, column
            start, product = column, 1
        product *= size
    yield start, len(sizes)


def _mixed_radix(rank: Ints | int, local: Ints, sizes: Sequence[int]) -> Ints:
    """rank * s_1 ... s_m + mixed-radix number of the digits ``local`` with sizes s_1 ... s_m."""
    code: Ints = np.full(len(local), rank, dtype=np.int64) if isinstance(rank, int) else rank.copy()
    for column, size in enumerate(sizes):
        code *= size
        code += local[:, column]
    return code


def row_codes(local: Ints, sizes: Sequence[int]) -> Ints:
    """Integers that compare like the rows of ``local`` (ids from 0 in every column) compare lexicographically.

    >>> row_codes(np.array([[1, 0], [0, 2], [1, 0]]), (2, 3)).tolist()
    [3, 2, 3]
    """
    rank: Ints | int = 0
    groups = list(_column_groups(sizes, len(local)))
    code = np.zeros(len(local), dtype=np.int64)
    for position, (start, stop) in enumerate(groups):
        code = _mixed_radix(rank, local[:, start:stop], sizes[start:stop])
        if position + 1 < len(groups):
            rank = np.unique(code, return_inverse=True)[1].astype(np.int64).reshape(-1)
    return code


def _hashes(tuples: Ints, bits: int) -> Ints:
    """A number below 2^bits per row, by multiplying and mixing its columns modulo 2^64."""
    mixed = np.zeros(len(tuples), dtype=np.uint64)
    for column in range(tuples.shape[1]):
        mixed ^= tuples[:, column].astype(np.uint64)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(64 - bits)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class KnownTuples:
    """A set of typed tuples with exact, vectorised membership: a hash sieve first, then sorted codes.

    The sieve marks the hashes of all tuples and lets most others go at once; the rest is settled by binary search, so
    there are no false answers. Where a mixed-radix code of all columns would pass 63 bits, the columns go in runs, and
    each run is coded together with the rank of the columns before it.

    >>> known = KnownTuples.of(np.array([[0, 3], [1, 2], [0, 3]]), sizes=(2, 3))
    >>> known.contains(np.array([[0, 3], [0, 2]])).tolist(), len(known)
    ([True, False], 2)
    """

    sizes: tuple[int, ...]
    tuples: Ints
    groups: tuple[tuple[int, int], ...]
    codes: tuple[Ints, ...]
    sieve: NDArray[np.bool_]

    @classmethod
    def of(cls, tuples: NDArray[np.generic], sizes: Sequence[int]) -> KnownTuples:
        """The set of the rows of ``tuples`` (global ids; repeated rows count once)."""
        rows = checked_tuples(tuples, sizes, "known tuples")
        local = rows - np.asarray(offsets_of(sizes), dtype=np.int64)
        groups, codes = [], []
        rank: Ints | int = 0
        code = np.zeros(0, dtype=np.int64)
        for start, stop in _column_groups(sizes, len(local)):
            code = _mixed_radix(rank, local[:, start:stop], sizes[start:stop])
            known = np.unique(code)
            rank = np.searchsorted(known, code).astype(np.int64)
            groups.append((start, stop))
            codes.append(known)
        bits = max(4, (SIEVE_FACTOR * len(codes[-1])).bit_length())
        sieve = np.zeros(1 << bits, dtype=np.bool_)
        sieve[_hashes(rows, bits)] = True
        distinct = rows[np.unique(code, return_index=True)[1]]
        return cls(tuple(sizes), distinct, tuple(groups), tuple(codes), sieve)

    def __len__(self) -> int:
        return len(self.tuples)

    @property
    def order(self) -> int:
        return len(self.sizes)

    def contains(self, tuples: Ints) -> NDArray[np.bool_]:
        """For each row whether it is in the set; ids must be valid (see ``checked_tuples``)."""
        found: NDArray[np.bool_] = self.sieve[_hashes(tuples, len(self.sieve).bit_length() - 1)]
        candidates = np.flatnonzero(found)
        if len(candidates):
            found[candidates] = self._search(tuples[candidates])
        return found

    def _search(self, tuples: Ints) -> NDArray[np.bool_]:
        """Membership by binary search alone."""
        local = tuples - np.asarray(offsets_of(self.sizes), dtype=np.int64)
        found = np.ones(len(tuples), dtype=np.bool_)
        rank: Ints | int = 0
        for (start, stop), known in zip(self.groups, self.codes, strict=True):
            code = _mixed_radix(rank, local[:, start:stop], self.sizes[start:stop])
            rank = np.minimum(np.searchsorted(known, code), len(known) - 1)
            found &= known[rank] == code
        return found

    def saturated(self, position: int) -> KnownTuples:
        """The tuples of the other positions that are known with every node of the type at ``position``.

        >>> known = KnownTuples.of(np.array([[0, 2], [1, 2], [0, 3]]), sizes=(2, 2))
        >>> known.saturated(0).tuples.tolist()
        [[0]]
        """
        others = [column for column in range(self.order) if column != position]
        sizes = [self.sizes[column] for column in others]
        local = self.tuples[:, others] - np.asarray(offsets_of(self.sizes), dtype=np.int64)[others]
        _, first, counts = np.unique(row_codes(local, sizes), return_index=True, return_counts=True)
        full = first[counts == self.sizes[position]]
        return KnownTuples.of(local[full] + np.asarray(offsets_of(sizes), dtype=np.int64), sizes)
