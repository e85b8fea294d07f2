"""Two tables, edges and nodes, as CSV, TSV or Parquet; or a list of edges alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.experiments.graphs.columns import Columns, Ints
from anyorder.experiments.graphs.readers.names import FIRST, GRAPH, NODE, SECOND
from anyorder.experiments.graphs.values import Duplicates, GraphSet
from anyorder.extras import require

_IDENTIFIER = 0.9
"""Share of distinct values from which on a column of text names rows and says nothing of them."""


@dataclass(frozen=True)
class TableNames:
    """Columns by name; what is left empty is guessed, and said."""

    first: str = ""
    second: str = ""
    node: str = ""
    graph: str = ""


def read_tables(
    edges: Path,
    nodes: Path | None = None,
    *,
    graphs: Path | None = None,
    names: TableNames | None = None,
    directed: bool = False,
    duplicates: Duplicates = "refuse",
) -> GraphSet:
    """One graph, or many where a column names the graph of each node (or of each edge)."""
    names = names or TableNames()
    notes: list[str] = []
    table = read_table(edges)
    first, second = _ends(table, names, edges, notes)
    ends = [_texts(table, first), _texts(table, second)]
    node_table = None if nodes is None else read_table(nodes)
    listed, columns, of_graph = _nodes(node_table, nodes, names, ends, notes)
    place = {name: row for row, name in enumerate(listed)}
    pairs = _pairs(ends, place, edges, nodes)
    graph_ids, node_graph = _graphs(table, names, of_graph, pairs, len(listed), notes)
    rest = [name for name in table.columns if name not in (first, second, *_found(table, names.graph, GRAPH))]
    return GraphSet.build(
        pairs,
        num_nodes=len(listed),
        node_graph=node_graph,
        num_graphs=len(graph_ids),
        directed=directed,
        node_columns=columns,
        edge_columns=_columns(table, rest, "edges", notes),
        graph_columns=_graph_columns(graphs, graph_ids, names, notes),
        node_names=listed,
        graph_names=graph_ids,
        duplicates=duplicates,
        notes=notes,
    )


def read_table(path: Path) -> Any:
    """A table with named columns; numbers name them where a list of edges has no header."""
    pandas = require("pandas", "train")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix == ".parquet":
        try:
            return pandas.read_parquet(path)
        except Exception as error:
            raise ValueError(f"{path} is not a Parquet file: {str(error).splitlines()[0]}") from error
    with path.open("rb") as file:
        start = file.read(4096)
    if b"\0" in start or start[:4] in (b"PAR1", b"PK\3\4") or start[:2] == b"\x1f\x8b":
        raise ValueError(f"{path} is no text: expected a table in the format that its name says, {path.suffix}")
    text = start.decode("utf-8", errors="replace")
    if text.lstrip()[:1] in ("{", "<"):
        raise ValueError(f"{path} is no table: it begins like {'JSON' if '{' in text.lstrip()[:1] else 'XML'}")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("#", "%"))]
    if not lines:
        raise ValueError(f"{path} is empty")
    mark = "\t" if "\t" in lines[0] else "," if "," in lines[0] else ";" if ";" in lines[0] else r"\s+"
    header = None if _is_data(lines[0], mark) else "infer"
    options = {"sep": mark, "header": header, "dtype": str, "keep_default_na": False, "comment": None}
    skipped = [n for n, line in enumerate(text.splitlines()) if line.startswith(("#", "%"))]
    try:
        table = pandas.read_csv(path, skiprows=skipped, engine="python" if mark == r"\s+" else "c", **options)
    except (pandas.errors.ParserError, UnicodeDecodeError, pandas.errors.EmptyDataError) as error:
        raise ValueError(f"{path} is no table: {str(error).splitlines()[0]}") from error
    table.columns = [str(name).strip() for name in table.columns]
    return table


def _is_data(line: str, mark: str) -> bool:
    """Whether the first line is a row already: all of its fields are numbers."""
    fields = line.split() if mark == r"\s+" else line.split(mark)
    try:
        [float(field) for field in fields]
    except ValueError:
        return False
    return True


def _ends(table: Any, names: TableNames, path: Path, notes: list[str]) -> tuple[str, str]:
    given = [name for name in (names.first, names.second) if name]
    for name in given:
        if name not in table.columns:
            raise ValueError(f"{path} has no column {name!r}: expected one of {list(table.columns)}")
    if len(given) == 2:
        return given[0], given[1]
    if len(table.columns) < 2:
        raise ValueError(f"{path} has one column, {table.columns[0]!r}: expected two that name the ends of each edge")
    lowered = {name.lower(): name for name in table.columns}
    first = next((lowered[name] for name in FIRST if name in lowered), "")
    second = next((lowered[name] for name in SECOND if name in lowered and lowered[name] != first), "")
    if not first or not second:
        plain = [name for name in table.columns if name not in _found(table, names.graph, GRAPH)]
        first, second = plain[0], plain[1]
    notes.append(f"{path.name}: columns {first!r} and {second!r} are taken for the ends of an edge (--ends)")
    return first, second


def _nodes(
    table: Any | None, path: Path | None, names: TableNames, ends: list[list[str]], notes: list[str]
) -> tuple[list[str], Columns | None, list[str] | None]:
    """Names of the nodes, their columns, and the graph of each where the table says it."""
    if table is None:
        listed = sorted({*ends[0], *ends[1]}, key=_numeric)
        notes.append(f"no table of nodes: the {len(listed)} nodes are those that have edges")
        return listed, None, None
    assert path is not None
    lowered = {name.lower(): name for name in table.columns}
    node = names.node or next((lowered[name] for name in NODE if name in lowered), table.columns[0])
    if node not in table.columns:
        raise ValueError(f"{path} has no column {node!r}: expected one of {list(table.columns)}")
    if not names.node:
        notes.append(f"{path.name}: column {node!r} is taken for the name of a node (--node)")
    listed = _texts(table, node)
    again = [name for name, count in zip(*np.unique(listed, return_counts=True), strict=True) if count > 1]
    if again:
        raise ValueError(f"{path}: node {str(again[0])!r} stands in more than one row")
    graph = _found(table, names.graph, GRAPH)
    rest = [name for name in table.columns if name not in (node, *graph)]
    return listed, _columns(table, rest, "nodes", notes), _texts(table, graph[0]) if graph else None


def _pairs(ends: list[list[str]], place: dict[str, int], edges: Path, nodes: Path | None) -> Ints:
    for row, pair in enumerate(zip(*ends, strict=True)):
        missing = [end for end in pair if end not in place]
        if missing:
            where = f"{nodes} does not have" if nodes is not None else "is missing"
            raise ValueError(
                f"{edges}, row {row + 1}: the edge {pair[0]} - {pair[1]} leads to node {missing[0]!r}, which {where}"
            )
    return np.array([[place[end] for end in column] for column in ends], np.int64).T.reshape(-1, 2)


def _graphs(
    table: Any, names: TableNames, of_graph: list[str] | None, pairs: Ints, nodes: int, notes: list[str]
) -> tuple[list[str], Ints]:
    """Names of the graphs and the graph of each node, from the nodes' table or else from the edges' table."""
    if of_graph is None and _found(table, names.graph, GRAPH):
        column = _found(table, names.graph, GRAPH)[0]
        of_graph = [""] * nodes
        for (first, second), graph in zip(pairs.tolist(), _texts(table, column), strict=True):
            of_graph[first] = of_graph[second] = graph
    if of_graph is None:
        return ["graph"], np.zeros(nodes, np.int64)
    listed = sorted({*of_graph}, key=_numeric)
    place = {name: n for n, name in enumerate(listed)}
    notes.append(f"{len(listed)} graphs, by a column of graphs (--graph)")
    return listed, np.array([place[name] for name in of_graph], np.int64)


def _graph_columns(path: Path | None, listed: Sequence[str], names: TableNames, notes: list[str]) -> Columns:
    if path is None:
        return Columns.empty(len(listed))
    table = read_table(path)
    column = (_found(table, names.graph, GRAPH) or [table.columns[0]])[0]
    place = {name: row for row, name in enumerate(_texts(table, column))}
    absent = [name for name in listed if name not in place]
    if absent:
        raise ValueError(f"{path} has no row for graph {absent[0]!r}")
    rest = [name for name in table.columns if name != column]
    return _columns(table, rest, "graphs", notes).take(np.array([place[name] for name in listed], np.int64))


def _columns(table: Any, names: Sequence[str], what: str, notes: list[str]) -> Columns:
    """Features; a column of text that has almost only distinct values is left out, and said."""
    made = Columns.of({name: table[name].tolist() for name in names}, rows=len(table))
    rows = len(table)
    for name, values in zip(made.category_names, made.values, strict=True):
        if rows > 20 and len(values) > _IDENTIFIER * rows:
            notes.append(f"column {name!r} of {what} names its rows ({len(values)} distinct values) and is left out")
            made = made.drop([name])
    return made


def _found(table: Any, given: str, guesses: Sequence[str]) -> list[str]:
    lowered = {name.lower(): name for name in table.columns}
    if given:
        return [given] if given in table.columns else []
    return [lowered[name] for name in guesses if name in lowered][:1]


def _texts(table: Any, column: str) -> list[str]:
    return [str(value).strip() for value in table[column].tolist()]


def _numeric(text: str) -> tuple[int, float, str]:
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text
