"""Files changed at random: bytes anywhere, values of JSON and tables, members of zip and gzip files."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any

Mutator = Callable[[bytes, random.Random], bytes]

WORDS = [
    b"",
    b"\0",
    b"\xff\xfe",
    b"nan",
    b"-inf",
    b"1e400",
    b"1e300",
    b"-1",
    b"0",
    b"9" * 400,
    b"9" * 5000,
    b"\xed\xa0\x80",
    b"\\ud800",
    b"../../x",
    b"\x1b[2J",
    b'"',
    b"\r",
    b"[" * 3000,
    b"{" * 300,
    b"true",
    b"null",
    b"18446744073709551616",
    b"9223372036854775807",
]
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63),
    10**400,
    1e300,
    1e-300,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\x1b[31m",
    "../../x",
    "\ud800",
    "9" * 400,
    [],
    [[]],
    {},
    {"type": "Run"},
    [1, "a", None],
    10**12,
]


def flip_bits(raw: bytes, rng: random.Random) -> bytes:
    changed = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def set_bytes(raw: bytes, rng: random.Random) -> bytes:
    if not raw:
        return rng.randbytes(8)
    start, width = rng.randrange(len(raw)), rng.choice((1, 2, 4, 8))
    new = rng.choice((b"\0", b"\xff", b"\x7f", b"\x80", b"\x01")) * width if rng.random() < 0.7 else rng.randbytes(width)
    return raw[:start] + new + raw[start + width :]


def cut(raw: bytes, rng: random.Random) -> bytes:
    return raw[: rng.randrange(len(raw) + 1)]


def remove(raw: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(raw) + 1)
    return raw[:start] + raw[start + rng.choice((1, 4, 16, 100)) :]


def insert(raw: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(raw) + 1)
    return raw[:start] + rng.choice(WORDS) + raw[start:]


def repeat(raw: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(raw) + 1)
    piece = raw[start : start + rng.choice((1, 8, 64, 512))]
    return raw[: start + len(piece)] + piece * rng.choice((1, 2, 20)) + raw[start + len(piece) :]


def exchange(raw: bytes, rng: random.Random) -> bytes:
    first, second = sorted(rng.randrange(len(raw) + 1) for _ in range(2))
    return raw[:first] + raw[second:] + raw[first:second]


BYTES: tuple[Mutator, ...] = (flip_bits, set_bytes, cut, remove, insert, repeat, exchange)


def mutate_bytes(raw: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        raw = rng.choice(BYTES)(raw, rng)
    return raw


def mutate_json(raw: bytes, rng: random.Random) -> bytes:
    """Another value, a missing one, a new one or another name somewhere in a document."""
    document = json.loads(raw)
    for _ in range(rng.choice((1, 1, 2, 4))):
        document = _changed(document, rng)
    return json.dumps(document).encode()


def _changed(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.93:
        name = rng.choice(list(value))
        kind = rng.random()
        if kind < 0.8:
            return {**value, name: _changed(value[name], rng)}
        rest = {key: part for key, part in value.items() if key != name}
        return rest if kind < 0.9 else {**rest, rng.choice(("", "x", name + "x", "\x1b")): value[name]}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        kind = rng.random()
        if kind < 0.8:
            return [*value[:place], _changed(value[place], rng), *value[place + 1 :]]
        return value[:place] + value[place + 1 :] if kind < 0.9 else [*value, value[place]]
    if isinstance(value, str) and rng.random() < 0.3:
        place = rng.randrange(len(value) + 1)
        return value[:place] + rng.choice(("\0", "9", "-", "..", "/", "\ud800", "é")) + value[place:]
    return rng.choice(VALUES)


def mutate_lines(raw: bytes, rng: random.Random) -> bytes:
    """Other, missing and repeated cells and lines of a table."""
    lines = raw.split(b"\n")
    for _ in range(rng.choice((1, 1, 3))):
        place = rng.randrange(len(lines))
        cells = lines[place].split(b",")
        kind = rng.random()
        if kind < 0.6:
            cells[rng.randrange(len(cells))] = rng.choice(WORDS)
            lines[place] = b",".join(cells)
        elif kind < 0.8:
            del cells[rng.randrange(len(cells))]
            lines[place] = b",".join(cells)
        else:
            lines.insert(place, lines[rng.randrange(len(lines))])
    return b"\n".join(lines)


def inside_gzip(mutate: Mutator) -> Mutator:
    def mutated(raw: bytes, rng: random.Random) -> bytes:
        return gzip.compress(mutate(gzip.decompress(raw), rng), compresslevel=1, mtime=0)

    return mutated


def inside_zip(mutate: Mutator) -> Mutator:
    """One member changed, its checksum right: what is wrong is left for the reader of the member to find."""

    def mutated(raw: bytes, rng: random.Random) -> bytes:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist()}
        name = rng.choice(list(members))
        members[name] = mutate(members[name], rng)
        if rng.random() < 0.05:
            members.pop(rng.choice(list(members)))
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        return out.getvalue()

    return mutated


def mutate_npy(raw: bytes, rng: random.Random) -> bytes:
    """The header of an array: kinds, shapes and what is no header."""
    end = raw.find(b"\n", 10)
    header = raw[10:end]
    swaps = [(b"<i8", b"|O"), (b"<i8", b"<f8"), (b"<i8", b"<u8"), (b"<f8", b"<c16"), (b"<f4", b"|S0"), (b"<i8", b"<U4")]
    swaps += [(b"False", b"True"), (b"(", b"(-1, "), (b"(", b"(1000000000000, "), (b")", b", 10)"), (b"(", b"(" * 200)]
    swaps += [(b"}", b"'''"), (b"'", b'"'), (b"shape", b"shap"), (b",", b", 9" + b"9" * 400 + b","), (b"<i8", b"<M8[s]")]
    old, new = rng.choice(swaps)
    header = header.replace(old, new, 1)
    return raw[:8] + (len(header) + 1).to_bytes(2, "little") + header + raw[end:]


def mutate_header(raw: bytes, rng: random.Random) -> bytes:
    """The JSON header of a safetensors file, its length made right."""
    size = int.from_bytes(raw[:8], "little")
    header = mutate_json(raw[8 : 8 + size], rng)
    return len(header).to_bytes(8, "little") + header + raw[8 + size :]


def any_of(*mutators: Mutator) -> Mutator:
    """One of several; a file that one of them cannot take apart is left to the bytes."""

    def mutated(raw: bytes, rng: random.Random) -> bytes:
        with contextlib.suppress(Exception):
            return rng.choice(mutators)(raw, rng)
        return mutate_bytes(raw, rng)

    return mutated


JSON = any_of(mutate_json, mutate_json, mutate_bytes)
TABLE = any_of(mutate_lines, mutate_bytes)
NPZ = any_of(inside_zip(any_of(mutate_npy, mutate_bytes)), inside_zip(set_bytes), mutate_bytes)
ZIP = any_of(inside_zip(mutate_bytes), mutate_bytes)
