"""Carrying out a run: train, keep the best and the last state, test, write the record."""

from __future__ import annotations

import math
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities.exceptions import SIGTERMException
from torch import nn

from anyorder.files import remove_unfinished
from anyorder.ops.backends import use_compiling
from anyorder.training.checkpoints import LAST, load_run, save_config, save_model
from anyorder.training.config import from_data
from anyorder.training.jobs import JOB, Job
from anyorder.training.keeper import Keeper
from anyorder.training.loaders import Loaders
from anyorder.training.lock import holding
from anyorder.training.machine import Machine
from anyorder.training.module import TaskModule
from anyorder.training.processes import is_main, naming_lost_peers
from anyorder.training.records import RECORD, Record, write_record
from anyorder.training.run import DirectTask, Run, Splits
from anyorder.training.signals import Stopped, heeding_signals
from anyorder.training.states import MARK, check_state, read_state
from anyorder.training.trainer import LOGS, make_trainer, quiet
from anyorder.weights import WEIGHTS

__all__ = ["Job", "Machine", "carry_out", "execute", "resume"]


def execute(
    job: Job,
    out: Path,
    machine: Machine | None = None,
    *,
    force: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Record:
    """Run a job, or resume it where it was interrupted; a finished one is read, not repeated."""
    folder = job.folder(out)
    if (folder / RECORD).exists() and not force:
        record = Record.read(folder / RECORD)
        if not _is_of(record.config, job.run):
            raise ValueError(f"{folder} holds a finished run with other settings: --force replaces it, --out keeps it")
        if not record.unfinished:
            return record
    return carry_out(job, folder, machine or Machine(), fresh=force, callbacks=callbacks)


def resume(folder: Path, machine: Machine | None = None, *, callbacks: Sequence[Callback] = ()) -> Record:
    """Resume an interrupted run, with the result it would have had; by default on the machine it began on."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not the folder of a run")
    if (folder / RECORD).exists() and not (record := Record.read(folder / RECORD)).unfinished:
        return record
    job, began = Job.read(folder)
    return carry_out(job, folder, machine or began, callbacks=callbacks)


def carry_out(
    job: Job,
    folder: Path,
    machine: Machine,
    *,
    fresh: bool = False,
    callbacks: Sequence[Callback] = (),
    then: str = "",
) -> Record:
    """Train from the last state in the folder, or from the start; then test and write the record.

    Where the caller has more to do, ``then`` says what: the record is unfinished until it is written without that.

    Nobody else may work in the folder. SIGTERM and SIGINT end the training after its step, with its state saved.
    """
    quiet()
    machine = machine.placed()
    if isinstance(job.run.task, DirectTask):
        return job.run.task.carry_out(job, folder, machine, fresh=fresh)
    _check(job.run)
    repeatable = use_compiling("wait")  # loops that take over when they are ready would change bits from run to run
    with heeding_signals(), holding(folder) if is_main() else nullcontext(), going_on(folder), repeatable:
        return _train_and_test(job, folder, machine, fresh=fresh, callbacks=callbacks, then=then)


@contextmanager
def going_on(folder: Path) -> Iterator[None]:
    """Say with a signal that ends the block how to resume."""
    try:
        yield
    except (Stopped, SIGTERMException, KeyboardInterrupt) as stop:
        saved = f"its state is saved: `anyorder resume {folder}` resumes it"
        again = "nothing was trained yet: run the command again"
        signals = {KeyboardInterrupt: signal.SIGINT, SIGTERMException: signal.SIGTERM}
        number = stop.number if isinstance(stop, Stopped) else signals[type(stop)]
        raise Stopped(number, saved if (folder / LAST).exists() and (folder / JOB).exists() else again) from stop


def _train_and_test(
    job: Job, folder: Path, machine: Machine, *, fresh: bool, callbacks: Sequence[Callback], then: str
) -> Record:
    run = job.run
    torch.manual_seed(run.seed)
    splits = run.task.load(seed=run.seed, data_dir=machine.data_dir)
    model = run.model.build(splits.shapes)
    state = None if fresh else _last_state(folder, run, splits, model)
    keeper = Keeper(folder, run, save_every=machine.save_every, minutes=machine.minutes)
    trainer = make_trainer(run, folder, machine, [keeper, *callbacks], state=state)
    if trainer.is_global_zero:
        _prepare(folder, job, machine, splits, anew=state is None)
    loaders = Loaders(run, rank=trainer.global_rank, world=trainer.world_size, workers=machine.workers)
    epoch, start = (0, 0) if state is None else state[MARK]["place"]
    ckpt_path = None if state is None else str(folder / LAST)
    del state  # its weights are the trainer's to read, once
    train, shares = loaders.train(splits.train, epoch=epoch, start=start)
    steps = len(shares) // run.accumulate
    trainer.log_every_n_steps = max(1, min(50, steps // 10))  # type: ignore[attr-defined]
    module = TaskModule(run, model, steps_per_epoch=steps, idle=shares.idle, data=splits.digest)
    validation = loaders.evaluation(splits.valid) if splits.valid is not None else None
    with naming_lost_peers():
        trainer.fit(module, train, validation, ckpt_path=ckpt_path)
        keeper.use_best(trainer, module)
        trainer.test(module, loaders.evaluation(splits.test), verbose=False)
    record = _record(job, machine, module, keeper)
    record = replace(record, unfinished=record.unfinished or then)
    if trainer.is_global_zero:
        _finish(folder, record, run, model, splits)
    trainer.strategy.barrier()
    return record


def _check(run: Run) -> None:
    if run.schedule.patience is not None and run.task.selection is None:
        raise ValueError(
            f"schedule.patience needs a metric that selects the epoch: {type(run.task).__name__} has none and keeps the last"
        )


def _last_state(folder: Path, run: Run, splits: Splits, model: nn.Module) -> dict[str, Any] | None:
    """The training state in a folder, if there is one; it must be of this run and of these data."""
    path = folder / LAST
    if not path.exists():
        return None
    state = read_state(path)
    began, known = load_run(folder)
    if began != run or not _is_of(state[MARK].get("run"), run, but_schedule=True):
        raise ValueError(f"{folder} holds an interrupted run with other settings: remove it, or use another --out")
    digest = state[MARK].get("data")  # none in states of earlier versions
    if not _alike(known.to_data(), splits.shapes.to_data()) or (digest and splits.digest and digest != splits.digest):
        raise ValueError(
            f"the data changed since the training in {folder} began, and what was trained on could be tested on: "
            "remove the folder to begin anew, or use another --out"
        )
    check_state(path, state, model)
    _say_threads(state[MARK].get("threads"))
    return state


def _say_threads(began: Any) -> None:
    """Other threads take sums in another order: say that the result is the same but for rounding, and not to the bit."""
    now = torch.get_num_threads()
    if isinstance(began, int) and began != now and is_main():
        print(
            f"this training began on {began} threads and goes on with {now}: results may differ in the last digits "
            f"(OMP_NUM_THREADS={began} keeps them)",
            file=sys.stderr,
        )


def _is_of(config: Any, run: Run, *, but_schedule: bool = False) -> bool:
    """Whether a configuration as it was written is that of the run; settings that came later have their defaults."""
    try:
        written = from_data(config)
    except (TypeError, ValueError):
        return False
    if but_schedule and isinstance(written, Run):
        written = replace(written, schedule=run.schedule)
    return bool(written == run)


def _alike(first: Any, second: Any) -> bool:
    """Whether two descriptions of data agree in all that both have, numbers but for rounding."""
    if isinstance(first, dict) and isinstance(second, dict):
        return all(_alike(first[name], second[name]) for name in first.keys() & second.keys())
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_alike, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=1e-5, abs_tol=1e-8)
    return bool(first == second)


def _prepare(folder: Path, job: Job, machine: Machine, splits: Splits, *, anew: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    remove_unfinished(folder)
    if anew:
        for path in (folder / RECORD, folder / LAST, folder / WEIGHTS, *folder.glob("best-*.safetensors")):
            path.unlink(missing_ok=True)
        shutil.rmtree(folder / LOGS, ignore_errors=True)
    job.write(folder, machine)
    save_config(folder, job.run, splits.shapes)


def _finish(folder: Path, record: Record, run: Run, model: nn.Module, splits: Splits) -> None:
    save_model(folder, run, model, splits.shapes)
    write_record(folder, record)


def _record(job: Job, machine: Machine, module: TaskModule, keeper: Keeper) -> Record:
    return job.record(
        {**module.tested, **job.run.task.from_history(module.history)},
        module.history,
        seconds=keeper.seconds,
        parameters=sum(weight.numel() for weight in module.model.parameters()),
        processes=machine.processes,
        precision=machine.precision,
        unfinished=keeper.unfinished,
    )
