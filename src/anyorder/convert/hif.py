"""The Hypergraph Interchange Format (HIF), JSON: reading, checking, and writing.

A document has a list ``incidences`` of {edge, node}, and may list ``nodes`` and ``edges`` too, with their weights and
attributes (``attrs``); ``network-type`` is undirected, directed or asc (a simplicial complex). Weights of nodes and edges
are read and written under the name ``weight``. Weights and attributes of incidences have no place in an entry and are
left out; a simplicial complex has the faces that it lists. What the standard leaves open is read: records of a node or
edge that occur again are joined, a pair that occurs twice is one membership, and a node of a directed network without a
direction is a tail.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from anyorder.convert.attributes import Names
from anyorder.convert.entries import Duplicates
from anyorder.convert.hif_document import parse
from anyorder.convert.hypergraphs import Agreement, Orderings, Reading, Writing, features_by_size, features_of, hypergraph_of
from anyorder.errors import InputError, reading
from anyorder.files import parse_json, refuse_halves, write_bytes
from anyorder.layouts import Features

Document = Mapping[str, Any]
MAX_BYTES = 2**32
"""What a packed file may unpack to."""


def read_hif(path: str | PathLike[str]) -> dict[str, Any]:
    """The document in a file, ``.json`` or ``.json.gz``, refused where it is not HIF.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_hif(f"{folder}/one.json", {"incidences": [{"edge": "e", "node": "a"}]})
    ...     read_hif(f"{folder}/one.json")["incidences"]
    [{'edge': 'e', 'node': 'a'}]

    Args:
        path: the file.
    """
    path = Path(path)
    with reading(path, "JSON"):
        document = parse_json(_unpacked(path))
    with reading(path):
        parse(document)
    return dict(document)


def _unpacked(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    raw = bytearray()
    with gzip.open(path) as file:
        while piece := file.read(1 << 20):
            raw += piece
            if len(raw) > MAX_BYTES:
                raise InputError(f"{path} unpacks to more than the {MAX_BYTES:,} bytes that are read")
    return bytes(raw)


def write_hif(path: str | PathLike[str], document: Document) -> None:
    """Write a document to a file, ``.json`` or ``.json.gz``; an example stands at ``read_hif``.

    Args:
        path: the file.
        document: as the standard says.
    """
    parse(document)
    refuse_halves(document)
    path = Path(path)
    raw = json.dumps(document, allow_nan=False).encode()
    write_bytes(path, gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def from_hif(
    document: Document | str | PathLike[str],
    *,
    order: int | None = None,
    node: Names | None = None,
    edge: Names = (),
    orderings: Orderings | None = None,
    share: bool = False,
    duplicates: Duplicates = "refuse",
    dtype: torch.dtype | None = None,
) -> Features:
    """Order-k features of a HIF document, or of the file at a path, whose hyperedges have k nodes.

    Nodes are numbered as ``nodes`` lists them, then as they first occur in ``incidences``. A directed hyperedge is one
    tuple, its tails before its heads. Options as in ``from_xgi``; with ``orderings="one"`` nodes stand as listed.

    >>> incidences = [{"edge": "e", "node": name} for name in "abc"]
    >>> from_hif({"incidences": incidences}, orderings="one").index.tuples.tolist()
    [[0, 1, 2]]

    Args:
        document: the document, or the path of its file.
        order, node, edge, orderings, share, duplicates, dtype: as of ``from_xgi``.
    """
    with _naming(document):
        hypergraph = parse(document if isinstance(document, Mapping) else read_hif(document))
        return features_of(hypergraph, order, Reading(node, edge, orderings, share, duplicates, dtype))


def from_hif_by_size(
    document: Document | str | PathLike[str],
    *,
    node: Names | None = None,
    edge: Names = (),
    orderings: Orderings | None = None,
    share: bool = False,
    duplicates: Duplicates = "refuse",
    dtype: torch.dtype | None = None,
) -> dict[int, Features]:
    """Features of each size of hyperedge, ``{order: Features}``, all on the same nodes.

    >>> incidences = [{"edge": "e", "node": "a"}, {"edge": "e", "node": "b"}, {"edge": "f", "node": "a"}]
    >>> sorted(from_hif_by_size({"incidences": incidences}))
    [1, 2]

    Args:
        document, node, edge, orderings, share, duplicates, dtype: as of ``from_hif``.
    """
    with _naming(document):
        hypergraph = parse(document if isinstance(document, Mapping) else read_hif(document))
        return features_by_size(hypergraph, Reading(node, edge, orderings, share, duplicates, dtype))


def _naming(document: Document | str | PathLike[str]) -> AbstractContextManager[None]:
    """What is wrong with a document of the caller's is the caller's to know; that of a file is said with its name."""
    return nullcontext() if isinstance(document, Mapping) else reading(document)


def to_hif(
    features: Features | Mapping[int, Features],
    *,
    node: Names = (),
    edge: Names = (),
    node_channels: int | None = 0,
    labels: Sequence[Hashable] | None = None,
    num_tails: int | None = None,
    orderings: Agreement = "refuse",
    metadata: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A HIF document whose hyperedges are the entries of features of one order or several.

    >>> pairs = from_hif({"incidences": [{"edge": "e", "node": "a"}, {"edge": "e", "node": "b"}]})
    >>> len(to_hif(pairs)["incidences"])
    2

    Args:
        features: of one order, or by order.
        node, edge, node_channels, labels, num_tails, orderings: as of ``to_xgi``.
        metadata: what the document says of itself.
    """
    made = hypergraph_of(features, Writing(node, edge, node_channels, labels, num_tails, orderings))
    foreign = [label for label in made.nodes if isinstance(label, bool) or not isinstance(label, (str, int))]
    if foreign:
        raise TypeError(f"HIF names nodes by strings or integers, got {foreign[0]!r}")
    incidences: list[dict[str, Any]] = []
    for name, members in zip(made.edge_names, made.edges, strict=True):
        tails = num_tails or 0
        if len({*members[:tails]}) + len({*members[tails:]}) < len(members):
            nodes = [made.nodes[number] for number in members]
            raise ValueError(
                f"HIF lists a node of a hyperedge once per side: entry {nodes} repeats node {max(nodes, key=nodes.count)!r}"
            )
        for place, number in enumerate(members):
            side = {} if num_tails is None else {"direction": "tail" if place < num_tails else "head"}
            incidences.append({"edge": name, "node": made.nodes[number], **side})
    document = {
        "network-type": "undirected" if num_tails is None else "directed",
        "incidences": incidences,
        "nodes": [_record("node", *pair) for pair in zip(made.nodes, made.node_attributes, strict=True)],
        "edges": [_record("edge", *pair) for pair in zip(made.edge_names, made.edge_attributes, strict=True)],
    }
    return document if metadata is None else {**document, "metadata": dict(metadata)}


def _record(kind: str, name: Hashable, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """A node or edge as HIF lists it: its weight apart, and its attributes where it has any."""
    attrs = dict(attributes)
    record: dict[str, Any] = {kind: name}
    if isinstance(attrs.get("weight"), float):
        record["weight"] = attrs.pop("weight")
    return {**record, "attrs": attrs} if attrs else record
