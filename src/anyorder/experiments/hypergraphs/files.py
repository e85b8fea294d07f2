"""A user's own hypergraph: a list of hyperedges with CSV files of features and labels, or a HIF file.

Hyperedges: one per line, the names of its nodes separated by tabs, commas or spaces (what the file has, in this order of
preference; a name with a comma can stand in quotes); empty lines and lines that begin with # are skipped. A node that a line
names twice counts once, and lines with the same nodes are one hyperedge with their number as its weight. Features: a CSV
file with a header, a column ``node`` and columns of numbers. Labels: a CSV file with a header and two columns, ``node`` and
one of classes, in which nodes may be missing or have an empty class; or, for nodes that are called 1, 2, ..., a file with
one class per line. A node that only these files name is in no edge. Files ending in ``.gz`` are unpacked.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from anyorder.datasets.csv_stream import read_lines, read_rows
from anyorder.errors import InputError, reading
from anyorder.experiments.hypergraphs.data import UNKNOWN, Hypergraph, NamedHypergraph, merged, without_repeats
from anyorder.experiments.hypergraphs.structure import STRUCTURE, structural_features

PathName = str | PathLike[str]


def read_edge_list(edges: PathName, *, features: PathName | None = None, labels: PathName | None = None) -> NamedHypergraph:
    """The hypergraph of a list of hyperedges; without features, nodes have those of ``structural_features``."""
    lines = read_sets(Path(edges))
    members = without_repeats(lines)
    names = dict.fromkeys(name for edge in members for name in edge)
    table, columns = _feature_table(Path(features), names) if features is not None else ({}, ())
    classes = _label_table(Path(labels), names) if labels is not None else {}
    if classes and names.keys().isdisjoint(classes):
        some = f"{next(iter(classes))!r} and others in {labels}, {next(iter(names))!r} and others in {edges}"
        raise InputError(f"no node with a label is in a hyperedge: there are {some}; names must be written alike")
    names.update(dict.fromkeys([*table, *classes]))
    number = {name: place for place, name in enumerate(names)}
    if features is not None:
        absent = [name for name in names if name not in table]
        if absent:
            raise InputError(f"{features} lacks {len(absent)} of {len(names)} nodes, such as {absent[0]!r}")
    with reading(edges if features is None else features):
        distinct, weights = merged([[number[name] for name in edge] for edge in members])
        graph = Hypergraph.of_edges(
            distinct,
            num_nodes=len(names),
            node_features=torch.tensor([table[name] for name in names]) if table else None,
            edge_weights=weights,
        )
    label_names, known = _classes([classes.get(name, "") for name in names])
    return replace(_named(graph, tuple(names), label_names, known, columns), notes=_notes(lines, members, graph))


def _notes(lines: Sequence[Sequence[str]], members: Sequence[Sequence[str]], graph: Hypergraph) -> tuple[str, ...]:
    """What was not as a list of different sets."""
    notes = []
    twice = sum(len(line) != len(edge) for line, edge in zip(lines, members, strict=True))
    if twice:
        notes.append(f"{twice:,} lines name a node more than once: it counts once")
    if graph.num_edges < len(members):
        notes.append(f"{len(members):,} lines have {graph.num_edges:,} distinct hyperedges: how often is their weight")
    return tuple(notes)


def read_hif_hypergraph(path: PathName, *, label: str = "label") -> NamedHypergraph:
    """The hypergraph of a HIF file: the class of a node is its attribute ``label``, its features are its other attributes.

    Numbers and lists of numbers are features, and must then be so at every node; text is not read. The same holds for
    edges, where attributes that some edges do not have are left out, and the logarithm of the weight is a feature as well.
    """
    from anyorder.convert.hif import read_hif
    from anyorder.convert.hif_document import parse

    with reading(path):
        return _of_document(parse(read_hif(path)), path, label)


def _of_document(found: Any, path: PathName, label: str) -> NamedHypergraph:
    if found.tails is not None:
        raise InputError(f"{path} is directed, and directions are not used here: write it as undirected to go without them")
    for name, edge in zip(found.edge_names, found.edges, strict=True):
        if not edge:
            raise InputError(f"{path}: a hyperedge must have at least one node, {name!r} has none")
    names = tuple(map(str, found.nodes))
    if len(set(names)) != len(names):
        raise InputError(f"{path} names nodes by a number and by text that reads the same: their names must differ")
    features, columns = _attributes(found.node_attributes, names, "node", leave=label)
    weights = [
        _number(attributes.get("weight", 1.0), f"{path}, weight of edge {name!r}")
        for name, attributes in zip(found.edge_names, found.edge_attributes, strict=True)
    ]
    edge_features, edge_columns = _edge_attributes(found.edge_attributes, found.edge_names)
    weighted = torch.tensor(weights) if any(weight != 1 for weight in weights) else None
    graph = Hypergraph.of_edges(
        found.edges, num_nodes=len(names), node_features=features, edge_weights=weighted, edge_features=edge_features
    )
    if weighted is not None:
        parts = [weighted.log()[:, None]] if edge_features is None else [edge_features, weighted.log()[:, None]]
        graph, edge_columns = replace(graph, edge_features=torch.cat(parts, 1)), (*edge_columns, "log weight")
    given = zip(names, found.node_attributes, strict=True)
    label_names, known = _classes([_label(attributes.get(label), path, name) for name, attributes in given])
    return replace(_named(graph, names, label_names, known, columns), edge_feature_names=edge_columns)


def _label(value: Any, path: PathName, node: str) -> str:
    """The name of a class, empty where it is not known; 1 and 1.0 are the same."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str | int):
        return str(value).strip()
    raise InputError(f"{path}: a class is a name or a whole number, node {node!r} has {value!r}")


def _named(
    graph: Hypergraph, names: tuple[str, ...], label_names: tuple[str, ...], known: Tensor, columns: tuple[str, ...]
) -> NamedHypergraph:
    features = graph.node_features if graph.node_features is not None else structural_features(graph)
    whole = replace(graph, node_features=features, labels=known)
    return NamedHypergraph(whole, names, label_names, columns if graph.node_features is not None else STRUCTURE)


def _classes(given: Sequence[str]) -> tuple[tuple[str, ...], Tensor]:
    """The names of the classes, in order of their numbers or of the alphabet, and the class of each node."""
    distinct = {name for name in given if name}
    numeric = all(name.removeprefix("-").isdecimal() for name in distinct)
    names = tuple(sorted(distinct, key=(lambda name: (int(name), name)) if numeric else (lambda name: (0, name))))
    place = {name: number for number, name in enumerate(names)}
    return names, torch.tensor([place.get(name, UNKNOWN) for name in given], dtype=torch.int64)


def read_sets(path: Path) -> list[list[str]]:
    """The names of the nodes of each hyperedge, one per line."""
    lines = [(number, text) for number, text in read_lines(path) if not text.startswith("#")]
    if not lines:
        raise InputError(f"{path} has no hyperedges: expected one per line, with the names of its nodes")
    if lines[0][1].startswith("{"):
        raise InputError(f"{path} begins like a JSON file: expected hyperedges, one per line (HIF files end in .json)")
    separator = next((mark for mark in "\t," if any(mark in text for _, text in lines)), None)
    edges = []
    for row, text in lines:
        edge = text.split() if separator is None else _fields(text, separator, f"{path}, line {row}")
        if "" in edge:
            raise InputError(f"{path}, line {row}: a node without a name, in {text[:60]!r}")
        edges.append(edge)
    return edges


def _fields(text: str, separator: str, where: str) -> list[str]:
    """The names of a line, without spaces and quotes around them."""
    try:
        [fields] = csv.reader([text], delimiter=separator, skipinitialspace=True, strict=True)
    except csv.Error as error:
        raise InputError(f"{where}: {error}, in {text[:60]!r}") from error
    return [name.strip() for name in fields]


def _feature_table(path: Path, nodes: Container[str]) -> tuple[dict[str, list[float]], tuple[str, ...]]:
    header, rows = _csv(path, nodes)
    if len(header) < 2 or len(set(header)) != len(header):
        raise InputError(f"{path}: expected a header with a column of nodes and different columns of numbers, got {header}")
    table: dict[str, list[float]] = {}
    for number, row in rows:
        values = []
        for column, text in zip(header[1:], row[1:], strict=True):
            values.append(_number(text, f"{path}, line {number}, column {column!r}"))
        if row[0] in table:
            raise InputError(f"{path}, line {number}: node {row[0]!r} has features already")
        table[row[0]] = values
    if not table:
        raise InputError(f"{path} has no rows below its header")
    return table, tuple(header[1:])


def _number(given: Any, where: str) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        hint = " (turn classes into a column of 0 and 1 for each)" if isinstance(given, str) else ""
        raise InputError(f"{where}: expected a finite number, got {str(given)[:60]!r}{hint}")
    return value


def _label_table(path: Path, nodes: Mapping[str, Any]) -> dict[str, str]:
    if (listed := _listed_labels(path, nodes)) is not None:
        return listed
    header, rows = _csv(path, nodes)
    if len(header) != 2:
        raise InputError(f"{path}: expected a header with two columns, node and label, got {header}")
    table: dict[str, str] = {}
    for number, (node, label) in rows:
        if node in table:
            raise InputError(f"{path}, line {number}: node {node!r} has a label already")
        table[node] = label
    return table


def _listed_labels(path: Path, nodes: Mapping[str, Any]) -> dict[str, str] | None:
    """The classes of nodes that are called 1, 2, ... where line i is the class of node i; None of any other file."""
    lines = dict(read_lines(path))
    numbers = [int(name) for name in nodes if name.isdecimal() and len(name) < 20]
    table = any(mark in text for text in lines.values() for mark in ",\t") or "node" in lines.values()
    if not lines or len(numbers) != len(nodes) or table:
        return None
    if min(numbers) < 1 or max(numbers) > max(lines):
        ends = f"got {min(numbers)} to {max(numbers)}"
        raise InputError(f"{path}: a class per line is for nodes that are called 1 to {max(lines)}, {ends}")
    return {str(place): text for place, text in lines.items()}


def _csv(path: Path, nodes: Container[str]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header and the rows with their line numbers; nodes that are known tell a row from a header."""
    _, header = next(rows := read_rows(path), (0, []))
    header = [name.strip() for name in header]
    if header and header[0] in nodes:
        raise InputError(f"{path}: expected a header such as node,label before the rows, got the row of node {header[0]!r}")
    if header.count("node") != 1:
        raise InputError(f"{path}: expected a header with one column node, got {header}")
    place = header.index("node")
    found = []
    for line, row in rows:
        if len(row) != len(header):
            raise InputError(f"{path}, line {line}: expected {len(header)} columns, got {len(row)}")
        found.append((line, _first(place, [text.strip() for text in row])))
        if not found[-1][1][0]:
            raise InputError(f"{path}, line {line}: a node without a name, in {row}")
    return _first(place, header), found


def _first(place: int, cells: list[str]) -> list[str]:
    """The node before the other cells, wherever its column stands."""
    return [cells[place], *cells[:place], *cells[place + 1 :]]


def _attributes(
    records: Sequence[Mapping[str, Any]], labels: Sequence[str], kind: str, leave: str
) -> tuple[Tensor | None, tuple[str, ...]]:
    """The attributes that are numbers or lists of numbers, side by side, and the names of the channels."""
    from anyorder.convert.attributes import read_attributes

    held = [(name, value) for record in records for name, value in record.items() if name != leave]
    numeric = dict.fromkeys(name for name, value in held if isinstance(value, (int, float, list)))
    if not numeric:
        return None, ()
    columns = {name: read_attributes(records, name, kind=kind, labels=labels, dtype=torch.float32) for name in numeric}
    names: list[str] = []
    for name, values in columns.items():
        width = values.shape[1]
        names += [name] if width == 1 else [f"{name}[{place}]" for place in range(width)]
    return torch.cat([*columns.values()], 1), tuple(names)


def _edge_attributes(records: Sequence[Mapping[str, Any]], names: Sequence[object]) -> tuple[Tensor | None, tuple[str, ...]]:
    """The numbers that all edges have, but for the weight."""
    common = set.intersection(*(set(record) for record in records)) - {"weight"} if records else set()
    kept = [{name: value for name, value in record.items() if name in common} for record in records]
    return _attributes(kept, list(map(str, names)), "edge", leave="weight")
