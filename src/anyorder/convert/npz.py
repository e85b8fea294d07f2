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

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from anyorder.arrays import Arrays, read_arrays, write_arrays
from anyorder.errors import InputError, reading
from anyorder.layouts import Features, SparseIndexSet

MOST_NODES = 2**27
"""Nodes that a few bytes of a file may announce; a byte for each is taken at once."""
_NEEDED, _OPTIONAL = ("tuples", "values", "num_nodes"), ("node_graph", "num_graphs")


def write_npz(features: Features, path: str | Path) -> Path:
    """Write features of any layout as the tuples that exist.

    >>> import tempfile
    >>> from anyorder.testing import random_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_npz(random_features(order=2, channels=4), f"{folder}/pairs.npz")
    ...     read_npz(f"{folder}/pairs.npz").channels
    4

    Args:
        features: of any order and layout.
        path: the file to write.
    """
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
    """Read features that ``write_npz`` wrote, where an example stands; numbers become float32, whatever they were.

    Args:
        path: the file to read.
    """
    path = Path(path)
    arrays = read_arrays(path, needed=_NEEDED)
    with reading(path):
        for name in arrays:
            if name not in (*_NEEDED, *_OPTIONAL):
                raise InputError(f"there is an array {name!r} that is not known: expected {[*_NEEDED, *_OPTIONAL]}")
        values = arrays["values"]
        if not np.issubdtype(values.dtype, np.number) or values.ndim != 2:
            raise InputError(f"values must be numbers of shape (entries, channels), got {values.dtype} {values.shape}")
        node_graph = _integers(arrays, "node_graph") if "node_graph" in arrays else None
        num_nodes = _integer(arrays, "num_nodes", MOST_NODES)
        num_graphs = _integer(arrays, "num_graphs", MOST_NODES) if "num_graphs" in arrays else None
        index = SparseIndexSet(
            _integers(arrays, "tuples"), num_nodes=num_nodes, node_graph=node_graph, num_graphs=num_graphs
        )
        with np.errstate(over="ignore"):
            return Features(index, torch.from_numpy(values.astype(np.float32)))


def _integers(arrays: Arrays, name: str) -> Tensor:
    array = arrays[name]
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{name} must be integers, got {array.dtype}")
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 2**63:
        raise InputError(f"{name} must lie below 2^63, got {int(array.max())}")
    return torch.from_numpy(array.astype(np.int64))


def _integer(arrays: Arrays, name: str, most: int) -> int:
    if arrays[name].shape != ():
        raise InputError(f"{name} must be one integer, got an array of shape {arrays[name].shape}")
    value = int(_integers(arrays, name))
    if value > most:
        raise InputError(f"{name} must be at most {most:,}, got {value:,}")
    return value
