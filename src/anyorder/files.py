"""Writing files so that a crash or a full disk never harms what was there before."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from anyorder.errors import InputError, reading

_UNFINISHED = ".part"
SEAL = "sha256"
"""The entry of a JSON file with the checksum of all others."""

_protected: list[Path] = []


@contextmanager
def protecting(paths: Iterable[Path]) -> Iterator[None]:
    """Within the block, ``replacing`` refuses to write to these files, by whatever name."""
    before = len(_protected)
    _protected.extend(paths)
    try:
        yield
    finally:
        del _protected[before:]


def check_unprotected(path: Path) -> None:
    """Refuse a path that leads to a protected file."""
    for kept in _protected:
        if kept.resolve() == path.resolve() or (kept.exists() and path.exists() and kept.samefile(path)):
            raise InputError(f"{path} is what the answer is made from: name another file for the output")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path with the suffix of ``path``, which takes its place in one step when the block ends well.

    Where ``path`` is a device or a pipe, what was written goes into it instead; where it is a link, the file it leads to
    is replaced.
    """
    check_unprotected(path)
    if path.exists() and not path.is_dir() and (not path.is_file() or path.absolute().parts[1:2] in (("dev",), ("proc",))):
        with _into(path) as temporary:
            yield temporary
        return
    with _beside(path.resolve() if path.is_symlink() else path) as temporary:
        yield temporary


@contextmanager
def _into(path: Path) -> Iterator[Path]:
    """A temporary file whose bytes go into something that is no file of its own."""
    with tempfile.TemporaryDirectory(prefix="anyorder-") as folder:
        temporary = Path(folder) / f"written{path.suffix}"
        yield temporary
        with temporary.open("rb") as source, path.open("wb") as sink:
            shutil.copyfileobj(source, sink)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}{_UNFINISHED}.", suffix=path.suffix)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~_umask())  # as if it had been made by open(): mkstemp shuts others out
        temporary.replace(path)
    except OSError as error:
        if error.errno is None:  # of something else that went wrong in the block
            raise
        problem = f"could not write {path}: {error.strerror or error}; what was there before is untouched"
        raise OSError(error.errno, problem) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed process was writing in a folder."""
    for path in folder.glob(f".*{_UNFINISHED}.*"):
        with suppress(OSError):
            path.unlink()


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def file_digest(path: str | Path) -> str:
    """SHA-256 of a file, read in pieces."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_json(path: Path, data: Any) -> None:
    """Write plain data, whole or not at all; what ``read_json`` would refuse is not written."""
    refuse_halves(data)
    write_bytes(path, (json.dumps(data, indent=1) + "\n").encode())


def read_json(path: Path, kind: type | None = None) -> Any:
    """Read plain data, of one kind if told, with an error that names the file."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    with reading(path, "a whole JSON file"):
        found = parse_json(path.read_bytes())
        if kind is not None and not isinstance(found, kind):
            raise InputError(f"{path} must hold a JSON {kind.__name__}, got {type(found).__name__}")
    return found


def write_sealed_json(path: Path, data: dict[str, Any]) -> None:
    """Write plain data with a checksum of it as one more entry: both are there or none."""
    refuse_halves(data)
    plain = json.loads(json.dumps(data))  # as it will be read: tuples are lists, names are texts
    write_json(path, {**plain, SEAL: _seal(plain)})


def read_sealed_json(path: Path, entries: Iterable[str]) -> dict[str, Any]:
    """Read plain data with these entries and no others, compared with its checksum; earlier versions wrote none."""
    data: dict[str, Any] = read_json(path, dict)
    expected, known = data.pop(SEAL, None), [*entries]
    unknown = [name for name in data if name not in known]
    if unknown:
        raise InputError(f"{path} is damaged or of another kind: expected the entries {known}, got {unknown[0]!r:.60}")
    if expected is not None and expected != _seal(data):
        raise InputError(
            f"{path} is damaged: it does not have the checksum that was written with it; if you have changed it yourself, "
            f"remove its entry {SEAL!r}"
        )
    return data


def _seal(data: dict[str, Any]) -> str:
    """SHA-256 of plain data, whatever its order and its white space."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def parse_json(raw: bytes) -> Any:
    """Plain data from JSON in UTF-8; halves of surrogate pairs, which no file could be written with, are refused."""
    text = raw.decode("utf-8-sig")
    found = json.loads(text)
    if "\\ud" in text.lower():
        refuse_halves(found)
    return found


def refuse_halves(found: Any) -> None:
    """Refuse texts with halves of surrogate pairs, such as names of files that are not UTF-8."""
    if isinstance(found, str):
        try:
            found.encode()
        except UnicodeEncodeError as error:
            raise InputError(f"a text holds half of a surrogate pair, which is no character: {found[:60]!r}") from error
    elif isinstance(found, dict):
        for name, part in found.items():
            refuse_halves(name)
            refuse_halves(part)
    elif isinstance(found, list | tuple):
        for part in found:
            refuse_halves(part)


def check_members(raw: bytes) -> None:
    """Refuse a zip file whose parts announce more than it holds: torch stores them as they are, and takes memory first."""
    if not zipfile.is_zipfile(io.BytesIO(raw)):
        return  # the old format of torch, or something else, of which torch says what it is
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for info in archive.infolist():
            if info.file_size > len(raw):
                raise InputError(f"its part {info.filename!r} announces {info.file_size:,} bytes, and it has {len(raw):,}")
