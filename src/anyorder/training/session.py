"""Running many jobs one after the other, with progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from anyorder.extras import require
from anyorder.training.fit import Job, Machine, execute
from anyorder.training.records import Record


def run_all(jobs: Sequence[Job], out: Path, machine: Machine, *, force: bool = False) -> list[Record]:
    """Carry out jobs; finished ones are not repeated, interrupted ones go on where they stopped."""
    if len(jobs) == 1:
        record = execute(jobs[0], out, machine, force=force)
        print(summary(record))
        print(f"in {jobs[0].folder(out)}")
        return [record]
    progress = require("rich.progress", "train")
    columns = (*progress.Progress.get_default_columns()[:-1], progress.TimeElapsedColumn(), progress.TimeRemainingColumn())
    records = []
    with progress.Progress(*columns, disable=not machine.progress) as bar:
        task = bar.add_task("", total=len(jobs))
        for job in jobs:
            bar.update(task, description=f"{job.recipe}, seed {job.run.seed}")
            record = execute(job, out, replace(machine, progress=False), force=force)
            records.append(record)
            bar.console.print(summary(record), highlight=False)
            bar.advance(task)
    print(f"{len(records)} runs in {out}; `anyorder table {jobs[0].table} --records {out}` shows them")
    return records


def summary(record: Record) -> str:
    """One line on a run."""
    parts = []
    for part, values in record.metrics.items():
        parts += [f"{part + ' ' if part else ''}{name} {value:.4g}" for name, value in values.items()]
    return f"{record.recipe} [{record.scale}, seed {record.seed}] {', '.join(parts)} ({record.wall_seconds:.0f} s)"
