"""Which rows train, choose the epoch and test: at random, in folds, by a column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anyorder.experiments.graphs.columns import Columns, Ints
from anyorder.extras import require

_NAMES = {
    "train": "train",
    "training": "train",
    "valid": "valid",
    "val": "valid",
    "validation": "valid",
    "dev": "valid",
    "test": "test",
    "testing": "test",
}


@dataclass(frozen=True, eq=False)
class RowParts:
    """Rows of a level, by what they are for."""

    train: Ints
    valid: Ints
    test: Ints

    def check(self, what: str) -> RowParts:
        """Refuse a part without rows."""
        for name in ("train", "valid", "test"):
            if len(getattr(self, name)) == 0:
                raise ValueError(f"the {name} part has no {what}: more data or other shares are needed")
        return self


def random_parts(rows: Ints, labels: Ints | None, *, valid: float, test: float, seed: int) -> RowParts:
    """Parts at random, with the same shares of each class (``labels`` of the rows) but for rounding, and one to train."""
    if min(valid, test) <= 0 or valid + test >= 1:
        raise ValueError(f"valid and test must be shares above 0 and together below 1, got {valid} and {test}")
    random = np.random.default_rng(seed)
    groups = [np.arange(len(rows))] if labels is None else [np.flatnonzero(labels == value) for value in np.unique(labels)]
    found: dict[str, list[Ints]] = {"train": [], "valid": [], "test": []}
    for group in groups:
        order, draw = rows[random.permutation(group)], random.random()
        tested, held = (int(np.floor(share * len(group) + draw)) for share in (test, valid + test))
        held = min(held, len(group) - 1)
        tested = min(tested, held)
        for name, part in zip(found, (order[held:], order[tested:held], order[:tested]), strict=True):
            found[name].append(part)
    train, held_back, tests = (np.sort(np.concatenate(parts)) for parts in found.values())
    if labels is not None and (len(held_back) == 0 or len(tests) == 0):
        return random_parts(rows, None, valid=valid, test=test, seed=seed)
    return RowParts(train, held_back, tests)


def fold_parts(rows: Ints, labels: Ints | None, *, folds: int, fold: int, seed: int = 0) -> RowParts:
    """Fold ``fold`` tests, the next one chooses the epoch, the others train; the folds are the same for all of them."""
    if not 0 <= fold < folds:
        raise ValueError(f"expected a fold from 0 to {folds - 1}, got {fold}")
    if len(rows) < folds or folds < 3:
        raise ValueError(f"folds must be at least 3 and at most as many as rows: got {folds} for {len(rows)} rows")
    selection = require("sklearn.model_selection", "train")
    enough = labels is not None and np.unique(labels, return_counts=True)[1].min() >= 2
    splitter = (selection.StratifiedKFold if enough else selection.KFold)(folds, shuffle=True, random_state=seed)
    tests = [test for _, test in splitter.split(np.zeros((len(rows), 1)), labels)]
    held = tests[fold], tests[(fold + 1) % folds]
    rest = np.setdiff1d(np.arange(len(rows)), np.concatenate(held))
    return RowParts(rows[rest], rows[held[1]], rows[held[0]])


def column_parts(columns: Columns, name: str, rows: Ints) -> RowParts:
    """Parts as a column says; rows where it is empty are left out."""
    if name not in columns.names:
        raise ValueError(f"there is no column {name!r} to split by: expected one of {list(columns.names)}")
    texts = columns.texts(name)
    found: dict[str, list[int]] = {"train": [], "valid": [], "test": []}
    for row in rows.tolist():
        text = texts[row]
        if text is not None:
            if text.lower() not in _NAMES:
                raise ValueError(f"column {name!r} must hold train, valid or test, got {text!r}")
            found[_NAMES[text.lower()]].append(row)
    return RowParts(*(np.array(found[part], np.int64) for part in ("train", "valid", "test")))
