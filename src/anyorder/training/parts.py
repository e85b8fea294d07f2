"""Rows by what they are for, and folds: parts of which each tests once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyorder.extras import require

Ints = NDArray[np.int64]


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
