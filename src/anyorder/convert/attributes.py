"""Attributes of nodes and edges as channels, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

Names = str | Sequence[str] | Mapping[str, int]
Attributes = Mapping[str, Any]


def read_attributes(
    records: Sequence[Attributes],
    names: Names,
    *,
    kind: str,
    labels: Sequence[object],
    dtype: torch.dtype | None = None,
) -> Tensor:
    """(record, channel): named attributes side by side, each a number or a list of numbers; a channel of ones for no name.

    >>> read_attributes([{"age": 3, "at": [1, 2]}], ("age", "at"), kind="node", labels=["a"]).tolist()
    [[3.0, 1.0, 2.0]]
    """
    dtype = torch.get_default_dtype() if dtype is None else dtype
    widths = _widths(names)
    if not widths:
        return torch.ones(len(records), 1, dtype=dtype)
    columns = [_column(records, name, width, kind, labels) for name, width in widths.items()]
    return torch.from_numpy(np.concatenate(columns, 1)).to(dtype)


def write_attributes(values: Tensor, names: Names, *, kind: str) -> list[dict[str, Any]]:
    """The inverse: a dictionary per row. A name takes one channel; ``{name: width}`` gives more; no name leaves values out.

    >>> write_attributes(torch.tensor([[3.0, 1.0, 2.0]]), {"age": 1, "at": 2}, kind="node")
    [{'age': 3.0, 'at': [1.0, 2.0]}]
    """
    widths = {name: 1 if width is None else width for name, width in _widths(names).items()}
    if not widths:
        return [{} for _ in range(len(values))]
    if sum(widths.values()) != values.shape[1]:
        raise ValueError(f"{kind} names must cover the {kind} channels: expected {values.shape[1]} channels, got {widths}")
    made: list[dict[str, Any]] = []
    for row in values.tolist():
        start, record = 0, {}
        for name, width in widths.items():
            record[name] = row[start] if width == 1 else row[start : start + width]
            start += width
        made.append(record)
    return made


def _widths(names: Names) -> dict[str, int | None]:
    """The width of each attribute, None where it is left to the data."""
    if isinstance(names, Mapping):
        return dict(names)
    listed = [names] if isinstance(names, str) else list(names)
    if any(not isinstance(name, str) for name in listed) or len(set(listed)) != len(listed):
        raise ValueError(f"attribute names must be distinct strings, got {listed}")
    return dict.fromkeys(listed)


def _column(
    records: Sequence[Attributes], name: str, width: int | None, kind: str, labels: Sequence[object]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    for label, record in zip(labels, records, strict=True):
        if name not in record:
            raise ValueError(f"{kind} {label!r} has no attribute {name!r}: it has {[*record]}")
    if not records:
        return np.zeros((0, 1 if width is None else width))
    listed = [value.tolist() if isinstance(value := record[name], Tensor) else value for record in records]
    rows = [_numbers(value, name, kind, label) for label, value in zip(labels, listed, strict=True)]
    width = len(rows[0]) if width is None else width
    for label, row in zip(labels, rows, strict=True):
        if len(row) != width:
            raise ValueError(f"attribute {name!r} must have one width: expected {width}, got {len(row)} at {kind} {label!r}")
    return np.stack(rows)


def _numbers(value: object, name: str, kind: str, label: object) -> np.ndarray[Any, np.dtype[np.float64]]:
    if isinstance(value, int) and abs(value) > 10**300:
        raise ValueError(f"attribute {name!r} is too large at {kind} {label!r}: it has {len(str(abs(value)))} digits")
    if isinstance(value, (float, int)):
        return np.array([value], dtype=np.float64)
    plain = isinstance(value, (Sequence, np.ndarray, np.generic)) and not isinstance(value, str)
    array = np.array(value, dtype=object) if plain else np.array(None)
    if not plain or array.ndim > 1 or not all(isinstance(x, (int, float, np.number, np.bool_)) for x in array.flat):
        raise TypeError(f"attribute {name!r} must be a number or a list of numbers, got {value!r} at {kind} {label!r}")
    if any(isinstance(x, int) and abs(x) > 10**300 for x in array.flat):
        raise ValueError(f"attribute {name!r} holds a number of more than 300 digits at {kind} {label!r}")
    return array.astype(np.float64).reshape(-1)
