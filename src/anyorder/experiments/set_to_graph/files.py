"""A user's own sets: a Parquet or NPZ file with a set per row, labelled by edges, by a partition, or not at all.

Parquet: column ``features`` holds a list of points, each a list of equally many numbers; ``edges`` a list of pairs of
positions in the set; ``partition`` a cluster number per point. Edges are undirected.

NPZ: ``features`` has shape (sets, n, channels), or (total points, channels) with ``sizes`` (sets,) when sets differ in
size; ``edges`` (total edges, 2) comes with ``edge_counts`` (sets,); ``partition`` has one number per point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch.utils.data import Dataset

from anyorder.arrays import read_arrays
from anyorder.errors import InputError, reading
from anyorder.experiments.set_to_graph.sets import SetSample
from anyorder.extras import require

FEATURES, SIZES, EDGES, EDGE_COUNTS, PARTITION = "features", "sizes", "edges", "edge_counts", "partition"
MOST_POINTS = 2**31
Array = npt.NDArray[Any]


class LabelKind(Enum):
    """What is known, or asked, about the pairs of a set."""

    NONE = "none"
    EDGES = EDGES
    PARTITION = PARTITION


@dataclass(frozen=True, eq=False)
class OwnSets(Dataset[SetSample]):
    """Sets read from a file, a map-style dataset in the order of its rows."""

    sets: tuple[SetSample, ...]
    kind: LabelKind

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, index: int) -> SetSample:
        return self.sets[index]

    @property
    def channels(self) -> int:
        """The number of features of a point."""
        return int(self.sets[0].points.shape[1])


@dataclass(frozen=True, eq=False)
class Ragged:
    """A list per row, laid end to end: all values, and how many each row has."""

    values: Array
    counts: Array

    def row_of(self, position: int) -> int:
        """The row to which a value belongs."""
        return int(np.searchsorted(np.cumsum(self.counts), position, side="right"))

    def rows(self) -> list[Array]:
        """The values of each row."""
        return np.split(self.values, np.cumsum(self.counts)[:-1])


def read_sets(path: Path | str) -> OwnSets:
    """Read the sets of a ``.parquet`` or ``.npz`` file; errors name the row, counted from 0."""
    path = Path(path)
    readers = {".parquet": _read_parquet, ".npz": _read_npz}
    if path.suffix not in readers:
        raise InputError(f"{path}: expected a file ending in {' or '.join(readers)}, got {path.suffix or 'no ending'!r}")
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file")
    with reading(path):
        return _own_sets(readers[path.suffix](path))


def stream_sets(path: Path | str, rows: int = 1024) -> Iterator[OwnSets]:
    """The sets of a file in pieces, without their labels; a long Parquet file is never in memory as a whole."""
    path = Path(path)
    if path.suffix == ".npz" and path.is_file():
        yield from _pieces(path, rows)
        return
    if path.suffix != ".parquet" or not path.is_file():
        read_sets(path)  # says what is wrong
    parquet, arrow = require("pyarrow.parquet", "train"), require("pyarrow", "train")
    with reading(path, "a whole Parquet file"), parquet.ParquetFile(path) as file:
        names = file.schema_arrow.names
        if FEATURES not in names or not file.metadata.num_rows:
            read_sets(path)  # says what is wrong
        batches = file.iter_batches(batch_size=rows, columns=[FEATURES])
        while True:
            try:
                batch = next(batches, None)
                sets = None if batch is None else _own_sets(_columns(arrow.Table.from_batches([batch])))
            except (InputError, arrow.ArrowMemoryError):
                read_sets(path)  # says in which row of the file
                raise
            if sets is None:
                return
            yield sets


def _pieces(path: Path, rows: int) -> Iterator[OwnSets]:
    """The points of an NPZ file, which is read as a whole."""
    with reading(path):
        features = _read_npz(path)[FEATURES]
        _check_features(features)
    ends = np.concatenate([[0], np.cumsum(features.counts)])
    for start in range(0, len(features.counts), rows):
        counts = features.counts[start : start + rows]
        points = features.values[ends[start] : ends[start + len(counts)]].astype(np.float32)
        yield OwnSets(tuple(map(SetSample, Ragged(points, counts).rows())), LabelKind.NONE)


def _own_sets(columns: Mapping[str, Ragged]) -> OwnSets:
    """Check what both kinds of file have in common and make the sets."""
    if EDGES in columns and PARTITION in columns:
        raise InputError("sets are labelled by edges or by a partition, but this file has both: leave one out")
    features = columns[FEATURES]
    _check_features(features)
    points = features.rows()
    if EDGES in columns:
        _check_edges(columns[EDGES], features)
        labelled = zip(points, columns[EDGES].rows(), strict=True)
        return OwnSets(tuple(SetSample.from_edges(*pair) for pair in labelled), LabelKind.EDGES)
    if PARTITION in columns:
        _check_partition(columns[PARTITION], features)
        labelled = zip(points, columns[PARTITION].rows(), strict=True)
        return OwnSets(tuple(SetSample.from_partition(*pair) for pair in labelled), LabelKind.PARTITION)
    return OwnSets(tuple(SetSample(part.astype(np.float32)) for part in points), LabelKind.NONE)


def _check_features(features: Ragged) -> None:
    if len(features.counts) == 0:
        raise InputError("there are no rows: expected a set per row")
    _require_rows(features.counts > 0, "the set has no points")
    with np.errstate(over="ignore"):
        finite = np.isfinite(features.values.astype(np.float32))
    if not finite.all():
        place, channel = np.argwhere(~finite)[0]
        value = features.values[place, channel]
        raise InputError(f"row {features.row_of(place)}: feature {channel} is {value}, expected a finite float32 number")


def _check_edges(edges: Ragged, features: Ragged) -> None:
    _require_whole_numbers(edges, EDGES)
    size = np.repeat(features.counts, edges.counts)[:, None]
    outside = ((edges.values < 0) | (edges.values >= size)).any(1)
    loop = edges.values[:, 0] == edges.values[:, 1]
    for wrong, reason in ((outside, "leaves the set, which has {} points"), (loop, "joins a point with itself")):
        if wrong.any():
            place = int(wrong.argmax())
            edge = tuple(edges.values[place].tolist())
            raise InputError(f"row {edges.row_of(place)}: edge {edge} {reason.format(size[place, 0])}")


def _check_partition(partition: Ragged, features: Ragged) -> None:
    _require_whole_numbers(partition, PARTITION)
    if not np.array_equal(partition.counts, features.counts):
        row = int((partition.counts != features.counts).argmax())
        raise InputError(
            f"row {row}: the partition has {partition.counts[row]} entries for {features.counts[row]} points, "
            f"expected one per point"
        )


def _require_whole_numbers(column: Ragged, name: str) -> None:
    if column.values.size and column.values.dtype.kind not in "iu":
        raise InputError(f"{name} must be whole numbers, got {column.values.dtype}")


def _require_rows(right: Array, problem: str) -> None:
    if not right.all():
        raise InputError(f"row {int((~right).argmax())}: {problem}")


def _read_parquet(path: Path) -> dict[str, Ragged]:
    parquet, arrow = require("pyarrow.parquet", "train"), require("pyarrow", "train")
    try:
        with parquet.ParquetFile(path) as file:
            names = file.schema_arrow.names
            _require_features(names)
            table = file.read(columns=[name for name in (FEATURES, EDGES, PARTITION) if name in names])
    except arrow.ArrowMemoryError:
        raise InputError("a page of this Parquet file announces more than fits into memory") from None
    except (arrow.ArrowException, OSError) as error:
        raise InputError(f"this is not a whole Parquet file ({error})") from error
    return _columns(table)


def _columns(table: Any) -> dict[str, Ragged]:
    columns = {FEATURES: _nested_lists(table[FEATURES], FEATURES)}
    if EDGES in table.column_names:
        columns[EDGES] = _nested_lists(table[EDGES], EDGES, width=2)
    if PARTITION in table.column_names:
        columns[PARTITION] = _lists(table[PARTITION], PARTITION)
    return columns


def _lists(column: Any, name: str) -> Ragged:
    """A column with a list of numbers in each row."""
    lengths, values = _unnest(column, name, "a list of numbers")
    return Ragged(_numbers(values, name, Ragged(values, lengths)), lengths)


def _nested_lists(column: Any, name: str, width: int | None = None) -> Ragged:
    """A column with a list of lists of ``width`` numbers in each row; by default the first one decides the width."""
    lengths, items = _unnest(column, name, "a list of lists of numbers")
    if len(items) == 0:
        return Ragged(np.empty((0, width or 0)), lengths)
    rows = Ragged(items, lengths)
    widths, values = _unnest(items, name, "a list of lists of numbers", rows)
    width = int(widths[0]) if width is None else width
    if (widths != width).any():
        place = int((widths != width).argmax())
        raise InputError(f"row {rows.row_of(place)}: an item of {name} has {widths[place]} numbers, expected {width}")
    numbers = _numbers(values, name, Ragged(values, lengths * width))
    return Ragged(numbers.reshape(-1, width), lengths)


def _unnest(column: Any, name: str, expected: str, rows: Ragged | None = None) -> tuple[Array, Any]:
    """The lengths of the lists of a column and their items end to end."""
    types, compute = require("pyarrow.types", "train"), require("pyarrow.compute", "train")
    kind = column.type
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        raise InputError(f"column {name!r} must hold {expected} in each row, got {kind}")
    _require_present(column, name, rows)
    return compute.list_value_length(column).to_numpy().astype(np.int64), compute.list_flatten(column)


def _numbers(values: Any, name: str, rows: Ragged) -> Array:
    types = require("pyarrow.types", "train")
    _require_present(values, name, rows)
    if len(values) and not (types.is_integer(values.type) or types.is_floating(values.type)):
        raise InputError(f"column {name!r} must hold numbers, got {values.type}")
    return np.asarray(values.to_numpy())


def _require_present(column: Any, name: str, rows: Ragged | None) -> None:
    if column.null_count:
        place = int(np.asarray(column.is_null().to_numpy()).argmax())
        raise InputError(f"row {place if rows is None else rows.row_of(place)}: a value of {name} is missing (null)")


def _read_npz(path: Path) -> dict[str, Ragged]:
    arrays = read_arrays(path)
    _require_features(arrays)
    features, sizes = _npz_features(arrays)
    columns = {FEATURES: Ragged(features, sizes)}
    if EDGES in arrays:
        edges, counts = arrays[EDGES], _counts(arrays, EDGE_COUNTS, EDGES, len(sizes))
        _require_shape(edges, EDGES, (int(counts.sum()), 2))
        columns[EDGES] = Ragged(edges, counts)
    if PARTITION in arrays:
        partition, stacked = arrays[PARTITION], arrays[FEATURES].shape[:2]
        if arrays[FEATURES].ndim == 3 and partition.shape == stacked:
            partition = partition.reshape(-1)
        _require_shape(partition, PARTITION, (len(features),))
        columns[PARTITION] = Ragged(partition, sizes)
    return columns


def _npz_features(arrays: Mapping[str, Array]) -> tuple[Array, Array]:
    """The points of all sets end to end, and the size of each set."""
    features = arrays[FEATURES]
    if features.ndim not in (2, 3) or features.dtype.kind not in "iuf":
        raise InputError(
            f"{FEATURES} must be numbers of shape (sets, n, channels) or (total points, channels), "
            f"got {features.dtype} {features.shape}"
        )
    if features.shape[-1] == 0:
        raise InputError(f"{FEATURES} must have at least one channel, got shape {features.shape}")
    if features.ndim == 3 and SIZES in arrays and not np.array_equal(arrays[SIZES], [features.shape[1]] * len(features)):
        raise InputError(
            f"{FEATURES} of shape {features.shape} has {features.shape[1]} points a set, but {SIZES} says otherwise: "
            "sets of several sizes lie end to end, without padding, as (total points, channels)"
        )
    if features.ndim == 3:
        return features.reshape(-1, features.shape[2]), np.full(len(features), features.shape[1])
    sizes = _counts(arrays, SIZES, FEATURES, None)
    _require_shape(features, FEATURES, (int(sizes.sum()), features.shape[1]))
    return features, sizes


def _counts(arrays: Mapping[str, Array], name: str, of: str, rows: int | None) -> Array:
    if name not in arrays:
        raise InputError(f"{of} lies end to end, so an array {name!r} must say how many each set has")
    counts = arrays[name]
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or (rows is not None and len(counts) != rows):
        wanted = "(sets,)" if rows is None else f"({rows},)"
        raise InputError(f"{name} must be whole numbers of shape {wanted}, got {counts.dtype} {counts.shape}")
    _require_rows((counts >= 0) & (counts <= MOST_POINTS), f"{name} is negative or above {MOST_POINTS:,}")
    return counts.astype(np.int64)


def _require_shape(array: Array, name: str, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise InputError(f"{name} must have shape {shape} to fit the counts of each set, got {array.shape}")


def _require_features(names: Iterable[str]) -> None:
    if FEATURES not in names:
        raise InputError(f"there is no {FEATURES!r}, only {', '.join(map(repr, names)) or 'nothing'}")
