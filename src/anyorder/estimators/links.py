"""Which pairs of nodes are linked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from anyorder.estimators.graphs import GraphEstimator, as_graphs, saved_graphs
from anyorder.experiments.graphs.readers.arrays import load_arrays
from anyorder.experiments.graphs.values import GraphSet


class LinkPredictor(GraphEstimator):
    """How likely two nodes are linked: fitted to a graph, asked about pairs of its nodes by their names.

    Nodes of PyG ``Data`` are named by their numbers.

    >>> import networkx as nx
    >>> model = LinkPredictor(channels=8, epochs=2).fit(nx.karate_club_graph())
    >>> model.predict_proba([(0, 9), (4, 33)]).shape
    (2, 2)
    """

    def fit(self, X: Any, y: None = None) -> LinkPredictor:
        """Fit to a graph, or to several in a list; held-back edges choose the epoch, and messages never pass along them."""
        graphs = as_graphs(X)
        loops = graphs.edges[:, 0] == graphs.edges[:, 1]
        self._train(graphs.with_edges(np.flatnonzero(~loops)), level="links", goal="classification", targets=())
        return self

    def predict_proba(self, X: Sequence[tuple[Any, Any]]) -> NDArray[np.float64]:
        """(pair, 2): the probabilities that a pair is not linked and that it is."""
        graphs = load_arrays(saved_graphs(self._trained()))
        return self._judge(graphs, _pairs(graphs, X))

    def predict(self, X: Sequence[tuple[Any, Any]]) -> NDArray[np.int64]:
        """1 for pairs that are rather linked than not."""
        return (self.predict_proba(X)[:, 1] > 0.5).astype(np.int64)

    def score(self, X: Sequence[tuple[Any, Any]], y: Sequence[int]) -> float:
        """The area under the ROC curve."""
        return float(roc_auc_score(y, self.predict_proba(X)[:, 1]))


def _pairs(graphs: GraphSet, pairs: Sequence[tuple[Any, Any]]) -> NDArray[np.int64]:
    place = {graphs.node_name(node): node for node in range(graphs.num_nodes)}
    for pair in pairs:
        missing = [end for end in pair if str(end) not in place]
        if missing or len(pair) != 2:
            raise ValueError(f"expected pairs of nodes of the graph, got {tuple(pair)!r}")
    return np.array([[place[str(end)] for end in pair] for pair in pairs], np.int64).reshape(-1, 2)
