"""People's own tuples: CSV files as integer arrays, repeated rows merged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anyorder.datasets.csv_stream import Chunk, stream_table
from anyorder.errors import InputError
from anyorder.experiments.hyperedges.data import TypedHyperedges
from anyorder.experiments.hyperedges.tuples import Ints, offsets_of, row_codes
from anyorder.experiments.hyperedges.vocabulary import Vocabulary

MERGE_ROWS = 2**20


@dataclass(frozen=True, eq=False)
class TupleTable:
    """Distinct rows of a file as tuples of node ids (offset per column), how often each came, and its summed weight."""

    vocabulary: Vocabulary
    tuples: Ints
    counts: Ints
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.tuples)

    @property
    def num_rows(self) -> int:
        """Rows of the file, repeated ones included."""
        return int(self.counts.sum())

    def split(self, test: float = 0.2, *, seed: int = 0) -> TypedHyperedges:
        """Distinct tuples divided at random into a training part, with weights, and a fraction ``test`` to test on."""
        count = round(test * len(self))
        if test and not 0 < count < len(self):
            raise ValueError(f"a fraction {test} of {len(self)} distinct tuples leaves a part empty")
        return self.tested_on(np.random.default_rng(seed).permutation(len(self))[:count])

    def tested_on(self, rows: Ints) -> TypedHyperedges:
        """Some of the distinct tuples to test on, the others to train on, with weights."""
        held, kept = np.sort(rows), np.setdiff1d(np.arange(len(self)), rows)
        return TypedHyperedges(
            sizes=self.vocabulary.sizes,
            train=self.tuples[kept],
            test=self.tuples[held],
            names=self.vocabulary.columns,
            weights=self.weights[kept],
        )


def read_table(
    path: str | Path,
    columns: Sequence[str],
    *,
    weight: str | None = None,
    header: bool = True,
    delimiter: str = ",",
    progress: bool = False,
) -> TupleTable:
    """Read the named columns of a CSV file; see ``stream_table`` for what is refused.

    Memory grows with the number of distinct names and distinct rows, not with the length of the file.
    """
    ids: list[defaultdict[str, int]] = []
    for _ in columns:
        table: defaultdict[str, int] = defaultdict()
        table.default_factory = table.__len__  # a new name gets the next id
        ids.append(table)
    merged = _Rows.empty(len(columns))
    waiting: list[_Rows] = []
    stream = stream_table(path, columns, weight=weight, header=header, delimiter=delimiter, progress=progress)
    for chunk in stream:
        count = len(chunk.lines)
        local = [np.fromiter(map(t.__getitem__, n), np.int64, count) for t, n in zip(ids, chunk.names, strict=True)]
        waiting.append(_Rows(np.stack(local, axis=1), np.ones(count, dtype=np.int64), chunk.weights))
        if sum(len(rows.counts) for rows in waiting) >= max(MERGE_ROWS, len(merged.counts)):
            merged, waiting = _Rows.merge([merged, *waiting]), []
    merged = _Rows.merge([merged, *waiting])
    if not len(merged.counts):
        raise InputError(f"{path} holds no rows of data")
    vocabulary = Vocabulary(tuple(columns), tuple(tuple(table) for table in ids))
    shift = np.asarray(offsets_of(vocabulary.sizes), dtype=np.int64)
    return TupleTable(vocabulary, merged.local + shift, merged.counts, merged.weights)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of ids from 0 in every column, with counts and weights."""

    local: Ints
    counts: Ints
    weights: NDArray[np.float64]

    @classmethod
    def empty(cls, width: int) -> _Rows:
        return cls(np.zeros((0, width), dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))

    @classmethod
    def merge(cls, parts: Sequence[_Rows]) -> _Rows:
        """Distinct rows in lexicographic order, counts and weights added up."""
        local = np.concatenate([part.local for part in parts])
        if not len(local):
            return parts[0]
        sizes = [int(size) for size in local.max(axis=0) + 1]
        _, first, inverse = np.unique(row_codes(local, sizes), return_index=True, return_inverse=True)
        counts = np.zeros(len(first), dtype=np.int64)
        np.add.at(counts, inverse.reshape(-1), np.concatenate([part.counts for part in parts]))
        weights = np.bincount(inverse.reshape(-1), np.concatenate([part.weights for part in parts]), len(first))
        return cls(local[first], counts, weights.astype(np.float64))


def encode_table(
    path: str | Path, vocabulary: Vocabulary, *, header: bool = True, delimiter: str = ","
) -> Iterator[tuple[Chunk, Ints]]:
    """Chunks of a file with their tuples of known ids; an unknown name is refused with its line and a near name."""
    for chunk in stream_table(path, vocabulary.columns, header=header, delimiter=delimiter):
        rows = list(zip(*chunk.names, strict=True))
        try:
            tuples = vocabulary.encode(rows)
        except ValueError:
            for line, row in zip(chunk.lines, rows, strict=True):
                try:
                    vocabulary.encode([row])
                except ValueError as error:
                    raise InputError(f"{path}, line {line}: {error}") from None
            raise
        yield chunk, tuples
