"""Tables of the paper beside what was measured, from records alone."""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from anyorder.training.curves import is_rising
from anyorder.training.records import Record

Format = Literal["text", "markdown", "csv"]
NOT_CONVERGED = "not converged"
SO_FAR = "so far"
"""Of a row without a training, part of which has not been done yet."""
SCALES = ("full", "medium", "quick")
OWN = "own"
"""The table of trainings on own data."""


@dataclass(frozen=True)
class Claim:
    """What the paper says in a table: ours against its strongest rival on a dataset, by the first metric above all."""

    title: str
    dataset: str
    metrics: tuple[str, ...]
    ours: str
    rival: str
    stands_for: str = ""
    """The dataset of the paper, where another one is measured in its place."""
    paper_rows: dict[str, str] = field(default_factory=dict)
    """The names of the rows in the paper, where they differ."""


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
    curve: str = ""
    """The metric whose curve says whether a training has converged; the first one unless named."""
    lower_is_better: bool = False
    claims: tuple[Claim, ...] = ()

    def order(self, dataset: str, scale: str, row: str) -> tuple[object, ...]:
        """Where a line of the table belongs."""
        return _place(dataset, self.datasets), _place(scale, SCALES), _place(row, self.rows)


def own_table(records: Sequence[Record], title: str) -> Table:
    """A table of trainings on own data, which no paper has values for; changed settings belong to the row."""
    metrics = dict.fromkeys(name for record in records for values in record.metrics.values() for name in values)
    names = tuple(dict.fromkeys(record.dataset for record in records))
    return Table(OWN, title, names, tuple(dict.fromkeys(record.row for record in records)), tuple(metrics))


def _place(name: str, among: Sequence[str]) -> tuple[int, str]:
    return (among.index(name), "") if name in among else (len(among), name)


@dataclass(frozen=True)
class Value:
    """Mean and deviation of a metric over seeds."""

    mean: float
    std: float
    seeds: int
    paper: str

    def text(self, digits: int) -> str:
        mean = f"{self.mean:.{digits}f}"
        return mean if self.seeds == 1 else f"{mean} ± {self.std:.{digits}f}"


@dataclass(frozen=True)
class Line:
    """A line of a table: a row of it on a dataset, or on a part of one, at a scale."""

    dataset: str
    scale: str
    row: str
    seeds: int
    values: dict[str, Value]
    parameters: int
    minutes: float
    """Of a run, on average."""
    note: str

    @property
    def size(self) -> list[str]:
        """Parameters and minutes; a method without training has neither."""
        return [f"{self.parameters:,}" if self.parameters else "-", f"{self.minutes:.1f}"]


def lines(table: Table, records: Sequence[Record], *, scale: str | None = None) -> list[Line]:
    """The measured lines of a table, in its order; records of changed recipes are left out."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in _of(table, records, scale):
        groups.setdefault((record.dataset, record.scale, record.row), []).append(record)
    found = [
        _line(table, f"{dataset} ({part})" if part else dataset, kind, row, part, group)
        for (dataset, kind, row), group in groups.items()
        for part in dict.fromkeys(part for record in group for part in record.metrics)
    ]
    return sorted(found, key=lambda line: table.order(line.dataset, line.scale, line.row))


def _line(table: Table, dataset: str, scale: str, row: str, part: str, group: Sequence[Record]) -> Line:
    seen: dict[str, list[float]] = {}
    for record in group:
        for metric, value in record.metrics.get(part, {}).items():
            seen.setdefault(metric, []).append(value)
    values = {
        metric: Value(
            statistics.fmean(numbers),
            statistics.pstdev(numbers) if all(map(math.isfinite, numbers)) else math.nan,
            len(numbers),
            table.paper.get((dataset, row, metric), ""),
        )
        for metric, numbers in seen.items()
    }
    rising = is_rising(group, table.curve or table.metrics[0], lower_is_better=table.lower_is_better)
    return Line(
        dataset,
        scale,
        row,
        seeds=max(value.seeds for value in values.values()),
        values=values,
        parameters=round(statistics.fmean(record.parameters for record in group)),
        minutes=statistics.fmean(record.wall_seconds for record in group) / 60,
        note=", ".join(([SO_FAR if _has_no_training(group) else NOT_CONVERGED] if rising else []) + _mixed(group)),
    )


def _mixed(group: Sequence[Record]) -> list[str]:
    """The kinds of mixed precision that were used; a row in single precision says nothing."""
    kinds = dict.fromkeys(str(record.hardware.get("precision", "")) for record in group)
    return [kind for kind in kinds if kind.endswith("mixed")]


def _has_no_training(group: Sequence[Record]) -> bool:
    """Whether the runs of a row list what they judged, not epochs."""
    entries = [entry for record in group for entry in record.history]
    return bool(entries) and not any("epoch" in entry for entry in entries)


def _of(table: Table, records: Sequence[Record], scale: str | None) -> list[Record]:
    """The records that belong into a table: of its recipes as they are."""
    own = table.name == OWN
    return [r for r in records if r.table == table.name and (own or not r.overrides) and scale in (None, r.scale)]


def render(table: Table, records: Sequence[Record], *, form: Format = "text", scale: str | None = None) -> str:
    """A table as text, Markdown or CSV, with the parameters of each row and the minutes that a run took on average."""
    found = lines(table, records, scale=scale)
    if form == "csv":
        return _csv(table, found)
    if not found:
        return f"{table.title}\nno records of this table yet: run `anyorder run {table.name} --all`"
    metrics = _metrics(table, found)
    own = table.name == OWN  # no paper has values for it
    head = ["dataset", "scale", "row", "seeds", *[text for m in metrics for text in ((m,) if own else (m, "paper"))]]
    cells = [[*head, "parameters", "minutes", "note"]]
    for line in found:
        shown = [line.dataset, line.scale, line.row, str(line.seeds)]
        for metric in metrics:
            value = line.values.get(metric)
            cell = ["-", ""] if value is None else [value.text(table.digits), value.paper or "-"]
            shown += cell[:1] if own else cell
        cells.append([*shown, *line.size, line.note])
    body = _markdown(cells) if form == "markdown" else _aligned(cells)
    title = f"### {table.title}\n\n" if form == "markdown" else f"{table.title}\n\n"
    notes = _notes(_of(table, records, scale), [line.note for line in found])
    return title + body + ("\n\n" + "\n".join(notes) if notes else "")


def _metrics(table: Table, found: Sequence[Line]) -> list[str]:
    """Those of the table, then the others in the order they come."""
    seen = dict.fromkeys(metric for line in found for metric in line.values)
    return [*(m for m in table.metrics if m in seen), *(m for m in seen if m not in table.metrics)]


def _notes(records: Sequence[Record], beside: Sequence[str]) -> list[str]:
    notes = [f"{kind}: {text}" for kind, text in sorted({(r.scale, r.reduced) for r in records if r.reduced})]
    notes += [f"{r.dataset}, {r.scale}, {r.row}, seed {r.seed}: {r.unfinished} so far" for r in records if r.unfinished]
    if any("mixed" in note for note in beside):
        notes.append(
            "bf16-mixed: trained and tested in mixed precision, `--precision bf16-mixed`; other rows in single precision"
        )
    if any(NOT_CONVERGED in note or SO_FAR in note for note in beside):
        notes.append(
            f"{NOT_CONVERGED}: the last tenth of the evaluations is better than the tenth before by more than 0.2 %, or "
            "there are fewer than ten"
        )
    return notes


def _aligned(cells: list[list[str]]) -> str:
    widths = [max(len(line[n]) for line in cells) for n in range(len(cells[0]))]
    rendered = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join([rendered[0], "-" * max(map(len, rendered)), *rendered[1:]])


def _markdown(cells: list[list[str]]) -> str:
    head, *rest = ["| " + " | ".join(line) + " |" for line in cells]
    return "\n".join([head, "|" + "---|" * len(cells[0]), *rest])


def _csv(table: Table, found: list[Line]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    head = ["dataset", "row", "metric", "mean", "std", "seeds", "scale", "paper", "parameters", "minutes", "note"]
    writer.writerow(head)
    for line in found:
        for metric in _metrics(table, [line]):
            value = line.values[metric]
            numbers = [f"{value.mean:.6g}", f"{value.std:.6g}", value.seeds]
            rest = [line.scale, value.paper, line.parameters, f"{line.minutes:.1f}", line.note]
            writer.writerow([line.dataset, line.row, metric, *numbers, *rest])
    return buffer.getvalue().rstrip("\n")
