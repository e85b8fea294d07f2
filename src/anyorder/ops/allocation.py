"""How the C library hands out memory."""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4


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


def _tell(*settings: tuple[int, int]) -> bool:
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return all(bool(mallopt(*each)) for each in settings)
