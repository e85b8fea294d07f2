"""Features of nodes or edges as rows of one width: numbers by a linear layer, categories by embeddings that are added."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

Columns = int | Sequence[int]
"""The width of numbers, or how many categories each column has."""


class ColumnEncoder(nn.Module):
    """Rows of ``channels`` from numbers (row, width), or from categories (row, column) of int64.

    >>> ColumnEncoder((5, 2), 8, "x")(torch.tensor([[4, 0], [1, 1]])).shape
    torch.Size([2, 8])

    Args:
        columns: the width of numbers, or how many categories each column has.
        channels: width of the rows.
        name: what errors call the input.
    """

    def __init__(self, columns: Columns, channels: int, name: str) -> None:
        super().__init__()
        self.name, self.columns = name, columns if isinstance(columns, int) else tuple(columns)
        sizes = (columns,) if isinstance(columns, int) else self.columns
        if not sizes or any(not isinstance(size, int) or size < 1 for size in sizes):  # type: ignore[union-attr]
            raise ValueError(f"{name} must have a positive width, or at least one column of categories, got {columns!r}")
        if isinstance(self.columns, int):
            self.linear: nn.Module | None = nn.Linear(self.columns, channels)
            return
        self.linear = None
        first = torch.tensor(self.columns).cumsum(0) - torch.tensor(self.columns)
        self.register_buffer("first", first, persistent=False)
        self.embed = nn.EmbeddingBag(sum(self.columns), channels, mode="sum")

    first: Tensor

    @property
    def wanted(self) -> str:
        """The input in words."""
        if isinstance(self.columns, int):
            return f"shape (rows, {self.columns})"
        return f"{len(self.columns)} columns of categories {self.columns}"

    def forward(self, values: Tensor) -> Tensor:
        width = self.columns if isinstance(self.columns, int) else len(self.columns)
        if values.ndim != 2 or values.shape[1] != width:
            raise ValueError(f"{self.name} must have {self.wanted}, got shape {tuple(values.shape)}")
        if self.linear is not None:
            if not values.is_floating_point():
                raise TypeError(f"{self.name} must be floating, got {values.dtype}: for categories give how many each has")
            made: Tensor = self.linear(values)
            return made
        if values.is_floating_point():
            raise TypeError(f"{self.name} must hold categories of int64, got {values.dtype}")
        return self.embed(values + self.first)
