"""Estimators in scikit-learn's manner: ``fit``, ``predict``, ``score``, ``save`` and ``load`` on what people hold."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from anyorder.extras import require

if TYPE_CHECKING:
    from anyorder.estimators.graphs import GraphClassifier, GraphRegressor, NodeClassifier
    from anyorder.estimators.links import LinkPredictor

_HOMES = {
    "GraphClassifier": "anyorder.estimators.graphs",
    "GraphRegressor": "anyorder.estimators.graphs",
    "NodeClassifier": "anyorder.estimators.graphs",
    "LinkPredictor": "anyorder.estimators.links",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("sklearn.base", "train")
    return getattr(importlib.import_module(_HOMES[name]), name)


__all__ = ["GraphClassifier", "GraphRegressor", "LinkPredictor", "NodeClassifier"]
