"""What is asked of graphs, nodes and links: classes or numbers. Loss, metrics and predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from anyorder.experiments.graphs.columns import Columns, Floats
from anyorder.experiments.graphs.shapes import GoalKind, GoalShapes
from anyorder.extras import require

MOST_CLASSES = 20
"""Whole numbers with at most so many distinct values are taken for classes."""


class Goal:
    """One or several targets, all classes or all numbers; a missing one (NaN) does not count.

    Two classes have one logit, more have one each; numbers are in units of the training part's deviation.
    """

    def __init__(self, shapes: GoalShapes) -> None:
        self.kind, self.names, self.classes = shapes.kind, shapes.targets, shapes.classes
        self.mean, self.std = torch.tensor(shapes.mean), torch.tensor(shapes.std)
        self.widths = [1 if len(known) == 2 else len(known) for known in self.classes] or [1] * len(self.names)

    @property
    def channels(self) -> int:
        return sum(self.widths)

    def losses(self, out: Tensor, targets: Tensor) -> Tensor:
        """(row,): the mean over the targets of a row that are there."""
        observed = ~targets.isnan()
        known = targets.nan_to_num()
        if self.kind == "regression":
            scaled = (known - self.mean.to(out)) / self.std.to(out)
            each = functional.smooth_l1_loss(out, scaled, reduction="none")
        else:
            parts = zip(out.split(self.widths, 1), known.unbind(1), strict=True)
            each = torch.stack([cross_entropy(logits, label) for logits, label in parts], 1)
        return (each * observed).sum(1) / observed.sum(1).clamp(min=1)

    def answers(self, out: Tensor) -> list[Tensor]:
        """For each target the number in its own units, (row, 1), or the probabilities of its classes, (row, class)."""
        if self.kind == "regression":
            return list((out * self.std.to(out) + self.mean.to(out)).split(1, 1))
        return [probabilities(logits) for logits in out.split(self.widths, 1)]


def score(kind: GoalKind, names: Sequence[str], answers: Sequence[Tensor], targets: Tensor) -> dict[str, float]:
    """Accuracy in % and AUC of classes, MAE, RMSE and R2 of numbers; several targets have a part each, and their mean."""
    measure = _class_metrics if kind == "classification" else _number_metrics
    found: dict[str, float] = {}
    first: list[float] = []
    for name, answer, target in zip(names, answers, targets.double().unbind(1), strict=True):
        there = ~target.isnan()
        if there.any():
            values = measure(answer.double()[there], target[there])
            first.append(next(iter(values.values())))
            found |= values if len(names) == 1 else {f"{name}/{key}": value for key, value in values.items()}
    if len(names) > 1:
        found["accuracy" if kind == "classification" else "MAE"] = math.fsum(first) / max(1, len(first))
    return found


def goal_shapes(columns: Columns, names: Sequence[str], kind: GoalKind, train: Any) -> GoalShapes:
    """What a model must know of its targets, from the rows of the training part."""
    part = columns.take(train)
    if kind == "classification":
        return GoalShapes(kind, tuple(names), classes=tuple(tuple(_classes(columns, part, name)) for name in names))
    values = _numbers(columns, names)[train].astype(np.float64)
    for name, column in zip(names, values.T, strict=True):
        there = column[~np.isnan(column)]
        if len(there) == 0 or np.ptp(there) == 0:
            what = "has no value" if len(there) == 0 else f"is {there[0]:g} everywhere"
            raise ValueError(f"the target {name!r} {what} in the training part: there is nothing to learn")
    mean, std = np.nanmean(values, 0), np.nanstd(values, 0)
    return GoalShapes(kind, tuple(names), mean=tuple(mean.tolist()), std=tuple(std.tolist()))


def target_rows(columns: Columns, shapes: GoalShapes, *, strict: bool = True) -> Floats:
    """(row, target): numbers or places among the classes, NaN where missing; an unknown class is refused or missing."""
    if shapes.kind == "regression":
        return _numbers(columns, shapes.targets)
    rows = np.full((len(columns), len(shapes.targets)), np.nan, np.float32)
    for n, (name, known) in enumerate(zip(shapes.targets, shapes.classes, strict=True)):
        place = {value: float(k) for k, value in enumerate(known)}
        texts = columns.texts(name)
        unknown = sorted({text for text in texts if text is not None and text not in place})
        if unknown and strict:
            raise ValueError(f"class {unknown[0]!r} of {name!r} is not in the training part, which has {list(known)}")
        rows[:, n] = [np.nan if text is None else place.get(text, np.nan) for text in texts]
    return rows


def guess_goal(columns: Columns, names: Sequence[str]) -> GoalKind:
    """Classes where a target is text or few whole numbers, else numbers."""
    for name in names:
        if name in columns.category_names:
            return "classification"
        values = columns.numbers[:, columns.number_names.index(name)]
        values = np.unique(values[~np.isnan(values)])
        if len(values) > MOST_CLASSES or (values != np.round(values)).any():
            return "regression"
    return "classification"


def cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    """The loss of each row."""
    if logits.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(logits[:, 0], label.to(logits), reduction="none")
    return functional.cross_entropy(logits, label.long(), reduction="none")


def probabilities(logits: Tensor) -> Tensor:
    """(row, class), also for two classes with one logit."""
    if logits.shape[1] > 1:
        return logits.softmax(1)
    second = logits.sigmoid()
    return torch.cat([1 - second, second], 1)


def _classes(columns: Columns, part: Columns, name: str) -> list[str]:
    seen = {text for text in part.texts(name) if text is not None}
    if len(seen) < 2:
        got = f"only {next(iter(seen))!r}" if seen else "none"
        raise ValueError(f"the training part has fewer than two classes of {name!r}, got {got}: there is nothing to learn")
    if name in columns.category_names:
        return [value for value in columns.values[columns.category_names.index(name)] if value in seen]
    return sorted(seen, key=float)


def _numbers(columns: Columns, names: Sequence[str]) -> Floats:
    for name in names:
        if name in columns.category_names:
            shown = next((text for text in columns.texts(name) if text is not None), "")
            raise ValueError(f"column {name!r} holds text where numbers belong, such as {shown!r}")
    return columns.numbers[:, [columns.number_names.index(name) for name in names]]


def _class_metrics(chances: Tensor, label: Tensor) -> dict[str, float]:
    found = {"accuracy": 100.0 * float((chances.argmax(1) == label).double().mean())}
    if chances.shape[1] == 2 and len(label.unique()) == 2:
        scores = require("sklearn.metrics", "train")
        found["AUC"] = float(scores.roc_auc_score(label.numpy(), chances[:, 1].numpy()))
    return found


def _number_metrics(answer: Tensor, target: Tensor) -> dict[str, float]:
    error = answer[:, 0] - target
    spread = (target - target.mean()).square().sum()
    found = {"MAE": float(error.abs().mean()), "RMSE": float(error.square().mean().sqrt())}
    return {**found, "R2": float(1 - error.square().sum() / spread)} if spread > 0 else found
