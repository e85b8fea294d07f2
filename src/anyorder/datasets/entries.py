"""What the registry knows of a dataset: small immutable values, checked when they are built."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class DataFile:
    """One file of a dataset, at ``path`` inside the dataset's folder.

    ``size`` and ``sha256`` are those of the stored bytes, or, for ``content=True``, of what a gzip file holds: two
    compressors write different bytes for the same content. ``None`` means that nobody published them; the download then
    records what came. ``how`` is the command that brings a file which has no address of its own.

    >>> DataFile("../escape.csv")
    Traceback (most recent call last):
    ...
    ValueError: a data file's path must stay inside its dataset's folder, got '../escape.csv'
    """

    path: str
    url: str | None = None
    size: int | None = None
    sha256: str | None = None
    content: bool = False
    how: str | None = None

    def __post_init__(self) -> None:
        parts = PurePosixPath(self.path).parts
        if not parts or self.path.startswith("/") or ".." in parts or "\\" in self.path:
            raise ValueError(f"a data file's path must stay inside its dataset's folder, got {self.path!r}")
        if self.url is not None and not self.url.startswith(("https://", "http://")):
            raise ValueError(f"{self.path}: expected an http(s) address, got {self.url!r}")
        if self.size is not None and self.size < 0:
            raise ValueError(f"{self.path}: expected a size in bytes, got {self.size}")
        if self.sha256 is not None and not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"{self.path}: expected 64 lower-case hexadecimal digits, got {self.sha256!r}")
        if self.content and not self.path.endswith(".gz"):
            raise ValueError(f"{self.path}: only a gzip file has a content apart from its bytes")


@dataclass(frozen=True)
class Dataset:
    """A dataset of the paper or of the project: what it is, where it comes from and which files it needs.

    A file either has an address of its own, or is made from ``originals`` by the maker ``make`` (a key of
    ``anyorder.datasets.prepare.MAKERS``), or by ``command``, or is put in place by hand. A dataset without files is
    generated while it is used.
    """

    name: str
    title: str
    task: str
    licence: str
    source: str
    citation: str
    files: tuple[DataFile, ...] = ()
    originals: tuple[DataFile, ...] = ()
    make: str | None = None
    command: str | None = None
    notes: str = ""

    def __post_init__(self) -> None:
        paths = [file.path for file in (*self.files, *self.originals)]
        if len(set(paths)) < len(paths):
            raise ValueError(f"{self.name}: every file needs a path of its own, got {paths}")
        if bool(self.originals) != (self.make is not None):
            raise ValueError(f"{self.name}: originals and the maker that reads them come together")

    @property
    def generated(self) -> bool:
        """Whether the dataset is computed while it is used and has no files."""
        return not self.files

    @property
    def size(self) -> int | None:
        """Bytes of all files together, or None when one of them is not known."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)
