"""Which rows train, choose the epoch and test: at random, by a column."""

from __future__ import annotations

import numpy as np

from anyorder.experiments.graphs.columns import Columns, Ints
from anyorder.training.parts import RowParts

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
