"""Running many jobs one after the other, with progress."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lightning.pytorch.callbacks import Callback

from anyorder.extras import require
from anyorder.training.fit import Job, Machine, execute
from anyorder.training.processes import is_main
from anyorder.training.progress import EpochLines, EpochReport, seen
from anyorder.training.records import Record


def run_all(jobs: Sequence[Job], out: Path, machine: Machine, *, force: bool = False) -> list[Record]:
    """Carry out jobs; finished ones are not repeated, interrupted ones are resumed."""
    machine = machine.placed()
    if len(jobs) == 1:
        record = execute(jobs[0], out, machine, force=force)
        print(summary(record))
        print(f"in {jobs[0].folder(out)}")
        return [record]
    with _bars(machine) as bars:
        records, failed = _run_each(jobs, out, machine, bars, force=force)
    print(f"{len(records)} runs in {out}; `anyorder table {jobs[0].table} --records {out}` shows them")
    if failed:
        raise ValueError(f"{len(failed)} of {len(jobs)} runs failed: {', '.join(failed)}")
    return records


def _bars(machine: Machine) -> Any:
    progress = require("rich.progress", "train")
    columns = (*progress.Progress.get_default_columns()[:-1], progress.TimeElapsedColumn(), progress.TimeRemainingColumn())
    return progress.Progress(*columns, disable=not (machine.progress and is_main()))


def _run_each(jobs: Sequence[Job], out: Path, machine: Machine, bars: Any, *, force: bool) -> tuple[list[Record], list[str]]:
    """The records of the jobs, and the names of those that failed while the others went on."""
    records: list[Record] = []
    failed: list[str] = []
    every, current = bars.add_task("runs", total=len(jobs)), bars.add_task("")
    for job in jobs:
        name = f"{job.recipe}, seed {job.run.seed}"
        reports: list[Callback] = [EpochReport(bars, current, name, job.run)]
        if machine.progress and not seen():
            reports.append(EpochLines(job.run, name))
        try:
            record = execute(job, out, replace(machine, progress=False), force=force, callbacks=reports)
        except (OSError, ValueError, ModuleNotFoundError, FloatingPointError) as error:
            if machine.processes > 1 or getattr(error, "errno", None) == errno.ENOSPC:
                raise
            failed.append(name)
            bars.console.print(f"{name} failed: {error}", highlight=False, markup=False, soft_wrap=True)
        else:
            records.append(record)
            bars.console.print(summary(record), highlight=False, markup=False, soft_wrap=True)
        bars.advance(every)
    bars.remove_task(current)
    return records, failed


def summary(record: Record) -> str:
    """One line on a run."""
    parts = []
    for part, values in record.metrics.items():
        parts += [f"{part + ' ' if part else ''}{name} {value:.4g}" for name, value in values.items()]
    took = f"{record.wall_seconds:.0f} s" + (f", {record.unfinished} so far" if record.unfinished else "")
    return f"{record.recipe} [{record.scale}, seed {record.seed}] {', '.join(parts)} ({took})"
