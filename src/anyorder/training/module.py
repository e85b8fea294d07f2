"""The one Lightning module: it trains any task."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn

from anyorder.layers import redraw_features
from anyorder.training.run import Run


class TaskModule(pl.LightningModule):
    """Loss, schedule, evaluation and random states of a run.

    Random numbers of a training step depend on (seed, step, process) alone, so that a run continues after an interruption
    exactly as if there had been none.
    """

    def __init__(self, run: Run, model: nn.Module, steps_per_epoch: int) -> None:
        super().__init__()
        self.run, self.model, self.steps_per_epoch = run, model, steps_per_epoch
        self.history: list[dict[str, float]] = []
        self.tested: dict[str, float] = {}
        self._collected: dict[str, list[dict[str, Tensor]]] = {}
        self._losses: list[float] = []

    def configure_optimizers(self) -> Any:
        options = self.run.optimiser
        kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop}
        optimiser = kinds[options.name](self.model.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay)
        schedule = self.run.schedule
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: schedule.factor(step, self.steps_per_epoch))
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        position = self.trainer.fit_loop.epoch_loop.total_batch_idx
        torch.manual_seed((self.run.seed * 1_000_003 + position) * 65_537 + self.global_rank)
        redraw_features(self.model, self.global_step)

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        loss = self.run.task.loss(self.model, batch)
        if not bool(loss.isfinite()):
            raise FloatingPointError(
                f"the loss is {float(loss)} at step {self.global_step}: try a lower learning rate, warm-up or clipping"
            )
        count = self.run.task.num_items(batch)
        self.log("loss", loss.detach(), prog_bar=True, batch_size=count)
        self._losses.append(float(loss.detach()))
        if self.trainer.world_size > 1:  # gradients are averaged over processes: weigh each by its share of the items
            total = torch.tensor(float(count), device=loss.device)
            torch.distributed.all_reduce(total)
            loss = loss * (count * self.trainer.world_size / total)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self._collect("valid", batch)

    def test_step(self, batch: Any, batch_idx: int) -> None:
        self._collect("test", batch)

    def _collect(self, split: str, batch: Any) -> None:
        rows = self.run.task.evaluate(self.model, batch)
        self._collected.setdefault(split, []).append({name: value.detach().cpu() for name, value in rows.items()})

    def on_validation_epoch_end(self) -> None:
        metrics = self._finish("valid")
        if self.trainer.sanity_checking:
            return
        self.log_dict({f"valid/{name}": value for name, value in metrics.items()}, prog_bar=True, rank_zero_only=False)
        losses, self._losses = self._losses, []
        entry = {"epoch": float(self.current_epoch), "step": float(self.global_step)}
        if losses:
            entry["loss"] = sum(losses) / len(losses)
        self.history.append({**entry, **metrics})

    def on_train_epoch_end(self) -> None:
        if self._losses:  # no validation took them
            losses, self._losses = self._losses, []
            entry = {"epoch": float(self.current_epoch), "step": float(self.global_step)}
            self.history.append({**entry, "loss": sum(losses) / len(losses)})

    def on_test_epoch_end(self) -> None:
        self.tested = self._finish("test")

    def _finish(self, split: str) -> dict[str, float]:
        """Metrics over the rows of all processes."""
        parts = self._collected.pop(split, [])
        local = {name: torch.cat([part[name] for part in parts]) for name in parts[0]} if parts else {}
        gathered: list[dict[str, Tensor]] = [local]
        if self.trainer.world_size > 1:
            received: list[Any] = [None] * self.trainer.world_size
            torch.distributed.all_gather_object(received, local)
            gathered = received
        names: list[str] = next(([*part] for part in gathered if part), [])
        return self.run.task.metrics({name: torch.cat([part[name] for part in gathered if part]) for name in names})

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["history"] = self.history

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.history = list(checkpoint.get("history", []))
