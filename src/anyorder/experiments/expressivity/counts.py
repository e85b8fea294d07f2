"""How often small patterns occur in a graph: exact counts, by sums over matrices and by growing paths and cliques."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from anyorder.experiments.expressivity.graphs import Graph

Nodes = npt.NDArray[np.int64]


def cycles(graph: Graph, length: int) -> int:
    """Cycles of so many nodes, by growing paths from their lowest node: each closes in two directions.

    >>> cycles(Graph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)]), 4)
    1
    """
    if length < 3:
        raise ValueError(f"a cycle has at least 3 nodes, got {length}")
    paths = np.arange(graph.num_nodes, dtype=np.int64)[:, None]
    for _ in range(length - 1):
        paths = _grow(graph, paths, lowest_first=True)
    return int(graph.adjacency[paths[:, -1], paths[:, 0]].sum()) // 2


def _grow(graph: Graph, paths: Nodes, *, lowest_first: bool) -> Nodes:
    """All paths with one more node at the end; with ``lowest_first``, none below the first."""
    rows, added = np.nonzero(graph.adjacency[paths[:, -1]])
    fresh = (paths[rows] != added[:, None]).all(1)
    if lowest_first:
        fresh &= added > paths[rows, 0]
    return np.concatenate([paths[rows[fresh]], added[fresh, None]], 1)


def cliques(graph: Graph, size: int) -> int:
    """Sets of so many nodes that are all joined."""
    found = np.arange(graph.num_nodes, dtype=np.int64)[:, None]
    for _ in range(size - 1):
        common = graph.adjacency[found].all(1)  # nodes that are joined to all
        rows, added = np.nonzero(common)
        later = added > found[rows, -1]
        found = np.concatenate([found[rows[later]], added[later, None]], 1)
    return len(found)


def tailed_triangles(graph: Graph) -> int:
    """Triangles with one more edge at one of their nodes."""
    at = _triangles_at(graph)
    return int((at * (graph.degrees - 2)).sum())


def chordal_cycles(graph: Graph) -> int:
    """Two triangles on one edge: 4-cycles with a chord."""
    matrix = graph.adjacency.astype(np.int64)
    common = (matrix @ matrix) * matrix
    return int((common * (common - 1) // 2).sum()) // 2


def paths_of_four(graph: Graph) -> int:
    """Paths of 4 nodes: walks over a middle edge, without those that close to a triangle."""
    ends = graph.degrees - 1
    walks = int((graph.adjacency * ends[:, None] * ends[None, :]).sum()) // 2
    return walks - int(_triangles_at(graph).sum())


def _triangles_at(graph: Graph) -> Nodes:
    matrix = graph.adjacency.astype(np.int64)
    closed: Nodes = ((matrix @ matrix) * matrix).sum(1) // 2
    return closed


COUNTS: dict[str, tuple[Callable[[Graph], int], int]] = {
    "triangles": (lambda graph: cycles(graph, 3), 3),
    "tailed triangles": (tailed_triangles, 3),
    "chordal cycles": (chordal_cycles, 3),
    "4-cycles": (lambda graph: cycles(graph, 4), 3),
    "5-cycles": (lambda graph: cycles(graph, 5), 3),
    "6-cycles": (lambda graph: cycles(graph, 6), 3),
    "4-cliques": (lambda graph: cliques(graph, 4), 4),
    "4-paths": (paths_of_four, 3),
}
"""Each pattern with its count and the least order that can count it.

k-WL determines how often a pattern occurs when each of its images under identifying nodes has a treewidth below k
(Neuen 2024): 2 for all but the 4-clique, which has 3.
"""
