"""Are the files of a dataset there and unharmed: sizes and SHA-256 sums, as registered or as recorded."""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, cast

from anyorder.datasets.entries import DataFile
from anyorder.datasets.registry import Folder, dataset, folder
from anyorder.errors import InputError, reading
from anyorder.files import write_bytes

SUMS = "SHA256SUMS"
_SUM = re.compile(r"([0-9a-fA-F]{64})\s+\*?(\S.*?)\s*")
State = Literal["ok", "unverified", "missing", "wrong size", "wrong checksum", "unreadable"]


@dataclass(frozen=True)
class FileReport:
    """What became of one file; ``unverified`` means present with no checksum known anywhere."""

    path: str
    state: State
    detail: str = ""

    @property
    def good(self) -> bool:
        return self.state in ("ok", "unverified")

    @property
    def wrong(self) -> bool:
        """There, but not what it should be."""
        return not self.good and self.state != "missing"


def check(name: str, *, data_dir: Folder = None) -> tuple[FileReport, ...]:
    """A report for each file of a dataset; none for a dataset that is generated."""
    home = folder(name, data_dir=data_dir)
    sums = recorded(home)
    return tuple(check_file(file, home / file.path, sums.get(file.path)) for file in dataset(name).files)


def check_file(file: DataFile, path: Path, sum_recorded: str | None = None) -> FileReport:
    """Compare one stored file with its entry, or with the checksum recorded when it was downloaded."""
    if not path.is_file():
        return FileReport(file.path, "missing", f"expected at {path}")
    try:
        size, digest = measure(path, content=file.content)
    except (OSError, EOFError, zlib.error) as error:
        return FileReport(file.path, "unreadable", f"{type(error).__name__}: {error}")
    if file.size is not None and size != file.size:
        return FileReport(file.path, "wrong size", f"expected {file.size:,} bytes, got {size:,}")
    expected = file.sha256 or sum_recorded
    if expected is None:
        return FileReport(file.path, "unverified", f"{size:,} bytes, SHA-256 {digest}; no checksum is known for it")
    if digest != expected:
        where = "the registry" if file.sha256 else SUMS
        return FileReport(file.path, "wrong checksum", f"{where} has SHA-256 {expected}, the file {digest}")
    return FileReport(file.path, "ok", f"{size:,} bytes")


def measure(path: Path, *, content: bool = False) -> tuple[int, str]:
    """Size and SHA-256 of a file, or of what a gzip file holds."""
    digest, size = hashlib.sha256(), 0
    opened = cast("BinaryIO", gzip.GzipFile(path, "rb")) if content else path.open("rb")
    with opened as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
            size += len(chunk)
    return size, digest.hexdigest()


def recorded(home: Path) -> dict[str, str]:
    """The checksums written when files of unknown checksum were downloaded or made (`sha256sum -c` reads them too)."""
    path = home / SUMS
    if not path.is_file():
        return {}
    with reading(path, "a list of checksums in UTF-8"):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        entry = _SUM.fullmatch(line)
        if entry is None:
            raise InputError(f"{path}, line {number}: expected a SHA-256 and the name of a file, got {line[:80]!r}")
        found[entry[2]] = entry[1].lower()
    return found


def record(home: Path, sums: dict[str, str]) -> None:
    """Add checksums to the record of a dataset's folder, replacing the file in one step."""
    merged = {**recorded(home), **sums}
    write_bytes(home / SUMS, "".join(f"{digest}  {path}\n" for path, digest in sorted(merged.items())).encode())
