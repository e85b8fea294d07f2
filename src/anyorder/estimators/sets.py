"""Edges or clusters of the points of sets, from lists of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from anyorder.arrays import write_arrays
from anyorder.estimators.base import FolderEstimator, same_length
from anyorder.experiments.set_to_graph.fitting import SetFit, own_run
from anyorder.experiments.set_to_graph.sets import SetSample, SetShapes, collate_sets
from anyorder.experiments.set_to_graph.task import (
    SetsFromFile,
    StandardisedSets,
    batches_by_pairs,
    predict_edges,
    predict_partitions,
)
from anyorder.training.checkpoints import load_model, load_run

DATA = "data.npz"
Labels = Literal["edges", "partition"]


class SetToGraph(FolderEstimator):
    """Which points of a set belong together.

    >>> sets = [np.random.default_rng(n).normal(size=(6, 2)) for n in range(12)]
    >>> edges = [[(i, j) for j in range(6) for i in range(j) if abs(x[i] - x[j]).sum() < 1] for x in sets]
    >>> model = SetToGraph(channels=16, layers=1, epochs=2).fit(sets, edges)
    >>> model.predict_proba(sets[:1])[0].shape
    (6, 6)

    Args:
        labels: edges or partition.
        model: ours, ours-phi, s2g, s2g-plus, siam, siam-3, gnn or mlp.
        channels, layers, dropout, learning_rate, batch_size: of model and training.
        epochs: at most; None: as many as take a few minutes.
        valid: share of the sets that chooses the epoch.
        seed: of the validation part, initialisation and training.
        progress: show a progress bar.
    """

    def __init__(
        self,
        *,
        labels: Labels = "edges",
        model: str = "ours",
        channels: int = 64,
        layers: int = 4,
        dropout: float = 0.0,
        learning_rate: float = 1e-3,
        batch_size: int = 16,
        epochs: int | None = None,
        valid: float = 0.1,
        seed: int = 0,
        progress: bool = False,
    ) -> None:
        self.labels = labels
        self.model = model
        self.channels = channels
        self.layers = layers
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.valid = valid
        self.seed = seed
        self.progress = progress

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> SetToGraph:
        """Fit to sets, arrays (point, feature), and the edges of each, (edge, 2) places of points in the set.

        With ``labels="partition"`` y has a cluster number for each point of each set.
        """
        points = _points(same_length(X, y, "sets"))
        arrays: dict[str, NDArray[Any]] = {"features": np.concatenate(points), "sizes": np.array([*map(len, points)])}
        if self.labels == "edges":
            edges = [np.asarray(each, np.int64).reshape(-1, 2) for each in y]
            arrays |= {"edges": np.concatenate(edges), "edge_counts": np.array([*map(len, edges)])}
        elif self.labels == "partition":
            arrays["partition"] = np.concatenate([np.asarray(each, np.int64).reshape(-1) for each in y])
        else:
            raise ValueError(f"labels must be 'edges' or 'partition', got {self.labels!r}")
        folder = self._new_folder()
        write_arrays(folder / DATA, arrays)
        task = SetsFromFile(str(folder / DATA), self.labels, self.valid, 0.0)
        names = ("model", "channels", "layers", "dropout", "learning_rate", "batch_size")
        fit = SetFit(**{name: getattr(self, name) for name in names}, epochs=self.epochs or 30)
        run = own_run(task, fit, largest=max(map(len, points)), seed=self.seed)
        self._carry_out(run, folder, fixed=self.epochs is not None)
        return self

    def predict(self, X: Sequence[Any]) -> list[NDArray[np.int64]]:
        """For each set its edges (edge, 2), or a cluster number for each point."""
        model, sets = self._ready(X)
        apply = predict_edges if self.labels == "edges" else predict_partitions
        return list(apply(model, sets))

    def predict_proba(self, X: Sequence[Any]) -> list[NDArray[np.float64]]:
        """For each set (point, point): how likely two points belong together."""
        model, sets = self._ready(X)
        found: list[NDArray[np.float64]] = []
        with torch.inference_mode():
            for group in batches_by_pairs(sets):
                samples = [sample for sample in group if sample is not None]
                logits = model(collate_sets(samples)).double().sigmoid()
                sizes = [len(sample.points) for sample in samples]
                pieces = logits.split([size**2 for size in sizes])
                found += [piece.reshape(size, size).numpy() for piece, size in zip(pieces, sizes, strict=True)]
        return [(matrix + matrix.T) / 2 for matrix in found]

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """The mean over sets of the F1 of pairs that belong together."""
        scores = []
        for points, right, answer in zip(X, y, self.predict(X), strict=True):
            truth, found = (_adjacency(len(points), each, self.labels) for each in (right, answer))
            both, total = float((truth & found).sum()), float(truth.sum() + found.sum())
            scores.append(2 * both / total if total else 1.0)
        return float(np.mean(scores))

    def _ready(self, X: Sequence[Any]) -> tuple[Any, list[SetSample]]:
        folder = self._trained()
        model, shapes = load_model(folder)[1], load_run(folder)[1]
        assert isinstance(shapes, SetShapes)
        points = _points(X)
        if points[0].shape[1] != shapes.channels:
            raise ValueError(f"the model was fitted to points of {shapes.channels} features, got {points[0].shape[1]}")
        known = StandardisedSets([SetSample(each) for each in points], shapes)
        return model, [known[number] for number in range(len(known))]


def _points(sets: Sequence[Any]) -> list[NDArray[np.float32]]:
    if len(sets) == 0:
        raise ValueError("expected at least one set, got an empty list")
    found = [np.asarray(each, np.float32) for each in sets]
    for number, each in enumerate(found):
        if each.ndim != 2 or len(each) == 0 or each.shape[1] != found[0].shape[-1]:
            raise ValueError(f"set {number} must be an array (point, {found[0].shape[-1]}), got shape {each.shape}")
    return found


def _adjacency(count: int, labels: Any, kind: str) -> NDArray[np.bool_]:
    """Which pairs i < j belong together."""
    made = np.zeros((count, count), np.bool_)
    if kind == "edges":
        first, second = np.asarray(labels, np.int64).reshape(-1, 2).T
        made[first, second] = made[second, first] = True
    else:
        cluster = np.asarray(labels)
        made = cluster[:, None] == cluster[None, :]
    return np.triu(made, 1)
