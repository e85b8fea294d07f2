"""Random forests as plain arrays: fitted by scikit-learn, saved as safetensors, answered by NumPy; no code in files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder.errors import InputError
from anyorder.extras import require

Floats = NDArray[np.float32]
_NAMES = ("left", "right", "feature", "threshold", "value", "roots")
TREES = 200
MOST_ROWS = 20_000
"""Rows that a forest is fitted to at most, a random choice of more."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees laid end to end: children (-1 at leaves), what each node asks, and what each leaf answers (node, output).

    >>> rows = np.arange(40, dtype=np.float32)[:, None]
    >>> forest = Forest.fit(rows, (rows[:, 0] > 20).astype(float), classes=2, trees=5)
    >>> forest.answers(np.array([[3.0], [35.0]], np.float32)).round().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    value: Floats
    roots: NDArray[np.int32]

    @classmethod
    def fit(cls, rows: Floats, target: NDArray[Any], *, classes: int = 0, trees: int | None = None, seed: int = 0) -> Forest:
        """Fit to rows without gaps: the probabilities of so many classes, which are numbers from 0 on, or a number.

        ``trees`` are 200 unless said otherwise.
        """
        if len(rows) > MOST_ROWS:
            chosen = np.random.default_rng(seed).permutation(len(rows))[:MOST_ROWS]
            rows, target = rows[chosen], target[chosen]
        kinds = require("sklearn.ensemble", "train")
        options = {"n_estimators": TREES if trees is None else trees, "random_state": seed, "n_jobs": -1}
        share = "sqrt" if classes else 0.33
        kind = kinds.RandomForestClassifier if classes else kinds.RandomForestRegressor
        found = kind(max_features=share, min_samples_leaf=1 if len(rows) < 5_000 else 3, **options).fit(rows, target)
        places = found.classes_.astype(np.int64) if classes else None
        return cls._of([tree.tree_ for tree in found.estimators_], places, classes)

    @classmethod
    def _of(cls, trees: list[Any], places: NDArray[np.int64] | None, classes: int) -> Forest:
        sizes = [tree.node_count for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
        values = []
        for tree in trees:
            found = tree.value[:, 0, :].astype(np.float32)
            if places is not None:
                wide = np.zeros((len(found), classes), np.float32)
                wide[:, places] = found / np.maximum(found.sum(1, keepdims=True), 1e-12)
                found = wide
            values.append(found)
        moved = [
            np.concatenate([np.where(side < 0, -1, side + root) for side, root in zip(sides, roots, strict=True)])
            for sides in ([tree.children_left for tree in trees], [tree.children_right for tree in trees])
        ]
        feature = np.concatenate([tree.feature for tree in trees]).astype(np.int32)
        threshold = np.concatenate([tree.threshold for tree in trees]).astype(np.float64)
        return cls(moved[0].astype(np.int32), moved[1].astype(np.int32), feature, threshold, np.concatenate(values), roots)

    def answers(self, rows: Floats) -> Floats:
        """(row, output): the mean over all trees."""
        total = np.zeros((len(rows), self.value.shape[1]), np.float64)
        every = np.arange(len(rows))
        for root in self.roots.tolist():
            at = np.full(len(rows), root, np.int64)
            inner = self.left[at] >= 0
            while inner.any():
                moving, node = every[inner], at[inner]
                lower = rows[moving, self.feature[node]] <= self.threshold[node]
                at[moving] = np.where(lower, self.left[node], self.right[node])
                inner = self.left[at] >= 0
            total += self.value[at]
        return (total / len(self.roots)).astype(np.float32)

    def arrays(self, prefix: str = "") -> dict[str, NDArray[Any]]:
        """What a file holds of it."""
        return {f"{prefix}{name}": np.ascontiguousarray(getattr(self, name)) for name in _NAMES}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> Forest:
        """The forest that ``arrays`` wrote; refused where nodes lead out of it or back."""
        missing = [name for name in _NAMES if f"{prefix}{name}" not in arrays]
        if missing:
            raise InputError(f"a forest needs the arrays {list(_NAMES)}: {missing} are missing")
        made = cls(**{name: arrays[f"{prefix}{name}"] for name in _NAMES})
        nodes = np.arange(len(made.left))
        shaped = all(len(part) == len(nodes) for part in (made.right, made.feature, made.threshold, made.value))
        inner = made.left >= 0 if shaped else nodes < 0
        onward = (
            shaped
            and made.value.ndim == 2
            and all(
                bool(((side[inner] > nodes[inner]) & (side[inner] < len(nodes))).all()) for side in (made.left, made.right)
            )
        )
        rooted = len(made.roots) > 0 and bool(((made.roots >= 0) & (made.roots < len(nodes))).all())
        if not onward or not rooted or bool((made.feature[inner] < 0).any()):
            raise InputError("this is not a forest: its nodes lead out of it, or back")
        return made
