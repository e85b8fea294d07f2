"""Products with a fixed sparse matrix and their gradients, in work and memory proportional to its nonzeros."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional


@dataclass(frozen=True, eq=False)
class Pattern:
    """The places of the nonzeros of a matrix, by rows, and the same sorted by columns (``order`` sorts them)."""

    starts: Tensor
    columns: Tensor
    order: Tensor
    column_starts: Tensor
    rows: Tensor

    @classmethod
    def of(cls, starts: Tensor, columns: Tensor, width: int) -> Pattern:
        """The pattern with ``columns[starts[i]:starts[i + 1]]`` in row i, of ``width`` columns."""
        rows = torch.repeat_interleave(torch.arange(len(starts) - 1, device=starts.device), starts.diff())
        order = torch.argsort(columns, stable=True)
        column_starts = functional.pad(torch.bincount(columns, minlength=width).cumsum(0), (1, 0))
        return cls(starts, columns, order, column_starts, rows)

    def times(self, values: Tensor, dense: Tensor) -> Tensor:
        """X D, where X holds ``values`` at the pattern."""
        return _bags(self.columns, values, self.starts, dense)

    def transposed_times(self, values: Tensor, dense: Tensor) -> Tensor:
        """X^T D, where X holds ``values`` at the pattern."""
        return _bags(self.rows[self.order], values[self.order], self.column_starts, dense)

    def dots(self, left: Tensor, right: Tensor) -> Tensor:
        """The entries of L R^T at the pattern."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            zeros = torch.sparse_csr_tensor(
                self.starts,
                self.columns,
                torch.zeros(len(self.columns), dtype=left.dtype, device=left.device),
                size=(len(left), len(right)),
                check_invariants=False,
            )
        return torch.sparse.sampled_addmm(zeros, left, right.T, beta=0.0).values()


def _bags(index: Tensor, values: Tensor, starts: Tensor, dense: Tensor) -> Tensor:
    return functional.embedding_bag(index, dense, starts, mode="sum", per_sample_weights=values, include_last_offset=True)


class _Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(values)
        return pattern.times(values, dense)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor, None]:
        (values,) = ctx.saved_tensors
        return None, ctx.pattern.transposed_times(values, gradient.contiguous()), None


class _Dots(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(left, right)
        return pattern.dots(left, right)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        left, right = ctx.saved_tensors
        gradient = gradient.contiguous()
        return ctx.pattern.times(gradient, right), ctx.pattern.transposed_times(gradient, left), None


def sparse_times_dense(values: Tensor, dense: Tensor, pattern: Pattern) -> Tensor:
    """X D for constant ``values`` of X, with the gradient for D.

    >>> pattern = Pattern.of(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1]), width=2)
    >>> sparse_times_dense(torch.tensor([1.0, 2.0, 3.0]), torch.eye(2), pattern).tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    result: Tensor = _Times.apply(values, dense, pattern)
    return result


def dots_at(left: Tensor, right: Tensor, pattern: Pattern) -> Tensor:
    """The entries of L R^T at the pattern, with the gradients for L and R.

    >>> pattern = Pattern.of(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1]), width=2)
    >>> dots_at(torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [5.0]]), pattern).tolist()
    [5.0, 6.0, 10.0]
    """
    result: Tensor = _Dots.apply(left, right, pattern)
    return result
