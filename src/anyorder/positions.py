"""Where nodes stand in their graphs: vectors of the Laplacian and return probabilities of random walks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyorder.extras import require

TRIVIAL = 1e-6  # eigenvalues of the normalised Laplacian lie in [0, 2]
EXACT = 1_000
"""Nodes up to which a graph is treated as a dense matrix."""
PROBES = 64
"""Random vectors that estimate the return probabilities of a larger graph."""


def laplacian_positions(edge_index: Tensor, graph: Tensor, num_graphs: int, channels: int, *, seed: int = 0) -> Tensor:
    r"""Eigenvectors of the ``channels`` smallest nonzero eigenvalues of each graph's Laplacian, one row per node.

    .. math:: L = 1 - D^{-1/2} A D^{-1/2}

    Edges ``edge_index (2, edge)`` count in both directions and once, ``graph (node,)`` does not decrease. The eigenvalue 0
    occurs once per connected component; its vectors say nothing of the structure and are left out. Graphs with too few
    eigenvectors are filled with zeros. Of a graph with more than ``EXACT`` nodes the largest component has vectors, found
    by Lanczos iterations from a start that ``seed`` draws. Signs (and bases of repeated eigenvalues) are arbitrary: see
    `flip_signs`.

    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> laplacian_positions(path, torch.zeros(3, dtype=torch.long), 1, 3).square().round(decimals=2)
    tensor([[0.5000, 0.2500, 0.0000],
            [0.0000, 0.5000, 0.0000],
            [0.5000, 0.2500, 0.0000]])

    Args:
        edge_index: (2, edges), int64.
        graph: (nodes,), int64, the graph of each node.
        num_graphs: number of graphs.
        channels: number of eigenvectors.
        seed: of the start of the iterations.

    Returns:
        (nodes, channels).
    """
    _check(edge_index, graph, channels)
    positions = torch.zeros(len(graph), channels, device=graph.device)
    for nodes, adjacency in _dense(edge_index, graph, num_graphs):
        positions[nodes] = _eigenvectors(adjacency, channels).flatten(0, 1).to(positions.dtype)
    for nodes, matrix in _sparse(edge_index, graph, num_graphs):
        positions[nodes] = torch.from_numpy(_leading_vectors(matrix, channels, seed)).to(positions)
    return positions


def random_walk_positions(edge_index: Tensor, graph: Tensor, num_graphs: int, steps: int, *, seed: int = 0) -> Tensor:
    r"""The probabilities that a random walk is back at its node after 2, ..., ``steps`` + 1 steps, one row per node.

    .. math:: p_s(v) = ((D^{-1} A)^s)_{vv}, \quad s = 2, \dots, steps + 1

    Edges count in both directions and once, loops not at all. In a graph with more than ``EXACT`` nodes the diagonals are
    estimated (Hutchinson) with 64 vectors of random signs that ``seed`` draws.

    >>> triangle = torch.tensor([[0, 1, 2], [1, 2, 0]])
    >>> random_walk_positions(triangle, torch.zeros(3, dtype=torch.long), 1, 2)[0]
    tensor([0.5000, 0.2500])

    Args:
        edge_index: (2, edges), int64.
        graph: (nodes,), int64, the graph of each node.
        num_graphs: number of graphs.
        steps: number of channels.
        seed: of the random signs.

    Returns:
        (nodes, steps).
    """
    _check(edge_index, graph, steps)
    positions = torch.zeros(len(graph), steps, device=graph.device)
    for nodes, adjacency in _dense(edge_index, graph, num_graphs):
        walk = adjacency / adjacency.sum(2, keepdim=True).clamp(min=1)
        power, columns = walk, []
        for _ in range(steps):
            power = power @ walk
            columns.append(power.diagonal(dim1=1, dim2=2).flatten())
        positions[nodes] = torch.stack(columns, 1).to(positions.dtype)
    for nodes, matrix in _sparse(edge_index, graph, num_graphs):
        positions[nodes] = torch.from_numpy(_estimated_returns(matrix, steps, seed)).to(positions)
    return positions


def flip_signs(positions: Tensor, graph: Tensor, num_graphs: int, generator: torch.Generator | None = None) -> Tensor:
    """Every eigenvector of every graph times +1 or -1 at random; for training, where no sign is the right one.

    >>> flip_signs(torch.ones(2, 3), torch.zeros(2, dtype=torch.long), 1).abs().sum()
    tensor(6.)

    Args:
        positions: (nodes, channels).
        graph: (nodes,), int64, the graph of each node.
        num_graphs: number of graphs.
        generator: of the signs; None takes torch's own.
    """
    signs = torch.randint(0, 2, (num_graphs, positions.shape[1]), generator=generator, device=positions.device)
    return positions * (2 * signs - 1).to(positions.dtype)[graph]


def _check(edge_index: Tensor, graph: Tensor, channels: int) -> None:
    if channels < 1 or edge_index.ndim != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"expected channels >= 1 and edge_index (2, edge), got {channels} and {tuple(edge_index.shape)}")
    if len(graph) > 1 and bool((graph[1:] < graph[:-1]).any()):
        raise ValueError("the nodes of a graph must follow each other: graph must not decrease")


def _dense(edge_index: Tensor, graph: Tensor, num_graphs: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Graphs of one size at a time: their nodes, and their adjacency matrices (graph, node, node) without loops."""
    sizes = torch.bincount(graph, minlength=num_graphs)
    first = sizes.cumsum(0) - sizes
    size_of_node, size_of_edge = sizes[graph], sizes[graph[edge_index[0]]]
    for size in torch.unique(sizes[(sizes > 1) & (sizes <= EXACT)]).tolist():
        nodes = (size_of_node == size).nonzero().squeeze(1)
        source, target = edge_index[:, size_of_edge == size]
        number = torch.cumsum(sizes == size, 0) - 1  # of a graph among those of its size
        owner = graph[source]
        adjacency = torch.zeros(len(nodes) // size, size, size, dtype=torch.float64, device=graph.device)
        adjacency[number[owner], source - first[owner], target - first[owner]] = 1.0
        adjacency = torch.maximum(adjacency, adjacency.mT)
        adjacency.diagonal(dim1=1, dim2=2).zero_()
        yield nodes, adjacency


def _sparse(edge_index: Tensor, graph: Tensor, num_graphs: int) -> Iterator[tuple[Tensor, Any]]:
    """One larger graph at a time: its nodes and its adjacency matrix without loops."""
    sizes = torch.bincount(graph, minlength=num_graphs)
    for large in (sizes > EXACT).nonzero().flatten().tolist():
        sparse = require("scipy.sparse", "train")
        nodes = (graph == large).nonzero().squeeze(1)
        ends = edge_index[:, graph[edge_index[0]] == large]
        pairs = (ends[:, ends[0] != ends[1]] - nodes[0]).T.cpu().numpy()
        both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
        yield nodes, sparse.csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(len(nodes), len(nodes)))


def _eigenvectors(adjacency: Tensor, channels: int) -> Tensor:
    """Nontrivial eigenvectors ``(graph, node, channel)`` of graphs of one size."""
    count, size, _ = adjacency.shape
    degree = adjacency.sum(2)
    scale = degree.clamp(min=1).rsqrt()
    laplacian = torch.diag_embed((degree > 0).to(adjacency.dtype)) - scale[:, :, None] * adjacency * scale[:, None, :]
    values, vectors = torch.linalg.eigh(laplacian)
    wanted = (values < TRIVIAL).sum(1, keepdim=True) + torch.arange(channels, device=values.device)
    index = wanted.clamp(max=size - 1)[:, None, :].expand(count, size, channels)
    return torch.where((wanted < size)[:, None, :], vectors.gather(2, index), 0.0)


def _leading_vectors(matrix: Any, channels: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Eigenvectors of the largest component of a large graph, the constant one left out; zeros elsewhere."""
    linear, csgraph = require("scipy.sparse.linalg", "train"), require("scipy.sparse.csgraph", "train")
    label = csgraph.connected_components(matrix, directed=False)[1]
    inside = np.flatnonzero(label == np.bincount(label).argmax())
    part = matrix[inside][:, inside]
    found = np.zeros((matrix.shape[0], channels))
    wanted = min(channels + 1, len(inside) - 2)
    if wanted < 2:
        return found
    scale = require("scipy.sparse", "train").diags_array(np.maximum(part.sum(1), 1) ** -0.5)
    start = np.random.default_rng(seed).standard_normal(len(inside))
    values, vectors = linear.eigsh(scale @ part @ scale, k=wanted, which="LA", v0=start, tol=1e-3)
    found[inside, : wanted - 1] = vectors[:, np.argsort(-values)][:, 1:]
    return found


def _estimated_returns(matrix: Any, steps: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Hutchinson's estimate of the diagonals of the powers of a large walk."""
    scale = 1.0 / np.maximum(matrix.sum(1), 1)[:, None]
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (matrix.shape[0], PROBES))
    moved, columns = scale * (matrix @ signs), []
    for _ in range(steps):
        moved = scale * (matrix @ moved)
        columns.append((signs * moved).mean(1))
    return np.stack(columns, 1).clip(0.0, 1.0)
