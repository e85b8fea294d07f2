"""NPZ files: named plain arrays, whose shapes are compared with what the file holds before memory is taken for them."""

from __future__ import annotations

import hashlib
import io
import math
import warnings
import zipfile
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from anyorder.errors import InputError, reading
from anyorder.files import write_bytes

MAX_BYTES = 2**35
"""What the arrays of one file may take in memory; a few kilobytes of zip can promise a thousand times as much."""
MOST_EMPTY = 2**27
"""Rows of an array without columns, which take nothing in the file and may take a list each later."""
PLAIN = "biufSU"
"""Kinds of numbers and text; no Python objects, records or dates."""
Arrays = dict[str, np.ndarray[Any, Any]]


def read_arrays(
    path: str | PathLike[str], *, needed: Iterable[str] = (), only: bool = False, max_bytes: int = MAX_BYTES
) -> Arrays:
    """The arrays of an NPZ file, with those that are ``needed`` among them; Python objects in it are refused, not run.

    With ``only`` the other arrays are not looked at, whatever they hold.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    with reading(path, "a whole NPZ file of plain arrays"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of headers as Python 2 wrote them
        if not zipfile.is_zipfile(path):
            raise InputError(f"{path} is not a whole NPZ file: expected a zip archive, as numpy.savez writes it")
        with zipfile.ZipFile(path) as archive:
            arrays = _members(archive, max_bytes, {*needed} if only else None)
        absent = [name for name in needed if name not in arrays]
        if absent:
            raise InputError(f"{path} lacks the array {absent[0]!r}: expected {list(needed)}, got {sorted(arrays)}")
    return arrays


def write_arrays(path: Path, arrays: Arrays) -> Path:
    """Write named arrays, all or nothing."""
    if path.suffix != ".npz":
        raise ValueError(f"the file must end in .npz, got {path}")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    write_bytes(path, buffer.getvalue())
    return path


def digest(*parts: np.ndarray[Any, Any] | bytes | None) -> str:
    """SHA-256 over the kinds, shapes and numbers of arrays, which tells data from any others.

    >>> digest(np.arange(2)) == digest(np.arange(2)), digest(np.arange(2)) == digest(np.arange(2.0))
    (True, False)
    """
    known = hashlib.sha256()
    for part in parts:
        array = np.frombuffer(part or b"", np.uint8) if part is None or isinstance(part, bytes) else part
        known.update(f"{array.dtype.str} {array.shape}\n".encode())
        known.update(np.ascontiguousarray(array).tobytes())
    return known.hexdigest()


def _members(archive: zipfile.ZipFile, left: int, wanted: set[str] | None) -> Arrays:
    arrays: Arrays = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if wanted is not None and name not in wanted:
            continue
        if name in arrays:
            raise InputError(f"the array {name!r} occurs twice")
        if info.flag_bits & 0x1:
            raise InputError(f"the array {name!r} is encrypted")
        with archive.open(info) as stream:
            size, held = _announced(stream, name), info.file_size - stream.tell()
        if size > held:
            raise InputError(f"the array {name!r} has {held:,} bytes, its header announces {size:,}")
        left -= size
        if left < 0:
            raise InputError(f"the arrays take {size - left:,} bytes and more, at most {MAX_BYTES:,} are read")
        with archive.open(info) as stream:
            arrays[name] = npy.read_array(stream, allow_pickle=False)
            check_texts(arrays[name], f"the array {name!r}")
            if stream.read(1):
                raise InputError(f"the array {name!r} is longer than its header announces")
    return arrays


def _announced(stream: IO[bytes], name: str) -> int:
    """The bytes that the header of an array asks for."""
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise InputError(f"the array {name!r} has the format {version}, expected (1, 0) or (2, 0)")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.kind not in PLAIN:
        what = "Python objects, which are not read" if dtype.hasobject else f"{dtype}, expected numbers or text"
        raise InputError(f"the array {name!r} holds {what}")
    if any(isinstance(axis, bool) or axis < 0 for axis in shape) or len(shape) > 32:
        raise InputError(f"the array {name!r} has the shape {str(shape)[:80]}")
    if 0 in shape and math.prod(axis for axis in shape if axis) > MOST_EMPTY:
        raise InputError(f"the array {name!r} is empty and has the shape {str(shape)[:80]}")
    return math.prod(shape) * max(1, dtype.itemsize)


def check_texts(array: np.ndarray[Any, Any], name: str) -> None:
    """Refuse texts with numbers in them that are no characters, on which Python fails later and elsewhere."""
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        plain = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("="), copy=False)
        codes = plain.reshape(-1).view(np.uint32)
        if bool((codes > 0x10FFFF).any()) or bool(((codes >= 0xD800) & (codes <= 0xDFFF)).any()):
            raise InputError(f"{name} holds what are no characters")
