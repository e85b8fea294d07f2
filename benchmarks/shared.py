"""What the benchmarks have in common: options, a heading, ratios, and peak memory in a process of its own."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from anyorder.bench import alternate, isolated, peak_memory
from anyorder.bench.fits import aligned
from anyorder.bench.models import Workload
from anyorder.ops.allocation import keep_freed_memory, resident_memory, return_freed_memory
from anyorder.ops.backends import wait_for_loops


def parser(text: str) -> argparse.ArgumentParser:
    """The options of every benchmark."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    made.add_argument("--threads", type=int, default=threads, help="default: OMP_NUM_THREADS, or 1")
    made.add_argument("--clock", choices=("cpu", "wall"), default="cpu", help="cpu is not stretched by other work (default)")
    made.add_argument("--fresh-memory", action="store_true", help="new memory for each tensor, unlike commands")
    made.add_argument("--rounds", type=int, default=3, help="in which models take turns (default: 3)")
    return made


def start(options: argparse.Namespace, what: str) -> None:
    """Fix threads and seed, and say what is measured."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    wait_for_loops()
    kept = not options.fresh_memory and keep_freed_memory()
    memory = "freed memory is used again" if kept else "new memory for each tensor"
    print(f"{what}\nmedian {options.clock} seconds, {options.threads} threads, {memory}, torch {torch.__version__}")


def show(lines: Sequence[tuple[str, ...]]) -> None:
    """Print a table."""
    print(f"\n{aligned(lines)}", flush=True)


def times(works: Sequence[Workload], options: argparse.Namespace) -> list[tuple[float, float]]:
    """Seconds of a forward pass and of a training step of each; all of them take turns."""
    forward = alternate([work.forward for work in works], rounds=options.rounds)
    step = alternate([work.step for work in works], rounds=options.rounds)
    return [(a.of(options.clock), b.of(options.clock)) for a, b in zip(forward, step, strict=True)]


def step_memory(make: Callable[[Any], Workload], argument: Any, small: Any) -> str:
    """GB that two training steps take at most, beyond what was there before model and input; or how they failed.

    A step on a ``small`` input comes before, to load libraries and compile. Freed memory is returned to the system here.
    """
    outcome = isolated(_steps, (make, argument, small))
    return f"{outcome.results[0] / 1e9:.2f}" if outcome.results else outcome.status


def _steps(given: tuple[Callable[[Any], Workload], Any, Any]) -> Iterator[int]:
    make, argument, small = given
    return_freed_memory()
    wait_for_loops()  # this process is a new one: without it the first steps would be plain tensor operations
    make(small).step()
    base = resident_memory()
    work = make(argument)
    with peak_memory(base) as peak:
        work.step()
        work.step()
    yield peak.bytes
