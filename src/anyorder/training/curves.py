"""Whether a training has converged, from the evaluations in its record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from anyorder.training.records import Record

TOLERANCE = 0.002
"""Largest gain over a tenth of the training, as a share of the value, of a curve that is called flat."""


def last_gain(values: Sequence[float], *, lower_is_better: bool = False) -> float | None:
    """How much better the last tenth of the evaluations is than the tenth before, as a share; None for a single one.

    >>> last_gain([0.2, 0.5, 0.6, 0.66])
    0.1
    >>> last_gain([3.0, 2.0, 2.0], lower_is_better=True)
    0.0
    """
    width = max(1, round(len(values) / 10))
    if len(values) < 2 * width:
        return None
    before, last = fmean(values[-2 * width : -width]), fmean(values[-width:])
    gain = before - last if lower_is_better else last - before
    if before == 0:
        return math.inf if gain > 0 else 0.0
    return round(gain / abs(before), 6)


def is_rising(records: Sequence[Record], metric: str, *, lower_is_better: bool = False) -> bool:
    """Whether runs of a row were still getting better when they ended, or are to go on; by the mean gain over seeds."""
    if any(record.unfinished for record in records):
        return True
    curves = [[entry[metric] for entry in record.history if metric in entry] for record in records]
    gains = [gain for curve in curves if (gain := last_gain(curve, lower_is_better=lower_is_better)) is not None]
    return bool(gains) and not fmean(gains) <= TOLERANCE
