"""Progress of trainings: a bar for a run, one for many, and lines where nobody could see a bar."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import Callback, RichProgressBar

from anyorder.extras import require
from anyorder.training.run import Run

LINES_APART = 60.0  # seconds


class RunProgress(RichProgressBar):
    """The epoch, its batches, the loss and the metric that matters."""

    def __init__(self, run: Run) -> None:
        super().__init__(leave=False, refresh_rate=10)
        self.run = run

    def get_metrics(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> dict[str, Any]:
        found: dict[str, Any] = super().get_metrics(trainer, pl_module)
        return shown(found, self.run)

    def _get_train_description(self, current_epoch: int) -> str:
        return f"epoch {current_epoch + 1} of {self.run.schedule.epochs}"


class EpochReport(Callback):
    """Moves a bar of somebody else's forward by epochs, and says loss and metric on it."""

    def __init__(self, bar: Any, task: Any, name: str, run: Run) -> None:
        self.bar, self.task, self.name, self.run = bar, task, name, run

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self.bar.reset(self.task, total=self.run.schedule.epochs, completed=trainer.current_epoch, description=self.name)

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        text = ", ".join(f"{name} {value:.3g}" for name, value in _values(trainer, self.run).items())
        self.bar.update(self.task, completed=trainer.current_epoch + 1, description=f"{self.name}: {text}")


class EpochLines(Callback):
    """A line per epoch, at most one a minute, for output that goes to a file."""

    def __init__(self, run: Run, name: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self.run, self.name, self.clock = run, name, clock

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self.began = self.said = self.clock()
        self.first, self.steps = trainer.global_step, trainer.estimated_stepping_batches

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        now, epoch, epochs = self.clock(), trainer.current_epoch + 1, self.run.schedule.epochs
        if now - self.said < LINES_APART or not trainer.is_global_zero:
            return
        self.said = now
        left = (now - self.began) / max(1, trainer.global_step - self.first) * (self.steps - trainer.global_step)
        name = f"{self.name}, " if self.name else ""
        values = "".join(f", {key} {value:.4g}" for key, value in _values(trainer, self.run).items())
        print(f"{name}epoch {epoch} of {epochs}{values} ({_span(now - self.began)}, {_span(left)} left)", flush=True)


def seen() -> bool:
    """Whether a bar can be seen: on a terminal or in a notebook."""
    console = require("rich.console", "train").Console()
    return bool(console.is_terminal or console.is_jupyter)


def _span(seconds: float) -> str:
    """How long it takes, in whole units.

    >>> _span(42), _span(61 * 60)
    ('42 s', '1 h 1 min')
    """
    minutes = round(seconds / 60)
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _values(trainer: pl.Trainer, run: Run) -> dict[str, Any]:
    return shown({name: float(value) for name, value in trainer.callback_metrics.items()}, run)


def shown(found: dict[str, Any], run: Run) -> dict[str, Any]:
    """The loss and one metric of the validation set: the one that selects, that scores the task, or the first."""
    metrics = {name.removeprefix("valid/"): value for name, value in found.items() if name.startswith("valid/")}
    wanted = (run.task.selection.metric,) if run.task.selection is not None else (run.task.score_name, *metrics)
    chosen = next((name for name in wanted if name in metrics), "")
    loss = {"loss": found["loss"]} if "loss" in found else {}
    return {**loss, **({chosen: metrics[chosen]} if chosen in metrics else {})}
