"""Tables of the paper beside what was measured, from records alone."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from anyorder.training.records import Record

Format = Literal["text", "markdown", "csv"]


@dataclass(frozen=True)
class Table:
    """A table of the paper: its datasets, rows and metrics in their order, and the values printed there."""

    name: str
    title: str
    datasets: tuple[str, ...]
    rows: tuple[str, ...]
    metrics: tuple[str, ...]
    paper: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """(dataset, row, metric) to the paper's value, with its deviation where there is one."""
    digits: int = 3


@dataclass(frozen=True)
class Cell:
    """Mean and deviation of a metric over seeds."""

    dataset: str
    row: str
    metric: str
    scale: str
    mean: float
    std: float
    seeds: int
    paper: str


def cells(table: Table, records: Sequence[Record], *, scale: str | None = None) -> list[Cell]:
    """The measured cells of a table, in its order; records of changed recipes are left out."""
    values: dict[tuple[str, str, str, str], list[float]] = {}
    for record in _of(table, records, scale):
        for part, metrics in record.metrics.items():
            dataset = f"{record.dataset} ({part})" if part else record.dataset
            for metric, value in metrics.items():
                values.setdefault((dataset, record.row, record.scale, metric), []).append(value)
    found = [
        Cell(
            dataset,
            row,
            metric,
            kind,
            statistics.fmean(seen),
            statistics.pstdev(seen) if all(map(math.isfinite, seen)) else math.nan,
            len(seen),
            table.paper.get((dataset, row, metric), ""),
        )
        for (dataset, row, kind, metric), seen in values.items()
    ]
    return sorted(found, key=lambda cell: _order(table, cell))


def _of(table: Table, records: Sequence[Record], scale: str | None) -> list[Record]:
    """The records that belong into a table: of its recipes as they are."""
    return [r for r in records if r.table == table.name and not r.overrides and scale in (None, r.scale)]


def _order(table: Table, cell: Cell) -> tuple[object, ...]:
    def place(name: str, among: tuple[str, ...]) -> tuple[int, str]:
        return (among.index(name), "") if name in among else (len(among), name)

    return (
        place(cell.dataset, table.datasets),
        cell.scale != "full",
        place(cell.row, table.rows),
        place(cell.metric, table.metrics),
    )


def render(
    table: Table, records: Sequence[Record], *, form: Format = "text", scale: str | None = None, times: bool = False
) -> str:
    """A table as text, Markdown or CSV; with ``times``, text and Markdown say how long the runs of a row took on average."""
    found = cells(table, records, scale=scale)
    if form == "csv":
        return _csv(found)
    if not found:
        return f"{table.title}\nno records of this table yet: run `anyorder run {table.name} --all`"
    metrics = [m for m in table.metrics if any(cell.metric == m for cell in found)]
    metrics += list(dict.fromkeys(cell.metric for cell in found if cell.metric not in metrics))
    shown = _of(table, records, scale)
    took: dict[tuple[str, str, str], list[float]] = {}
    for record in shown:
        took.setdefault((record.dataset, record.scale, record.row), []).append(record.wall_seconds)
    lines = [["dataset", "scale", "row", "seeds", *[text for m in metrics for text in (m, "paper")], *["minutes"] * times]]
    for key in dict.fromkeys((cell.dataset, cell.scale, cell.row) for cell in found):
        group = {cell.metric: cell for cell in found if (cell.dataset, cell.scale, cell.row) == key}
        line = [*key, str(max(cell.seeds for cell in group.values()))]
        for metric in metrics:
            line += _text(group.get(metric), table.digits)
        lines.append([*line, *[f"{statistics.fmean(took[key]) / 60:.1f}" if key in took else ""] * times])
    notes = [f"{kind}: {text}" for kind, text in sorted({(r.scale, r.reduced) for r in shown if r.reduced})]
    notes += [f"{r.dataset}, {r.scale}, {r.row}, seed {r.seed}: {r.unfinished} so far" for r in shown if r.unfinished]
    body = _markdown(lines) if form == "markdown" else _aligned(lines)
    title = f"### {table.title}\n\n" if form == "markdown" else f"{table.title}\n\n"
    return title + body + ("\n\n" + "\n".join(notes) if notes else "")


def _text(cell: Cell | None, digits: int) -> list[str]:
    if cell is None:
        return ["-", ""]
    mean = f"{cell.mean:.{digits}f}"
    return [mean if cell.seeds == 1 else f"{mean} ± {cell.std:.{digits}f}", cell.paper or "-"]


def _aligned(lines: list[list[str]]) -> str:
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    rendered = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([rendered[0], "-" * max(map(len, rendered)), *rendered[1:]])


def _markdown(lines: list[list[str]]) -> str:
    head, *rest = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([head, "|" + "---|" * len(lines[0]), *rest])


def _csv(found: list[Cell]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["dataset", "row", "metric", "mean", "std", "seeds", "scale", "paper"])
    for cell in found:
        numbers = [f"{cell.mean:.6g}", f"{cell.std:.6g}", cell.seeds]
        writer.writerow([cell.dataset, cell.row, cell.metric, *numbers, cell.scale, cell.paper])
    return buffer.getvalue().rstrip("\n")
