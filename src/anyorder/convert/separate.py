"""The inverse of collate: the graphs of a batch, one by one."""

from __future__ import annotations

import torch
from torch import Tensor

from anyorder.layouts import CompleteIndexSet, DenseIndexSet, Features, IndexSet, SparseIndexSet


def separate(features: Features) -> list[Features]:
    """One value per graph, each with its own nodes 0..n-1 in the order in which they stood.

    >>> index = SparseIndexSet(torch.tensor([[2], [0]]), num_nodes=3, node_graph=torch.tensor([0, 0, 1]))
    >>> [part.index.tuples.tolist() for part in separate(Features(index, torch.ones(2, 1)))]
    [[[0]], [[0]]]

    Args:
        features: of several graphs.
    """
    if not isinstance(features, Features):
        raise TypeError(f"separate takes Features, got {type(features).__name__}")
    index = features.index
    order = torch.argsort(index.entry_graph, stable=True)
    counts = torch.bincount(index.entry_graph, minlength=index.num_graphs).tolist()
    rows = features.rows[order].split(counts)
    if isinstance(index, CompleteIndexSet):
        parts: list[IndexSet] = [_complete(index, graph) for graph in range(index.num_graphs)]
    else:
        tuples = places(index)[index.tuples][order].split(counts)
        sizes = torch.bincount(index.node_graph, minlength=index.num_graphs).tolist()
        kind = type(index) if isinstance(index, SparseIndexSet) else SparseIndexSet
        parts = [kind(part, num_nodes=size) for part, size in zip(tuples, sizes, strict=True)]
    return [Features.of_rows(part, some) for part, some in zip(parts, rows, strict=True)]


def places(index: IndexSet) -> Tensor:
    """(num_nodes,): the number of each node within its graph.

    >>> places(SparseIndexSet(torch.tensor([[0]]), num_nodes=4, node_graph=torch.tensor([0, 1, 0, 1]))).tolist()
    [0, 0, 1, 1]
    """
    sizes = torch.bincount(index.node_graph, minlength=index.num_graphs)
    order = torch.argsort(index.node_graph, stable=True)
    first = sizes.cumsum(0) - sizes
    every = torch.arange(index.num_nodes, device=index.device)
    return torch.empty_like(order).index_copy(0, order, every - first[index.node_graph[order]])


def _complete(index: CompleteIndexSet, graph: int) -> IndexSet:
    if isinstance(index, DenseIndexSet):
        return DenseIndexSet(index.order, index.mask[graph : graph + 1])
    return CompleteIndexSet(index.order, index.sizes[graph : graph + 1])
