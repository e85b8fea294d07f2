"""Lists of edges as features of order 2."""

from __future__ import annotations

import torch
from torch import Tensor

from anyorder.convert.entries import Parts, as_columns, join
from anyorder.layouts import Features, TupleIndex


def from_edges(
    edges: Tensor,
    *,
    num_nodes: int,
    node: Tensor | None = None,
    edge: Tensor | None = None,
    directed: bool = False,
    node_graph: Tensor | None = None,
    num_graphs: int | None = None,
) -> Features:
    """Order-2 features of a graph, or of several, from pairs of nodes: node features on the diagonal, edge features off it.

    Entry v is node v; the edges follow. An undirected edge, given once or in both directions, has both.

    >>> x = from_edges(torch.tensor([[0, 1], [1, 2]]), num_nodes=3)
    >>> x.index.num_entries, x.channels
    (7, 2)

    Args:
        edges: (edges, 2), int64.
        num_nodes: nodes of all graphs together.
        node: (num_nodes, channels); a channel of ones unless told.
        edge: (edges, channels); a channel of ones unless told.
        directed: an edge has the direction in which it is given only.
        node_graph: (num_nodes,), the graph of each node; None for one graph.
        num_graphs: needed only where the last graphs have no nodes.
    """
    if not isinstance(edges, Tensor) or edges.dtype != torch.int64 or edges.ndim != 2 or edges.shape[1] != 2:
        got = f"{edges.dtype} of shape {tuple(edges.shape)}" if isinstance(edges, Tensor) else type(edges).__name__
        raise TypeError(f"edges must be int64 of shape (edges, 2), got {got}")
    like = node if node is not None else edge
    dtype = torch.get_default_dtype() if like is None else like.dtype
    ones = torch.ones(1, 1, dtype=dtype, device=edges.device)
    of_nodes = ones.expand(num_nodes, 1) if node is None else as_columns(node, "node", num_nodes)
    of_edges = ones.expand(len(edges), 1) if edge is None else as_columns(edge, "edge", len(edges))
    if not directed:
        edges, of_edges = _both(edges, of_edges, num_nodes)
    return join(Parts(of_nodes, edges, of_edges), num_nodes=num_nodes, node_graph=node_graph, num_graphs=num_graphs)


def _both(edges: Tensor, values: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """Both directions of each edge once, refused where an edge is given twice with different values."""
    edges, values = torch.cat([edges, edges.flip(1)]), torch.cat([values, values])
    index = TupleIndex.build(edges, max(num_nodes, 1))
    first = index.find(edges)
    wrong = (values != values[first]).any(1)
    if bool(wrong.any()):
        u, v = edges[wrong][0].tolist()
        raise ValueError(f"edge ({u}, {v}) is given twice with different values: directed=True keeps both directions apart")
    keep = first == torch.arange(len(edges), device=edges.device)
    return edges[keep], values[keep]
