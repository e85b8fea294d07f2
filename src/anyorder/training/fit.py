"""Carrying out a run: train, keep the best and the last state, test, write the record."""

from __future__ import annotations

import logging
import os
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, RichProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader, Dataset

from anyorder.extras import require
from anyorder.training.checkpoints import LAST, AtomicCheckpointIO, load_run, load_weights, read_state, save_model
from anyorder.training.config import override, to_data
from anyorder.training.files import replacing, write_json
from anyorder.training.module import TaskModule
from anyorder.training.records import RECORD, Record, commit, hardware, split_metrics, versions
from anyorder.training.run import Recipe, Run, Scale, Splits

JOB = "job.json"


@dataclass(frozen=True)
class Machine:
    """Where and how to run: nothing here may change the result beyond rounding."""

    devices: int = 1
    nodes: int = 1
    precision: str = "32-true"
    workers: int = 0
    accelerator: str = "auto"
    progress: bool = True
    data_dir: Path | None = None


@dataclass(frozen=True)
class Job:
    """A run with its place among the tables."""

    recipe: str
    table: str
    dataset: str
    row: str
    run: Run
    overrides: tuple[str, ...] = ()

    @classmethod
    def of(cls, recipe: Recipe, *, scale: Scale, seed: int, overrides: tuple[str, ...] = ()) -> Job:
        run = replace(recipe.make(scale), scale=scale, seed=seed)
        for setting in overrides:
            run = override(run, setting)
        return cls(recipe.name, recipe.table, recipe.dataset, recipe.row, run, overrides)

    def folder(self, out: Path) -> Path:
        """Where the run goes: computed from what it is."""
        variant = "".join("--" + "".join(c if c.isalnum() or c in "._-" else "-" for c in s) for s in self.overrides)
        return out / self.recipe / self.run.scale / f"seed-{self.run.seed}{variant}"

    def write(self, folder: Path) -> None:
        names = {"recipe": self.recipe, "table": self.table, "dataset": self.dataset, "row": self.row}
        write_json(folder / JOB, {**names, "overrides": list(self.overrides)})

    @classmethod
    def read(cls, folder: Path) -> Job:
        from anyorder.training.files import read_json

        names = read_json(folder / JOB)
        return cls(**{**names, "overrides": tuple(names["overrides"])}, run=load_run(folder)[0])


class Keeper(Callback):
    """Keeps the last training state and the weights of the best evaluation, and counts the seconds."""

    def __init__(self, folder: Path, run: Run) -> None:
        self.folder, self.selection = folder, run.task.selection
        self.best: float | None = None
        self.seconds = 0.0
        self._since = time.perf_counter()

    def on_train_epoch_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        value = trainer.callback_metrics.get(f"valid/{self.selection.metric}") if self.selection else None
        if self.selection is not None and value is not None and self._better(float(value), self.selection.mode):
            self.best = float(value)
            if trainer.is_global_zero:
                _save_weights(self.folder / "best.safetensors", module.model)  # type: ignore[arg-type]
        now = time.perf_counter()
        self.seconds, self._since = self.seconds + now - self._since, now
        trainer.save_checkpoint(self.folder / LAST)

    def _better(self, value: float, mode: str) -> bool:
        return self.best is None or (value > self.best if mode == "max" else value < self.best)

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "seconds": self.seconds}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best, self.seconds = state["best"], state["seconds"]


def execute(job: Job, out: Path, machine: Machine | None = None, *, force: bool = False) -> Record:
    """Run a job, or go on with it where it was interrupted; a finished one is read, not repeated."""
    folder = job.folder(out)
    if (folder / RECORD).exists() and not force:
        return Record.read(folder / RECORD)
    return carry_out(job, folder, machine or Machine())


def resume(folder: Path, machine: Machine | None = None) -> Record:
    """Go on with an interrupted run to the result it would have had."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not the folder of a run")
    if (folder / RECORD).exists():
        return Record.read(folder / RECORD)
    return carry_out(Job.read(folder), folder, machine or Machine())


def carry_out(job: Job, folder: Path, machine: Machine) -> Record:
    """Train from the last state in the folder, or from the start; then test and write the record."""
    _quiet()
    run = job.run
    torch.manual_seed(run.seed)
    splits = run.task.load(seed=run.seed, data_dir=machine.data_dir)
    model = run.model.build(splits.shapes)
    last = folder / LAST
    state = read_state(last) if last.exists() else None
    if state is not None and load_run(folder)[0] != run:
        raise ValueError(f"{folder} holds an interrupted run with another configuration: remove it or use another --out")
    if _rank() == 0:
        folder.mkdir(parents=True, exist_ok=True)
        job.write(folder)
        write_json(folder / "config.json", {"run": to_data(run), "shapes": splits.shapes})
    loaders = Loaders(run, splits, machine, state)
    module = TaskModule(run, model, steps_per_epoch=max(1, len(loaders.train().batch_sampler) // run.accumulate))
    keeper = Keeper(folder, run)
    trainer = _trainer(run, folder, machine, keeper)
    validation = loaders.evaluation(splits.valid) if splits.valid is not None else None
    trainer.fit(module, loaders.train(), validation, ckpt_path=str(last) if state is not None else None)
    if run.task.selection is not None and (folder / "best.safetensors").exists():
        trainer.strategy.barrier()
        load_weights(folder / "best.safetensors", model)
    trainer.test(module, loaders.evaluation(splits.test), verbose=False)
    record = _record(job, module, keeper)
    if trainer.is_global_zero:
        save_model(folder, run, model, splits.shapes)
        (folder / "best.safetensors").unlink(missing_ok=True)
        record.write(folder / RECORD)
    trainer.strategy.barrier()
    return record


class Loaders:
    """Data loaders of a run, which start where an interrupted run stopped."""

    def __init__(self, run: Run, splits: Splits, machine: Machine, state: dict[str, Any] | None) -> None:
        self.run, self.splits, self.machine = run, splits, machine
        self._train: DataLoader[Any] | None = None
        self._state = state

    def train(self) -> Any:
        if self._train is None:
            batches = self._batches(self.splits.train, self.run.batch_size // self.run.accumulate, shuffle=True)
            self._train = self._loader(self.splits.train, batches)
        return self._train

    def evaluation(self, data: Dataset[Any]) -> Any:
        size = self.run.eval_batch_size or self.run.batch_size
        return self._loader(data, self._batches(data, size, shuffle=False))

    def _batches(self, data: Dataset[Any], size: int, shuffle: bool) -> Any:
        world = self.machine.devices * self.machine.nodes
        place = {"rank": _rank(), "world": world}
        return self.run.task.batches(data, batch_size=size, seed=self.run.seed, shuffle=shuffle, **place)

    def _loader(self, data: Dataset[Any], batches: Any) -> DataLoader[Any]:
        workers = self.machine.workers
        return DataLoader(
            data,
            batch_sampler=batches,
            collate_fn=self.run.task.collate(self.run.model),
            num_workers=workers,
            persistent_workers=workers > 0,
        )


class Epochs(Callback):
    """Tells the batch sampler which epoch it is."""

    def on_train_epoch_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        loader: Any = trainer.train_dataloader
        loader.batch_sampler.set_epoch(trainer.current_epoch)


def _trainer(run: Run, folder: Path, machine: Machine, keeper: Keeper) -> pl.Trainer:
    callbacks: list[Callback] = [keeper, Epochs()]
    selection, schedule = run.task.selection, run.schedule
    if schedule.patience is not None and selection is not None:
        monitor = f"valid/{selection.metric}"
        callbacks.insert(0, EarlyStopping(monitor, mode=selection.mode, patience=schedule.patience, strict=False))
    if machine.progress:
        callbacks.append(RichProgressBar(leave=False))
    world = machine.devices * machine.nodes
    return pl.Trainer(
        accelerator=machine.accelerator,
        devices=machine.devices,
        num_nodes=machine.nodes,
        strategy=DDPStrategy(find_unused_parameters=True) if world > 1 else "auto",
        precision=machine.precision,  # type: ignore[arg-type]
        max_epochs=schedule.epochs,
        max_steps=schedule.max_steps or -1,
        check_val_every_n_epoch=schedule.evaluate_every,
        accumulate_grad_batches=run.accumulate,
        gradient_clip_val=run.optimiser.clip,
        callbacks=callbacks,
        plugins=[AtomicCheckpointIO()],
        logger=TensorBoardLogger(str(folder), name="", version="logs"),
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=machine.progress,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        log_every_n_steps=10,
    )


def _record(job: Job, module: TaskModule, keeper: Keeper) -> Record:
    run = job.run
    return Record(
        recipe=job.recipe,
        table=job.table,
        dataset=job.dataset,
        row=job.row,
        scale=run.scale,
        seed=run.seed,
        reduced=run.reduced,
        overrides=job.overrides,
        config=to_data(run),
        metrics=split_metrics({**module.tested, **run.task.from_history(module.history)}),
        history=module.history,
        wall_seconds=round(keeper.seconds, 3),
        parameters=sum(weight.numel() for weight in module.model.parameters()),
        versions=versions(),
        commit=commit(),
        hardware=hardware(),
    )


def _save_weights(path: Path, model: nn.Module) -> None:
    safetensors = require("safetensors.torch", "train")
    with replacing(path) as temporary:
        weights = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
        safetensors.save_file(weights, temporary)


def _rank() -> int:
    return int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", os.environ.get("LOCAL_RANK", "0"))))


def _quiet() -> None:
    """Leave the terminal to the progress bar: what matters is said by this package."""
    for name in ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.*")


