"""Nodes and edges as the entries of one index set, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from anyorder.layouts import Features, SparseIndexSet, TupleIndex

Duplicates = Literal["refuse", "sum"]


@dataclass(frozen=True, eq=False)
class Parts:
    """The values of all nodes (None where nodes carry none), and tuples of nodes with their values.

    Attributes:
        nodes: (node, channel) or None.
        tuples: (edge, axis), int64.
        edges: (edge, channel).
    """

    nodes: Tensor | None
    tuples: Tensor
    edges: Tensor


def join(
    parts: Parts,
    *,
    num_nodes: int,
    node_graph: Tensor | None = None,
    num_graphs: int | None = None,
    share: bool = False,
    duplicates: Duplicates = "refuse",
) -> Features:
    """Features with node v at (v, ..., v), first and in order, and then the edges.

    Channels of nodes and of edges stand side by side, with zeros where an entry has none of them; with ``share`` both use
    the same channels. An edge (v, ..., v) has the entry of node v: its values fill the edge channels there.

    >>> loop = Parts(torch.tensor([[5.0], [6.0]]), torch.tensor([[0, 1], [1, 1]]), torch.tensor([[7.0], [8.0]]))
    >>> x = join(loop, num_nodes=2)
    >>> x.index.tuples.tolist(), x.values.tolist()
    ([[0, 0], [1, 1], [0, 1]], [[5.0, 0.0], [6.0, 8.0], [0.0, 7.0]])
    """
    _check_parts(parts, num_nodes, share, duplicates)
    parts = _merge(parts, num_nodes, duplicates)
    tuples, values = parts.tuples, parts.edges
    if parts.nodes is not None:
        loops = (tuples == tuples[:, :1]).all(1)
        if share and bool(loops.any()):
            raise ValueError(
                f"edge {tuples[loops][0].tolist()} is a self loop, whose values would mix with those of its node: "
                "self loops need share=False"
            )
        left, right = (0, 0) if share else (parts.nodes.shape[1], parts.edges.shape[1])
        nodes, edges = _pad(parts.nodes, 0, right), _pad(parts.edges, left, 0)
        nodes = nodes.index_add(0, tuples[loops, 0], edges[loops])
        every = torch.arange(num_nodes, device=tuples.device)
        tuples = torch.cat([every[:, None].expand(-1, tuples.shape[1]), tuples[~loops]])
        values = torch.cat([nodes, edges[~loops]])
    index = SparseIndexSet(tuples, num_nodes=num_nodes, node_graph=node_graph, num_graphs=num_graphs)
    return Features(index, values)


def split(features: Features, node_channels: int | None) -> Parts:
    """The inverse of ``join``: the values of nodes, and the other tuples with theirs.

    With ``node_channels`` None, nodes and edges share all channels. With a number, so many channels are of nodes and the
    rest of edges; entries (v, ..., v) with an edge channel other than zero are edges too. With 0, all entries are edges.
    A node without an entry has zeros.
    """
    tuples, rows = features.index.tuples, features.rows
    if features.order == 0:
        raise ValueError("features of order 0 have no nodes in their entries: expected order 1 or more")
    if node_channels is not None and not 0 <= node_channels <= features.channels:
        raise ValueError(f"node_channels must lie in 0..{features.channels}, the channels of features: got {node_channels}")
    if node_channels == 0:
        return Parts(None, tuples, rows)
    of_nodes, of_edges = (rows, rows) if node_channels is None else (rows[:, :node_channels], rows[:, node_channels:])
    diagonal = (tuples == tuples[:, :1]).all(1)
    nodes = rows.new_zeros(features.num_nodes, of_nodes.shape[1]).index_copy(0, tuples[diagonal, 0], of_nodes[diagonal])
    edge = ~diagonal if node_channels is None else ~diagonal | (of_edges != 0).any(1)
    return Parts(nodes, tuples[edge], of_edges[edge])


def one_graph(features: Features, name: str) -> None:
    """Refuse a batch where one graph is asked for."""
    if not isinstance(features, Features):
        raise TypeError(f"{name} takes Features, got {type(features).__name__}")
    if features.num_graphs != 1:
        raise ValueError(f"{name} takes one graph, got {features.num_graphs}: separate(features) gives them one by one")


def as_columns(values: Tensor, name: str, rows: int) -> Tensor:
    """Values (row,) or (row, channel) as (row, channel), refused where they do not fit."""
    if not isinstance(values, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(values).__name__}")
    if not values.is_floating_point():
        raise TypeError(f"{name} must be floating, got {values.dtype}: encode categories first, or convert with .float()")
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != rows:
        raise ValueError(f"{name} must have shape ({rows}, channels), got {tuple(values.shape)}")
    return values


def _check_parts(parts: Parts, num_nodes: int, share: bool, duplicates: str) -> None:
    if duplicates not in ("refuse", "sum"):
        raise ValueError(f"duplicates must be 'refuse' or 'sum', got {duplicates!r}")
    outside = ((parts.tuples < 0) | (parts.tuples >= num_nodes)).any(1).nonzero().flatten()
    if len(outside):
        row = int(outside[0])
        raise ValueError(f"nodes must lie in 0..{num_nodes - 1}: edge {row} is {parts.tuples[row].tolist()}")
    if parts.nodes is None:
        return
    if parts.nodes.dtype != parts.edges.dtype:
        raise TypeError(f"values of nodes and edges must have one dtype, got {parts.nodes.dtype} and {parts.edges.dtype}")
    if share and parts.nodes.shape[1] != parts.edges.shape[1]:
        raise ValueError(
            "nodes and edges can only share channels of one width: "
            f"got {parts.nodes.shape[1]} for nodes and {parts.edges.shape[1]} for edges"
        )


def _merge(parts: Parts, num_nodes: int, duplicates: Duplicates) -> Parts:
    """Edges that occur twice: refused, or summed at the place of the first."""
    every = torch.arange(len(parts.tuples), device=parts.tuples.device)
    first = TupleIndex.build(parts.tuples, num_nodes).find(parts.tuples)
    new = first == every
    if bool(new.all()):
        return parts
    if duplicates == "refuse":
        row = int((~new).nonzero()[0])
        raise ValueError(
            f"edges must be distinct: edges {int(first[row])} and {row} are both {parts.tuples[row].tolist()}; "
            "duplicates='sum' adds their values"
        )
    place = new.cumsum(0) - 1
    total = parts.edges.new_zeros(int(new.sum()), parts.edges.shape[1]).index_add(0, place[first], parts.edges)
    return Parts(parts.nodes, parts.tuples[new], total)


def _pad(values: Tensor, left: int, right: int) -> Tensor:
    return torch.nn.functional.pad(values, (left, right))
