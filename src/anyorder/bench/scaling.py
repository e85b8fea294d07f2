"""Time and memory against the number of edges (the runtime figure of Sec. 5): every model and size in its own process."""

from __future__ import annotations

import csv
import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from anyorder.bench.graphs import barabasi_albert
from anyorder.bench.isolation import ProcessOutcome, isolated
from anyorder.bench.measure import Timing, measure, peak_memory, planning
from anyorder.bench.models import MODELS, Workload
from anyorder.errors import InputError, reading
from anyorder.extras import require
from anyorder.layouts import SparseIndexSet
from anyorder.ops.allocation import keep_freed_memory, resident_memory, return_freed_memory

SIZES = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
NOT_TRIED = "not tried"


@dataclass(frozen=True)
class Case:
    """A model on graphs of one size, one graph a seed."""

    model: str
    edges: int
    seeds: int = 1
    step: bool = True


@dataclass(frozen=True)
class Sample:
    """What one graph took: seconds, and bytes above what was there before the model was built."""

    nodes: int
    entries: int
    plan: float
    plan_cpu: float
    forward: Timing
    forward_memory: int
    step: Timing | None = None
    step_memory: int | None = None


@dataclass(frozen=True)
class Row:
    """A line of the CSV file: medians over seeds, most memory over seeds; empty where the model stopped before."""

    model: str
    edges: int
    status: str
    seeds: int = 0
    threads: int = 1
    nodes: int | None = None
    entries: int | None = None
    plan_seconds: float | None = None
    plan_cpu_seconds: float | None = None
    forward_seconds: float | None = None
    forward_cpu_seconds: float | None = None
    forward_bytes: int | None = None
    step_seconds: float | None = None
    step_cpu_seconds: float | None = None
    step_bytes: int | None = None
    message: str = ""


@dataclass(frozen=True)
class Limits:
    """What a model and size may take: GB besides interpreter and libraries, seconds for all seeds in each process."""

    memory: float | None = None
    time: float | None = None
    threads: int = 1


def hold_case(case: Case) -> Iterator[tuple[int, int | None]]:
    """Bytes that a forward pass and a training step take in this process, graph by graph, where freed memory is returned."""
    return_freed_memory()
    for seed in range(case.seeds):
        base, work = _work(case, seed)[1:]
        with peak_memory(base) as forward:
            work.forward()
        with peak_memory(base) as step:
            if case.step:
                work.step()
        yield forward.bytes, step.bytes if case.step else None


def time_case(case: Case) -> Iterator[Sample]:
    """Times in this process, graph by graph, in memory that is kept: so does the command whenever it trains."""
    keep_freed_memory()
    for seed in range(case.seeds):
        graph, _, work = _work(case, seed)
        with planning() as spent:
            work.forward()
        forward, step = measure(work.forward), measure(work.step) if case.step else None
        yield Sample(graph.num_nodes, graph.num_entries, spent.wall, spent.cpu, forward, 0, step)


def _work(case: Case, seed: int) -> tuple[SparseIndexSet, int, Workload]:
    """A graph, the memory before its model, and the model on it."""
    contender = MODELS[case.model]
    if seed == 0:  # compile, and load libraries, before the clocks and the memory are looked at
        torch.manual_seed(0)
        contender.on(barabasi_albert(100)).step()
    torch.manual_seed(seed)
    graph = barabasi_albert(case.edges, seed=seed)
    return graph, resident_memory(), contender.on(graph)


def run_case(case: Case, limits: Limits) -> Row:
    """Measure a case in two processes of its own: memory that is returned when freed, then time in memory that is kept."""
    options: dict[str, Any] = {"time_limit": limits.time, "threads": limits.threads}
    held = isolated(hold_case, case, memory_limit=limits.memory, **options)
    room = None if limits.memory is None else 2 * limits.memory  # kept memory is more
    timed = isolated(time_case, replace(case, seeds=len(held.results)), memory_limit=room, **options)
    samples = tuple(
        replace(sample, forward_memory=forward, step_memory=step)
        for sample, (forward, step) in zip(timed.results, held.results, strict=False)
    )
    stopped = timed if held.status == "ok" else held
    return summarise(case, ProcessOutcome(stopped.status, samples, stopped.message), limits.threads)


def summarise(case: Case, found: ProcessOutcome[Sample], threads: int) -> Row:
    """One row from the samples of a case."""
    start = Row(case.model, case.edges, found.status, len(found.results), threads, message=_last_line(found.message))
    if not found.results:
        return start
    samples = found.results
    row = replace(
        start,
        nodes=samples[0].nodes,
        entries=samples[0].entries,
        plan_seconds=statistics.median(s.plan for s in samples),
        plan_cpu_seconds=statistics.median(s.plan_cpu for s in samples),
        forward_seconds=statistics.median(s.forward.wall for s in samples),
        forward_cpu_seconds=statistics.median(s.forward.cpu for s in samples),
        forward_bytes=max(s.forward_memory for s in samples),
    )
    steps = [s.step for s in samples if s.step is not None]
    if not steps:
        return row
    return replace(
        row,
        step_seconds=statistics.median(s.wall for s in steps),
        step_cpu_seconds=statistics.median(s.cpu for s in steps),
        step_bytes=max(s.step_memory or 0 for s in samples),
    )


def _last_line(text: str) -> str:
    return text.strip().split("\n")[-1]


def run_scaling(cases: Sequence[Case], limits: Limits, out: Path, *, quiet: bool = False) -> list[Row]:
    """Measure cases one after the other, the small ones first; a model that stopped is not tried on larger graphs.

    The rows are in ``out``/scaling.csv as soon as they are known; rows that the file has already are not measured again.
    """
    progress = require("rich.progress", "train")
    path = out / "scaling.csv"
    rows = read_rows(path) if path.exists() else []
    columns = (*progress.Progress.get_default_columns()[:-1], progress.TimeElapsedColumn())
    with progress.Progress(*columns, disable=quiet) as bar:
        task = bar.add_task("", total=len(cases))
        for case in sorted(cases, key=lambda case: case.edges):
            bar.update(task, description=f"{case.model}, {case.edges:,} edges")
            if not any((row.model, row.edges, row.threads) == (case.model, case.edges, limits.threads) for row in rows):
                row = _next_row(case, rows, limits)
                rows.append(row)
                write_rows(path, rows)
                if not quiet:
                    bar.console.print(describe(row), highlight=False, soft_wrap=True)
            bar.advance(task)
    return rows


def _next_row(case: Case, rows: Sequence[Row], limits: Limits) -> Row:
    own = (row for row in rows if (row.model, row.threads) == (case.model, limits.threads))
    stop = next((row for row in own if row.status != "ok" and row.edges <= case.edges), None)
    if stop is not None:
        why = stop.message if stop.status == NOT_TRIED else f"{stop.status} at {stop.edges} edges"
        return Row(case.model, case.edges, NOT_TRIED, threads=limits.threads, message=why)
    return run_case(case, limits)


def describe(row: Row) -> str:
    """One line on a row."""
    start = f"{row.model:<16} {row.edges:>9,} edges: "
    if row.forward_seconds is None:
        return f"{start}{row.status}{f' ({row.message})' if row.message else ''}"
    text = f"{start}forward {row.forward_seconds:.4f} s, {_mega(row.forward_bytes)} MB"
    if row.step_seconds is not None:
        text += f"; step {row.step_seconds:.4f} s, {_mega(row.step_bytes)} MB"
    return f"{text}; plan {row.plan_seconds:.4f} s" + ("" if row.status == "ok" else f"; then {row.status}")


def _mega(number: int | None) -> str:
    return f"{(number or 0) / 1e6:,.0f}"


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV; the file is whole at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    os.replace(part, path)


def read_rows(path: Path) -> list[Row]:
    """Read what ``write_rows`` wrote."""
    kinds = {field.name: field.type for field in fields(Row)}
    with reading(path, "a table of timings"), path.open(newline="", encoding="utf-8") as file:
        table = csv.DictReader(file, strict=True)
        if table.fieldnames is not None and set(table.fieldnames) != set(kinds):
            raise InputError(f"{path}: expected the columns {list(kinds)}, got {list(table.fieldnames)!s:.300}")
        return [Row(**{name: _value(text, str(kinds[name])) for name, text in line.items()}) for line in table]  # type: ignore[arg-type]


def _value(text: str, kind: str) -> object:
    if kind == "str":
        return text
    if text == "":
        return None
    return int(text) if kind.startswith("int") else float(text)
