"""Write sets, and what was predicted for them, to Parquet, NPZ or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    _write(Path(path), columns, (".parquet", ".npz"))


def write_predictions(path: Path | str, predictions: Column, kind: LabelKind) -> None:
    """Write the predicted edges (m, 2) or clusters (n,) of each set, in the order of the sets.

    The ending decides: ``.parquet`` and ``.npz`` as in a file of sets, without features; ``.jsonl`` with a line
    ``{"row": 0, "edges": [[0, 1]]}`` or ``{"row": 0, "partition": [0, 0]}`` per set.
    """
    if kind is LabelKind.NONE:
        raise ValueError("a prediction is a list of edges or a partition, got LabelKind.NONE")
    dimensions = 2 if kind is LabelKind.EDGES else 1
    for row, prediction in enumerate(predictions):
        if prediction.ndim != dimensions or (dimensions == 2 and prediction.shape[1] != 2):
            wanted = "(edges, 2)" if dimensions == 2 else "(points,)"
            raise ValueError(f"row {row}: predicted {kind.value} must have shape {wanted}, got {prediction.shape}")
    _write(Path(path), {kind.value: predictions}, (".parquet", ".npz", ".jsonl"))


def _clusters(sample: SetSample) -> npt.NDArray[np.int64]:
    """A number per cluster, from 0, of a set whose related pairs are those of a partition."""
    if sample.adjacency is None:
        raise ValueError("this set has no adjacency, so its partition is unknown")
    return np.unique(sample.adjacency.argmax(axis=1), return_inverse=True)[1].astype(np.int64)


def _write(path: Path, columns: Mapping[str, Column], endings: Sequence[str]) -> None:
    if path.suffix not in endings:
        raise ValueError(f"{path}: expected a file ending in {' or '.join(endings)}, got {path.suffix or 'no ending'!r}")
    if not all(columns.values()):
        raise ValueError(f"{path}: there is nothing to write, expected at least one set")
    writers = {".parquet": _write_parquet, ".npz": _write_npz, ".jsonl": _write_json_lines}
    with replacing(path) as partial:
        writers[path.suffix](partial, columns)


def _write_parquet(path: Path, columns: Mapping[str, Column]) -> None:
    arrow, parquet = require("pyarrow", "train"), require("pyarrow.parquet", "train")
    number = {FEATURES: arrow.float32(), EDGES: arrow.int64(), PARTITION: arrow.int64()}
    arrays = {}
    for name, column in columns.items():
        kind = arrow.list_(number[name]) if name == PARTITION else arrow.list_(arrow.list_(number[name]))
        arrays[name] = arrow.array([item.tolist() for item in column], type=kind)
    parquet.write_table(arrow.table(arrays), path)


def _write_npz(path: Path, columns: Mapping[str, Column]) -> None:
    arrays: dict[str, Any] = {name: np.concatenate(column) for name, column in columns.items()}
    for name, column in columns.items():
        arrays[EDGE_COUNTS if name == EDGES else SIZES] = np.array([len(item) for item in column], dtype=np.int64)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def _write_json_lines(path: Path, columns: Mapping[str, Column]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row, items in enumerate(zip(*columns.values(), strict=True)):
            line = {"row": row} | {name: item.tolist() for name, item in zip(columns, items, strict=True)}
            file.write(json.dumps(line) + "\n")
