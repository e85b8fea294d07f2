"""Loops shared among the threads that torch itself uses.

A pool of our own would compete with torch's: an OpenMP thread that has finished spins while it waits for the next product,
and on two cores it spins where our loop should run. So loops run in a team of the very library that torch uses.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

Ranges = list[tuple[int, int]]
Team = Callable[[Callable[[], None], int], None]
"""Calls a function on each of so many threads at the same time and waits for them."""


def cuts(length: int) -> Ranges:
    """Ranges for the threads that torch uses."""
    marks = np.linspace(0, length, torch.get_num_threads() + 1).astype(int).tolist()
    return [(a, b) for a, b in pairwise(marks) if b > a]


def each(ranges: Ranges, work: Callable[[int, int], None]) -> None:
    """Do all ranges, on as many threads as torch uses; the loops release the interpreter."""
    threads = min(torch.get_num_threads(), len(ranges))
    left, failures = iter(ranges), list[BaseException]()
    if threads < 2:
        _work_off(left, work)
        return

    def member() -> None:
        try:
            _work_off(left, work)
        except BaseException as failure:
            failures.append(failure)

    (_openmp() or _pool)(member, threads)
    if failures:
        raise failures[0]


def _work_off(left: Iterator[tuple[int, int]], work: Callable[[int, int], None]) -> None:
    for a, b in left:  # the iterator of a list gives each range to one thread
        work(a, b)


@lru_cache(maxsize=1)
def _openmp() -> Team | None:
    """A team of torch's own OpenMP library, where torch brings GNU's."""
    found = sorted(Path(torch.__file__).parent.glob("lib/libgomp*.so*"))
    if not found:
        return None
    library = ctypes.CDLL(str(found[0]))
    body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

    def team(member: Callable[[], None], threads: int) -> None:
        library.GOMP_parallel(body(lambda _: member()), None, ctypes.c_uint(threads), ctypes.c_uint(0))

    return team


def _pool(member: Callable[[], None], threads: int) -> None:
    """Threads of our own beside the caller's."""
    others = [_executor(threads - 1).submit(member) for _ in range(threads - 1)]
    member()
    for other in others:
        other.result()


@lru_cache(maxsize=1)
def _executor(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="anyorder")
