"""Simple graphs as adjacency matrices, and how they are written in graph6."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from anyorder.errors import InputError

_HEADER = ">>graph6<<"
Adjacency = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph without loops: ``adjacency[u, v]`` says whether u and v are joined.

    >>> Graph.from_edges(3, [(0, 1), (1, 2)]).degrees.tolist()
    [1, 2, 1]
    """

    adjacency: Adjacency

    def __post_init__(self) -> None:
        matrix = self.adjacency
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.dtype != np.bool_:
            raise ValueError(f"adjacency must be a square matrix of bool, got {matrix.dtype} of shape {matrix.shape}")
        if matrix.diagonal().any() or (matrix != matrix.T).any():
            raise ValueError("adjacency must be symmetric and without loops")

    @classmethod
    def from_edges(cls, num_nodes: int, edges: list[tuple[int, int]]) -> Graph:
        matrix = np.zeros((num_nodes, num_nodes), dtype=np.bool_)
        for u, v in edges:
            matrix[u, v] = matrix[v, u] = True
        return cls(matrix)

    @property
    def num_nodes(self) -> int:
        return len(self.adjacency)

    @property
    def degrees(self) -> npt.NDArray[np.int64]:
        return self.adjacency.sum(1, dtype=np.int64)

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """(edges, 2): both directions of each edge."""
        return np.argwhere(self.adjacency)

    def relabel(self, permutation: npt.NDArray[np.int64]) -> Graph:
        """The same graph with node v called ``permutation[v]``."""
        if sorted(permutation.tolist()) != list(range(self.num_nodes)):
            raise ValueError(f"expected a permutation of {self.num_nodes} nodes, got {permutation.tolist()}")
        matrix = np.empty_like(self.adjacency)
        matrix[np.ix_(permutation, permutation)] = self.adjacency
        return Graph(matrix)


def parse_graph6(text: str | bytes) -> Graph:
    """The graph of a graph6 string; a damaged one is refused with what is wrong and where.

    >>> parse_graph6("Bw").adjacency.sum()
    np.int64(6)
    >>> parse_graph6("Dh")
    Traceback (most recent call last):
    ...
    anyorder.errors.InputError: graph6 string 'Dh': 5 nodes take 2 characters after the size, got 1
    """
    line = text.decode("latin-1") if isinstance(text, bytes) else str(text)
    body = line.strip().removeprefix(_HEADER)
    shown = repr(body if len(body) <= 40 else body[:37] + "...")
    if not body:
        raise InputError("graph6 string is empty")
    if body[0] in ":;&":
        raise InputError(f"string {shown} begins with {body[0]!r}, as sparse6 and digraph6 do: expected graph6")
    wrong = next((place for place, letter in enumerate(body) if not 63 <= ord(letter) <= 126), None)
    if wrong is not None:
        raise InputError(f"graph6 string {shown}: character {wrong + 1}, {body[wrong]!r}, is none of '?' to '~'")
    values = np.frombuffer(body.encode("ascii"), dtype=np.uint8) - 63
    num_nodes, start = _size(values, shown)
    pairs = num_nodes * (num_nodes - 1) // 2
    rest = values[start:]
    if len(rest) != -(-pairs // 6):
        raise InputError(
            f"graph6 string {shown}: {num_nodes} nodes take {-(-pairs // 6)} characters after the size, got {len(rest)}"
        )
    bits = np.unpackbits(rest[:, None], axis=1)[:, 2:].reshape(-1).astype(np.bool_)
    if bits[pairs:].any():
        raise InputError(f"graph6 string {shown}: the last character has bits beyond the {pairs} pairs of nodes")
    matrix = np.zeros((num_nodes, num_nodes), dtype=np.bool_)
    columns, rows = np.tril_indices(num_nodes, -1)  # pairs by their larger node, as graph6 lists them
    matrix[rows, columns] = bits[:pairs]
    return Graph(matrix | matrix.T)


def _size(values: npt.NDArray[np.uint8], shown: str) -> tuple[int, int]:
    """The number of nodes, and where the pairs begin: 1, 4 or 8 characters give the size."""
    marks = 0 if values[0] != 63 else 1 if len(values) < 2 or values[1] != 63 else 2
    digits = (1, 3, 6)[marks]
    if len(values) < marks + digits:
        raise InputError(f"graph6 string {shown} ends within its size")
    size = 0
    for value in values[marks : marks + digits].tolist():
        size = size * 64 + value
    return size, marks + digits
