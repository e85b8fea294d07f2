"""Products with a fixed sparse matrix: words of documents, means over hyperedges, sums over neighbours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from anyorder.layouts.segments import Segments
from anyorder.layouts.transfer import Transferable


@dataclass(frozen=True, eq=False)
class SparseMatrix(Transferable):
    """A matrix by its entries, sorted by row and by column, so that products and their gradients read memory once.

    >>> matrix = SparseMatrix.build(torch.tensor([0, 2]), torch.tensor([1, 0]), torch.tensor([2.0, 3.0]), (3, 2))
    >>> matrix(torch.tensor([[1.0], [10.0]])).flatten().tolist()
    [20.0, 0.0, 3.0]
    """

    rows: Tensor
    columns: Tensor
    values: Tensor
    row_pointer: Tensor
    column_pointer: Tensor
    by_column: Tensor
    """Entries in the order of their columns; they are stored in the order of their rows."""

    @classmethod
    def build(cls, rows: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> SparseMatrix:
        """From the places and values of the entries; values of one place are added up."""
        if not rows.shape == columns.shape == values.shape or rows.ndim != 1:
            got = f"{tuple(rows.shape)}, {tuple(columns.shape)} and {tuple(values.shape)}"
            raise ValueError(f"rows, columns and values must be three lists of one length, got {got}")
        for name, places, bound in (("rows", rows, shape[0]), ("columns", columns, shape[1])):
            if len(places) and not (int(places.min()) >= 0 and int(places.max()) < bound):
                raise ValueError(f"{name} must lie in 0..{bound - 1}, got {int(places.min())} to {int(places.max())}")
        first = Segments.build(rows, shape[0])
        rows, columns, values = rows[first.rows], columns[first.rows], values[first.rows]
        second = Segments.build(columns, shape[1])
        return cls(rows, columns, values, first.pointer, second.pointer, second.rows)

    @classmethod
    def of_dense(cls, dense: Tensor) -> SparseMatrix:
        """The entries of a dense matrix that are not zero."""
        rows, columns = dense.nonzero().unbind(1)
        return cls.build(rows, columns, dense[rows, columns], (dense.shape[0], dense.shape[1]))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.row_pointer) - 1, len(self.column_pointer) - 1

    def dropped(self, share: float, *, training: bool = True) -> SparseMatrix:
        """The matrix after dropout of its entries."""
        return replace(self, values=functional.dropout(self.values, share, training)) if training and share else self

    def __len__(self) -> int:
        return self.shape[0]

    def __call__(self, dense: Tensor) -> Tensor:
        """The product with a dense matrix (column, channel), which has a gradient; the entries have none."""
        if dense.ndim != 2 or len(dense) != self.shape[1]:
            raise ValueError(f"expected a matrix of {self.shape[1]} rows, got {tuple(dense.shape)}")
        product: Tensor = _Product.apply(dense, self)
        return product

    def __matmul__(self, dense: Tensor) -> Tensor:
        return self(dense)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        return _sums(dense, matrix.columns, matrix.row_pointer, matrix.values)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        m: SparseMatrix = ctx.matrix
        return _sums(grads[0], m.rows[m.by_column], m.column_pointer, m.values[m.by_column]), None


def _sums(dense: Tensor, reads: Tensor, pointer: Tensor, values: Tensor) -> Tensor:
    """For each group of entries, the sum of the rows that they read times their values."""
    if not len(reads):
        return dense.new_zeros(len(pointer) - 1, dense.shape[1])
    weights, rows = values.to(dense.dtype), dense.contiguous()
    sums: Tensor = functional.embedding_bag(
        reads, rows, pointer, mode="sum", per_sample_weights=weights, include_last_offset=True
    )
    return sums
