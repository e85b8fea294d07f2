"""How well hyperedges score above negatives: AUROC and average precision, by kind of negative and by size."""

from __future__ import annotations

from torch import Tensor

from anyorder.experiments.hypergraphs.prediction.negatives import KINDS
from anyorder.extras import require

SIZES = {"2 nodes": (2, 2), "3 nodes": (3, 3), "4 to 6 nodes": (4, 6), "7 nodes and more": (7, 1 << 62)}
NAMES = {"size": "negatives of the size", "motif": "negatives by motif", "clique": "negatives by clique"}


def set_metrics(scores: Tensor, kinds: Tensor, sizes: Tensor) -> dict[str, float]:
    """AUROC and AP as means over the kinds of negatives, then of each kind, then of each group of sizes.

    ``kinds`` is -1 for a hyperedge and the number of its kind for a negative; each hyperedge has as many of each kind.
    """
    found = _by_kind(scores, kinds)
    parts = {NAMES[kind]: pair for kind, pair in found.items()}
    for name, (low, high) in SIZES.items():
        chosen = (sizes >= low) & (sizes <= high)
        if bool((chosen & (kinds == -1)).any()):
            parts[name] = _pair(scores[chosen], kinds[chosen] == -1)
    named = {f"{part}/{name}": pair[place] for part, pair in parts.items() for place, name in enumerate(("AUROC", "AP"))}
    return {**_means(found), **named}


def mean_metrics(scores: Tensor, kinds: Tensor) -> dict[str, float]:
    """AUROC and AP as means over the kinds of negatives."""
    return _means(_by_kind(scores, kinds))


def _by_kind(scores: Tensor, kinds: Tensor) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for number, kind in enumerate(KINDS):
        chosen = (kinds == -1) | (kinds == number)
        found[kind] = _pair(scores[chosen], kinds[chosen] == -1)
    return found


def _means(found: dict[str, tuple[float, float]]) -> dict[str, float]:
    return {name: sum(pair[place] for pair in found.values()) / len(found) for place, name in enumerate(("AUROC", "AP"))}


def _pair(scores: Tensor, labels: Tensor) -> tuple[float, float]:
    metrics = require("sklearn.metrics", "train")
    truth, given = labels.long().numpy(), scores.double().numpy()
    return float(metrics.roc_auc_score(truth, given)), float(metrics.average_precision_score(truth, given))
