"""The one Lightning module: it trains any task."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from anyorder.layers import redraw_features
from anyorder.ops.allocation import Holes
from anyorder.training.config import to_data
from anyorder.training.run import Run
from anyorder.training.states import MARK


class TaskModule(pl.LightningModule):
    """Loss, schedule, evaluation and random states of a run.

    Random numbers of a training step depend on (seed, step, process) alone, so that a run continues after an interruption
    exactly as if there had been none.
    """

    def __init__(self, run: Run, model: nn.Module, steps_per_epoch: int, idle: Collection[int] = (), data: str = "") -> None:
        """``idle``: numbers of the batches of this epoch that count for nothing, see ``Shares``; ``data``: their digest."""
        super().__init__()
        self.idle, self.data = idle, data
        self.run, self.model, self.steps_per_epoch = run, model, steps_per_epoch
        self.history: list[dict[str, float]] = []
        self.tested: dict[str, float] = {}
        self.evaluated: dict[str, float] | None = None
        """Metrics of the validation set in this epoch."""
        self.place = (0, 0)
        """Epoch and batch from which a saved state resumes."""
        self._collected: dict[str, list[dict[str, Tensor]]] = {}
        self._losses = (0.0, 0)  # sum over items and number of items since the last epoch's end
        self._holes = Holes(growth=2.0)
        self._items = 0  # since the last optimiser step
        self._average: list[AveragedModel] = []  # in a list: its weights are not trained
        self._restored: dict[str, Any] | None = None

    def configure_optimizers(self) -> Any:
        options = self.run.optimiser
        kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop}
        rates: dict[str, Any] = {"lr": options.learning_rate, "weight_decay": options.weight_decay}
        if options.name != "rmsprop" and options.clip is None:
            rates["fused"] = True  # all parameters in one pass; with mixed precision it does not go with clipping
        optimiser = kinds[options.name](self.model.parameters(), **rates)
        schedule = self.run.schedule
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: schedule.factor(step, self.steps_per_epoch))
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_fit_start(self) -> None:
        if self.run.optimiser.average:
            average = AveragedModel(self.model, multi_avg_fn=get_ema_multi_avg_fn(self.run.optimiser.average))
            if self._restored is not None:
                average.load_state_dict(self._restored)
            self._average = [average.eval()]

    def optimizer_step(self, *given: Any, **options: Any) -> None:
        super().optimizer_step(*given, **options)
        for average in self._average:
            average.update_parameters(self.model)

    @property
    def shown(self) -> nn.Module:
        """What is evaluated while it trains, and kept: the averaged weights, if there are any."""
        return self._average[0].module if self._average else self.model

    @property
    def shares(self) -> int:
        """Into how many parts a global batch is cut: processes times accumulated steps."""
        return self.trainer.world_size * self.run.accumulate

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        position = self.trainer.fit_loop.epoch_loop.total_batch_idx
        torch.manual_seed(((self.run.seed * 1_000_003 + position) * 65_537 + self.global_rank) % 2**63)
        redraw_features(self.model, self.global_step)

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._holes.after_item()

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        loss = self.run.task.loss(self.model, batch)
        value, count = float(loss.detach()), 0 if batch_idx in self.idle else self.run.task.num_items(batch)
        if not bool(loss.isfinite()):
            raise FloatingPointError(
                f"the loss is {value} at step {self.global_step}: try a lower learning rate, warm-up or clipping"
            )
        self.log("loss", loss.detach(), prog_bar=True, batch_size=1)
        self._losses = (self._losses[0] + value * count, self._losses[1] + count)
        self._items += count
        return loss if self.shares == 1 else loss * (count * self.shares / self.run.batch_size)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Make of the weighted sum over the parts of a batch the mean over its items."""
        items, self._items = self._items, 0
        if self.shares == 1:
            return
        scale = self.run.batch_size / max(1.0, self._over_processes(float(items))[0])
        for weight in self.model.parameters():
            if weight.grad is not None and scale != 1.0:
                weight.grad.mul_(scale)

    def _over_processes(self, *numbers: float) -> list[float]:
        """Sums over all processes."""
        if self.trainer.world_size == 1:
            return list(numbers)
        total = torch.tensor(numbers, device=self.device, dtype=torch.float64)
        torch.distributed.all_reduce(total)
        return [float(number) for number in total]

    def on_validation_epoch_start(self) -> None:
        self._begin_evaluation()

    def on_test_epoch_start(self) -> None:
        self._begin_evaluation()

    def _begin_evaluation(self) -> None:
        """The same random numbers in every evaluation, the same buffers (running means) in every process."""
        torch.manual_seed(self.run.seed)
        if self.trainer.world_size > 1:
            for buffer in (*self.model.buffers(), *(self.shown.buffers() if self._average else ())):
                torch.distributed.broadcast(buffer, 0)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self._collect("valid", batch, self.shown)

    def test_step(self, batch: Any, batch_idx: int) -> None:
        self._collect("test", batch, self.model)

    def _collect(self, split: str, batch: Any, model: nn.Module) -> None:
        rows = self.run.task.evaluate(model, batch)
        self._collected.setdefault(split, []).append({name: _plain(value) for name, value in rows.items()})
        self._holes.after_item()

    def on_validation_epoch_end(self) -> None:
        self.evaluated = self._finish("valid")
        named = {f"valid/{name}": value for name, value in self.evaluated.items()}
        self.log_dict(named, prog_bar=True, rank_zero_only=False)

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

    def end_epoch(self) -> dict[str, float] | None:
        """Add the epoch to the history; the metrics of its evaluation, if there was one."""
        total, count = self._over_processes(*self._losses)
        metrics, self.evaluated, self._losses = self.evaluated, None, (0.0, 0)
        entry = {"epoch": float(self.current_epoch), "step": float(self.global_step)}
        if count:
            entry["loss"] = total / count
        self.history.append({**entry, **(metrics or {})})
        return metrics

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint[MARK] = {
            "run": to_data(self.run),
            "place": list(self.place),
            "data": self.data,
            "threads": torch.get_num_threads(),
            "history": self.history,
            "losses": list(self._losses),
            "average": [average.state_dict() for average in self._average],
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        saved = checkpoint[MARK]
        self.history = list(saved["history"])
        self._losses = (saved["losses"][0], saved["losses"][1])
        self._restored = next(iter(saved.get("average", [])), None)


def _plain(value: Tensor) -> Tensor:
    """A tensor that NumPy can read, too: no half precision."""
    value = value.detach().cpu()
    return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
