"""Predictions for a table of SMILES: CSV in, CSV out, row by row in the same order, in constant memory."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from anyorder.experiments.molecules.beside import Beside
from anyorder.experiments.molecules.graphs import UnreadableMoleculeError
from anyorder.experiments.molecules.inputs import MoleculeInputs
from anyorder.experiments.molecules.models import MoleculeModel
from anyorder.experiments.molecules.sources import MoleculeTable
from anyorder.experiments.molecules.store import Molecule
from anyorder.extras import require
from anyorder.files import replacing
from anyorder.ops.allocation import without_holes
from anyorder.training.answers import finite_answers
from anyorder.training.run import PredictRequest

CHUNK_ROWS = 256
MOST_LISTED = 10


@dataclass
class RowOutcome:
    """What became of the rows so far."""

    rows: int = 0
    bad: list[str] = field(default_factory=list)


def predict_table(model: nn.Module, request: PredictRequest, *, smiles: str) -> str:
    """Write the table of a request with predictions beside its columns; rows without a molecule stay empty there."""
    from anyorder.training.checkpoints import load_run

    if request.input is None:
        raise ValueError("name a table of molecules with --input FILE")
    config = load_run(request.folder)[0].model
    assert isinstance(config, MoleculeModel)
    table = MoleculeTable(request.input, request.options.get("smiles", smiles))
    if not table.path.is_file():
        raise FileNotFoundError(f"there is no table {table.path}")
    output = request.output or table.path.with_name(f"{_stem(table.path)}-predictions.csv")
    if output.suffix == ".gz":
        raise ValueError(f"predictions are written as plain text: expected a name that ends in .csv, got {output}")
    outcome = RowOutcome()
    with replacing(output) as temporary:
        with temporary.open("w", encoding="utf-8", newline="") as file, _bar(table.path.name) as advance:
            predict = _predictions(model, config.inputs, Beside.load(request.folder))
            _write(table, csv.writer(file), predict, outcome, advance)
        if outcome.rows == 0:
            raise ValueError(f"{table.path} has a header but no rows")
        if len(outcome.bad) == outcome.rows:
            raise ValueError(f"no row of {table.path} is a molecule; the first: {outcome.bad[0]}")
    return _message(outcome, output)


def read_molecules(texts: Sequence[str]) -> tuple[list[Molecule], list[int], dict[int, str]]:
    """The molecules of some SMILES with their places, and what is wrong with the others."""
    molecules, places, problems = [], [], {}
    for place, text in enumerate(texts):
        try:
            molecules.append(Molecule.from_smiles(text, row=place))
            places.append(place)
        except UnreadableMoleculeError as error:
            problems[place] = str(error)
    return molecules, places, problems


def answer(model: nn.Module, inputs: MoleculeInputs, beside: Beside | None, molecules: Sequence[Molecule]) -> Tensor:
    """What a model answers for molecules, with the forest that may stand beside it."""
    out: Tensor = model(inputs(molecules))
    return out if beside is None else beside.blended(model.goal, out, [each.smiles for each in molecules])  # type: ignore[arg-type]


Predict = Callable[[Sequence[Molecule]], dict[str, list[str]]]


def _predictions(model: nn.Module, inputs: MoleculeInputs, beside: Beside | None) -> Predict:
    def predict(molecules: Sequence[Molecule]) -> dict[str, list[str]]:
        with torch.inference_mode():
            out = finite_answers(answer(model, inputs, beside, molecules), "molecules")
            columns: dict[str, list[str]] = model.goal.columns(out)  # type: ignore[union-attr,operator]
        return columns

    return predict


def _write(table: MoleculeTable, writer: Any, predict: Predict, outcome: RowOutcome, advance: Callable[[int], None]) -> None:
    names = [*predict([Molecule.from_smiles("C")])]
    with table.cells() as (header, lines):
        place = table.column(header, table.smiles)
        clash = [name for name in names if name in header]
        if clash:
            raise ValueError(f"{table.path} has a column {clash[0]!r} already: rename it to make room for the predictions")
        writer.writerow([*header, *names])
        for chunk in without_holes(iter(lambda: list(islice(lines, CHUNK_ROWS)), [])):
            molecules, places, problems = read_molecules([cells[place].strip() for _, cells in chunk])
            columns = predict(molecules) if molecules else {}
            found = dict(zip(places, zip(*columns.values(), strict=True), strict=True)) if molecules else {}
            for number, (where, cells) in enumerate(chunk):
                if number in problems:
                    outcome.bad.append(f"{where}: {cells[place]!r}: {problems[number]}")
                writer.writerow([*cells, *found.get(number, [""] * len(names))])
            outcome.rows += len(chunk)
            advance(len(chunk))


def _message(outcome: RowOutcome, output: Path) -> str:
    lines = [f"{outcome.rows - len(outcome.bad)} predictions in {output}"]
    if outcome.bad:
        lines.append(f"{len(outcome.bad)} of {outcome.rows} rows have none, because their SMILES gives no molecule:")
        lines += [f"  {text}" for text in outcome.bad[:MOST_LISTED]]
        if len(outcome.bad) > MOST_LISTED:
            lines.append(f"  and {len(outcome.bad) - MOST_LISTED} more: the rows without a prediction in the file")
    return "\n".join(lines)


def _stem(path: Path) -> str:
    """The name of a table without its endings.

    >>> _stem(Path("data/new.csv.gz"))
    'new'
    """
    return path.name.removesuffix(".gz").removesuffix(".csv")


@contextmanager
def _bar(title: str) -> Iterator[Callable[[int], None]]:
    progress = require("rich.progress", "molecules")
    columns = (progress.TextColumn("{task.description}"), progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
    with progress.Progress(*columns, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda count: bar.advance(task, count)
