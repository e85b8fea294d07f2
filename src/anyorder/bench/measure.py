"""Clocks and memory."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from unittest import mock

from anyorder.layouts import IndexSet, Plan
from anyorder.ops.allocation import most_memory, resident_memory

Clock = Literal["wall", "cpu"]
_CLEAR = Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class Timing:
    """Median seconds of a call: on the wall, and of all threads of this process together."""

    wall: float
    cpu: float
    repeats: int

    def of(self, clock: Clock) -> float:
        """Seconds on one of the clocks."""
        return self.wall if clock == "wall" else self.cpu


def measure(work: Callable[[], object], *, repeats: int | None = None, budget: float = 1.0) -> Timing:
    """Median time of a call, after one to warm up.

    Without ``repeats`` there are as many as fill ``budget`` seconds, at least 3 and at most 50; at least 1 if a call takes
    longer than the budget tenfold.

    >>> measure(lambda: sum(range(100)), repeats=3).repeats
    3
    """
    first = _once(work)[1]
    if repeats is None:
        least = 1 if first > 10 * budget else 3
        repeats = min(50, max(least, math.ceil(budget / max(first, 1e-9))))
    wall, cpu = zip(*(_once(work) for _ in range(repeats)), strict=True)
    return Timing(statistics.median(wall), statistics.median(cpu), repeats)


def alternate(works: Sequence[Callable[[], object]], *, rounds: int = 3, budget: float = 1.0) -> list[Timing]:
    """Median times of calls that are compared: they take turns, so that a machine that slows down slows down all of them.

    In each round a call is repeated to fill its part of ``budget`` seconds, at most 20 times.

    >>> [timing.repeats >= 2 for timing in alternate([lambda: sum(range(100)), lambda: max(range(100))], rounds=2)]
    [True, True]
    """
    repeats = [min(20, math.ceil(budget / rounds / max(_once(work)[0], 1e-9))) for work in works]
    found: list[list[tuple[float, float]]] = [[] for _ in works]
    for _ in range(rounds):
        for work, number, times in zip(works, repeats, found, strict=True):
            times += [_once(work) for _ in range(number)]
    return [Timing(_median(times, 0), _median(times, 1), len(times)) for times in found]


def _median(times: list[tuple[float, float]], clock: int) -> float:
    return statistics.median(each[clock] for each in times)


def _once(work: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


@dataclass
class Peak:
    """The most memory that a stretch of work took: ``bytes`` above what was there before, known when it is over."""

    bytes: int = 0


@contextmanager
def peak_memory(base: int | None = None) -> Iterator[Peak]:
    """Watch how far the resident memory rises above ``base``, or above what it is now.

    What was freed before may be used again unseen: measure in a process of its own (see ``isolated``).
    """
    base = resident_memory() if base is None else base
    if _CLEAR.exists():
        _CLEAR.write_text("5")  # the high-water mark starts anew
    peak = Peak()
    try:
        yield peak
    finally:
        peak.bytes = max(0, most_memory() - base)


@dataclass
class Spent:
    """Seconds, known when they are over."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def planning() -> Iterator[Spent]:
    """How long layers take to work out and keep what depends on the index sets alone, while they run in this context."""
    spent, inside = Spent(), [False]

    def timed(original: Callable[..., Any]) -> Callable[..., Any]:
        def once(self: Any, key: object, build: Callable[[], Any]) -> Any:
            if inside[0] or key in self._cache:
                return original(self, key, build)
            inside[0] = True
            wall, cpu = time.perf_counter(), time.process_time()
            try:
                return original(self, key, build)
            finally:
                spent.wall += time.perf_counter() - wall
                spent.cpu += time.process_time() - cpu
                inside[0] = False

        return once

    with ExitStack() as stack:
        for kind in (Plan, IndexSet):
            stack.enter_context(mock.patch.object(kind, "_once", timed(kind._once)))
        yield spent
