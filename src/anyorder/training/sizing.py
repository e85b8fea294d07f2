"""How long a training will take and how large it is, before it begins."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from anyorder.ops.backends import use_compiling
from anyorder.saving import CONFIG
from anyorder.training.checkpoints import load_run
from anyorder.training.loaders import Loaders
from anyorder.training.run import Run, Splits

_STEPS, _LONGEST = 5, 5.0
_MUCH = 1.5
"""How much faster one thread must be than several to be taken."""
LEAST_EPOCHS, SECONDS = 4, 200.0
"""Epochs at least where none are given, and the time that they are to fit."""


def seconds_per_epoch(run: Run, splits: Splits) -> float:
    """What an epoch will take, after a few steps on this machine; the first ones compile, and are not counted.

    On a busy machine threads wait for each other, and a step can take a hundred times as long as on one thread: then the
    process goes on with one.
    """
    model = run.model.build(splits.shapes)
    loader, shares = Loaders(run, rank=0, world=1).train(splits.train)

    def shortest_step(warm_up: int) -> float:
        took: list[float] = []
        while len(took) <= warm_up or (len(took) < _STEPS and sum(took[warm_up:]) < _LONGEST):
            batch = next(iter(loader))
            began = time.perf_counter()
            run.task.loss(model, batch).backward()
            took.append(time.perf_counter() - began)
        return min(took)

    threads = torch.get_num_threads()
    with use_compiling("wait"):
        torch.set_num_threads(1)
        single = shortest_step(warm_up=2)
        torch.set_num_threads(threads)
        shortest = shortest_step(warm_up=0) if threads > 1 else single
    if single * _MUCH < shortest:
        torch.set_num_threads(1)
        shortest = single
    return shortest * len(shares) * 1.3  # evaluation and optimiser


@contextmanager
def keeping_threads() -> Iterator[None]:
    """Give the process its number of threads back afterwards: an estimator is a guest in the process of its user."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def fitting_epochs(seconds: float, most: int, budget: float = SECONDS) -> int:
    """As many epochs as fit the time that a first answer may take.

    >>> fitting_epochs(0.1, 200), fitting_epochs(5.0, 200), fitting_epochs(1000.0, 200)
    (200, 40, 4)
    """
    return int(min(most, max(min(LEAST_EPOCHS, most), budget / max(seconds, 1e-9))))


def fit_epochs(run: Run, splits: Splits, folder: Path | None = None, budget: float = SECONDS) -> tuple[Run, float]:
    """The run with as many epochs as fit the time, and the seconds of one; an interrupted run keeps its own."""
    seconds = seconds_per_epoch(run, splits)
    if folder is not None and (folder / CONFIG).exists():
        epochs = load_run(folder)[0].schedule.epochs
    else:
        epochs = fitting_epochs(seconds, run.schedule.epochs, budget)
    return replace(run, schedule=replace(run.schedule, epochs=epochs)), seconds


def sized(run: Run, splits: Splits, seconds: float = 0.0) -> list[str]:
    """Weights, epochs, time and memory of a run, a line each."""
    weights = sum(weight.numel() for weight in run.model.build(splits.shapes).parameters())
    batches = f", batches of {run.batch_size}" if run.batch_size > 1 else ""
    lines = [f"model: {weights:,} weights; at most {run.schedule.epochs} epochs{batches}"]
    if seconds:
        minutes, memory = seconds * run.schedule.epochs / 60, peak_memory()
        threads = torch.get_num_threads()
        each = f"{seconds:.2g} s an epoch on {threads} thread{'s'[: threads > 1]}"
        lines.append(f"about {minutes:.1f} minutes at most ({each}), {memory:.1f} GB so far (--epochs, --minutes)")
    return lines


def peak_memory() -> float:
    """The most memory that this process has held, in GB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)
