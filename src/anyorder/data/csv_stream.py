"""CSV files as a stream of chunks, with errors that name the line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from anyorder.extras import require

CHUNK_ROWS = 2**16


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a file, column by column: names, weights, and the line that each row ends on."""

    names: tuple[list[str], ...]
    weights: NDArray[np.float64]
    lines: list[int]
    rows: list[list[str]]


def stream_table(
    path: str | Path,
    columns: Sequence[str],
    *,
    weight: str | None = None,
    header: bool = True,
    delimiter: str = ",",
    progress: bool = False,
) -> Iterator[Chunk]:
    """Chunks of the named columns of a UTF-8 CSV file.

    Without a header the columns are the first fields of each line, and the weight is the field after them. Blank lines
    are skipped and names are stripped of surrounding spaces. A missing value, a line with too few or too many fields,
    a weight that is no positive number and bytes that are not UTF-8 are refused with their line number.
    """
    _check_columns(columns, weight)
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with path.open("rb") as file, _progress(file, path, progress) as source:
        reader = csv.reader(_lines(source, path), delimiter=delimiter, strict=True)
        rows = _numbered(reader, path)
        layout = _Layout.of(path, rows, columns, weight) if header else _Layout.first(columns, weight)
        batch: list[tuple[int, list[str]]] = []
        for numbered in rows:
            batch.append(numbered)
            if len(batch) == CHUNK_ROWS:
                yield layout.chunk(path, batch)
                batch = []
        if batch:
            yield layout.chunk(path, batch)


def _check_columns(columns: Sequence[str], weight: str | None) -> None:
    if len(columns) < 2:
        raise ValueError(f"a hyperedge needs at least two columns, got {list(columns)}")
    if len({*columns, weight}) != len(columns) + 1:
        raise ValueError(f"columns and weight must be different, got {list(columns)} and {weight!r}")


@dataclass(frozen=True)
class _Layout:
    """Where in a line the columns and the weight stand, and how many fields a line has."""

    columns: tuple[str, ...]
    places: tuple[int, ...]
    weight: int | None
    width: int

    @classmethod
    def first(cls, columns: Sequence[str], weight: str | None) -> _Layout:
        count = len(columns)
        places = tuple(range(count))
        return cls(tuple(columns), places, None if weight is None else count, count + (weight is not None))

    @classmethod
    def of(
        cls, path: Path, rows: Iterator[tuple[int, list[str]]], columns: Sequence[str], weight: str | None
    ) -> _Layout:
        line, names = next(rows, (1, []))
        names = [name.strip() for name in names]
        wanted = [*columns] if weight is None else [*columns, weight]
        absent = [name for name in wanted if names.count(name) != 1]
        if absent:
            raise ValueError(
                f"{path}, line {line}: the header must name {', '.join(map(repr, absent))} exactly once, got {names}; "
                "say so if the file has no header"
            )
        places = tuple(names.index(name) for name in columns)
        return cls(tuple(columns), places, None if weight is None else names.index(weight), len(names))

    def chunk(self, path: Path, batch: list[tuple[int, list[str]]]) -> Chunk:
        lines = [line for line, _ in batch]
        rows = [row for _, row in batch]
        if set(map(len, rows)) != {self.width}:
            line, row = next((line, row) for line, row in batch if len(row) != self.width)
            raise ValueError(f"{path}, line {line}: expected {self.width} fields, got {len(row)}: {row}")
        fields = list(zip(*rows, strict=True))
        names = tuple([name.strip() for name in fields[place]] for place in self.places)
        for column, found in zip(self.columns, names, strict=True):
            if "" in found:
                raise ValueError(f"{path}, line {lines[found.index('')]}: the value of column {column!r} is missing")
        weights = np.ones(len(rows)) if self.weight is None else _weights(path, lines, fields[self.weight])
        return Chunk(names, weights, lines, rows)


def _weights(path: Path, lines: list[int], fields: Sequence[str]) -> NDArray[np.float64]:
    try:
        weights = np.fromiter(map(float, fields), np.float64, len(fields))
        if bool(((weights > 0) & (weights < np.inf)).all()):
            return weights
    except ValueError:
        pass
    for line, field in zip(lines, fields, strict=True):
        try:
            valid = 0 < float(field) < np.inf
        except ValueError:
            valid = False
        if not valid:
            raise ValueError(f"{path}, line {line}: a weight must be a positive number, got {field!r}")
    raise AssertionError("unreachable: one of the weights is invalid")


def _lines(source: BinaryIO, path: Path) -> Iterator[str]:
    """Lines of text; the error for bytes that are not UTF-8 names the line."""
    for number, raw in enumerate(source, start=1):
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            bad = raw[error.start : error.start + 1].hex()
            raise ValueError(
                f"{path}, line {number}: byte 0x{bad} at column {error.start + 1} is not UTF-8; "
                "save the file in UTF-8 and try again"
            ) from None
        yield line.removeprefix("\ufeff") if number == 1 else line


def _numbered(reader: Any, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, with the line they end on."""
    try:
        for row in reader:
            if row and (len(row) > 1 or row[0].strip()):
                yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: not a CSV line: {error}") from error


@contextmanager
def _progress(file: BinaryIO, path: Path, shown: bool) -> Iterator[BinaryIO]:
    """The file itself, or with ``shown`` the file behind a progress bar on the bytes read."""
    if not shown:
        yield file
        return
    bar = require("rich.progress", "train")
    with bar.wrap_file(file, total=path.stat().st_size, description=f"Reading {path.name}") as wrapped:
        yield wrapped
