"""What a file or folder looks like, seen in a moment and without the libraries that read it."""

from __future__ import annotations

import csv
import gzip
import json
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from anyorder.errors import InputError

_HEAD = 1 << 16
_WORDS_OF_JSON = ("incidences", "nodes", "links", "edges", "adjacency", "label", "class")


@dataclass(frozen=True)
class FileLook:
    """A path, the kind of file it is, and the names and first lines in it."""

    path: Path
    form: str
    """folder, table, lines, json, arrays, xml, or empty where it is none of these."""
    names: tuple[str, ...] = ()
    """Files of a folder, columns of a table, keys of a JSON file, arrays."""
    lines: tuple[tuple[str, ...], ...] = ()
    """The fields of the first lines of a text, the line of names aside."""

    def column(self, *known: str) -> str:
        """The first name that is one of these, whatever its case; empty where there is none."""
        return next((name for name in self.names if name.casefold() in known), "")


def look(path: Path) -> FileLook:
    """What can be seen of a path.

    >>> look(Path("/dev/null")).form
    ''
    """
    if path.is_dir():
        return FileLook(path, "folder", tuple(sorted(part.name for part in path.iterdir())))
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    with path.open("rb") as file:
        start = file.read(_HEAD)
    if start[:4] == b"PK\3\4":
        return FileLook(path, "arrays", _zipped(path))
    if start[:4] == b"PAR1":
        return FileLook(path, "arrays", _parquet(path))
    if path.suffix == ".safetensors":
        return FileLook(path, "arrays", _safetensors(start))
    return _text(path, _unzipped(start) if start[:2] == b"\x1f\x8b" else start)


def _text(path: Path, start: bytes) -> FileLook:
    if b"\0" in start or not start.strip():
        return FileLook(path, "")
    text = start.decode("utf-8-sig", errors="replace")
    if text.lstrip()[:1] in "{[":
        return FileLook(path, "json", tuple(word for word in _WORDS_OF_JSON if f'"{word}"' in text))
    if text.lstrip()[:1] == "<":
        return FileLook(path, "xml")
    if path.suffix == ".gml":
        return FileLook(path, "gml")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("#", "%"))]
    lines = lines[:-1] if len(start) == _HEAD and len(lines) > 1 else lines  # the last one may be cut
    mark = next((mark for mark in ("\t", ",", ";") if mark in lines[0]), None) if lines else None
    fields = tuple(_fields(line, mark) for line in lines[:200])
    if mark is not None and _has_names(fields):
        return FileLook(path, "table", fields[0], fields[1:])
    return FileLook(path, "lines", (), fields)


def _has_names(lines: tuple[tuple[str, ...], ...]) -> bool:
    """Whether lines are a table whose first line names its columns: no number, and nothing that stands below, too."""
    if len(lines) < 2 or len({len(line) for line in lines[:20]}) > 1 or any(map(is_number, lines[0])):
        return False
    return not any(name in {line[n] for line in lines[1:] if n < len(line)} for n, name in enumerate(lines[0]) if name)


def _fields(line: str, mark: str | None) -> tuple[str, ...]:
    """The fields of a line, between marks or, without one, spaces."""
    if mark is None:
        return tuple(line.split())
    try:
        return tuple(field.strip() for field in next(csv.reader([line], delimiter=mark)))
    except csv.Error:
        return (line,)


def _zipped(path: Path) -> tuple[str, ...]:
    try:
        with zipfile.ZipFile(path) as file:
            return tuple(name.removesuffix(".npy") for name in file.namelist())
    except zipfile.BadZipFile as error:
        raise InputError(f"{path} is not a whole NPZ file: {error}") from error


def _parquet(path: Path) -> tuple[str, ...]:
    from anyorder.extras import require

    parquet = require("pyarrow.parquet", "train")
    try:
        return tuple(map(str, parquet.read_schema(path).names))
    except Exception as error:
        raise InputError(f"{path} is not a whole Parquet file: {str(error).splitlines()[0]}") from error


def _safetensors(start: bytes) -> tuple[str, ...]:
    try:
        size = int.from_bytes(start[:8], "little")
        return tuple(name for name in json.loads(start[8 : 8 + size]) if name != "__metadata__")
    except (ValueError, AttributeError):
        return ()


def _unzipped(start: bytes) -> bytes:
    """The beginning of what was zipped, as far as the beginning of the file holds it."""
    try:
        return zlib.decompressobj(wbits=31).decompress(start, _HEAD)
    except (zlib.error, gzip.BadGzipFile):
        return b""


def is_number(field: str) -> bool:
    """Whether a field of a table is a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True
