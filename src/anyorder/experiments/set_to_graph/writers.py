"""Write sets, and what was predicted for them, to Parquet, NPZ or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from anyorder.experiments.set_to_graph.files import EDGE_COUNTS, EDGES, FEATURES, PARTITION, SIZES, LabelKind
from anyorder.experiments.set_to_graph.sets import SetSample
from anyorder.extras import require
from anyorder.files import replacing

Column = Sequence[npt.NDArray[Any]]


def write_sets(path: Path | str, sets: Sequence[SetSample], kind: LabelKind) -> None:
    """Write sets to a ``.parquet`` or ``.npz`` file that :func:`anyorder.experiments.set_to_graph.files.read_sets` reads."""
    columns: dict[str, Column] = {FEATURES: [sample.points for sample in sets]}
    if kind is LabelKind.EDGES:
        columns[EDGES] = [sample.edges for sample in sets]
    elif kind is LabelKind.PARTITION:
        columns[PARTITION] = [_clusters(sample) for sample in sets]
    _write(Path(path), columns)


def write_predictions(path: Path | str, predictions: Iterable[npt.NDArray[Any]], kind: LabelKind) -> int:
    """Write the predicted edges (m, 2) or clusters (n,) of each set as they come, and return how many sets there are.

    The ending decides: ``.parquet`` and ``.npz`` as in a file of sets, without features; ``.jsonl`` with a line
    ``{"row": 0, "edges": [[0, 1]]}`` or ``{"row": 0, "partition": [0, 0]}`` per set.
    """
    path = Path(path)
    if kind is LabelKind.NONE:
        raise ValueError("a prediction is a list of edges or a partition, got LabelKind.NONE")
    writers = {".parquet": _stream_parquet, ".npz": _stream_npz, ".jsonl": _stream_json_lines}
    _check_ending(path, tuple(writers))
    checked = _checked(predictions, kind)
    with replacing(path) as partial:
        count = writers[path.suffix](partial, checked, kind.value)
        if not count:
            raise ValueError(f"{path}: there is nothing to write, expected at least one set")
    return count


def _checked(predictions: Iterable[npt.NDArray[Any]], kind: LabelKind) -> Iterator[npt.NDArray[Any]]:
    dimensions = 2 if kind is LabelKind.EDGES else 1
    for row, prediction in enumerate(predictions):
        if prediction.ndim != dimensions or (dimensions == 2 and prediction.shape[1] != 2):
            wanted = "(edges, 2)" if dimensions == 2 else "(points,)"
            raise ValueError(f"row {row}: predicted {kind.value} must have shape {wanted}, got {prediction.shape}")
        yield prediction


def _stream_parquet(path: Path, predictions: Iterator[npt.NDArray[Any]], name: str) -> int:
    arrow, parquet = require("pyarrow", "train"), require("pyarrow.parquet", "train")
    schema, count = arrow.schema({name: _arrow_type(name)}), 0
    with parquet.ParquetWriter(path, schema) as writer:
        while group := list(islice(predictions, 1024)):
            writer.write_table(arrow.table({name: arrow.array([item.tolist() for item in group], schema.field(0).type)}))
            count += len(group)
    return count


def _stream_npz(path: Path, predictions: Iterator[npt.NDArray[Any]], name: str) -> int:
    column = list(predictions)
    if column:
        _write_npz(path, {name: column})
    return len(column)


def _stream_json_lines(path: Path, predictions: Iterator[npt.NDArray[Any]], name: str) -> int:
    row = -1
    with path.open("w", encoding="utf-8") as file:
        for row, item in enumerate(predictions):
            file.write(json.dumps({"row": row, name: item.tolist()}) + "\n")
    return row + 1


def _clusters(sample: SetSample) -> npt.NDArray[np.int64]:
    """A number per cluster, from 0, of a set whose related pairs are those of a partition."""
    if sample.adjacency is None:
        raise ValueError("this set has no adjacency, so its partition is unknown")
    return np.unique(sample.adjacency.argmax(axis=1), return_inverse=True)[1].astype(np.int64)


def _write(path: Path, columns: Mapping[str, Column]) -> None:
    writers = {".parquet": _write_parquet, ".npz": _write_npz}
    _check_ending(path, tuple(writers))
    if not all(columns.values()):
        raise ValueError(f"{path}: there is nothing to write, expected at least one set")
    with replacing(path) as partial:
        writers[path.suffix](partial, columns)


def _check_ending(path: Path, endings: Sequence[str]) -> None:
    if path.suffix not in endings:
        raise ValueError(f"{path}: expected a file ending in {' or '.join(endings)}, got {path.suffix or 'no ending'!r}")


def _write_parquet(path: Path, columns: Mapping[str, Column]) -> None:
    arrow, parquet = require("pyarrow", "train"), require("pyarrow.parquet", "train")
    arrays = {
        name: arrow.array([item.tolist() for item in column], type=_arrow_type(name)) for name, column in columns.items()
    }
    parquet.write_table(arrow.table(arrays), path)


def _arrow_type(name: str) -> Any:
    arrow = require("pyarrow", "train")
    number = arrow.float32() if name == FEATURES else arrow.int64()
    return arrow.list_(number) if name == PARTITION else arrow.list_(arrow.list_(number))


def _write_npz(path: Path, columns: Mapping[str, Column]) -> None:
    arrays: dict[str, Any] = {name: np.concatenate(column) for name, column in columns.items()}
    for name, column in columns.items():
        arrays[EDGE_COUNTS if name == EDGES else SIZES] = np.array([len(item) for item in column], dtype=np.int64)
    with path.open("wb") as file:
        np.savez(file, **arrays)
