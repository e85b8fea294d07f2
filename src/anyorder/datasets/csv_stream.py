"""CSV files as a stream of chunks, with errors that name the line."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from anyorder.errors import InputError
from anyorder.extras import require

CHUNK_ROWS = 2**12  # small enough to stay in the cache, and cheap for the garbage collector


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a file, column by column: names, weights, and the line that each row ends on."""

    names: tuple[list[str], ...]
    weights: NDArray[np.float64]
    lines: Sequence[int]
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
    with _bytes(path, progress) as source:
        layout = None if header else _Layout.first(columns, weight)
        for lines, rows in _chunks(source, path, delimiter):
            if layout is None:
                layout = _Layout.of(path, lines[0], rows[0], columns, weight)
                lines, rows = lines[1:], rows[1:]
            if rows:
                yield layout.chunk(path, lines, rows)


def read_rows(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The rows of a UTF-8 CSV file that are not blank, with the line that each ends on."""
    with _bytes(path) as source:
        for lines, rows in _chunks(source, path, delimiter):
            yield from zip(lines, rows, strict=True)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 text file that are not empty, without spaces around them, by number."""
    with _bytes(path) as source:
        _skip_mark(source)
        for number, line in enumerate(source, 1):
            try:
                text = line.decode().strip()
            except UnicodeDecodeError as error:
                raise _not_utf8(path, number, error) from None
            if text:
                yield number, text


def _check_columns(columns: Sequence[str], weight: str | None) -> None:
    if len(columns) < 2:
        raise InputError(f"a hyperedge needs at least two columns, got {list(columns)}")
    if len({*columns, weight}) != len(columns) + 1:
        raise InputError(f"columns and weight must be different, got {list(columns)} and {weight!r}")


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
    def of(cls, path: Path, line: int, row: list[str], columns: Sequence[str], weight: str | None) -> _Layout:
        names = [name.strip() for name in row]
        wanted = [*columns] if weight is None else [*columns, weight]
        absent = [name for name in wanted if names.count(name) != 1]
        if absent:
            raise InputError(
                f"{path}, line {line}: the header must name {', '.join(map(repr, absent))} exactly once, got {names}; "
                "say so if the file has no header"
            )
        places = tuple(names.index(name) for name in columns)
        return cls(tuple(columns), places, None if weight is None else names.index(weight), len(names))

    def chunk(self, path: Path, lines: Sequence[int], rows: list[list[str]]) -> Chunk:
        if set(map(len, rows)) != {self.width}:
            line, row = next((line, row) for line, row in zip(lines, rows, strict=True) if len(row) != self.width)
            raise InputError(f"{path}, line {line}: expected {self.width} fields, got {len(row)}: {row}")
        fields = list(zip(*rows, strict=True))
        names = tuple([name.strip() for name in fields[place]] for place in self.places)
        for column, found in zip(self.columns, names, strict=True):
            if "" in found:
                raise InputError(f"{path}, line {lines[found.index('')]}: the value of column {column!r} is missing")
        weights = np.ones(len(rows)) if self.weight is None else _weights(path, lines, fields[self.weight])
        return Chunk(names, weights, lines, rows)


def _weights(path: Path, lines: Sequence[int], fields: Sequence[str]) -> NDArray[np.float64]:
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
            raise InputError(f"{path}, line {line}: a weight must be a positive number, got {field!r}")
    raise AssertionError("unreachable: one of the weights is invalid")


def _chunks(source: BinaryIO, path: Path, delimiter: str) -> Iterator[tuple[Sequence[int], list[list[str]]]]:
    """Rows that are not blank, with the line that each ends on."""
    _skip_mark(source)
    reader = csv.reader(map(bytes.decode, source), delimiter=delimiter, strict=True)
    while True:
        before = reader.line_num
        try:
            rows = list(islice(reader, CHUNK_ROWS))
        except UnicodeDecodeError as error:
            raise _not_utf8(path, reader.line_num + 1, error) from None
        except csv.Error as error:
            raise InputError(f"{path}, line {reader.line_num}: not a CSV line: {error}") from error
        if not rows:
            return
        lines: Sequence[int] = range(before + 1, reader.line_num + 1)
        if len(lines) != len(rows):  # quoted values with line breaks
            lines = [before + n for n in accumulate(1 + sum(field.count("\n") for field in row) for row in rows)]
        if min(map(len, rows)) < 2:
            kept = [(line, row) for line, row in zip(lines, rows, strict=True) if len(row) > 1 or "".join(row).strip()]
            lines, rows = [line for line, _ in kept], [row for _, row in kept]
        if rows:
            yield lines, rows


def _skip_mark(source: BinaryIO) -> None:
    if source.read(3) != b"\xef\xbb\xbf":  # the mark that some editors put before UTF-8
        source.seek(0)


def _not_utf8(path: Path, line: int, error: UnicodeDecodeError) -> InputError:
    byte = f"byte 0x{error.object[error.start]:02x} at column {error.start + 1}"
    return InputError(f"{path}, line {line}: {byte} is not UTF-8; save the file in UTF-8 and try again")


@contextmanager
def _bytes(path: Path, progress: bool = False) -> Iterator[BinaryIO]:
    """What a file holds, unpacked if its name ends in ``.gz``, with ``progress`` behind a bar on the bytes read."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file")
    with path.open("rb") as file, ExitStack() as stack:
        source: Any = file
        if progress:
            bar = require("rich.progress", "train")
            wrapped = bar.wrap_file(file, total=path.stat().st_size, description=f"Reading {path.name}")
            source = stack.enter_context(wrapped)
        if path.suffix.lower() == ".gz":
            source = stack.enter_context(gzip.open(source))
        try:
            yield source
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{path} is not a whole gzip file: {error}") from error
