"""What a HIF document must be, checked where it is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anyorder.convert.attributes import Attributes
from anyorder.convert.hypergraphs import AttributedHypergraph

NETWORK_TYPES = ("undirected", "directed", "asc")
DIRECTIONS = ("tail", "head")
FIELDS = {
    "incidences": ("edge", "node", "weight", "direction", "attrs"),
    "nodes": ("node", "weight", "attrs"),
    "edges": ("edge", "weight", "attrs"),
}
Name = str | int
LARGEST = 1e300


def parse(document: Any) -> AttributedHypergraph:
    """The hypergraph of a HIF document, or an error that says where it is wrong.

    >>> parse({"incidences": [{"edge": 7, "node": "a"}], "nodes": [{"node": "b"}]}).edges
    ((1,),)
    """
    kind = _check_top(document)
    nodes: dict[Name, Attributes] = _listed(document, "nodes", "node")
    edges: dict[Name, Attributes] = _listed(document, "edges", "edge")
    sides: dict[Name, tuple[dict[Name, None], dict[Name, None]]] = {name: ({}, {}) for name in edges}
    for place, record in enumerate(document["incidences"]):
        where = f"incidences[{place}]"
        _check_record(record, "incidences", where)
        node, edge = record["node"], record["edge"]
        nodes.setdefault(node, {})
        edges.setdefault(edge, {})
        # a pair that occurs twice, as HIF allows, is one membership
        sides.setdefault(edge, ({}, {}))[_side(record, kind, where)][node] = None
    number = {name: place for place, name in enumerate(nodes)}
    members = tuple(tuple(number[node] for node in (*tails, *heads)) for tails, heads in (sides[name] for name in edges))
    return AttributedHypergraph(
        tuple(nodes),
        tuple(nodes.values()),
        tuple(edges),
        members,
        tuple(edges.values()),
        tuple(len(sides[name][0]) for name in edges) if kind == "directed" else None,
    )


def _check_top(document: Any) -> str:
    if not isinstance(document, Mapping):
        raise TypeError(f"a HIF document must be a JSON object, got {type(document).__name__}")
    unknown = sorted(map(str, set(document) - {"network-type", "metadata", *FIELDS}))
    if unknown:
        raise ValueError(f"a HIF document has network-type, metadata, incidences, nodes and edges, got {unknown}")
    if "incidences" not in document:
        raise ValueError(f"a HIF document must have incidences, got {sorted(document)}")
    for name in FIELDS:
        if not isinstance(document.get(name, []), list):
            raise TypeError(f"{name} must be a list, got {type(document[name]).__name__}")
    if not isinstance(document.get("metadata", {}), Mapping):
        raise TypeError(f"metadata must be an object, got {type(document['metadata']).__name__}")
    kind: str = document.get("network-type", "undirected")
    if kind not in NETWORK_TYPES:
        raise ValueError(f"network-type must be one of {NETWORK_TYPES}, got {kind!r}")
    return kind


def _listed(document: Mapping[str, Any], name: str, key: str) -> dict[Name, Attributes]:
    found: dict[Name, Attributes] = {}
    for place, record in enumerate(document.get(name, [])):
        _check_record(record, name, f"{name}[{place}]")
        weight = {"weight": record["weight"]} if "weight" in record else {}
        found[record[key]] = {**found.get(record[key], {}), **record.get("attrs", {}), **weight}
    return found


def _check_record(record: Any, name: str, where: str) -> None:
    if not isinstance(record, Mapping):
        raise TypeError(f"{where} must be an object, got {record!r}")
    unknown = sorted(map(str, set(record) - set(FIELDS[name])))
    if unknown:
        raise ValueError(f"{where} may have {FIELDS[name]}, got {unknown}: other values belong in attrs")
    for key in ("edge", "node"):
        if key not in FIELDS[name]:
            continue
        if key not in record:
            raise ValueError(f"{where} must have {key}, got {dict(record)}")
        if isinstance(record[key], bool) or not isinstance(record[key], (str, int)):
            raise TypeError(f"{where}: {key} must be a string or an integer, got {record[key]!r}")
    weight = record.get("weight", 0)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)):
        raise TypeError(f"{where}: weight must be a number, got {weight!r}")
    if abs(weight) > LARGEST:
        raise ValueError(f"{where}: weight must be at most {LARGEST:g}, got {str(weight)[:20]}...")
    if not isinstance(record.get("attrs", {}), Mapping):
        raise TypeError(f"{where}: attrs must be an object, got {record['attrs']!r}")


def _side(record: Mapping[str, Any], kind: str, where: str) -> int:
    """0 for tails, and where no direction is given; 1 for heads."""
    direction = record.get("direction")
    if direction is not None and direction not in DIRECTIONS:
        raise ValueError(f"{where}: direction must be 'tail' or 'head', got {direction!r}")
    return DIRECTIONS.index(direction) if kind == "directed" and direction is not None else 0
