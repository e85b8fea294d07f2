"""Losses and scores over all ordered pairs of each set, from flat logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from anyorder.experiments.set_to_graph.sets import SetBatch


@dataclass(frozen=True, eq=False)
class EdgeScores:
    """Scores of each set (batch,); a score whose denominator is 0 is 0."""

    accuracy: Tensor
    precision: Tensor
    recall: Tensor
    f1: Tensor

    def mean(self) -> dict[str, float]:
        """The scores averaged over sets."""
        return {field.name: float(getattr(self, field.name).mean()) for field in fields(self)}

    @staticmethod
    def cat(parts: Sequence[EdgeScores]) -> EdgeScores:
        """The scores of several batches as those of one."""
        return EdgeScores(*(torch.cat([getattr(part, field.name) for part in parts]) for field in fields(EdgeScores)))


def symmetrise(logits: Tensor, batch: SetBatch) -> Tensor:
    r"""The mean of the logits of both directions, :math:`(E + E^\top) / 2`, flat as before.

    >>> symmetrise(torch.tensor([0.0, 1.0, 3.0, 0.0]), SetBatch(torch.zeros(2, 1), torch.tensor([2])))
    tensor([0., 2., 2., 0.])
    """
    _require_flat(logits, batch)
    logits = _wide(logits)
    return (logits + logits[batch.reverse]) / 2


def edge_scores(logits: Tensor, batch: SetBatch, symmetric: bool = True) -> EdgeScores:
    """Accuracy, precision, recall and F1 of each set over all its n * n pairs, an edge being a logit >= 0.

    With ``symmetric`` the logits are symmetrised first.

    >>> edge_scores(torch.ones(4), SetBatch(torch.zeros(2, 1), torch.tensor([2]), torch.tensor([0.0, 1, 1, 0]))).mean()
    {'accuracy': 0.5, 'precision': 0.5, 'recall': 1.0, 'f1': 0.6666666865348816}
    """
    truth = _targets(logits, batch) > 0.5
    guess = (symmetrise(logits, batch) if symmetric else logits) >= 0
    right, true, guessed, agree = (
        batch.pair_sum(which.to(torch.float32)) for which in (truth & guess, truth, guess, truth == guess)
    )
    return EdgeScores(
        accuracy=agree / batch.sizes.square(),
        precision=_ratio(right, guessed),
        recall=_ratio(right, true),
        f1=_ratio(2 * right, true + guessed),
    )


def predicted_edges(logits: Tensor, batch: SetBatch) -> list[npt.NDArray[np.int64]]:
    """The edges i < j (m, 2) of each set whose symmetrised logit is >= 0, as positions in the set.

    >>> predicted_edges(torch.tensor([1.0, 2.0, -1.0, 1.0]), SetBatch(torch.zeros(2, 1), torch.tensor([2])))
    [array([[0, 1]])]
    """
    row, column = batch.pair_index - batch.offsets[batch.pair_set]
    chosen = (symmetrise(logits, batch) >= 0) & (row < column)
    edges = torch.stack((row[chosen], column[chosen]), dim=1).cpu().numpy()
    counts = batch.pair_set[chosen].bincount(minlength=batch.num_sets).cpu().numpy()
    return np.split(edges, np.cumsum(counts)[:-1])


def edge_loss(logits: Tensor, batch: SetBatch, with_f1: bool = False) -> Tensor:
    r"""Binary cross-entropy of the symmetrised logits, mean over the n * n pairs of each set, then over sets.

    .. math:: \frac1B \sum_b \frac1{n_b^2} \sum_{ij} \mathrm{BCE}\left(\tfrac12 (E_{ij} + E_{ji}), A_{ij}\right)

    Every set counts the same whatever its size, as in batches of sets of equal size. ``with_f1`` takes off the mean over
    sets of the soft F1 of the same logits: the paper does not say how they are added up, and the mean does not change
    with the size of a batch.
    """
    both = symmetrise(logits, batch)
    targets = _targets(both, batch)
    entropy = _mean_over_sets(F.binary_cross_entropy_with_logits(both, targets, reduction="none"), batch)
    return entropy - _overlap(both.sigmoid(), targets, batch).mean() if with_f1 else entropy


def partition_loss(logits: Tensor, batch: SetBatch, sum_f1: bool = True) -> Tensor:
    r"""Binary cross-entropy minus the sum over sets of the soft F1, as published, or minus its mean.

    .. math:: \frac1B \sum_b \frac1{n_b^2} \sum_{ij} \mathrm{BCE}(E_{ij}, A_{ij}) - \sum_b F_b

    The pairs (i, i) are known: they count as answered rightly and give no gradient. The sum makes the weight of F1
    against the cross-entropy grow with the number of sets in the batch; the mean (``sum_f1=False``) does not.
    """
    logits = _wide(logits)
    targets = _targets(logits, batch)
    entropy = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    overlap = soft_f1(logits, batch)
    return _mean_over_sets(entropy.masked_fill(batch.is_diagonal, 0), batch) - (overlap.sum() if sum_f1 else overlap.mean())


def soft_f1(logits: Tensor, batch: SetBatch) -> Tensor:
    r"""The F1 of each set with probabilities for counts, :math:`2 \sum p a / (\sum p + \sum a)`, (i, i) being known."""
    logits = _wide(logits)
    targets = _targets(logits, batch)
    probability = torch.where(batch.is_diagonal, targets, logits.sigmoid())
    return _overlap(probability, targets, batch)


def _overlap(probability: Tensor, targets: Tensor, batch: SetBatch) -> Tensor:
    return _ratio(2 * batch.pair_sum(probability * targets), batch.pair_sum(probability + targets))


def _mean_over_sets(values: Tensor, batch: SetBatch) -> Tensor:
    return (batch.pair_sum(values) / batch.sizes.square()).mean()


def _ratio(part: Tensor, whole: Tensor) -> Tensor:
    return part / torch.where(whole > 0, whole, 1)


def _wide(logits: Tensor) -> Tensor:
    """Half precision as singles: a sum over thousands of pairs would lose most of them."""
    return logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits


def _targets(logits: Tensor, batch: SetBatch) -> Tensor:
    _require_flat(logits, batch)
    if batch.targets is None:
        raise ValueError("the batch has no targets to compare the logits with")
    return batch.targets.to(logits.dtype)


def _require_flat(logits: Tensor, batch: SetBatch) -> None:
    if logits.shape != (batch.num_pairs,):
        raise ValueError(f"logits must be flat over the {batch.num_pairs} pairs, got shape {tuple(logits.shape)}")
