"""Lightning's trainer, set up for a run."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import Callback, LearningRateMonitor
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.strategies import DDPStrategy

from anyorder.training.machine import Machine
from anyorder.training.progress import EpochLines, RunProgress, seen
from anyorder.training.run import Run
from anyorder.training.states import AtomicCheckpointIO

LOGS = "logs"


class Processes(DDPStrategy):
    """Data-parallel processes that evaluate on their own: some may have fewer batches than others."""

    def validation_step(self, *args: Any, **kwargs: Any) -> Any:
        assert self.lightning_module is not None
        with self.precision_plugin.val_step_context():
            return self.lightning_module.validation_step(*args, **kwargs)

    def test_step(self, *args: Any, **kwargs: Any) -> Any:
        assert self.lightning_module is not None
        with self.precision_plugin.test_step_context():
            return self.lightning_module.test_step(*args, **kwargs)


def make_trainer(
    run: Run, folder: Path, machine: Machine, callbacks: Sequence[Callback], *, state: dict[str, Any] | None = None
) -> pl.Trainer:
    """The trainer of a run; it resumes the ``state`` of an interrupted one, whose steps have been logged before."""
    extra: list[Callback] = [LearningRateMonitor("step")]
    bar = machine.progress and seen()
    if machine.progress:
        extra.append(RunProgress(run) if bar else EpochLines(run))
    several = machine.processes > 1
    on_gpu = machine.accelerator in ("gpu", "cuda", "auto") and torch.cuda.is_available()
    try:
        return pl.Trainer(
            accelerator=machine.accelerator,
            devices=machine.devices,
            num_nodes=machine.nodes,
            strategy=Processes(find_unused_parameters=True) if several else "auto",
            sync_batchnorm=several and on_gpu,  # PyTorch has none on the CPU
            precision=machine.precision,  # type: ignore[arg-type]
            max_epochs=run.schedule.epochs,
            check_val_every_n_epoch=run.schedule.evaluate_every,
            accumulate_grad_batches=run.accumulate,
            gradient_clip_val=run.optimiser.clip,
            callbacks=[*callbacks, *extra],
            plugins=[AtomicCheckpointIO(state)],
            logger=TensorBoardLogger(
                str(folder), name="", version=LOGS, purge_step=None if state is None else state["global_step"]
            ),
            enable_checkpointing=False,
            enable_model_summary=False,
            enable_progress_bar=bar,
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
        )
    except MisconfigurationException as error:
        raise ValueError(f"cannot run on this machine: {error}") from error


def quiet() -> None:
    """Leave the terminal to the progress bar: what matters is said by this package."""
    for name in ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")
    warnings.filterwarnings("ignore", message=".*isinstance.treespec, LeafSpec.*")
