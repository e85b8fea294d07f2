"""What is kept of a run while it trains: its last state, the weights of its best evaluation, and when to stop."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.callbacks import Callback

from anyorder.suggest import nearest
from anyorder.training.checkpoints import LAST
from anyorder.training.module import TaskModule
from anyorder.training.run import Run
from anyorder.training.signals import Stopped, asked, begin_steps, end_steps
from anyorder.weights import load_weights, save_weights

_PAUSE = 5.0  # seconds between states where epochs are short
_AGREE = 32  # batches after which several processes agree on whether to save


class Keeper(Callback):
    """Saves the training state, keeps the best weights, stops early, and counts the seconds.

    After ``minutes`` it ends the training for now: ``unfinished`` says how far it is then.
    """

    def __init__(self, folder: Path, run: Run, *, save_every: float, minutes: float | None = None) -> None:
        self.folder, self.run, self.save_every = folder, run, save_every
        self.minutes = float("inf") if minutes is None else minutes
        self.unfinished = ""
        self.best: float | None = None
        self.best_epoch: int | None = None
        self.waited = 0
        self.stopped = False
        self.seconds = 0.0
        self._began = self._since = self._saved = time.perf_counter()

    def state_dict(self) -> dict[str, Any]:
        names = ("best", "best_epoch", "waited", "stopped", "seconds")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def on_fit_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        trainer.should_stop = self.stopped
        self._began = self._since = self._saved = time.perf_counter()

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        begin_steps()
        self._evaluate_the_last_epoch(trainer)

    def on_train_epoch_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        self._evaluate_the_last_epoch(trainer)

    def _evaluate_the_last_epoch(self, trainer: pl.Trainer) -> None:
        if trainer.current_epoch + 1 == self.run.schedule.epochs:
            trainer.check_val_every_n_epoch = 1

    def on_train_batch_end(
        self, trainer: pl.Trainer, module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        steps = self.run.schedule.max_steps
        if steps is not None and trainer.global_step >= steps:
            trainer.should_stop, trainer.check_val_every_n_epoch = True, 1
        elif (batch_idx + 1) % self.run.accumulate == 0 and batch_idx + 1 < trainer.num_training_batches:
            self._save_within_epoch(trainer, module, batch_idx)

    def _save_within_epoch(self, trainer: pl.Trainer, module: pl.LightningModule, batch_idx: int) -> None:
        due, stop = time.perf_counter() - self._saved >= self.save_every, asked()
        if trainer.world_size > 1:  # saving is for all at once
            due, stop = trainer.strategy.broadcast((due, stop)) if (batch_idx + 1) % _AGREE == 0 else (False, None)
        if due or stop is not None:
            self._save(trainer, module, (trainer.current_epoch, batch_idx + 1))
        if stop is not None:
            raise Stopped(stop)

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        assert isinstance(module, TaskModule)
        metrics = module.end_epoch()
        if metrics is not None and self.run.task.selection is not None:
            self._judge(trainer, module, metrics)
        self.stopped = trainer.should_stop
        last = self.stopped or trainer.current_epoch + 1 == self.run.schedule.epochs
        now = time.perf_counter()
        over = not last and now - self._began >= 60 * self.minutes
        due = last or over or now - self._saved >= min(self.save_every, _PAUSE)
        over, due, stop = trainer.strategy.broadcast((over, due, asked()))
        if due or stop is not None:
            self._save(trainer, module, (trainer.current_epoch + 1, 0))
        if stop is not None:
            raise Stopped(stop)
        if over:  # after the state is saved, which does not know of it and can be resumed
            self.unfinished = f"{trainer.current_epoch + 1} of {self.run.schedule.epochs} epochs"
            trainer.should_stop = True

    def _judge(self, trainer: pl.Trainer, module: TaskModule, metrics: dict[str, float]) -> None:
        selection, patience = self.run.task.selection, self.run.schedule.patience
        assert selection is not None
        if selection.metric not in metrics:
            raise ValueError(f"there is no metric {selection.metric!r} to select by{nearest(selection.metric, metrics)}")
        value = metrics[selection.metric]
        if value == value and (self.best is None or (value > self.best if selection.mode == "max" else value < self.best)):
            self.best, self.best_epoch, self.waited = value, trainer.current_epoch, 0
            if trainer.is_global_zero:
                save_weights(self._best_path, module.shown)
            return
        self.waited += 1
        if patience is not None and self.waited >= patience:
            trainer.should_stop = True

    @property
    def _best_path(self) -> Path:
        """Named by its epoch, so that a state always finds the weights that it knows as the best."""
        return self.folder / f"best-{self.best_epoch}.safetensors"

    def _save(self, trainer: pl.Trainer, module: pl.LightningModule, place: tuple[int, int]) -> None:
        assert isinstance(module, TaskModule)
        now = time.perf_counter()
        self.seconds, self._since = self.seconds + now - self._since, now
        module.place = place
        trainer.save_checkpoint(self.folder / LAST)
        self._saved = time.perf_counter()
        if trainer.is_global_zero:
            for path in self.folder.glob("best-*.safetensors"):
                if path != self._best_path:
                    path.unlink()

    def use_best(self, trainer: pl.Trainer, module: TaskModule) -> None:
        """Put the weights of the best evaluation into the model, or the last ones if nothing is selected."""
        if self.best_epoch is not None:
            trainer.strategy.barrier()
            load_weights(self._best_path, module.model)
        elif module.shown is not module.model:
            module.model.load_state_dict(module.shown.state_dict())

    def on_train_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        end_steps()

    def on_exception(self, trainer: pl.Trainer, module: pl.LightningModule, exception: BaseException) -> None:
        end_steps()
