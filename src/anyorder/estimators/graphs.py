"""Classes and numbers of graphs and nodes, from lists of NetworkX graphs or PyG ``Data``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import accuracy_score

from anyorder.estimators.base import FolderClassifier, FolderEstimator, same_length
from anyorder.experiments.graphs.columns import Columns
from anyorder.experiments.graphs.fitting import Fit, fitted_run, train
from anyorder.experiments.graphs.models import GraphModel
from anyorder.experiments.graphs.own import OwnGraphs
from anyorder.experiments.graphs.predictions import judge
from anyorder.experiments.graphs.readers.arrays import from_pyg, save_arrays
from anyorder.experiments.graphs.readers.networkx_files import from_networkx
from anyorder.experiments.graphs.shapes import GoalKind, GraphShapes
from anyorder.experiments.graphs.values import GraphSet, Level
from anyorder.training.checkpoints import load_model, load_run
from anyorder.training.machine import Machine
from anyorder.training.sizing import keeping_threads

TARGET, DATA = "y", "data.npz"


class GraphEstimator(FolderEstimator):
    """What estimators on graphs share.

    Args:
        model: ours, gin, gcn or mlp.
        positions: some of degree, walk, laplacian; None: degree and walk where nodes have no features.
        channels, layers, dropout, learning_rate, batch_size: None: after the size of the data.
        epochs: at most; None: as many as take a few minutes.
        patience: epochs without gain on the validation part.
        valid: share of the rows that chooses the epoch.
        seed: of the validation part, initialisation and training.
        progress: show a progress bar.
    """

    def __init__(
        self,
        *,
        model: str = "ours",
        positions: tuple[str, ...] | None = None,
        channels: int | None = None,
        layers: int | None = None,
        dropout: float | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        patience: int = 40,
        valid: float = 0.1,
        seed: int = 0,
        progress: bool = False,
    ) -> None:
        self.model = model
        self.positions = positions
        self.channels = channels
        self.layers = layers
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.patience = patience
        self.valid = valid
        self.seed = seed
        self.progress = progress

    def _train(self, graphs: GraphSet, *, level: Level, goal: GoalKind, targets: tuple[str, ...] = (TARGET,)) -> None:
        """Train into a folder of its own, which holds the data, too: a run knows its data by a path."""
        folder = self._new_folder()
        save_arrays(folder / DATA, graphs)
        by_score = not targets
        task = OwnGraphs(
            level, targets, goal, "score" if by_score else "loss", str(folder / DATA), valid=self.valid, test=0.0
        )
        names = ("model", "channels", "layers", "dropout", "epochs", "patience", "learning_rate", "batch_size")
        chosen = None if self.positions is None else tuple(self.positions)
        fit = Fit(**{name: getattr(self, name) for name in names}, positions=chosen)
        shapes = task.shapes(graphs, task.parts(graphs, self.seed))
        with keeping_threads():
            run, _ = fitted_run(task, graphs, shapes, fit, seed=self.seed)
            record = train(run, folder, Machine(progress=self.progress), name=type(self).__name__)
        self.fitted_: dict[str, Any] = {"epochs": len(record.history), "valid": record.metrics.get("", {})}

    def _judge(self, graphs: GraphSet, pairs: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """The answers for the one target: probabilities of its classes, or numbers."""
        folder = self._trained()
        run, model = load_model(folder)
        shapes = load_run(folder)[1]
        assert isinstance(run.model, GraphModel) and isinstance(shapes, GraphShapes)
        answers: NDArray[np.float64] = judge(model, run.model, shapes, graphs, pairs)[0].double().numpy()
        return answers


class GraphClassifier(FolderClassifier, GraphEstimator):
    """Classes of graphs, given as a list of NetworkX graphs or PyG ``Data``.

    >>> import networkx as nx
    >>> rings, stars = ([make(n) for n in range(4, 9)] for make in (nx.cycle_graph, nx.star_graph))
    >>> model = GraphClassifier(channels=8, epochs=3).fit(rings + stars, ["ring"] * 5 + ["star"] * 5)
    >>> model.predict_proba([nx.cycle_graph(12)]).shape
    (1, 2)
    """

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> GraphClassifier:
        """Fit to graphs and a class for each: numbers or texts."""
        graphs, places = as_graphs(X), self._places(y)
        column = Columns.empty(len(same_length(X, y, "graphs"))).with_categories(TARGET, places.tolist())
        self._train(replace(graphs, graph_columns=column), level="graphs", goal="classification")
        return self

    def predict_proba(self, X: Sequence[Any]) -> NDArray[np.float64]:
        """(graph, class), classes in the order of ``classes_``."""
        self._trained()
        return self._judge(as_graphs(X))


class GraphRegressor(RegressorMixin, GraphEstimator):
    """Numbers of graphs, given as a list of NetworkX graphs or PyG ``Data``.

    >>> import networkx as nx
    >>> rings = [nx.cycle_graph(n) for n in range(4, 12)]
    >>> model = GraphRegressor(channels=8, epochs=2).fit(rings, [len(ring) for ring in rings])
    >>> model.predict(rings[:3]).shape
    (3,)
    """

    def fit(self, X: Sequence[Any], y: Any) -> GraphRegressor:
        """Fit to graphs and a number for each, or several in rows (graph, target); they are standardised inside."""
        values = np.asarray(y, np.float64).reshape(len(same_length(X, y, "graphs")), -1)
        names = tuple(f"{TARGET} {n}" for n in range(values.shape[1]))
        column = Columns.empty(len(values)).with_numbers(names, values)
        self._train(replace(as_graphs(X), graph_columns=column), level="graphs", goal="regression", targets=names)
        self.fitted_["several"] = np.asarray(y).ndim > 1
        return self

    def predict(self, X: Sequence[Any]) -> NDArray[np.float64]:
        """(graph,), or (graph, target) where ``y`` had rows."""
        folder = self._trained()
        run, model = load_model(folder)
        shapes = load_run(folder)[1]
        assert isinstance(run.model, GraphModel) and isinstance(shapes, GraphShapes)
        answers = judge(model, run.model, shapes, as_graphs(X))
        rows: NDArray[np.float64] = np.hstack([answer.double().numpy() for answer in answers])
        return rows if self.fitted_["several"] else rows[:, 0]


class NodeClassifier(FolderClassifier, GraphEstimator):
    """Classes of the nodes of one graph, or of several in a list.

    >>> import networkx as nx
    >>> club = nx.karate_club_graph()
    >>> labels = [club.nodes[node].pop("club") if node % 3 else None for node in club]
    >>> model = NodeClassifier(channels=8, epochs=2).fit(club, labels)
    >>> model.predict(club).shape
    (34,)
    """

    def fit(self, X: Any, y: Sequence[Any]) -> NodeClassifier:
        """Fit to a graph and a class for each node; None or NaN in ``y`` is a class that is not known."""
        graphs = as_graphs(_listed(X))
        if len(y) != graphs.num_nodes:
            raise ValueError(f"y must have one entry per node: expected {graphs.num_nodes}, got {len(y)}")
        known = np.array([not _unknown(value) for value in y])
        places = self._places([value for value in y if not _unknown(value)])
        column: list[int | None] = [None] * len(y)
        for row, place in zip(np.flatnonzero(known).tolist(), places.tolist(), strict=True):
            column[row] = place
        nodes = graphs.node_columns.drop([TARGET]).with_categories(TARGET, column)
        self._train(replace(graphs, node_columns=nodes), level="nodes", goal="classification")
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(node, class) for all nodes of the graph, classes in the order of ``classes_``."""
        self._trained()
        return self._judge(as_graphs(_listed(X)))

    def score(self, X: Any, y: Sequence[Any], sample_weight: Any = None) -> float:
        """Accuracy over the nodes whose class is known."""
        known = [row for row, value in enumerate(y) if not _unknown(value)]
        return float(accuracy_score([y[row] for row in known], self.predict(X)[known], sample_weight=sample_weight))


def as_graphs(items: Any) -> GraphSet:
    """What people hold as a set of graphs."""
    if isinstance(items, GraphSet):
        return items
    held = _listed(items)
    if not held:
        raise ValueError("expected at least one graph, got an empty list")
    if hasattr(held[0], "edge_index"):
        return from_pyg(held)
    if not hasattr(held[0], "nodes"):
        raise TypeError(f"expected NetworkX graphs or PyG Data, got {type(held[0]).__name__}")
    return from_networkx(held)


def _listed(items: Any) -> list[Any]:
    """A list of graphs, of one that stands alone too."""
    alone = hasattr(items, "nodes") or hasattr(items, "edge_index")
    return [items] if alone else list(items)


def _unknown(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and bool(np.isnan(value)))


def saved_graphs(folder: Path) -> Path:
    """The data that an estimator was fitted to."""
    return folder / DATA
