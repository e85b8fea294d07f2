"""What is asked of a molecule: numbers or classes. Loss, what an evaluation keeps, metrics, predictions as columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from anyorder.extras import require
from anyorder.training.shapes import Shapes


class Regression(nn.Module):
    r"""Numbers, predicted in units of the training part's deviation; missing ones do not count.

    .. math:: \mathrm{loss} = \mathrm{mean} \left| y - (t - \mu) / \sigma \right|
    """

    mean: Tensor
    std: Tensor

    def __init__(self, names: Sequence[str], mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("std", torch.tensor(std))

    @property
    def channels_out(self) -> int:
        return len(self.names)

    def loss(self, out: Tensor, targets: Tensor) -> Tensor:
        errors, observed = self._errors(out, targets)
        return errors.sum() / observed.sum().clamp(min=1)

    def evaluate(self, out: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Errors in units of the targets (NaN where a target is missing) and in units of their deviation."""
        error = out * self.std + self.mean - targets
        return {"error": error, "scaled error": error / self.std}

    def columns(self, out: Tensor) -> dict[str, list[str]]:
        """Predictions as columns of a table."""
        values = (out * self.std + self.mean).double()
        return {f"predicted_{name}": [f"{v:.6g}" for v in values[:, n].tolist()] for n, name in enumerate(self.names)}

    def _errors(self, out: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        observed = ~targets.isnan()
        wanted = ((targets - self.mean) / self.std).nan_to_num()
        return (out - wanted).abs() * observed, observed


class Classification(nn.Module):
    """Classes: one logit for a target with two of them, one for each class otherwise; missing ones do not count."""

    def __init__(self, names: Sequence[str], labels: Sequence[Sequence[str]]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.labels = tuple(tuple(known) for known in labels)
        self.widths = [1 if len(known) == 2 else len(known) for known in self.labels]
        made = Counter(f"{name}_{label}" for name, known in zip(self.names, self.labels, strict=True) for label in known)
        twice = [name for name, count in made.items() if count > 1]
        if twice:
            raise ValueError(f"two targets would write the column 'probability_{twice[0]}': rename one of their columns")

    @property
    def channels_out(self) -> int:
        return sum(self.widths)

    def loss(self, out: Tensor, targets: Tensor) -> Tensor:
        observed = ~targets.isnan()
        parts = [_cross_entropy(logits, target) for logits, target in self._each(out, targets)]
        return (torch.stack(parts, 1) * observed).sum() / observed.sum().clamp(min=1)

    def evaluate(self, out: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """The logits of every target and the classes that are there."""
        parts = {f"logits {n}": logits for n, logits in enumerate(out.split(self.widths, 1))}
        return {**parts, "label": targets}

    def columns(self, out: Tensor) -> dict[str, list[str]]:
        """The likeliest class and the probability of each, as columns of a table."""
        columns: dict[str, list[str]] = {}
        for name, labels, logits in zip(self.names, self.labels, out.split(self.widths, 1), strict=True):
            found = chances(logits).double()
            columns[f"predicted_{name}"] = [labels[best] for best in found.argmax(1).tolist()]
            for n, label in enumerate(labels):
                columns[f"probability_{name}_{label}"] = [f"{chance:.6g}" for chance in found[:, n].tolist()]
        return columns

    def _each(self, out: Tensor, targets: Tensor) -> list[tuple[Tensor, Tensor]]:
        return list(zip(out.split(self.widths, 1), targets.unbind(1), strict=True))


Goal = Regression | Classification


@dataclass(frozen=True)
class MoleculeShapes(Shapes):
    """The targets: numbers with mean and deviation over the training part, or the labels of each."""

    goal: Literal["regression", "classification"]
    targets: tuple[str, ...]
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    labels: tuple[tuple[str, ...], ...] = ()


def goal_of(shapes: MoleculeShapes) -> Goal:
    """The goal that the shapes of a dataset describe."""
    if shapes.goal == "regression":
        return Regression(shapes.targets, shapes.mean, shapes.std)
    return Classification(shapes.targets, shapes.labels)


def regression_metrics(collected: dict[str, Tensor], names: Sequence[str]) -> dict[str, float]:
    """MAE and RMSE in the units of each target; of several targets also the MAE in units of their deviations."""
    metrics: dict[str, float] = {}
    for name, column in zip(names, collected["error"].double().unbind(1), strict=True):
        error = column[~column.isnan()]
        if len(error):
            part = "" if len(names) == 1 else f"{name}/"
            metrics[f"{part}MAE"] = float(error.abs().mean())
            metrics[f"{part}RMSE"] = float(error.square().mean().sqrt())
    if len(names) > 1:
        metrics["scaled MAE"] = float(collected["scaled error"].double().abs().nanmean())
    return metrics


def classification_metrics(collected: dict[str, Tensor], names: Sequence[str]) -> dict[str, float]:
    """Cross entropy, accuracy and, for two classes that both occur, the area under the ROC curve."""
    metrics: dict[str, float] = {}
    total, count = 0.0, 0
    for n, name in enumerate(names):
        label = collected["label"][:, n]
        logits, label = collected[f"logits {n}"][~label.isnan()], label[~label.isnan()]
        if len(label) == 0:
            continue
        total, count = total + float(_cross_entropy(logits, label).double().sum()), count + len(label)
        part = "" if len(names) == 1 else f"{name}/"
        metrics[f"{part}accuracy"] = float((chances(logits).argmax(1) == label).double().mean())
        if logits.shape[1] == 1 and len(label.unique()) == 2:
            scores = require("sklearn.metrics", "train")
            metrics[f"{part}AUC"] = float(scores.roc_auc_score(label.numpy(), logits[:, 0].numpy()))
    return {"loss": total / count if count else math.nan, **metrics}


def _cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    """The loss of each molecule; anything where the class is missing."""
    known = label.nan_to_num()
    if logits.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(logits[:, 0], known, reduction="none")
    return functional.cross_entropy(logits, known.long(), reduction="none")


def chances(logits: Tensor) -> Tensor:
    """(molecule, class), also for two classes with one logit."""
    if logits.shape[1] > 1:
        return logits.softmax(1)
    second = logits.sigmoid()
    return torch.cat([1 - second, second], 1)


def as_logits(found: Tensor) -> Tensor:
    """Logits of probabilities (molecule, class): one for two classes, one for each of more."""
    logs = found.clamp(min=1e-6).log()
    return logs[:, 1:] - logs[:, :1] if found.shape[1] == 2 else logs
