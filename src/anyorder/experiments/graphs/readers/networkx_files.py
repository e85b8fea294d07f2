"""GraphML, GML, GEXF and node-link JSON through NetworkX, and NetworkX graphs themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.experiments.graphs.columns import Columns
from anyorder.experiments.graphs.values import Duplicates, GraphSet
from anyorder.extras import require

FORMATS = {".graphml": "GraphML", ".gml": "GML", ".gexf": "GEXF", ".json": "node-link JSON"}
_NOT_FEATURES = ("id", "viz", "xml:id")


def read_networkx_file(path: Path, *, duplicates: Duplicates = "refuse") -> GraphSet:
    """A graph, or a JSON list of graphs, in the format that the file's name says."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    form = FORMATS[path.suffix.lower()]
    try:
        graphs = _parse(path)
    except Exception as error:  # parsers of four formats raise what they like
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} is not a {form} file: {reason}") from error
    return from_networkx(graphs, duplicates=duplicates, notes=(f"{path.name}: {form}",))


def from_networkx(
    graphs: Sequence[Any], *, duplicates: Duplicates = "refuse", notes: Sequence[str] = (), graph_names: Sequence[str] = ()
) -> GraphSet:
    """NetworkX graphs side by side: attributes of nodes, edges and graphs are columns; a list of numbers is several."""
    if not graphs:
        raise ValueError("expected at least one graph, got none")
    for graph in graphs:
        if not isinstance(graph, require("networkx", "pyg").Graph):
            raise TypeError(f"expected graphs of NetworkX, got {type(graph).__name__}")
    if len({graph.is_directed() for graph in graphs}) > 1:
        raise ValueError("some of the graphs are directed and some are not: expected one kind")
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    pairs: list[tuple[int, int]] = []
    names: list[str] = []
    owner: list[int] = []
    for number, graph in enumerate(graphs):
        place = {node: len(nodes) + row for row, node in enumerate(graph.nodes)}
        nodes += [dict(held) for _, held in graph.nodes(data=True)]
        names += [str(node) for node in graph.nodes]
        owner += [number] * len(place)
        for first, second, held in graph.edges(data=True):
            pairs.append((place[first], place[second]))
            edges.append(dict(held))
    return GraphSet.build(
        np.array(pairs, np.int64).reshape(-1, 2),
        num_nodes=len(nodes),
        node_graph=np.array(owner, np.int64),
        num_graphs=len(graphs),
        directed=graphs[0].is_directed(),
        node_columns=attribute_columns(nodes),
        edge_columns=attribute_columns(edges),
        graph_columns=attribute_columns([dict(graph.graph) for graph in graphs], skip=("node_default", "edge_default")),
        node_names=names,
        graph_names=graph_names,
        duplicates=duplicates,
        notes=notes,
    )


def attribute_columns(held: Sequence[dict[str, Any]], skip: Sequence[str] = _NOT_FEATURES) -> Columns:
    """Attributes as columns, empty where an item lacks one; lists of one length of numbers are spread over columns."""
    names = [name for name in dict.fromkeys(str(key) for item in held for key in item) if name not in skip]
    table: dict[str, list[Any]] = {}
    for name in names:
        values = [item.get(name) for item in held]
        lists = [np.asarray(value).reshape(-1).tolist() for value in values if isinstance(value, (list, tuple, np.ndarray))]
        if not lists:
            table[name] = values
            continue
        width = {len(value) for value in lists}
        if len(width) != 1 or len(lists) + values.count(None) < len(values):
            raise ValueError(f"attribute {name!r} must be a list of one length everywhere, got lengths {sorted(width)}")
        rows = [[None] * len(lists[0]) if value is None else np.asarray(value).reshape(-1).tolist() for value in values]
        table |= {f"{name} {n}": [row[n] for row in rows] for n in range(len(lists[0]))}
    return Columns.of(table, rows=len(held))


def _parse(path: Path) -> list[Any]:
    nx = require("networkx", "pyg")
    ending = path.suffix.lower()
    if ending == ".graphml":
        return [nx.read_graphml(path)]
    if ending == ".gexf":
        return [nx.read_gexf(path)]
    if ending == ".gml":
        try:
            return [nx.read_gml(path)]
        except nx.NetworkXError as error:
            if "label" not in str(error):
                raise
            return [nx.read_gml(path, label="id")]
    data = json.loads(path.read_text(encoding="utf-8"))
    items = data if isinstance(data, list) else [data]
    return [_node_link(nx, item) for item in items]


def _node_link(nx: Any, item: Any) -> Any:
    if not isinstance(item, dict) or "nodes" not in item or not ({"links", "edges"} & item.keys()):
        raise ValueError("expected an object with 'nodes' and 'links' or 'edges'")
    key = "links" if "links" in item else "edges"
    known = {node.get("id") for node in item["nodes"]}
    for link in item[key]:
        missing = [link.get(end) for end in ("source", "target") if link.get(end) not in known]
        if missing:
            raise ValueError(f"the edge {link.get('source')} - {link.get('target')} leads to a missing node {missing[0]!r}")
    return nx.node_link_graph(item, edges=key)
