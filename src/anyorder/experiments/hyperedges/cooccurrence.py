"""Sparse node features from which nodes occur together in training hyperedges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anyorder.experiments.hyperedges.data import TypedHyperedges
from anyorder.experiments.hyperedges.tuples import Ints
from anyorder.extras import require


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A sparse matrix by rows: row i holds ``values[starts[i]:starts[i + 1]]`` at these ``indices``.

    ``nodes[c]`` is the global id of the node that column c counts.

    >>> rows = SparseRows(np.array([0, 1, 3]), np.array([1, 0, 1]), np.array([1.0, 0.5, 0.25]), np.array([7, 9]))
    >>> rows.dense().tolist()
    [[0.0, 1.0], [0.5, 0.25]]
    """

    starts: Ints
    indices: Ints
    values: NDArray[np.float64]
    nodes: Ints

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.starts) - 1, len(self.nodes)

    @property
    def rows(self) -> Ints:
        """The row of every nonzero."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.starts))

    def dense(self) -> NDArray[np.float64]:
        """The matrix with its zeros."""
        matrix = np.zeros(self.shape)
        matrix[self.rows, self.indices] = self.values
        return matrix

    def to_scipy(self) -> Any:
        """The matrix as ``scipy.sparse.csr_array``."""
        return require("scipy.sparse", "hypergraphs").csr_array((self.values, self.indices, self.starts), self.shape)

    def to_torch(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """The matrix as a coalesced sparse COO tensor (``.to_sparse_csr()`` where a CSR tensor is wanted)."""
        index = torch.from_numpy(np.stack([self.rows, self.indices]))
        values = torch.tensor(self.values, dtype=dtype)
        return torch.sparse_coo_tensor(index, values, self.shape, check_invariants=False).coalesce()


def clique_counts(data: TypedHyperedges, position: int) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Rows (local ids of the type), columns (global ids) and weights of the pairs in training tuples, rows sorted."""
    others = [column for column in range(data.order) if column != position]
    local = data.train[:, position] - data.offsets[position]
    codes = (local[:, None] * data.num_nodes + data.train[:, others]).reshape(-1)
    unique, inverse = np.unique(codes, return_inverse=True)
    weights = np.repeat(data.train_weights, len(others))
    counts = np.bincount(inverse.reshape(-1), weights, minlength=len(unique)).astype(np.float64)
    return unique // data.num_nodes, unique % data.num_nodes, counts


def cooccurrence_features(data: TypedHyperedges) -> tuple[SparseRows, ...]:
    """One matrix per type: counts of training tuples shared with every node, over the maximum of their column.

    A node does not count itself, and columns that are empty for the type (among them its own nodes) are left out.

    >>> data = TypedHyperedges(sizes=(2, 2), train=np.array([[0, 2], [0, 2], [1, 2]]), test=np.zeros((0, 2)))
    >>> [matrix.dense().tolist() for matrix in cooccurrence_features(data)]
    [[[1.0], [0.5]], [[1.0, 1.0], [0.0, 0.0]]]
    """
    return tuple(_scaled_rows(data, position) for position in range(data.order))


def _scaled_rows(data: TypedHyperedges, position: int) -> SparseRows:
    rows, columns, counts = clique_counts(data, position)
    nodes, indices = np.unique(columns, return_inverse=True)
    indices = indices.reshape(-1).astype(np.int64)
    largest = np.zeros(len(nodes))
    np.maximum.at(largest, indices, counts)
    starts = np.searchsorted(rows, np.arange(data.sizes[position] + 1)).astype(np.int64)
    return SparseRows(starts, indices, counts / largest[indices], nodes)
