"""Tables of molecules whose targets are classes: names of classes to numbers and back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anyorder.errors import InputError
from anyorder.experiments.molecules.sources import MISSING, MoleculeTable, Target

MOST_LABELS = 200


@dataclass(frozen=True)
class LabelTable(MoleculeTable):
    """A table whose targets are names of classes; their number in ``labels`` is the target."""

    labels: tuple[tuple[str, ...], ...] = ()

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "labels": [list(known) for known in self.labels]}

    def _number(self, text: str, target: Target, where: str) -> float:
        known = self.labels[self.targets.index(target)]
        text = label_text(text)
        if text in known:
            return float(known.index(text))
        if text:
            raise InputError(f"{where}: target {target.column!r} is {text!r}, expected one of {', '.join(known)}")
        return super()._number("", target, where)


def label_text(text: str) -> str:
    """A class as it is named everywhere: whole numbers without a decimal point, nothing where it is missing.

    >>> label_text(" 1.0 "), label_text("toxic"), label_text("NaN")
    ('1', 'toxic', '')
    """
    text = text.strip()
    if text.lower() in MISSING:
        return ""
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if math.isfinite(number) and number.is_integer() else text


def find_labels(table: MoleculeTable) -> LabelTable:
    """The same table with the classes that occur in each target column, in their natural order."""
    found: list[set[str]] = [set() for _ in table.targets]
    for texts in _texts(table):
        for known, text in zip(found, texts, strict=True):
            known.add(label_text(text))
            if len(known) > MOST_LABELS:
                column = table.targets[found.index(known)].column
                raise InputError(
                    f"column {column!r} of {table.path} has more than {MOST_LABELS} different values: "
                    "that looks like numbers to predict, not classes"
                )
    labels = tuple(tuple(sorted(known - {""}, key=_natural)) for known in found)
    for target, names in zip(table.targets, labels, strict=True):
        if len(names) < 2:
            raise InputError(f"column {target.column!r} of {table.path} needs at least two classes, found {list(names)}")
    fields = {name: getattr(table, name) for name in ("path", "smiles", "targets", "keep_missing")}
    return LabelTable(**fields, labels=labels)


def _texts(table: MoleculeTable) -> Iterator[list[str]]:
    """The cells of the target columns of every row."""
    with table.cells() as (header, rows):
        places = [table.column(header, target.column) for target in table.targets]
        for _, cells in rows:
            yield [cells[place] for place in places]


def _natural(label: str) -> tuple[bool, float, str]:
    try:
        return (False, float(label), label)
    except ValueError:
        return (True, 0.0, label)
