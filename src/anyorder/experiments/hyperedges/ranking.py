"""Ranks of what fills a gap among all entities but those that are known to fill it as well, and metrics of them."""

from __future__ import annotations

import torch
from torch import Tensor

from anyorder.experiments.hyperedges.fact_batches import GapBatch


def ranked(scores: Tensor, batch: GapBatch) -> dict[str, Tensor]:
    """The filtered rank of each target, which shares the mean rank with its equals, and the share of others below it."""
    own = scores.gather(1, batch.target.unsqueeze(1))
    row, other = batch.others.unbind(1)
    scores = scores.index_put((row, other), scores.new_tensor(-torch.inf))
    rank = 1 + (scores > own).sum(1) + ((scores == own).sum(1) - 1) / 2
    rivals = scores.shape[1] - 1 - torch.bincount(row, minlength=len(batch))
    return {"rank": rank, "below": 1 - (rank - 1) / rivals.clamp(min=1), "arity": batch.arity}


def rank_metrics(collected: dict[str, Tensor]) -> dict[str, float]:
    """MRR, Hits and AUC, of all gaps and of those in facts of each number of entities.

    >>> rows = {"rank": torch.tensor([1.0, 4.0]), "below": torch.tensor([1.0, 0.5]), "arity": torch.tensor([2, 2])}
    >>> rank_metrics(rows)
    {'MRR': 0.625, 'Hits@1': 0.5, 'Hits@3': 0.5, 'Hits@10': 1.0, 'AUC': 0.75}
    """
    arity = collected["arity"]
    found = _metrics(collected["rank"], collected["below"])
    for count in arity.unique().tolist() if len(arity.unique()) > 1 else []:
        chosen = arity == count
        part = _metrics(collected["rank"][chosen], collected["below"][chosen])
        found |= {f"{count} entities/{name}": value for name, value in part.items()}
    return found


def _metrics(rank: Tensor, below: Tensor) -> dict[str, float]:
    rank = rank.double()
    hits = {f"Hits@{most}": float((rank <= most).double().mean()) for most in (1, 3, 10)}
    return {"MRR": float((1 / rank).mean()), **hits, "AUC": float(below.double().mean())}
