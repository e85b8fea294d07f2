"""NetworkX graphs as features of order 2, and back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from anyorder.convert.attributes import Names, read_attributes, write_attributes
from anyorder.convert.entries import Duplicates, Parts, join, one_graph, split
from anyorder.extras import require
from anyorder.layouts import Features, TupleIndex


def from_networkx(
    graph: Any,
    *,
    node: Names = (),
    edge: Names = (),
    share: bool = False,
    duplicates: Duplicates = "refuse",
    dtype: torch.dtype | None = None,
) -> Features:
    """Order-2 features of a graph or digraph: node attributes on the diagonal, edge attributes off it.

    Nodes are numbered in the order of ``graph.nodes``; entry v is node v, and the edges follow. An undirected edge gives
    both directions. Channels of nodes and edges stand side by side; a self loop fills the edge channels of its node's
    entry.

    >>> import networkx
    >>> from_networkx(networkx.path_graph(3)).index.num_entries
    7

    Args:
        graph: a graph, digraph or multigraph of NetworkX.
        node: names of node attributes, numbers or lists of numbers; a channel of ones if there are none.
        edge: names of edge attributes, likewise.
        share: put nodes and edges of one width into the same channels; self loops are then refused.
        duplicates: parallel edges of a multigraph are refused, or their values summed.
        dtype: type of the values; default: torch's.
    """
    nx = require("networkx", "pyg")
    if not isinstance(graph, nx.Graph):
        raise TypeError(f"from_networkx takes a graph of networkx, got {type(graph).__name__}")
    labels = list(graph.nodes)
    number = {label: place for place, label in enumerate(labels)}
    ends: list[tuple[int, int]] = []
    attributes: list[dict[str, Any]] = []
    for u, v, held in graph.edges(data=True):
        both = not graph.is_directed() and u != v
        ends += [(number[u], number[v])] + [(number[v], number[u])] * both
        attributes += [held] * (1 + both)
    named = [(labels[u], labels[v]) for u, v in ends]
    parts = Parts(
        read_attributes([graph.nodes[label] for label in labels], node, kind="node", labels=labels, dtype=dtype),
        torch.tensor(ends, dtype=torch.int64).reshape(-1, 2),
        read_attributes(attributes, edge, kind="edge", labels=named, dtype=dtype),
    )
    return join(parts, num_nodes=len(labels), share=share, duplicates=duplicates)


def to_networkx(
    features: Features,
    *,
    node: Names = (),
    edge: Names = (),
    node_channels: int | None = None,
    directed: bool = True,
    labels: Sequence[Hashable] | None = None,
) -> Any:
    """A digraph, or a graph, from order-2 features of one graph.

    >>> from anyorder.convert import from_edges
    >>> to_networkx(from_edges(torch.tensor([[0, 1]]), num_nodes=3)).number_of_edges()
    2

    Args:
        features: of order 2 and one graph.
        node: names for the node channels, one each, or ``{name: width}``; no name leaves the values out.
        edge: names for the edge channels, likewise.
        node_channels: how many channels are of nodes, the rest being of edges, as ``from_networkx`` lays them out;
            entries on the diagonal with an edge channel other than zero are then self loops too. None: both have all
            channels.
        directed: False for an undirected graph, which needs both directions of each edge with equal values.
        labels: names of the nodes; default: 0..n-1.
    """
    nx = require("networkx", "pyg")
    one_graph(features, "to_networkx")
    if features.order != 2:
        raise ValueError(f"a graph has features of order 2, got order {features.order}")
    parts = split(features, node_channels)
    names = check_labels(labels, features.num_nodes)
    tuples, edges = (parts.tuples, parts.edges) if directed else _undirected(parts, features.num_nodes)
    graph = nx.DiGraph() if directed else nx.Graph()
    held = [{} for _ in names] if parts.nodes is None else write_attributes(parts.nodes, node, kind="node")
    graph.add_nodes_from(zip(names, held, strict=True))
    listed = zip(tuples.tolist(), write_attributes(edges, edge, kind="edge"), strict=True)
    graph.add_edges_from((names[u], names[v], values) for (u, v), values in listed)
    return graph


def check_labels(labels: Sequence[Hashable] | None, num_nodes: int) -> list[Hashable]:
    """Names of nodes: 0..n-1, or those given, refused where they are not one for each node."""
    names: list[Hashable] = list(range(num_nodes)) if labels is None else list(labels)
    if len(names) != num_nodes or len(set(names)) != num_nodes:
        raise ValueError(f"labels must name each node once: expected {num_nodes} distinct labels, got {names}")
    return names


def _undirected(parts: Parts, num_nodes: int) -> tuple[Tensor, Tensor]:
    """One direction of each edge, refused where the other is missing or differs."""
    reverse = TupleIndex.build(parts.tuples, num_nodes).find(parts.tuples.flip(1))
    wrong = (reverse < 0) | (parts.edges != parts.edges[reverse.clamp(min=0)]).any(1)
    if bool(wrong.any()):
        u, v = parts.tuples[wrong][0].tolist()
        raise ValueError(f"an undirected edge needs both directions with equal values: ({u}, {v}) and ({v}, {u}) differ")
    keep = parts.tuples[:, 0] <= parts.tuples[:, 1]
    return parts.tuples[keep], parts.edges[keep]
