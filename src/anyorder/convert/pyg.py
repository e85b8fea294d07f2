"""Graphs of PyTorch Geometric as features of order 2, and back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from anyorder.convert.entries import Duplicates, Parts, as_columns, join, split
from anyorder.convert.separate import separate
from anyorder.extras import require
from anyorder.layouts import Features


def from_pyg(
    data: Any,
    *,
    node: str | None = "x",
    edge: str | None = "edge_attr",
    share: bool = False,
    duplicates: Duplicates = "refuse",
) -> Features:
    """Order-2 features of a ``Data`` or ``Batch``: node features on the diagonal, edge features off it.

    Entry v is node v, for all nodes; the edges follow in their order. Channels of nodes and edges stand side by side,
    with zeros where an entry has none of them. A self loop has the entry of its node: its features fill the edge channels
    there.

    >>> from torch_geometric.data import Data
    >>> from_pyg(Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0], [1]])), edge=None).index.num_entries
    4

    Args:
        data: a ``Data`` or a ``Batch``.
        node: which attribute nodes carry; None for a channel of ones.
        edge: which attribute edges carry; None for a channel of ones.
        share: put nodes and edges of one width into the same channels; self loops are then refused.
        duplicates: edges that occur twice are refused, or their features summed.
    """
    pyg = require("torch_geometric.data", "pyg")
    if not isinstance(data, pyg.Data):
        raise TypeError(f"from_pyg takes a Data or Batch of torch_geometric, got {type(data).__name__}")
    tuples, num_nodes = _edges(data), data.num_nodes
    of_nodes, of_edges = _attribute(data, node, "node", num_nodes), _attribute(data, edge, "edge", len(tuples))
    like = of_nodes if of_nodes is not None else of_edges
    ones = torch.ones(1, 1, dtype=torch.get_default_dtype() if like is None else like.dtype, device=tuples.device)
    parts = Parts(
        ones.expand(num_nodes, 1) if of_nodes is None else of_nodes,
        tuples,
        ones.expand(len(tuples), 1) if of_edges is None else of_edges,
    )
    num_graphs = data.num_graphs if isinstance(data, pyg.Batch) else None
    return join(parts, num_nodes=num_nodes, node_graph=data.batch, num_graphs=num_graphs, share=share, duplicates=duplicates)


def to_pyg(
    features: Features, *, node: str | None = "x", edge: str | None = "edge_attr", node_channels: int | None = None
) -> Any:
    """A ``Data`` for one graph, a ``Batch`` for several, from order-2 features.

    >>> from anyorder.convert import from_edges
    >>> to_pyg(from_edges(torch.tensor([[0, 1]]), num_nodes=3)).edge_index.shape
    torch.Size([2, 2])

    Args:
        features: of order 2.
        node: the attribute for the values of nodes; None leaves them out.
        edge: the attribute for the values of edges; None leaves them out.
        node_channels: how many channels are of nodes, the rest being of edges, as ``from_pyg`` lays them out; entries on
            the diagonal with an edge channel other than zero are then self loops too. None: both have all channels.
    """
    pyg = require("torch_geometric.data", "pyg")
    if not isinstance(features, Features):
        raise TypeError(f"to_pyg takes Features, got {type(features).__name__}")
    if features.order != 2:
        raise ValueError(f"a graph has features of order 2, got order {features.order}")
    if features.num_graphs == 0:
        raise ValueError("to_pyg needs at least one graph, got none")
    graphs = [_data(pyg, part, node, edge, node_channels) for part in separate(features)]
    return graphs[0] if len(graphs) == 1 else pyg.Batch.from_data_list(graphs)


def _data(pyg: Any, features: Features, node: str | None, edge: str | None, node_channels: int | None) -> Any:
    parts = split(features, node_channels)
    data = pyg.Data(edge_index=parts.tuples.T.contiguous(), num_nodes=features.num_nodes)
    if node is not None and parts.nodes is not None:
        data[node] = parts.nodes
    if edge is not None:
        data[edge] = parts.edges
    return data


def _edges(data: Any) -> Tensor:
    edge_index = data.edge_index
    if not isinstance(edge_index, Tensor) or edge_index.dtype != torch.int64:
        got = edge_index.dtype if isinstance(edge_index, Tensor) else type(edge_index).__name__
        raise TypeError(f"data.edge_index must be a tensor of int64, got {got}")
    if edge_index.ndim != 2 or len(edge_index) != 2:
        raise ValueError(f"data.edge_index must have shape (2, edges), got {tuple(edge_index.shape)}")
    return edge_index.T


def _attribute(data: Any, name: str | None, kind: str, rows: int) -> Tensor | None:
    if name is None:
        return None
    if name not in data or data[name] is None:
        raise ValueError(f"data has no {name}: expected one of {[*data.keys()]}, or {kind}=None for a channel of ones")
    return as_columns(data[name], name, rows)
