"""Classes of the nodes of a hypergraph, and which sets of nodes are hyperedges, from lists of lists."""

from __future__ import annotations

import csv
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, roc_auc_score

from anyorder.estimators.base import FolderClassifier, FolderEstimator
from anyorder.experiments.hyperedges import commands as tuples
from anyorder.experiments.hyperedges.task import TableHyperedges
from anyorder.experiments.hypergraphs import commands as nodes
from anyorder.experiments.hypergraphs.models import MODELS
from anyorder.experiments.hypergraphs.own import OwnNodes
from anyorder.experiments.hypergraphs.prediction import commands as sets
from anyorder.experiments.hypergraphs.prediction.models import SET_MODELS
from anyorder.experiments.hypergraphs.prediction.task import OwnEdgeSets
from anyorder.suggest import nearest
from anyorder.training.checkpoints import load_model, load_run
from anyorder.training.run import PredictRequest, Run, slug

EDGES, LABELS, FEATURES, ASKED, ANSWERED = "edges.txt", "labels.csv", "features.csv", "asked.txt", "answered.csv"
TUPLES, TUPLES_ASKED = "tuples.csv", "asked.csv"
Hyperedges = Sequence[Sequence[Hashable]]


class HypergraphEstimator(FolderEstimator):
    """What estimators on one hypergraph share.

    Args:
        model: a row of `anyorder list hypergraphs` (nodes) or of hyperedge-sets, such as ours.
        epochs: at most; None: as many as take a few minutes.
        valid: share of the classes or hyperedges that chooses the epoch.
        seed: of the validation part, initialisation and training.
        progress: show a progress bar.
    """

    def __init__(
        self,
        *,
        model: str = "ours",
        epochs: int | None = None,
        valid: float = 0.2,
        seed: int = 0,
        progress: bool = False,
    ) -> None:
        self.model = model
        self.epochs = epochs
        self.valid = valid
        self.seed = seed
        self.progress = progress

    def _row(self, known: Mapping[str, Any]) -> str:
        rows = {slug(row): row for row in known}
        if slug(self.model) not in rows:
            raise ValueError(f"unknown model {self.model!r}{nearest(self.model, rows)}")
        return rows[slug(self.model)]

    def _answered(self, name: str, **options: str) -> list[list[str]]:
        """The table that the model writes for a request."""
        folder = self._trained()
        run, model = load_model(folder)
        source = folder / name if name else None
        request = PredictRequest(folder, source, folder / ANSWERED, options)
        run.task.predict(model, load_run(folder)[1], request)
        with (folder / ANSWERED).open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))[1:]


class HypergraphNodeClassifier(FolderClassifier, HypergraphEstimator):
    """Classes of the nodes of one hypergraph.

    >>> teams = [["ann", "bob", "cai"], ["bob", "cai"], ["dan", "eve", "fay"], ["eve", "fay"], ["dan", "fay"]]
    >>> known = {"ann": "red", "bob": "red", "cai": "red", "dan": "blue", "eve": "blue"}
    >>> model = HypergraphNodeClassifier(epochs=5).fit(teams, known)
    >>> model.predict_proba(["fay"]).shape
    (1, 2)
    """

    def fit(
        self, X: Hyperedges, y: Mapping[Hashable, Any], features: Mapping[Hashable, Sequence[float]] | None = None
    ) -> HypergraphNodeClassifier:
        """Fit to hyperedges, lists of nodes, and classes of some nodes; ``features`` has a row of numbers per node."""
        folder = self._new_folder()
        known = {_name(node) for edge in X for node in edge} | {_name(node) for node in features or {}}
        stray = [node for node in y if _name(node) not in known]
        if stray:
            raise ValueError(f"y has a class for {stray[0]!r}, which is no node of the hypergraph")
        places = self._places(list(y.values()))
        _write_edges(folder / EDGES, X)
        _write_rows(
            folder / LABELS, ["node", "label"], [[_name(node), n] for node, n in zip(y, places.tolist(), strict=True)]
        )
        if features:
            width = len(next(iter(features.values())))
            rows = [[_name(node), *row] for node, row in features.items()]
            _write_rows(folder / FEATURES, ["node", *(f"x{n}" for n in range(width))], rows)
        given = str(folder / FEATURES) if features else ""
        shares: Any = {"train_share": 1 - self.valid, "valid_share": self.valid, "normalise": "columns"}
        task = OwnNodes(edges=str(folder / EDGES), features=given, labels=str(folder / LABELS), **shares)
        run = nodes.own_run(nodes.with_inputs(task, None), self._row(MODELS), self.epochs or 300, self.seed)
        self._carry_out(run, folder, fixed=self.epochs is not None)
        return self

    def predict_proba(self, X: Sequence[Hashable]) -> NDArray[np.float64]:
        """(node, class) for nodes of the hypergraph, classes in the order of ``classes_``."""
        found = {row[0]: [float(value) for value in row[3:]] for row in self._answered("")}
        missing = [node for node in X if _name(node) not in found]
        if missing:
            raise ValueError(f"{missing[0]!r} is no node of the hypergraph that the model was fitted to")
        return np.array([found[_name(node)] for node in X], np.float64).reshape(len(X), -1)

    def score(self, X: Sequence[Hashable], y: Sequence[Any], sample_weight: Any = None) -> float:
        """Accuracy over nodes."""
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))


class HyperedgePredictor(HypergraphEstimator):
    """How likely nodes belong together: sets of any size, or tuples whose places have a kind each.

    >>> teams = [[a, b, c] for a in range(4) for b in range(a) for c in range(b)]
    >>> teams += [[a + 10, b + 10] for a in range(6) for b in range(a)]
    >>> model = HyperedgePredictor(epochs=2).fit(teams)
    >>> model.predict_proba([[0, 1], [0, 1, 12]]).shape
    (2, 2)
    >>> bought = [("ann", "cup", "rome"), ("ann", "pen", "oslo"), ("bob", "cup", "oslo"), ("bob", "pen", "rome")] * 2
    >>> model = HyperedgePredictor(kinds=("who", "what", "where"), epochs=1, valid=0.5).fit(bought)
    >>> model.predict_proba([("ann", "cup", "oslo")]).shape
    (1, 2)

    Args:
        kinds: names for the places of a tuple, such as ("user", "item", "tag"); the same name at two places is then two
            nodes. None: hyperedges are sets of nodes, of any size.
        model: a model of `anyorder train hyperedges`, such as ours.
        epochs: at most; None: as many as take a few minutes.
        valid: share of the hyperedges that chooses the epoch.
        seed: of the validation part, initialisation and training.
        progress: show a progress bar.
    """

    def __init__(
        self,
        *,
        kinds: tuple[str, ...] | None = None,
        model: str = "ours",
        epochs: int | None = None,
        valid: float = 0.1,
        seed: int = 0,
        progress: bool = False,
    ) -> None:
        super().__init__(model=model, epochs=epochs, valid=valid, seed=seed, progress=progress)
        self.kinds = kinds

    def fit(self, X: Any, y: None = None) -> HyperedgePredictor:
        """Fit to a list of hyperedges, or to rows of tuples (tuple, place) where there are ``kinds``."""
        folder = self._new_folder()
        run = self._run_on_sets(folder, X) if self.kinds is None else self._run_on_tuples(folder, X)
        self._carry_out(run, folder, fixed=self.epochs is not None)
        return self

    def _run_on_sets(self, folder: Path, edges: Hyperedges) -> Run:
        _write_edges(folder / EDGES, edges)
        task = OwnEdgeSets(edges=str(folder / EDGES), valid_share=self.valid, test_share=0.0)
        run: Run = sets.own_run(task, SET_MODELS[self._row(SET_MODELS)], self.epochs or 100, 20, 1e-3, self.seed)
        return run

    def _run_on_tuples(self, folder: Path, rows: Sequence[Sequence[Hashable]]) -> Run:
        if self.model not in tuples.MODELS:
            raise ValueError(f"unknown model of tuples {self.model!r}{nearest(self.model, tuples.MODELS)}")
        columns = self._write_tuples(folder / TUPLES, rows)
        task = TableHyperedges(path=str(folder / TUPLES), columns=columns, validation=self.valid, test=0.0)
        run: Run = tuples.own_run(task, self.model, epochs=self.epochs or 100, seed=self.seed)
        return run

    def _write_tuples(self, path: Path, rows: Sequence[Sequence[Hashable]]) -> tuple[str, ...]:
        columns = tuple(self.kinds or ())
        if len(rows) == 0:
            raise ValueError("expected at least one tuple, got none")
        for number, row in enumerate(rows):
            if isinstance(row, str) or len(row) != len(columns):
                raise ValueError(f"tuple {number} must have a name for each of {columns}, got {row!r}")
        _write_rows(path, columns, [[str(name) for name in row] for row in rows])
        return columns

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(hyperedge, 2): the probabilities that it is none and that it is one."""
        folder = self._trained()
        if self.kinds is None:
            _write_edges(folder / ASKED, X)
            score = np.array([float(row[1]) for row in self._answered(ASKED)])
        else:
            self._write_tuples(folder / TUPLES_ASKED, X)
            found = self._answered("", candidates=str(folder / TUPLES_ASKED))
            score = np.array([float(row[-1]) for row in found])
        return np.stack([1 - score, score], 1)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """1 for what is rather a hyperedge than not."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.int64)

    def score(self, X: Any, y: Sequence[int]) -> float:
        """The area under the ROC curve."""
        return float(roc_auc_score(y, self.predict_proba(X)[:, 1]))


def _name(node: Hashable) -> str:
    text = str(node)
    if not text or any(mark in text for mark in "\t\n\r, "):
        raise ValueError(f"the name of a node must be text without spaces and commas, got {text!r}")
    return text


def _write_edges(path: Path, edges: Hyperedges) -> None:
    lines = []
    for number, edge in enumerate(edges):
        if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) == 0:
            raise ValueError(f"expected hyperedges as lists of nodes, got {edge!r} as number {number}")
        lines.append("\t".join(map(_name, edge)))
    if not lines:
        raise ValueError("expected at least one hyperedge, got an empty list")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
