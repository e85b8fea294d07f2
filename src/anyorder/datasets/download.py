"""Download a file over http(s): resumed after a cut, checked, and put in place in one step."""

from __future__ import annotations

import errno
import hashlib
import http.client
import importlib.util
import json
import os
import re
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from anyorder.datasets.archives import UnsafeArchiveError, unpack
from anyorder.extras import require

__all__ = ["DownloadError", "UnsafeArchiveError", "download", "unpack"]

MAX_BYTES = 100 * 1024**3
_CHUNK = 1 << 16
_TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
Update = Callable[[int, int | None], None]


class DownloadError(OSError):
    """A download that did not succeed; the message says what to do."""


class _TransientError(Exception):
    """Worth another try, after ``wait`` seconds at least."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True)
class _Job:
    url: str
    destination: Path
    size: int | None
    sha256: str | None
    max_bytes: int
    timeout: float

    @property
    def part(self) -> Path:
        return self.destination.with_name(self.destination.name + ".part")

    @property
    def validator_path(self) -> Path:
        """Remembers which version of the remote file the part belongs to."""
        return self.destination.with_name(self.destination.name + ".part.json")


def download(
    url: str,
    destination: Path,
    *,
    size: int | None = None,
    sha256: str | None = None,
    max_bytes: int = MAX_BYTES,
    timeout: float = 30.0,
    attempts: int = 4,
    backoff: float = 1.0,
    progress: bool = True,
) -> str:
    """Download ``url`` to ``destination`` and return the SHA-256 of what came.

    The bytes go to ``destination.part``, which the next try or the next run resumes; the file appears under its name
    only when size and checksum are right. An existing file is replaced in that moment and not before.
    """
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"expected an http or https address, got {url!r}")
    job = _Job(url, destination, size, sha256, max_bytes, timeout)
    with _open_part(job) as part, _progress_bar(destination.name, enabled=progress) as update:
        for attempt in range(attempts):
            try:
                resumed = _transfer(job, part, update)
                digest = _verified(job, part, retry=resumed)
                break
            except _TransientError as error:
                if attempt + 1 == attempts:
                    raise DownloadError(_give_up(job, attempts, str(error))) from error
                time.sleep(max(backoff * 2**attempt, error.wait))
        part.flush()
        os.fsync(part.fileno())
        os.replace(job.part, destination)
    job.validator_path.unlink(missing_ok=True)
    return digest


def _transfer(job: _Job, part: BinaryIO, update: Update) -> bool:
    """One request: append to the part where the server allows it, start over where not; whether it was resumed."""
    offset = part.seek(0, os.SEEK_END)
    if job.size is not None and offset == job.size:
        return offset > 0
    if job.size is not None and offset > job.size:
        offset = part.truncate(0)
    try:
        with _request(job, offset) as response:
            total = _begin(job, part, response, offset)
            _receive(job, part, response, total, update)
            resumed = response.status == 206
    except urllib.error.HTTPError as error:
        error.close()
        resumed = _http_error(job, part, error, offset)
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        raise _TransientError(str(getattr(error, "reason", error)) or type(error).__name__) from error
    return bool(resumed)


def _request(job: _Job, offset: int) -> Any:
    headers = {"User-Agent": "anyorder", "Accept-Encoding": "identity"}
    validator = _read_validator(job)
    if offset and (validator or job.sha256):
        headers["Range"] = f"bytes={offset}-"
        if validator:
            headers["If-Range"] = validator
    opener = urllib.request.build_opener(_SecureRedirects())
    return opener.open(urllib.request.Request(job.url, headers=headers), timeout=job.timeout)


def _begin(job: _Job, part: BinaryIO, response: Any, offset: int) -> int | None:
    """Place the part where the answer begins and return the size of the whole file, when the server says it."""
    length = response.headers.get("Content-Length")
    if response.status == 206:
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
        if found is None or int(found[1]) != offset:
            part.truncate(0)
            raise _TransientError("the server resumed at another place than asked")
        total = offset + int(length) if found[2] == "*" and length else int(found[2]) if found[2] != "*" else None
    else:
        if offset:
            part.truncate(0)
        total = int(length) if length else None
        _write_validator(job, response)
    part.seek(0, os.SEEK_END)
    if total is not None and job.size is not None and total != job.size:
        raise DownloadError(
            f"{job.url} has changed: expected {job.size:,} bytes, the server offers {total:,}. {_earlier(job)}"
        )
    _check_room(job, total, part.tell())
    return total


def _receive(job: _Job, part: BinaryIO, response: Any, total: int | None, update: Update) -> None:
    limit = job.size if job.size is not None else job.max_bytes
    position = part.tell()
    while chunk := response.read(_CHUNK):
        position += len(chunk)
        if position > limit:
            part.truncate(0)
            raise DownloadError(f"{job.url} sends more than the {limit:,} bytes expected. {_earlier(job)}")
        part.write(chunk)
        update(position, total)
    if total is not None and position < total:
        raise _TransientError(f"the connection was cut after {position:,} of {total:,} bytes")


def _verified(job: _Job, part: BinaryIO, *, retry: bool) -> str:
    """The SHA-256 of the part, which is emptied when it is wrong: resuming it could never help."""
    part.flush()
    size = part.seek(0)
    digest = hashlib.sha256()
    while chunk := part.read(1 << 20):
        digest.update(chunk)
        size += len(chunk)
    if job.size in (None, size) and job.sha256 in (None, digest.hexdigest()):
        return digest.hexdigest()
    part.truncate(0)
    problem = f"expected SHA-256 {job.sha256 or 'unknown'}{_bytes(job.size)}, got {digest.hexdigest()}{_bytes(size)}"
    if retry:  # the earlier part may have been of another version: take the whole file once more
        raise _TransientError(problem)
    raise DownloadError(f"{job.url} is not the file the registry knows: {problem}. {_earlier(job)}")


def _http_error(job: _Job, part: BinaryIO, error: urllib.error.HTTPError, offset: int) -> bool:
    """True when the part was whole already; every other refusal is an error."""
    if error.code == 416 and offset:
        whole = re.fullmatch(r"bytes \*/(\d+)", error.headers.get("Content-Range", ""))
        if whole is not None and int(whole[1]) == offset:
            return True
        part.truncate(0)
        raise _TransientError("the server could not resume the partial file")
    if error.code in _TRANSIENT_STATUS:
        wait = error.headers.get("Retry-After", "")
        raise _TransientError(f"HTTP {error.code} {error.reason}", min(float(wait), 60.0) if wait.isdigit() else 0.0)
    raise DownloadError(f"{job.url} answered HTTP {error.code} {error.reason}. {_by_hand(job)}") from error


@contextmanager
def _open_part(job: _Job) -> Iterator[BinaryIO]:
    """The partial file, opened and locked: two processes must not write to it at once."""
    try:
        job.destination.parent.mkdir(parents=True, exist_ok=True)
        part = job.part.open("a+b")
    except OSError as error:
        raise DownloadError(
            f"cannot write to {job.destination.parent}: {error.strerror}. "
            "Name a folder you may write to with --data-dir or ANYORDER_DATA"
        ) from error
    try:
        with part:
            _lock(job, part)
            yield part
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DownloadError(_no_room(job)) from error
        raise
    finally:
        if job.part.exists() and job.part.stat().st_size == 0:
            job.part.unlink()
            job.validator_path.unlink(missing_ok=True)


def _lock(job: _Job, part: BinaryIO) -> None:
    if importlib.util.find_spec("fcntl") is None:  # Windows
        return
    import fcntl

    try:
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise DownloadError(f"another process is downloading {job.destination}: wait for it") from error
    if not job.part.exists() or not os.path.samestat(os.fstat(part.fileno()), job.part.stat()):
        raise DownloadError(f"another process has just finished {job.destination}: run the command again")


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects, but never from https to anything weaker."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise DownloadError(f"{req.full_url} redirects to {newurl}, which is not encrypted: refused")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _read_validator(job: _Job) -> str | None:
    """The ETag or date of the version that the part was begun with; None when there is no part or no such word."""
    try:
        known = json.loads(job.validator_path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    found = known.get("validator") if isinstance(known, dict) and known.get("url") == job.url else None
    return found if isinstance(found, str) and found.isascii() and found.isprintable() else None


def _write_validator(job: _Job, response: Any) -> None:
    tag = response.headers.get("ETag") or ""
    validator = tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")
    job.validator_path.write_text(json.dumps({"url": job.url, "validator": validator}), encoding="utf-8")


def _check_room(job: _Job, total: int | None, have: int) -> None:
    expected = total if total is not None else job.size
    if expected is None:
        return
    if expected > job.max_bytes:
        raise DownloadError(f"{job.url} is larger than allowed: {expected:,} bytes, at most {job.max_bytes:,}")
    free = shutil.disk_usage(job.destination.parent).free
    if expected - have > free:
        raise DownloadError(f"{_no_room(job)} (needed: {expected - have:,} bytes, free: {free:,})")


def _bytes(size: int | None) -> str:
    return "" if size is None else f" ({size:,} bytes)"


def _no_room(job: _Job) -> str:
    return f"the disk of {job.destination.parent} is full: free some space and run the command again. {_earlier(job)}"


def _earlier(job: _Job) -> str:
    return f"{job.destination} is as it was" if job.destination.exists() else f"{job.destination} was not written"


def _by_hand(job: _Job) -> str:
    known = f" (SHA-256 {job.sha256})" if job.sha256 else ""
    return f"You can get the file elsewhere{known} and put it at {job.destination}"


def _give_up(job: _Job, attempts: int, reason: str) -> str:
    host = urllib.parse.urlsplit(job.url).netloc
    return (
        f"could not download {job.url} from {host} in {attempts} tries ({reason}). {_by_hand(job)}; "
        "or run the command again when there is a network: it resumes where it stopped"
    )


@contextmanager
def _progress_bar(label: str, *, enabled: bool) -> Iterator[Update]:
    """A bar with size, speed and time left; silent where rich is not installed."""
    if not enabled or importlib.util.find_spec("rich") is None:
        yield lambda done, total: None
        return
    bars, console = require("rich.progress", "train"), require("rich.console", "train")
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.DownloadColumn(),
        bars.TransferSpeedColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console.Console(stderr=True)) as shown:
        task = shown.add_task(label, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
