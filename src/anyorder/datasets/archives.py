"""Unpack archives from strangers: nothing outside the folder, no links or devices, bounded size, all or nothing."""

from __future__ import annotations

import errno
import gzip
import io
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from anyorder.errors import InputError, reading

MAX_BYTES = 20 * 1024**3
MAX_MEMBERS = 100_000
_CHUNK = 1 << 20

_HEADERS = 1 << 20  # bytes that a tar file may spend on the description of one member
_BLOCK = 512

Member = tuple[str, IO[bytes]]


class UnsafeArchiveError(InputError):
    """An archive that would write outside its folder, or more than allowed."""


def unpack(
    archive: Path, folder: Path, *, strip: str = "", max_bytes: int = MAX_BYTES, max_members: int = MAX_MEMBERS
) -> tuple[Path, ...]:
    """Unpack a .zip, .tar, .tar.gz, .tgz or .gz file into ``folder`` and return the files, relative to it.

    Everything is written aside first and moved in at the end, so a bad archive changes nothing. ``strip`` is a leading
    folder of the member names to leave out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".unpack-", dir=folder))
    try:
        written = _write_members(archive, staging, strip=strip, max_bytes=max_bytes, max_members=max_members)
        for path in written:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(staging / path, folder / path)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return written


def _write_members(archive: Path, staging: Path, *, strip: str, max_bytes: int, max_members: int) -> tuple[Path, ...]:
    written: dict[str, Path] = {}
    budget = max_bytes
    try:
        with (
            reading(archive, "the archive its name says, or is damaged"),
            _members(archive, max_bytes=max_bytes, max_members=max_members) as members,
        ):
            for name, stream in members:
                path = _safe_path(name, strip=strip, archive=archive)
                if str(path).casefold() in written:
                    raise UnsafeArchiveError(f"{archive.name} holds {name!r} twice")
                written[str(path).casefold()] = path
                (staging / path).parent.mkdir(parents=True, exist_ok=True)
                budget -= _copy(stream, staging / path, budget, archive=archive, max_bytes=max_bytes)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise UnsafeArchiveError(f"{archive} uses one name for a file and a folder: {error}") from error
    except OSError as error:
        if error.errno not in (errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ):
            raise
        raise UnsafeArchiveError(f"{archive} holds a name that this system does not allow: {error}") from error
    return tuple(written.values())


def _copy(stream: IO[bytes], path: Path, budget: int, *, archive: Path, max_bytes: int) -> int:
    """Write a member and return its size; the sizes an archive declares are not trusted."""
    total = 0
    with path.open("xb") as out:
        while chunk := stream.read(_CHUNK):
            total += len(chunk)
            if total > budget:
                raise UnsafeArchiveError(f"{archive.name} unpacks to more than the {max_bytes:,} bytes allowed")
            out.write(chunk)
    return total


def _safe_path(name: str, *, strip: str, archive: Path) -> Path:
    """The member's path inside the folder, or an error when it would leave it."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name or not path.parts:
        raise UnsafeArchiveError(f"{archive.name} holds {name!r}, which would be written outside its folder")
    prefix = PurePosixPath(strip).parts if strip else ()
    if prefix and path.parts[: len(prefix)] == prefix and len(path.parts) > len(prefix):
        path = PurePosixPath(*path.parts[len(prefix) :])
    return Path(*path.parts)


@contextmanager
def _members(archive: Path, *, max_bytes: int, max_members: int) -> Iterator[Iterator[Member]]:
    """The regular files of an archive as (name, stream), chosen by the archive's suffix."""
    name = archive.name.lower()
    with ExitStack() as stack:
        if name.endswith((".zip", ".whl")):
            yield _zip_members(stack.enter_context(zipfile.ZipFile(archive)), archive, max_members)
        elif name.endswith((".tar", ".tar.gz", ".tgz")):
            packed = name.endswith("gz")
            raw = stack.enter_context(_gunzip(archive) if packed else archive.open("rb"))
            bounded = _Bounded(raw, max_bytes + 4096 * (max_members + 4), archive)
            kind = _tar_info(archive)
            opened = stack.enter_context(tarfile.open(fileobj=bounded, mode="r|", tarinfo=kind))
            yield _tar_members(opened, kind, archive, max_members)
        elif name.endswith(".gz"):
            stream = stack.enter_context(_gunzip(archive))
            yield iter([(archive.name[: -len(".gz")], stream)])
        else:
            raise ValueError(f"expected a .zip, .tar, .tar.gz, .tgz or .gz file, got {archive.name}")


def _gunzip(archive: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.GzipFile(archive, "rb"))


def _zip_members(opened: zipfile.ZipFile, archive: Path, max_members: int) -> Iterator[Member]:
    if len(opened.infolist()) > max_members:
        raise UnsafeArchiveError(f"{archive.name} holds more than the {max_members:,} members allowed")
    for info in opened.infolist():
        mode = info.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise UnsafeArchiveError(f"{archive.name} holds {info.filename!r}, which is a link or a device, not a file")
        if info.flag_bits & 0x1:
            raise ValueError(f"{archive.name} is encrypted, and the registry knows no password")
        _safe_path(info.filename, strip="", archive=archive)
        if not info.is_dir():
            with opened.open(info) as stream:
                yield info.filename, stream


class _TarInfo(tarfile.TarInfo):
    """The description of a member, refused where it is too long to be one; knows whether the end of the file was seen."""

    archive: Path
    ended: bool

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _TarInfo:
        if len(buf) == _BLOCK and not any(buf):
            cls.ended = True
        info = super().frombuf(buf, encoding, errors)
        if not info.isfile() and info.size > _HEADERS:
            raise UnsafeArchiveError(f"{cls.archive.name} spends {info.size:,} bytes on the name of a member")
        return info


def _tar_info(archive: Path) -> type[_TarInfo]:
    return type("_TarInfoOf", (_TarInfo,), {"archive": archive, "ended": False})


def _tar_members(opened: tarfile.TarFile, kind: type[_TarInfo], archive: Path, max_members: int) -> Iterator[Member]:
    for count, info in enumerate(opened):
        if count >= max_members:
            raise UnsafeArchiveError(f"{archive.name} holds more than the {max_members:,} members allowed")
        if info.isdir():
            _safe_path(info.name, strip="", archive=archive)
            continue
        stream = opened.extractfile(info) if info.isfile() else None
        if stream is None:
            raise UnsafeArchiveError(f"{archive.name} holds {info.name!r}, which is a link or a device, not a file")
        yield info.name, stream
    if not kind.ended:
        raise InputError(f"{archive} is cut off or damaged: expected two empty blocks at its end")


class _Bounded(io.RawIOBase):
    """A stream that refuses to give more than ``limit`` bytes: headers of a tar file can be bombs too."""

    def __init__(self, raw: BinaryIO, limit: int, archive: Path) -> None:
        self.raw, self.left, self.archive = raw, limit, archive

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self.raw.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise UnsafeArchiveError(f"{self.archive.name} unpacks to more bytes than allowed")
        return data
