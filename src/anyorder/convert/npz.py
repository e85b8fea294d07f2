"""Features in NumPy's NPZ files: graphs, hypergraphs or batches of them, for programs that know nothing of this one.

An archive holds these arrays:

========== ====================== =================================================================
name       shape                  what
========== ====================== =================================================================
tuples     (entries, order)       integers: the nodes of each entry; a node's own features stand on
                                  ``(i, i)`` of order 2
values     (entries, channels)    numbers: the features of each entry
num_nodes  ()                     integer: nodes of all graphs together
node_graph (num_nodes,)           integers: the graph of each node; may be left out for one graph
num_graphs ()                     integer; only needed where the last graphs have no nodes
========== ====================== =================================================================
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyorder.files import write_bytes
from anyorder.layouts import Features, SparseIndexSet

_NEEDED, _OPTIONAL = ("tuples", "values", "num_nodes"), ("node_graph", "num_graphs")


def write_npz(features: Features, path: str | Path) -> Path:
    """Write features of any layout as the tuples that exist."""
    index = features.index
    arrays = {
        "tuples": index.tuples,
        "values": features.rows.float() if features.dtype == torch.bfloat16 else features.rows,  # numpy has no such numbers
        "num_nodes": torch.tensor(index.num_nodes),
        "node_graph": index.node_graph,
        "num_graphs": torch.tensor(index.num_graphs),
    }
    return write_arrays(Path(path), {name: tensor.detach().cpu().numpy() for name, tensor in arrays.items()})


def read_npz(path: str | Path) -> Features:
    """Read features; numbers become float32, whatever they were."""
    path = Path(path)
    arrays = read_arrays(path)
    for name in _NEEDED:
        if name not in arrays:
            raise ValueError(f"{path} lacks the array {name!r}: expected {list(_NEEDED)}, got {sorted(arrays)}")
    for name in arrays:
        if name not in (*_NEEDED, *_OPTIONAL):
            raise ValueError(f"{path} has an array {name!r} that is not known: expected {[*_NEEDED, *_OPTIONAL]}")
    values = arrays["values"]
    if not np.issubdtype(values.dtype, np.number) or np.iscomplexobj(values) or values.ndim != 2:
        raise ValueError(f"{path}: values must be numbers of shape (entries, channels), got {values.dtype} {values.shape}")
    tuples = _integers(path, arrays, "tuples")
    node_graph = _integers(path, arrays, "node_graph") if "node_graph" in arrays else None
    try:
        index = SparseIndexSet(
            tuples,
            num_nodes=_integer(path, arrays, "num_nodes"),
            node_graph=node_graph,
            num_graphs=_integer(path, arrays, "num_graphs") if "num_graphs" in arrays else None,
        )
        return Features(index, torch.from_numpy(values.astype(np.float32)))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def write_arrays(path: Path, arrays: dict[str, np.ndarray[Any, Any]]) -> Path:
    """Write named arrays, all or nothing."""
    if path.suffix != ".npz":
        raise ValueError(f"the file must end in .npz, got {path}")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_bytes(path, buffer.getvalue())
    return path


def read_arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an NPZ file; Python objects in it are refused, not run."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not a whole NPZ file")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a whole NPZ file of plain arrays: {error}") from error


def _integers(path: Path, arrays: dict[str, np.ndarray[Any, Any]], name: str) -> Tensor:
    array = arrays[name]
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{path}: {name} must be integers, got {array.dtype}")
    return torch.from_numpy(array.astype(np.int64))


def _integer(path: Path, arrays: dict[str, np.ndarray[Any, Any]], name: str) -> int:
    if arrays[name].shape != ():
        raise ValueError(f"{path}: {name} must be one integer, got an array of shape {arrays[name].shape}")
    return int(_integers(path, arrays, name))
