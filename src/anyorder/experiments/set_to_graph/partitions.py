"""Partitions of sets: from pair logits to clusters, and how well two partitions agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PartitionScores:
    """Agreement of a predicted and a true partition, one number per set."""

    f1: NDArray[np.float64]
    rand_index: NDArray[np.float64]
    adjusted_rand_index: NDArray[np.float64]

    def mean(self, which: ArrayLike | None = None) -> dict[str, float]:
        """The mean of each score over the sets of a mask, or over all; NaN where the mask is empty.

        >>> partition_scores([0, 0, 1, 0, 1], [0, 0, 0, 0, 1], [0, 3, 5]).mean([True, False])["f1"]
        0.5
        """
        chosen = slice(None) if which is None else np.asarray(which)
        scores = {"f1": self.f1, "rand_index": self.rand_index, "adjusted_rand_index": self.adjusted_rand_index}
        means = {name: values[chosen] for name, values in scores.items()}
        return {name: float(np.mean(values)) if values.size else np.nan for name, values in means.items()}


def connected_components(logits: ArrayLike | Tensor, valid: ArrayLike | Tensor | None = None) -> Labels:
    """Cluster labels from pair logits: symmetrise, keep (E + E^T) / 2 >= 0, and number the connected components.

    ``logits`` has shape (..., node, node) and ``valid`` (..., node) marks the nodes that exist (default: all);
    padding gets the label -1. Labels count from 0 in the order in which the components first appear.

    >>> connected_components([[9., 1., -5.], [-3., 9., 2.], [-5., 2., 9.]]).tolist()
    [0, 1, 1]
    """
    scores = _array(logits)
    if scores.ndim < 2 or scores.shape[-1] != scores.shape[-2]:
        raise ValueError(f"logits must have shape (..., node, node), got {scores.shape}")
    exists = np.ones(scores.shape[:-1], dtype=bool) if valid is None else _array(valid).astype(bool)
    if exists.shape != scores.shape[:-1]:
        raise ValueError(f"valid must have shape {scores.shape[:-1]} beside logits {scores.shape}, got {exists.shape}")
    pairs = exists[..., :, None] & exists[..., None, :]
    if np.isnan(scores[pairs]).any():
        raise ValueError("logits must not be NaN: a pair is either joined or not")
    linked = ((scores + scores.swapaxes(-1, -2) >= 0) & pairs) | np.eye(scores.shape[-1], dtype=bool)
    return np.where(exists, _canonical(_first_reachable(linked)), -1)


def _first_reachable(linked: NDArray[np.bool_]) -> Labels:
    """The smallest node that each node can reach; squaring doubles the length of the paths."""
    while True:
        steps = linked.astype(np.float32)  # products of floats are fast, those of booleans are not
        further = steps @ steps > 0
        if np.array_equal(further, linked):
            return np.asarray(linked.argmax(axis=-1), dtype=np.int64)
        linked = further


def _canonical(first: Labels) -> Labels:
    """Number components from 0 by their smallest nodes."""
    is_first = first == np.arange(first.shape[-1])
    return np.take_along_axis(np.cumsum(is_first, axis=-1) - 1, first, axis=-1)


def connected_components_ragged(logits: ArrayLike | Tensor, offsets: ArrayLike) -> Labels:
    """Labels of many sets at once from their concatenated n x n logits; set s has the nodes offsets[s]:offsets[s + 1].

    >>> connected_components_ragged([5., -1., -1., 5., 5., 1., 1., 5.], [0, 2, 4]).tolist()
    [0, 1, 0, 0]
    """
    scores, bounds = _array(logits), np.asarray(offsets, dtype=np.int64)
    sizes = np.diff(bounds)
    starts = np.concatenate([[0], np.cumsum(sizes**2)])
    if scores.shape != (starts[-1],):
        raise ValueError(f"expected {starts[-1]} logits, the squares of the set sizes added up, got {scores.shape}")
    labels = np.empty(bounds[-1], dtype=np.int64)
    for size in np.unique(sizes[sizes > 0]).tolist():
        sets = np.flatnonzero(sizes == size)
        blocks = scores[starts[sets, None] + np.arange(size**2)].reshape(-1, size, size)
        labels[bounds[sets, None] + np.arange(size)] = connected_components(blocks)
    return labels


def partition_scores(truth: ArrayLike, predicted: ArrayLike, offsets: ArrayLike) -> PartitionScores:
    r"""F1, Rand index and adjusted Rand index of many sets, over the unordered pairs of each set.

    With T pairs together in the truth, P in the prediction, B in both, of N pairs:
    F1 = 2 B / (T + P), or 0 where that is 0 / 0; RI = (N + 2 B - T - P) / N;
    ARI = (B - T P / N) / ((T + P) / 2 - T P / N).
    Where the partitions are equal ARI is 1, and where there is no pair RI is 1,
    as in scikit-learn.
    """
    true, guess, bounds = (np.asarray(array, dtype=np.int64) for array in (truth, predicted, offsets))
    if bounds.ndim != 1 or bounds.size == 0 or true.shape != (bounds[-1],) or guess.shape != true.shape:
        raise ValueError(
            f"expected offsets from 0 to the number of nodes and as many labels for the truth and the prediction, "
            f"got {bounds.shape} offsets, {true.shape} and {guess.shape} labels"
        )
    sizes = np.diff(bounds)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    together_true, together_guess, both = (
        _pairs_within(owner, labels, len(sizes)) for labels in ([true], [guess], [true, guess])
    )
    pairs = sizes * (sizes - 1) / 2
    total = together_true + together_guess
    equal = (both == together_true) & (both == together_guess)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = together_true * together_guess / pairs
        return PartitionScores(
            f1=np.where(total > 0, 2 * both / total, 0.0),
            rand_index=np.where(pairs > 0, (pairs + 2 * both - total) / pairs, 1.0),
            adjusted_rand_index=np.where(equal, 1.0, (both - expected) / (total / 2 - expected)),
        )


def _pairs_within(owner: Labels, labels: Sequence[Labels], num_sets: int) -> NDArray[np.float64]:
    """The number of unordered pairs that agree in all ``labels``, per set."""
    keys = np.stack([owner, *labels], axis=1)
    order = np.lexsort(keys.T[::-1])
    starts = np.flatnonzero(np.any(np.diff(keys[order], axis=0, prepend=-1) != 0, axis=1))
    counts = np.diff(np.append(starts, len(owner)))
    pairs = np.bincount(owner[order][starts], weights=counts * (counts - 1) / 2, minlength=num_sets)
    return pairs.astype(np.float64)


def rand_index(truth: ArrayLike, predicted: ArrayLike) -> float:
    """The share of unordered pairs on which two partitions of one set agree.

    >>> rand_index([0, 0, 1], [0, 1, 1])
    0.3333333333333333
    """
    return float(_one(truth, predicted).rand_index[0])


def adjusted_rand_index(truth: ArrayLike, predicted: ArrayLike) -> float:
    """The Rand index of two partitions of one set, corrected for chance: 1 when equal, about 0 when unrelated."""
    return float(_one(truth, predicted).adjusted_rand_index[0])


def pair_f1(truth: ArrayLike, predicted: ArrayLike) -> float:
    """F1 over the unordered pairs that two partitions of one set put together; 0 where both are all singletons.

    >>> pair_f1([0, 0, 1], [0, 0, 0]), pair_f1([0, 1, 2], [0, 1, 2])
    (0.5, 0.0)
    """
    return float(_one(truth, predicted).f1[0])


def _one(truth: ArrayLike, predicted: ArrayLike) -> PartitionScores:
    return partition_scores(truth, predicted, [0, np.size(np.asarray(truth))])


def _array(values: ArrayLike | Tensor) -> NDArray[Any]:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
