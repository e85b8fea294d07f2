"""Progress bars: one for a run, one for many."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import Callback, RichProgressBar

from anyorder.training.run import Run


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
        values = shown({name: float(value) for name, value in trainer.callback_metrics.items()}, self.run)
        text = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
        self.bar.update(self.task, completed=trainer.current_epoch + 1, description=f"{self.name}: {text}")


def shown(found: dict[str, Any], run: Run) -> dict[str, Any]:
    """The loss and one metric of the validation set: the one that selects, or the first."""
    metrics = {name.removeprefix("valid/"): value for name, value in found.items() if name.startswith("valid/")}
    chosen = run.task.selection.metric if run.task.selection is not None else next(iter(metrics), "")
    loss = {"loss": found["loss"]} if "loss" in found else {}
    return {**loss, **({chosen: metrics[chosen]} if chosen in metrics else {})}
