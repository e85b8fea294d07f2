"""Estimators in scikit-learn's manner: ``fit``, ``predict``, ``score``, ``save`` and ``load`` on what people hold."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from anyorder.extras import require

if TYPE_CHECKING:
    from anyorder.estimators.graphs import GraphClassifier, GraphRegressor, NodeClassifier
    from anyorder.estimators.hypergraphs import HyperedgePredictor, HypergraphNodeClassifier
    from anyorder.estimators.links import LinkPredictor
    from anyorder.estimators.molecules import MoleculeClassifier, MoleculeRegressor
    from anyorder.estimators.sets import SetToGraph

_HOMES = {
    "GraphClassifier": "anyorder.estimators.graphs",
    "GraphRegressor": "anyorder.estimators.graphs",
    "NodeClassifier": "anyorder.estimators.graphs",
    "HyperedgePredictor": "anyorder.estimators.hypergraphs",
    "HypergraphNodeClassifier": "anyorder.estimators.hypergraphs",
    "LinkPredictor": "anyorder.estimators.links",
    "SetToGraph": "anyorder.estimators.sets",
    "MoleculeClassifier": "anyorder.estimators.molecules",
    "MoleculeRegressor": "anyorder.estimators.molecules",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("sklearn.base", "train")
    return getattr(importlib.import_module(_HOMES[name]), name)


__all__ = [
    "GraphClassifier",
    "GraphRegressor",
    "HyperedgePredictor",
    "HypergraphNodeClassifier",
    "LinkPredictor",
    "MoleculeClassifier",
    "MoleculeRegressor",
    "NodeClassifier",
    "SetToGraph",
]
