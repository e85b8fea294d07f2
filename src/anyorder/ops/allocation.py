"""How the C library hands out memory."""

from __future__ import annotations

import ctypes
import math
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
_STATUS = Path("/proc/self/status")
_FIRST = 8
"""Items of a loop after which its memory has found its size."""


def keep_freed_memory() -> bool:
    """Let glibc keep the memory of large tensors when they are freed, for the next ones; says whether it could be told.

    By default every large tensor is new memory from the system, whose pages must be cleared before they can be written to:
    on a CPU that may take longer than the arithmetic. The peak of a process is higher so. What the environment
    says (``MALLOC_TRIM_THRESHOLD_`` and the like) stands.
    """
    return _tell((_MMAP_MAX, 0), (_TRIM_THRESHOLD, -1))


def return_freed_memory() -> bool:
    """Let glibc return the memory of all tensors of a megabyte and more when they are freed; says whether it could be told.

    The peak of a process is what it holds at a time, and it is slower. By default tensors of up to 32 MB share one heap
    once one of their size has been freed, and leave holes in it: a training step may hold twice what it needs. What the
    environment says stands.
    """
    return _tell((_MMAP_THRESHOLD, 2**20), (_TRIM_THRESHOLD, 2**20))


class Holes:
    """Keeps the memory of a long loop bounded: free memory goes back to the system now and then.

    Batches of varying sizes leave holes in a heap that keeps freed memory, and a tensor that fits into none of them makes
    the heap grow. Holes are given back when the process holds ``growth`` times what it did after the first items; if it
    does so again after the next item, that one needs as much, and ``growth`` times as much is let be.
    """

    def __init__(self, growth: float = 1.5) -> None:
        self.growth, self.most = growth, math.inf
        self.items = self.last = 0

    def after_item(self) -> None:
        """To be called after each item of the loop."""
        self.items += 1
        if self.items == _FIRST:
            self.most = self.growth * resident_memory()
        elif self.items > _FIRST and resident_memory() > self.most:
            _give_back()
            if self.last == self.items - 1:
                self.most *= self.growth
            self.last = self.items


def without_holes(items: Iterable[T]) -> Iterator[T]:
    """The items of a long loop whose memory stays bounded, by ``Holes``.

    >>> list(without_holes(range(3)))
    [0, 1, 2]
    """
    holes = Holes()
    for item in items:
        yield item
        holes.after_item()


def resident_memory() -> int:
    """Bytes of this process that are in memory now; where the system does not say, the most there ever were."""
    return _status("VmRSS")


def reserved_memory() -> int:
    """Bytes that this process has asked for to write to, which is what limits of memory count."""
    return _status("VmData")


def most_memory() -> int:
    """The most bytes of this process that were in memory at a time."""
    return _status("VmHWM")


def _status(name: str) -> int:
    if not _STATUS.exists():
        import resource  # Windows has none

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    for line in _STATUS.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{_STATUS} has no line {name}")


def _give_back() -> None:
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _tell(*settings: tuple[int, int]) -> bool:
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return all(bool(mallopt(*each)) for each in settings)
