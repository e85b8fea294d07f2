"""Laplacian positional encodings of many small graphs at once."""

from __future__ import annotations

import torch
from torch import Tensor

TRIVIAL = 1e-6  # eigenvalues of the normalised Laplacian lie in [0, 2]


def laplacian_positions(edge_index: Tensor, graph: Tensor, num_graphs: int, channels: int) -> Tensor:
    r"""Eigenvectors of the ``channels`` smallest nonzero eigenvalues of each graph's Laplacian, one row per node.

    .. math:: L = 1 - D^{-1/2} A D^{-1/2}

    ``edge_index (2, edge)`` has both directions of every edge, ``graph (node,)`` does not decrease. The eigenvalue 0
    occurs once per connected component; its vectors say nothing of the structure and are left out. Graphs with too few
    eigenvectors are filled with zeros. Signs (and bases of repeated eigenvalues) are arbitrary: see `flip_signs`.

    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> laplacian_positions(path, torch.zeros(3, dtype=torch.long), 1, 3).square().round(decimals=2)
    tensor([[0.5000, 0.2500, 0.0000],
            [0.0000, 0.5000, 0.0000],
            [0.5000, 0.2500, 0.0000]])
    """
    if channels < 1 or edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"expected channels >= 1 and edge_index (2, edge), got {channels} and {edge_index.shape}")
    if len(graph) > 1 and bool((graph[1:] < graph[:-1]).any()):
        raise ValueError("the nodes of a graph must follow each other: graph must not decrease")
    sizes = torch.bincount(graph, minlength=num_graphs)
    first = sizes.cumsum(0) - sizes
    positions = torch.zeros(len(graph), channels, device=graph.device)
    size_of_node, size_of_edge = sizes[graph], sizes[graph[edge_index[0]]]
    for size in torch.unique(sizes[sizes > 1]).tolist():
        nodes = (size_of_node == size).nonzero().squeeze(1)
        source, target = edge_index[:, size_of_edge == size]
        number = torch.cumsum(sizes == size, 0) - 1  # of a graph among those of its size
        owner = graph[source]
        adjacency = torch.zeros(len(nodes) // size, size, size, dtype=torch.float64, device=graph.device)
        adjacency[number[owner], source - first[owner], target - first[owner]] = 1.0
        positions[nodes] = _eigenvectors(adjacency, channels).flatten(0, 1).to(positions.dtype)
    return positions


def flip_signs(positions: Tensor, graph: Tensor, num_graphs: int, generator: torch.Generator | None = None) -> Tensor:
    """Every eigenvector of every graph times +1 or -1 at random; for training, where no sign is the right one."""
    signs = torch.randint(0, 2, (num_graphs, positions.shape[1]), generator=generator, device=positions.device)
    return positions * (2 * signs - 1).to(positions.dtype)[graph]


def _eigenvectors(adjacency: Tensor, channels: int) -> Tensor:
    """Nontrivial eigenvectors ``(graph, node, channel)`` of graphs of one size."""
    count, size, _ = adjacency.shape
    adjacency.diagonal(dim1=1, dim2=2).zero_()
    degree = adjacency.sum(2)
    scale = degree.clamp(min=1).rsqrt()
    laplacian = torch.diag_embed((degree > 0).to(adjacency.dtype)) - scale[:, :, None] * adjacency * scale[:, None, :]
    values, vectors = torch.linalg.eigh(laplacian)
    wanted = (values < TRIVIAL).sum(1, keepdim=True) + torch.arange(channels, device=values.device)
    index = wanted.clamp(max=size - 1)[:, None, :].expand(count, size, channels)
    return torch.where((wanted < size)[:, None, :], vectors.gather(2, index), 0.0)
