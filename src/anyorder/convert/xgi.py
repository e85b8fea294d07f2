"""XGI hypergraphs as features, and back."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import torch

from anyorder.convert.attributes import Names
from anyorder.convert.entries import Duplicates
from anyorder.convert.hypergraphs import (
    Agreement,
    AttributedHypergraph,
    Orderings,
    Reading,
    Writing,
    features_by_size,
    features_of,
    hypergraph_of,
)
from anyorder.extras import require
from anyorder.layouts import Features


def from_xgi(
    hypergraph: Any,
    *,
    order: int | None = None,
    node: Names | None = None,
    edge: Names = (),
    orderings: Orderings | None = None,
    share: bool = False,
    duplicates: Duplicates = "refuse",
    dtype: torch.dtype | None = None,
) -> Features:
    """Order-k features of a hypergraph whose hyperedges have k nodes.

    Nodes are numbered in the order of ``hypergraph.nodes``. A directed hyperedge is one tuple, its tails before its heads,
    each in the order of nodes.

    >>> import xgi
    >>> from_xgi(xgi.Hypergraph([[0, 1, 2]])).index.num_entries
    6

    Args:
        hypergraph: of XGI, directed or not.
        order: the size of hyperedges; needed only where there are none.
        node: names of node attributes, at the entries (v, ..., v), beside the edge channels; None for no such entries,
            ``()`` for a channel of ones.
        edge: names of edge attributes, numbers or lists of numbers; a channel of ones if there are none.
        orderings: ``"all"`` orderings of a hyperedge are entries, or ``"one"``, in the order of nodes. All unless
            directed.
        share: put nodes and edges of one width into the same channels.
        duplicates: hyperedges on the same nodes are refused, or their values summed.
        dtype: type of the values; default: torch's.
    """
    return features_of(_read(hypergraph), order, Reading(node, edge, orderings, share, duplicates, dtype))


def from_xgi_by_size(
    hypergraph: Any,
    *,
    node: Names | None = None,
    edge: Names = (),
    orderings: Orderings | None = None,
    share: bool = False,
    duplicates: Duplicates = "refuse",
    dtype: torch.dtype | None = None,
) -> dict[int, Features]:
    """Features of each size of hyperedge, ``{order: Features}``, all on the same nodes.

    >>> import xgi
    >>> {order: x.index.num_entries for order, x in from_xgi_by_size(xgi.Hypergraph([[0, 1, 2], [1, 2]])).items()}
    {2: 2, 3: 6}

    Args:
        hypergraph, node, edge, orderings, share, duplicates, dtype: as of ``from_xgi``.
    """
    return features_by_size(_read(hypergraph), Reading(node, edge, orderings, share, duplicates, dtype))


def to_xgi(
    features: Features | Mapping[int, Features],
    *,
    node: Names = (),
    edge: Names = (),
    node_channels: int | None = 0,
    labels: Sequence[Hashable] | None = None,
    num_tails: int | None = None,
    orderings: Agreement = "refuse",
) -> Any:
    """A hypergraph whose hyperedges are the entries of features of one order or several; orderings of a set are one.

    >>> import xgi
    >>> to_xgi(from_xgi(xgi.Hypergraph([[0, 1, 2]]))).num_edges
    1

    Args:
        features: of one order, or by order.
        node: names for the node channels, one each, or ``{name: width}``; no name leaves the values out.
        edge: names for the edge channels, likewise.
        node_channels: how many channels are of nodes, the rest being of edges; entries (v, ..., v) then hold nodes, and
            are hyperedges only where an edge channel is not zero. None: both have all channels. 0: all entries are
            hyperedges.
        labels: names of the nodes; default: 0..n-1.
        num_tails: how many axes are tails, for a directed hypergraph.
        orderings: where the orderings of one hyperedge differ in value, refuse them or take the mean.
    """
    xgi = require("xgi", "hypergraphs")
    made = hypergraph_of(features, Writing(node, edge, node_channels, labels, num_tails, orderings))
    hypergraph = xgi.Hypergraph() if made.tails is None else xgi.DiHypergraph()
    hypergraph.add_nodes_from(zip(made.nodes, made.node_attributes, strict=True))
    for number, edge_nodes in enumerate(made.edges):
        members: Any = [made.nodes[n] for n in edge_nodes]
        if made.tails is not None:
            members = (members[: made.tails[number]], members[made.tails[number] :])
        hypergraph.add_edge(members, made.edge_names[number])
    hypergraph.set_edge_attributes(dict(zip(made.edge_names, made.edge_attributes, strict=True)))
    return hypergraph


def _read(hypergraph: Any) -> AttributedHypergraph:
    xgi = require("xgi", "hypergraphs")
    if not isinstance(hypergraph, (xgi.Hypergraph, xgi.DiHypergraph)):
        raise TypeError(f"expected a Hypergraph, SimplicialComplex or DiHypergraph of xgi, got {type(hypergraph).__name__}")
    nodes = tuple(hypergraph.nodes)
    number = {label: place for place, label in enumerate(nodes)}
    directed = isinstance(hypergraph, xgi.DiHypergraph)
    names = tuple(hypergraph.edges)
    sides = hypergraph.edges.dimembers(dtype=dict) if directed else hypergraph.edges.members(dtype=dict)
    edges, tails = [], []
    for name in names:
        parts = sides[name] if directed else (sides[name],)
        edges.append(tuple(n for part in parts for n in sorted(number[label] for label in part)))
        tails.append(len(parts[0]))
    return AttributedHypergraph(
        nodes,
        tuple(hypergraph.nodes[label] for label in nodes),
        names,
        tuple(edges),
        tuple(hypergraph.edges[name] for name in names),
        tuple(tails) if directed else None,
    )
