"""Runs of a second, for tests of training: short chains, and one weight that moves by one a step."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from anyorder.experiments import find
from anyorder.training.config import configurable
from anyorder.training.fit import Job, Machine
from anyorder.training.module import TaskModule
from anyorder.training.run import ModelConfig, Optimiser, Run, Schedule, Selection, Splits, Task

SMALL = (
    "task.train_chains=7",
    "task.train_length=5",
    "task.valid_chains=3",
    "task.test_chains=3",
    "task.test_length=6",
    "batch_size=3",
    "eval_batch_size=2",
    "schedule.epochs=2",
)
QUIET = Machine(progress=False, accelerator="cpu")
EVERY_STEP = Machine(progress=False, accelerator="cpu", save_every=0.0)


def chains(row: str = "mlp-pi-s", *overrides: str, seed: int = 0) -> Job:
    """A job on seven short chains: three steps an epoch."""
    return Job.of(find(f"chains/{row}"), scale="quick", seed=seed, overrides=(*SMALL, *overrides))


def settings(*overrides: str) -> list[str]:
    """The same for the command line."""
    return [part for text in (*SMALL, *overrides) for part in ("--set", text)]


def weights(folder: Path) -> dict[str, Tensor]:
    return safetensors.torch.load_file(folder / "model.safetensors")


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    """Equal to the last bit."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def largest_difference(first: dict[str, Tensor], second: dict[str, Tensor]) -> float:
    assert first.keys() == second.keys()
    return max(float((first[name] - second[name]).abs().max()) for name in first)


class Interrupted(BaseException):
    """Like a signal: nothing in the way catches it."""


def interrupt_at(monkeypatch: Any, batch: int) -> None:
    """Let training end before the batch of this number, counted through all epochs."""
    train = TaskModule.training_step

    def step(self: TaskModule, *args: Any) -> Tensor:
        if self.trainer.fit_loop.epoch_loop.total_batch_idx == batch:
            raise Interrupted
        return train(self, *args)

    monkeypatch.setattr(TaskModule, "training_step", step)


def command(*arguments: object, launcher: Sequence[str] = (), env: dict[str, str] | None = None) -> list[str]:
    """The command line of anyorder in a process of its own."""
    return [*(launcher or (sys.executable,)), "-m", "anyorder", *map(str, arguments)]


def run_command(line: Sequence[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user would, free of what a launcher around the tests may have set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "TORCHELASTIC_"))}
    for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        kept.pop(name, None)
    return subprocess.run(
        line, capture_output=True, text=True, timeout=600, env={**kept, "OMP_NUM_THREADS": "1", **environment}
    )


@configurable
@dataclass(frozen=True)
class OneWeight(ModelConfig):
    """A weight that begins at 5."""

    def build(self, shapes: dict[str, Any]) -> nn.Module:
        model = nn.Module()
        model.weight = nn.Parameter(torch.tensor([5.0]))
        return model


@configurable
@dataclass(frozen=True)
class Downhill(Task):
    """The loss is the weight itself; the score is best where the weight is 2, the test tells the weight."""

    metric: str = "score"
    mode: str = "max"
    scale: float = 1.0

    @property
    def selection(self) -> Selection | None:
        return Selection(self.metric, "max" if self.mode == "max" else "min")

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        items = TensorDataset(torch.zeros(4))
        return Splits(items, items, items)

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        return list

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        return self.scale * model.weight.sum()

    def evaluate(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        return {"weight": model.weight.detach().expand(len(batch))}

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        assert len(collected["weight"]) == 4  # every item once
        weight = float(collected["weight"][0])
        return {"score": -((weight - 2.0) ** 2), "error": abs(weight - 2.0), "weight": weight}


def downhill(*, task: Downhill | None = None, optimiser: Optimiser | None = None, **schedule: Any) -> Job:
    """A job whose weight is 5 - t after t steps; one step an epoch."""
    plan = Schedule(**{"epochs": 9, **schedule})
    # Adam goes by the learning rate as long as the gradient stays the same.
    run = Run(task or Downhill(), OneWeight(), optimiser or Optimiser(learning_rate=1.0), plan, batch_size=4)
    return Job("own/downhill", "own", "numbers", "weight", run)
