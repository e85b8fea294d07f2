"""The cheap baseline: what a few lines of scikit-learn reach on degrees and features, and common neighbours for links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from anyorder.experiments.graphs.batch import GraphBatch, GraphInputs
from anyorder.experiments.graphs.columns import Floats
from anyorder.experiments.graphs.goals import Goal
from anyorder.experiments.graphs.links import LINKED
from anyorder.experiments.graphs.models import GraphModel
from anyorder.experiments.graphs.shapes import GraphShapes
from anyorder.extras import require
from anyorder.training import forest
from anyorder.training.config import configurable

FOLDS = 3
_TINY = 1e-6


@configurable
@dataclass(frozen=True)
class CheapBaseline(GraphModel):
    """Most frequent class or mean, a linear model, a forest or the vote of neighbours: what cross-validation prefers."""

    @property
    def inputs(self) -> GraphInputs:
        return GraphInputs()

    def network(self, shapes: GraphShapes) -> nn.Module:
        return nn.Identity()

    def build(self, shapes: GraphShapes) -> CheapModel:
        return CheapModel(shapes)


class CheapModel(nn.Module):
    """Fitted by its first training batch, which has to be the whole training part; it is not saved."""

    def __init__(self, shapes: GraphShapes) -> None:
        super().__init__()
        self.goal, self.level = Goal(shapes.goal), shapes.level
        self.common = shapes.goal.targets == (LINKED,)
        self.unused = nn.Parameter(torch.zeros(1))  # optimisers want something to optimise
        self.fitted: list[Any] = []
        self.names: list[str] = []

    def forward(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        if self.common:
            return _common_neighbours(batch) + 0.0 * self.unused, batch.targets
        rows, targets = row_features(batch, self.level), batch.targets
        if self.training:
            self.fit(rows, targets.numpy())
        if not self.fitted:
            raise ValueError("the cheap baseline is fitted where it is trained and is not saved: train it anew")
        return self._answers(rows) + 0.0 * self.unused, targets

    def fit(self, rows: Floats, targets: Floats) -> None:
        """A model for each target, the one that three folds of the training part prefer."""
        if len(rows) > forest.MOST_ROWS:
            chosen = np.random.default_rng(0).permutation(len(rows))[: forest.MOST_ROWS]
            rows, targets = rows[chosen], targets[chosen]
        self.fitted, self.names = [], []
        for column in targets.T:
            known = ~np.isnan(column)
            name, model = _preferred(rows[known], column[known], self.goal.kind == "classification")
            self.names.append(name)
            self.fitted.append(model)

    @property
    def said(self) -> str:
        """What was preferred."""
        return "common neighbours" if self.common else ", ".join(dict.fromkeys(self.names))

    def _answers(self, rows: Floats) -> Tensor:
        """Logits or scaled numbers, as the goal takes them."""
        made = []
        for n, (model, width) in enumerate(zip(self.fitted, self.goal.widths, strict=True)):
            if self.goal.kind == "regression":
                values = torch.from_numpy(np.asarray(model.predict(rows), np.float32))
                made.append(((values - self.goal.mean[n]) / self.goal.std[n])[:, None])
                continue
            chances = np.full((len(rows), len(self.goal.classes[n])), _TINY)
            chances[:, model.classes_.astype(int)] = model.predict_proba(rows).clip(_TINY)
            logs = torch.from_numpy(np.log(chances / chances.sum(1, keepdims=True)).astype(np.float32))
            made.append(logs if width > 1 else logs[:, 1:] - logs[:, :1])
        return torch.cat(made, 1)


def fit_cheap(model: CheapModel, part: Any) -> None:
    """Fit the cheap baseline to a whole training part."""
    if not model.common:
        model.train()
        model(part.batch(range(len(part)), CheapBaseline().inputs))
    model.eval()


def row_features(batch: GraphBatch, level: str) -> Floats:
    """Degrees and features of what a batch asks about."""
    x, pairs, graph = batch.x.numpy(), batch.pairs.numpy(), batch.graph.numpy()
    degree = np.bincount(pairs[0], minlength=len(x)) + np.bincount(pairs[1], minlength=len(x))
    each = np.hstack([x, np.log1p(degree)[:, None], (degree == 0)[:, None]]).astype(np.float32)
    if level == "nodes":
        return each[batch.rows.numpy()]
    if level == "links":
        assert batch.links is not None
        return np.hstack([each[batch.links[0].numpy()], each[batch.links[1].numpy()]])
    bins = np.minimum(degree // 2, 5)[:, None] == np.arange(6)
    wide = np.hstack([each, bins]).astype(np.float64)
    sums = np.zeros((batch.num_graphs, wide.shape[1]))
    np.add.at(sums, graph, wide)
    sizes = np.bincount(graph, minlength=batch.num_graphs)[:, None]
    kinds = np.zeros((batch.num_graphs, batch.pair_x.shape[1] + 1))
    np.add.at(kinds, graph[pairs[0]], np.hstack([batch.pair_x.numpy(), np.ones((pairs.shape[1], 1))]))
    made = np.hstack([sums, sums / np.maximum(sizes, 1), kinds, sizes])
    return made[batch.rows.numpy()].astype(np.float32)


def _preferred(rows: Floats, target: Floats, classes: bool) -> tuple[str, Any]:
    """The model with the best mean score over three folds, fitted to all rows."""
    selection = require("sklearn.model_selection", "train")
    candidates = _candidates(classes)
    folds = min(FOLDS, int(np.unique(target, return_counts=True)[1].max()) if classes else len(rows))
    if folds < 2:
        folds, candidates = 0, dict(list(candidates.items())[:1])
    scores: dict[str, float] = {}
    if folds:
        kind = selection.StratifiedKFold if classes else selection.KFold
        splitter = kind(folds, shuffle=True, random_state=0)
        measure = "accuracy" if classes else "neg_mean_absolute_error"
        with _no_warnings():
            for name, model in candidates.items():
                scores[name] = float(selection.cross_val_score(model, rows, target, cv=splitter, scoring=measure).mean())
    best = max(scores, key=lambda name: scores[name]) if scores else next(iter(candidates))
    with _no_warnings():
        return best, candidates[best].fit(rows, target)


def _candidates(classes: bool) -> dict[str, Any]:
    dummy, linear = require("sklearn.dummy", "train"), require("sklearn.linear_model", "train")
    forests, pipeline = require("sklearn.ensemble", "train"), require("sklearn.pipeline", "train")
    scale = require("sklearn.preprocessing", "train").StandardScaler
    if classes:
        return {
            "most frequent class": dummy.DummyClassifier(),
            "logistic regression": pipeline.make_pipeline(scale(), linear.LogisticRegression(C=0.1, max_iter=300)),
            "random forest": forests.RandomForestClassifier(forest.TREES, random_state=0),
        }
    return {
        "mean": dummy.DummyRegressor(),
        "ridge regression": pipeline.make_pipeline(scale(), linear.RidgeCV(np.logspace(-2, 4, 7))),
        "random forest": forests.RandomForestRegressor(forest.TREES, random_state=0),
    }


def _no_warnings() -> Any:
    import warnings

    return warnings.catch_warnings(action="ignore")


def _common_neighbours(batch: GraphBatch) -> Tensor:
    """(link, 1): the number of nodes that are linked with both ends; in training, of no matter."""
    assert batch.links is not None
    sparse = require("scipy.sparse", "train")
    first, second = batch.pairs.numpy()
    ends = batch.links.numpy()
    links = sparse.csr_array((np.ones(len(first)), (first, second)), shape=(len(batch.x),) * 2)
    links = ((links + links.T) > 0).astype(np.float64).tocsr()
    both = links[ends[0]].multiply(links[ends[1]]).sum(1)
    return torch.from_numpy(np.asarray(both, np.float32).reshape(-1, 1)) - 0.5
