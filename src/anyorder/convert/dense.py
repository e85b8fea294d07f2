"""Padded grids with masks as features, and back."""

from __future__ import annotations

import torch
from torch import Tensor

from anyorder.convert.separate import places
from anyorder.layouts import DenseIndexSet, Features, IndexSet, SparseIndexSet


def from_dense(values: Tensor, mask: Tensor | None = None, *, nodes: Tensor | None = None) -> Features:
    """Features from a grid (batch, node, ..., node, channel), whose node axes give the order.

    A mask of shape (batch, node) says which nodes are there: all their tuples are entries. A mask of the grid's own shape
    (batch, node, ..., node) says which tuples are entries: the result is sparse. With one node axis the two are the same,
    and ``nodes`` tells them apart.

    >>> edges = torch.tensor([[[False, True], [False, False]]])
    >>> from_dense(torch.ones(1, 2, 2, 3), edges).index.tuples.tolist()
    [[0, 1]]

    Args:
        values: (batch, node, ..., node, channel).
        mask: (batch, node) or (batch, node, ..., node), bool; None says that all nodes are there.
        nodes: (batch, node), bool, which nodes there are beside a mask of tuples; default: those that occur in a tuple.
    """
    shape = _grid_shape(values)
    order = len(shape) - 1
    if order == 0:
        return _from_rows(values, mask, nodes)
    if mask is None:
        mask = torch.ones(shape[:2], dtype=torch.bool, device=values.device) if nodes is None else nodes
        return Features(DenseIndexSet(order, mask), values)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise TypeError(f"mask must be a bool tensor, got {mask.dtype if isinstance(mask, Tensor) else type(mask).__name__}")
    if tuple(mask.shape) == shape and (order > 1 or nodes is not None):
        return _from_tuples(values, mask, nodes)
    if tuple(mask.shape) == shape[:2] and nodes is None:
        return Features(DenseIndexSet(order, mask), values)
    allowed = [f"{shape[:2]} for nodes"] * (nodes is None) + [f"{shape} for tuples"] * (order > 1 or nodes is not None)
    raise ValueError(f"mask must have shape {' or '.join(allowed)}, got {tuple(mask.shape)}")


def to_dense(features: Features) -> tuple[Tensor, Tensor]:
    """The grid (graph, node, ..., node, channel), zero where there is no entry, and the mask (graph, node, ..., node).

    The nodes of a graph stand at 0..n-1 of each axis, in their order; those of a ``DenseIndexSet`` stay where they are. The
    grid holds graphs x nodes^order rows. ``from_dense(*to_dense(x), nodes=node_mask(x))`` has the entries of x, sorted.

    >>> edges = SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=2)
    >>> to_dense(Features(edges, torch.ones(1, 3)))[0].shape
    torch.Size([1, 2, 2, 3])

    Args:
        features: of any order and layout.
    """
    if not isinstance(features, Features):
        raise TypeError(f"to_dense takes Features, got {type(features).__name__}")
    index = features.index
    there = node_mask(features)
    width = there.shape[1]
    place = there.nonzero()[:, 1] if isinstance(index, DenseIndexSet) else places(index)
    cell = index.entry_graph
    for column in index.tuples.unbind(1):
        cell = cell * width + place[column]
    shape = (index.num_graphs, *[width] * index.order)
    grid = features.rows.new_zeros(index.num_graphs * width**index.order, features.channels)
    mask = torch.zeros(len(grid), dtype=torch.bool, device=features.device)
    values = grid.index_copy(0, cell, features.rows).reshape(*shape, features.channels)
    return values, mask.index_fill(0, cell, True).reshape(shape)


def node_mask(features: Features) -> Tensor:
    """(graph, node): which places of the padded node axis hold a node.

    >>> index = SparseIndexSet(torch.tensor([[0], [2]]), num_nodes=3, node_graph=torch.tensor([0, 0, 1]))
    >>> node_mask(Features(index, torch.ones(2, 1))).tolist()
    [[True, True], [True, False]]

    Args:
        features: of any order and layout.
    """
    index: IndexSet = features.index
    if isinstance(index, DenseIndexSet):
        return index.mask
    sizes = torch.bincount(index.node_graph, minlength=index.num_graphs)
    width = int(sizes.max()) if len(sizes) else 0
    return torch.arange(width, device=index.device) < sizes[:, None]


def _grid_shape(values: Tensor) -> tuple[int, ...]:
    """(batch, node, ..., node), refused where the node axes differ."""
    if not isinstance(values, Tensor) or values.ndim < 2:
        got = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
        raise ValueError(f"values must be a tensor of shape (batch, node, ..., node, channels), got {got}")
    shape = tuple(values.shape[:-1])
    if len({*shape[1:]}) > 1:
        raise ValueError(f"all node axes of values must have one size, got {shape[1:]}")
    return shape


def _from_rows(values: Tensor, mask: Tensor | None, nodes: Tensor | None) -> Features:
    """Order 0: one row per graph, whatever its nodes."""
    if mask is not None and (tuple(mask.shape) != (len(values),) or not bool(mask.all())):
        raise ValueError(f"values of order 0 have a row per graph: expected no mask, got one of shape {tuple(mask.shape)}")
    if nodes is None:
        nodes = torch.ones(len(values), 0, dtype=torch.bool, device=values.device)
    return Features(DenseIndexSet(0, nodes), values)


def _from_tuples(values: Tensor, mask: Tensor, nodes: Tensor | None) -> Features:
    cells = mask.nonzero()
    graph, axes = cells[:, :1], cells[:, 1:]
    used = torch.zeros(mask.shape[:2], dtype=torch.bool, device=mask.device)
    used[graph.expand_as(axes).flatten(), axes.flatten()] = True
    if nodes is None:
        nodes = used
    if not isinstance(nodes, Tensor) or nodes.dtype != torch.bool or nodes.shape != used.shape:
        got = f"{nodes.dtype} of shape {tuple(nodes.shape)}" if isinstance(nodes, Tensor) else type(nodes).__name__
        raise ValueError(f"nodes must be bool of shape {tuple(used.shape)}, got {got}")
    missing = (used & ~nodes).nonzero()
    if len(missing):
        raise ValueError(f"mask must use nodes that are there: batch {missing[0, 0]} has no node {missing[0, 1]}")
    number = nodes.flatten().cumsum(0).reshape(nodes.shape) - 1
    node_graph = nodes.nonzero()[:, 0]
    index = SparseIndexSet(number[graph, axes], num_nodes=len(node_graph), node_graph=node_graph, num_graphs=len(values))
    return Features(index, values[mask])
