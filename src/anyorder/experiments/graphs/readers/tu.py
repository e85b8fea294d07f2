"""TU folders: NAME_A.txt, NAME_graph_indicator.txt and what else there is of NAME."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from anyorder.experiments.graphs.columns import Columns, Floats, Ints
from anyorder.experiments.graphs.values import Duplicates, GraphSet

LABEL, TARGET = "label", "target"


def tu_name(folder: Path) -> str | None:
    """The name of the set in a TU folder; None where it is no such folder."""
    names = [path.name.removesuffix("_A.txt") for path in sorted(folder.glob("*_A.txt"))]
    named = [name for name in names if (folder / f"{name}_graph_indicator.txt").exists()]
    return named[0] if len(named) == 1 else None


def read_tu(folder: Path, *, duplicates: Duplicates = "refuse") -> GraphSet:
    """Graphs of a TU folder; the label of a graph is the column ``label``, its numbers are ``target``, ``target 2``, ..."""
    name = tu_name(folder)
    if name is None:
        raise ValueError(f"{folder} is no TU folder: expected NAME_A.txt and NAME_graph_indicator.txt of one NAME")
    indicator = _integers(folder / f"{name}_graph_indicator.txt")[:, 0]
    pairs = _integers(folder / f"{name}_A.txt", columns=2) - 1
    _check_ends(pairs, len(indicator), folder / f"{name}_A.txt")
    nodes = _columns(folder, name, "node", len(indicator), LABEL, "attribute")
    edges = _columns(folder, name, "edge", len(pairs), LABEL, "attribute")
    num_graphs = int(indicator.max(initial=0))
    if num_graphs > len(indicator):
        raise ValueError(
            f"{folder}: graphs are numbered from 1 to {num_graphs}, more than there are nodes, {len(indicator)}"
        )
    graphs = _columns(folder, name, "graph", num_graphs, LABEL, TARGET)
    pairs, edges, directed = one_direction(pairs, edges)
    return GraphSet.build(
        pairs,
        num_nodes=len(indicator),
        node_graph=indicator - 1,
        num_graphs=num_graphs,
        directed=directed,
        node_columns=nodes,
        edge_columns=edges,
        graph_columns=graphs,
        graph_names=[str(n + 1) for n in range(num_graphs)],
        node_names=[str(n + 1) for n in range(len(indicator))],
        duplicates=duplicates,
        notes=(
            f"TU folder of {name}; edges {'have one direction' if directed else 'stand in both directions: undirected'}",
        ),
    )


def one_direction(pairs: Ints, columns: Columns) -> tuple[Ints, Columns, bool]:
    """Each edge once where every edge stands in both directions with the same columns; else all, as directed."""
    if len(pairs) == 0:
        return pairs, columns, False
    width = int(pairs.max()) + 1
    code, back = pairs[:, 0] * width + pairs[:, 1], pairs[:, 1] * width + pairs[:, 0]
    order, reverse = np.argsort(code, kind="stable"), np.argsort(back, kind="stable")
    same = np.array_equal(code[order], back[reverse])
    if same:
        forth, other = columns.take(order), columns.take(reverse)
        alike = np.array_equal(forth.numbers, other.numbers, equal_nan=True)
        same = alike and np.array_equal(forth.categories, other.categories)
    if not same:
        return pairs, columns, True
    kept = pairs[:, 0] <= pairs[:, 1]
    return pairs[kept], columns.take(kept), False


def _columns(folder: Path, name: str, what: str, rows: int, label: str, number: str) -> Columns:
    """Labels as categories and attributes as numbers of nodes, edges or graphs, where there are files of them."""
    made = Columns.empty(rows)
    labels, attributes = folder / f"{name}_{what}_labels.txt", folder / f"{name}_{what}_attributes.txt"
    if labels.exists():
        values = _checked(labels, _integers(labels), rows)
        for column in range(values.shape[1]):
            made = made.with_categories(_numbered(label, column), values[:, column].tolist())
    if attributes.exists():
        numbers = _checked(attributes, _numbers(attributes), rows)
        made = made.with_numbers([_numbered(number, column) for column in range(numbers.shape[1])], numbers)
    return made


def _numbered(name: str, column: int) -> str:
    return name if column == 0 else f"{name} {column + 1}"


def _numbers(path: Path, columns: int | None = None) -> Floats:
    """(line, column) of comma separated numbers."""
    try:
        made = np.loadtxt(path, delimiter=",", ndmin=2, dtype=np.float64)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist") from None
    except ValueError as error:
        raise ValueError(f"{path}: expected comma separated numbers in each line: {error}") from error
    if made.size == 0:
        made = made.reshape(0, columns or 1)
    if columns is not None and made.shape[1] != columns:
        raise ValueError(f"{path}: expected {columns} numbers a line, got {made.shape[1]}")
    return made  # type: ignore[return-value]


def _integers(path: Path, columns: int | None = None) -> Ints:
    made = _numbers(path, columns)
    if (made != np.round(made)).any():
        raise ValueError(f"{path}: expected whole numbers, got {made[made != np.round(made)][0]}")
    return made.astype(np.int64)


def _checked(path: Path, values: Floats | Ints, rows: int) -> Floats | Ints:
    if len(values) != rows:
        raise ValueError(f"{path} has {len(values)} lines, expected {rows}")
    return values


def _check_ends(pairs: Ints, nodes: int, path: Path) -> None:
    wrong = ((pairs < 0) | (pairs >= nodes)).any(1)
    if wrong.any():
        line = int(wrong.argmax())
        raise ValueError(f"{path}, line {line + 1}: an edge to a missing node, {(pairs[line] + 1).tolist()} of 1..{nodes}")
