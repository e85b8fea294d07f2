"""How the C library hands out memory."""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4


def keep_freed_memory() -> bool:
    """Let glibc keep the memory of large tensors when they are freed, for the next ones; says whether it could be told.

    By default every large tensor is new memory from the system, whose pages must be cleared before they can be written to:
    on a CPU that may take longer than the arithmetic. The peak of a process is a little higher so. What the environment
    says (``MALLOC_TRIM_THRESHOLD_`` and the like) stands.
    """
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, -1))
