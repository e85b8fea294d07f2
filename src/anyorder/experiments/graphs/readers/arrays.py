"""PyG ``Data`` and ``Batch`` saved as NPZ or safetensors: tensors by name, nothing that runs code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.arrays import read_arrays as read_npz_arrays
from anyorder.errors import InputError, reading
from anyorder.experiments.graphs.columns import Columns, Ints
from anyorder.experiments.graphs.readers.tu import one_direction
from anyorder.experiments.graphs.values import Duplicates, GraphSet, Level
from anyorder.extras import require
from anyorder.files import replacing

MOST = 2**27
MASKS = {"train_mask": "train", "val_mask": "valid", "test_mask": "test"}


def read_arrays(path: Path, *, duplicates: Duplicates = "refuse") -> GraphSet:
    """Graphs from ``edge_index`` and, where they are there, ``x``, ``edge_attr``, ``y``, ``batch`` and masks of nodes."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        read = read_npz_arrays if path.suffix == ".npz" else require("safetensors.numpy", "train").load_file
        arrays = read(path)
    except Exception as error:
        form = "an NPZ file" if path.suffix == ".npz" else "a safetensors file"
        raise ValueError(f"{path} is not {form} of plain arrays: {str(error).splitlines()[0]}") from error
    if "edge_index" not in arrays:
        raise ValueError(f"{path}: expected the array 'edge_index' (2, edge), got {sorted(arrays)}")
    return from_arrays(arrays, duplicates=duplicates, notes=(f"{path.name}: arrays {', '.join(sorted(arrays))}",))


def from_arrays(arrays: Mapping[str, Any], *, duplicates: Duplicates = "refuse", notes: tuple[str, ...] = ()) -> GraphSet:
    """Graphs from the arrays of a PyG ``Data`` or ``Batch``; ``y`` belongs to graphs, nodes or edges by its length."""
    pairs = np.asarray(arrays["edge_index"], np.int64)
    if pairs.ndim != 2 or pairs.shape[0] != 2:
        raise ValueError(f"edge_index must have the shape (2, edge), got {pairs.shape}")
    nodes = _count(arrays, pairs)
    graph = np.asarray(arrays["batch"], np.int64) if "batch" in arrays else np.zeros(nodes, np.int64)
    count = _bounded(int(graph.max(initial=0)) + 1)
    columns: dict[Level, Columns] = {
        "graphs": Columns.empty(count),
        "nodes": _block(Columns.empty(nodes), "x", arrays.get("x")),
        "links": _block(Columns.empty(pairs.shape[1]), "edge_attr", arrays.get("edge_attr")),
    }
    if arrays.get("y") is not None:
        level, target = _target(np.asarray(arrays["y"]), count, nodes, pairs.shape[1])
        columns[level] = _block(columns[level], "y", target)
    columns["nodes"] = _masks(columns["nodes"], arrays)
    ends, edges, directed = one_direction(pairs.T, columns["links"])
    return GraphSet.build(
        ends,
        num_nodes=nodes,
        node_graph=graph,
        num_graphs=count,
        directed=directed,
        node_columns=columns["nodes"],
        edge_columns=edges,
        graph_columns=columns["graphs"],
        duplicates=duplicates,
        notes=notes,
    )


def from_pyg(items: Any) -> GraphSet:
    """PyG ``Data`` objects side by side."""
    data = require("torch_geometric.data", "pyg")
    whole = data.Batch.from_data_list(list(items))
    kept = ("edge_index", "x", "edge_attr", "y", "batch", *MASKS)
    arrays = {name: whole[name].detach().cpu().numpy() for name in kept if name in whole and whole[name] is not None}
    return from_arrays({**arrays, "num_nodes": np.array(whole.num_nodes)})


def save_arrays(path: Path, graphs: GraphSet) -> None:
    """Write graphs so that `load_arrays` reads them as they are, names and columns of mixed kinds included."""
    tables = {"node": graphs.node_columns, "edge": graphs.edge_columns, "graph": graphs.graph_columns}
    held: dict[str, Any] = {
        "edges": graphs.edges,
        "node_graph": graphs.node_graph,
        "num_graphs": np.array(graphs.num_graphs),
        "directed": np.array(graphs.directed),
        "node_names": np.array(graphs.node_names, np.str_),
        "graph_names": np.array(graphs.graph_names, np.str_),
    }
    for name, table in tables.items():
        held |= {f"{name}_numbers": table.numbers, f"{name}_categories": table.categories}
        held |= {f"{name}_number_names": np.array(table.number_names, np.str_)}
        held |= {f"{name}_category_names": np.array(table.category_names, np.str_)}
        held |= {f"{name}_values_{n}": np.array(values, np.str_) for n, values in enumerate(table.values)}
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **held)


def is_saved(path: Path) -> bool:
    """Whether a file is one of `save_arrays`."""
    try:
        return "node_number_names" in read_npz_arrays(path)
    except InputError:
        return False


def load_arrays(path: Path) -> GraphSet:
    """Graphs of `save_arrays`."""
    held = read_npz_arrays(path)
    with reading(path, "a whole file of graphs"):
        tables = {}
        for name in ("node", "edge", "graph"):
            categories = _texts(held, f"{name}_category_names")
            values = tuple(_texts(held, f"{name}_values_{n}") for n in range(len(categories)))
            numbers = _texts(held, f"{name}_number_names")
            tables[name] = Columns(held[f"{name}_numbers"], numbers, held[f"{name}_categories"], categories, values)
        return GraphSet(
            held["edges"],
            held["node_graph"],
            int(held["num_graphs"]),
            bool(held["directed"]),
            tables["node"],
            tables["edge"],
            tables["graph"],
            _texts(held, "node_names"),
            _texts(held, "graph_names"),
        )


def _texts(held: Mapping[str, Any], name: str) -> tuple[str, ...]:
    if held[name].ndim != 1 or held[name].dtype.kind != "U":
        raise InputError(f"{name} must be a list of texts, got {held[name].dtype} of shape {held[name].shape}")
    return tuple(held[name].tolist())


def _count(arrays: Mapping[str, Any], pairs: Ints) -> int:
    for name in ("x", "batch", "train_mask"):
        if arrays.get(name) is not None:
            return len(arrays[name])
    if arrays.get("num_nodes") is not None:
        return _bounded(int(np.asarray(arrays["num_nodes"]).reshape(-1)[0]))
    return _bounded(int(pairs.max(initial=-1)) + 1)


def _bounded(count: int) -> int:
    """A number of nodes or graphs, for which memory is taken."""
    if count > MOST:
        raise InputError(f"expected at most {MOST:,} nodes and graphs, got {count:,}")
    return count


def _target(values: Any, graphs: int, nodes: int, edges: int) -> tuple[Level, Any]:
    """What ``y`` belongs to."""
    for level, count in (("graphs", graphs), ("nodes", nodes), ("links", edges)):
        if values.ndim >= 1 and len(values) == count and not (level == "graphs" and count == 1 and nodes == 1):
            return level, values  # type: ignore[return-value]
    raise ValueError(
        f"y has {values.shape} values: expected one for each of {graphs} graphs, {nodes} nodes or {edges} edges"
    )


def _block(columns: Columns, name: str, values: Any) -> Columns:
    if values is None:
        return columns
    rows = np.asarray(values)
    if rows.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be numbers, got {rows.dtype}")
    rows = rows.reshape(len(rows), -1)
    if len(rows) != len(columns):
        raise ValueError(f"{name} has {len(rows)} rows, expected {len(columns)}")
    return columns.with_numbers([name if rows.shape[1] == 1 else f"{name} {n}" for n in range(rows.shape[1])], rows)


def _masks(columns: Columns, arrays: Mapping[str, Any]) -> Columns:
    if any(arrays.get(mask) is None or np.asarray(arrays[mask]).shape != (len(columns),) for mask in MASKS):
        return columns
    parts = np.array([""] * len(columns), dtype="<U5")
    for mask, name in MASKS.items():
        parts[np.asarray(arrays[mask], bool)] = name
    return columns.with_categories("split", parts.tolist())
