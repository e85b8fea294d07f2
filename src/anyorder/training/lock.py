"""One process at a time in the folder of a run, and a word on who that is.

The lock is one of the operating system's, which frees it when its holder dies in whatever way. Folders on a network may
not have such locks, or only among the processes of one machine: there the holder touches the file every few seconds, and one
that has not been touched for long belongs to nobody.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anyorder.errors import InputError, printable

LOCK = ".lock"
BEAT = 10.0  # seconds between two touches
DEAD = 90.0  # seconds after which a holder on another machine counts as dead
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


_HELD: set[int] = set()  # open files of the locks of this process


def _let_go() -> None:
    """In a forked child (a data-loader worker), which may outlive a killed holder and must not hold the lock for it."""
    while _HELD:
        with suppress(OSError):
            os.close(_HELD.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


class FolderInUseError(InputError):
    """Another process works in the folder."""


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, or say who holds it; the folder is made, and removed again if nothing came into it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    handle = _acquire(path)
    _HELD.add(handle)
    ended = threading.Event()
    beat = threading.Thread(target=_beat, args=(path, ended), daemon=True)
    beat.start()
    try:
        yield
    finally:
        ended.set()
        beat.join()
        if handle in _HELD:  # not in a forked child
            with suppress(OSError):  # while it is still ours: nobody else can have made another one
                path.unlink()
            _HELD.discard(handle)
            os.close(handle)
            with suppress(OSError):
                folder.rmdir()


def _acquire(path: Path) -> int:
    """An open file that is locked, and is the one that lies at the path."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            alone = _lock(handle)
            holder = _holder(handle)
            if alone is False or (holder is not None and _is_alive(holder, path, locks_work=alone is True)):
                raise FolderInUseError(_message(path.parent, holder))
            if not path.exists() or not os.path.samestat(os.fstat(handle), path.stat()):
                os.close(handle)  # its holder has just ended and removed it
                continue
            _sign(handle)
            return handle
        except BaseException:
            with suppress(OSError):
                os.close(handle)
            raise


def _lock(handle: int) -> bool | None:
    """Whether the lock is ours now; None where this folder or system has no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def _sign(handle: int) -> None:
    who = {
        "process": os.getpid(),
        "started": _started(os.getpid()),
        "machine": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    os.ftruncate(handle, 0)
    os.pwrite(handle, json.dumps(who).encode(), 0)
    os.fsync(handle)


def _holder(handle: int) -> dict[str, Any] | None:
    """Who signed the lock last; nobody where it is empty or half written."""
    try:
        found = json.loads(os.pread(handle, 4096, 0))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_alive(holder: dict[str, Any], path: Path, *, locks_work: bool) -> bool:
    """Whether who signed the lock still works, as far as it can be told without the lock."""
    if holder.get("machine") == socket.gethostname():
        process = holder.get("process")
        if locks_work or not isinstance(process, int):  # then the system has freed it
            return False
        return process != os.getpid() and _started(process) is not None and _started(process) == holder.get("started")
    return _now(path.parent) - path.stat().st_mtime < DEAD


def _now(folder: Path) -> float:
    """The time as the folder's file system has it, which may be another machine's."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".time-") as file:
        return os.fstat(file.fileno()).st_mtime


def _started(process: int) -> float | None:
    """When a process of this machine began, which tells it from a later one of the same number; None if there is none."""
    import psutil

    if not 0 < process < 2**31:
        return None
    try:
        return round(psutil.Process(process).create_time(), 1)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def _beat(path: Path, ended: threading.Event) -> None:
    while not ended.wait(BEAT):
        with suppress(OSError):
            os.utime(path)


def _message(folder: Path, holder: dict[str, Any] | None) -> str:
    known = holder or {}
    who = printable(f"process {known.get('process', '?')} on {known.get('machine', '?')} since {known.get('since', '?')}")
    elsewhere = known.get("machine") not in (None, socket.gethostname())
    wait = f" If it was killed there, try again in {DEAD:.0f} seconds." if elsewhere else ""
    return f"{folder} is in use by {who}: wait for it, end it, or use another --out.{wait}"
