"""How often each node is in small patterns: exact counts, by sums over matrices and by growing paths and cliques."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from anyorder.experiments.expressivity.graphs import Graph

Nodes = npt.NDArray[np.int64]


def cycles(graph: Graph, length: int) -> Nodes:
    """For each node, the cycles of so many nodes that it is in; each is found from its lowest node, in two directions.

    >>> cycles(Graph.from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]), 4).tolist()
    [1, 1, 1, 1, 0]
    """
    if length < 3:
        raise ValueError(f"a cycle has at least 3 nodes, got {length}")
    found = paths(graph, length, lowest_first=True)
    return _each(graph, found[graph.adjacency[found[:, -1], found[:, 0]]]) // 2


def paths(graph: Graph, length: int, *, lowest_first: bool = False) -> Nodes:
    """All paths of so many nodes, once from either end (path, node); with ``lowest_first``, no node is below the first."""
    found = np.arange(graph.num_nodes, dtype=np.int64)[:, None]
    for _ in range(length - 1):
        rows, added = np.nonzero(graph.adjacency[found[:, -1]])
        fresh = (found[rows] != added[:, None]).all(1)
        if lowest_first:
            fresh &= added > found[rows, 0]
        found = np.concatenate([found[rows[fresh]], added[fresh, None]], 1)
    return found


def cliques(graph: Graph, size: int) -> Nodes:
    """For each node, the sets of so many nodes that are all joined and that it is in."""
    found = np.arange(graph.num_nodes, dtype=np.int64)[:, None]
    for _ in range(size - 1):
        common = graph.adjacency[found].all(1)  # nodes that are joined to all
        rows, added = np.nonzero(common)
        later = added > found[rows, -1]
        found = np.concatenate([found[rows[later]], added[later, None]], 1)
    return _each(graph, found)


def tailed_triangles(graph: Graph) -> Nodes:
    """For each node, the triangles with one more edge that it is in: at the tail's joint, beside it, at the tail's end."""
    matrix, tails = graph.adjacency.astype(np.int64), graph.degrees - 2
    both = _triangles_on(graph)
    at = both.sum(1) // 2
    made: Nodes = at * tails + both @ tails + (matrix @ at - both.sum(1))
    return made


def chordal_cycles(graph: Graph) -> Nodes:
    """For each node, the pairs of triangles on one edge that it is in: on the edge, or opposite to it."""
    matrix, both = graph.adjacency.astype(np.int64), _triangles_on(graph)
    on = (both * (both - 1) // 2).sum(1)
    others = matrix * (both - 1)  # further triangles on the edge that is opposite to a node of one
    opposite = np.einsum("va,ab,vb->v", matrix, others, matrix) // 2
    made: Nodes = on + opposite
    return made


def paths_of_four(graph: Graph) -> Nodes:
    """For each node, the paths of 4 nodes that it is in."""
    return _each(graph, paths(graph, 4)) // 2


def _triangles_on(graph: Graph) -> Nodes:
    """(node, node): the triangles that an edge is in, 0 where there is none."""
    matrix = graph.adjacency.astype(np.int64)
    made: Nodes = (matrix @ matrix) * matrix
    return made


def _each(graph: Graph, found: Nodes) -> Nodes:
    """In how many rows each node is."""
    return np.bincount(found.reshape(-1), minlength=graph.num_nodes).astype(np.int64)


COUNTS: dict[str, tuple[Callable[[Graph], Nodes], int]] = {
    "triangles": (lambda graph: cycles(graph, 3), 3),
    "tailed triangles": (tailed_triangles, 3),
    "chordal cycles": (chordal_cycles, 3),
    "4-cycles": (lambda graph: cycles(graph, 4), 3),
    "5-cycles": (lambda graph: cycles(graph, 5), 3),
    "6-cycles": (lambda graph: cycles(graph, 6), 3),
    "4-cliques": (lambda graph: cliques(graph, 4), 4),
    "4-paths": (paths_of_four, 3),
}
"""Each pattern with its counts by node and the least order that can count it.

k-WL determines how often a pattern occurs when each of its images under identifying nodes has a treewidth below k
(Neuen 2024): 2 for all but the 4-clique, which has 3.
"""
