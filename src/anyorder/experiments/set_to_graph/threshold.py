"""The cheap answer for sets: points are related where they are near enough, the distance tuned on training sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from anyorder.experiments.set_to_graph.sets import SetBatch, collate_sets

_TRIED, _MOST_SETS = 24, 200


class DistanceThreshold(nn.Module):
    """A logit for each pair: positive where two points are nearer than ``reach``."""

    def __init__(self, reach: float) -> None:
        super().__init__()
        self.reach = reach

    def forward(self, batch: SetBatch) -> Tensor:
        first, second = batch.pair_index
        return self.reach - (batch.points[first] - batch.points[second]).norm(dim=1)


def tuned_threshold(task: Any, sets: Sequence[Any]) -> DistanceThreshold:
    """The distance with the best F1 on training sets, of a few that pairs of points have."""
    chosen = [sets[number] for number in range(min(len(sets), _MOST_SETS))]
    batches = [collate_sets(chosen[start : start + 20]) for start in range(0, len(chosen), 20)]
    with torch.inference_mode():
        far = torch.cat([-DistanceThreshold(0.0)(batch)[~batch.is_diagonal] for batch in batches])
        if len(far) == 0:
            return DistanceThreshold(0.0)
        tried = np.quantile(far.numpy(), np.linspace(0.01, 0.99, _TRIED))
        found = {float(reach): _f1(task, DistanceThreshold(float(reach)), batches) for reach in tried}
    return DistanceThreshold(max(found, key=lambda reach: found[reach]))


def _f1(task: Any, model: DistanceThreshold, batches: Sequence[SetBatch]) -> float:
    return float(torch.cat([task.evaluate(model, batch)["F1"] for batch in batches]).mean())
