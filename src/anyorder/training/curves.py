"""Whether a training has converged, from the evaluations in its record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from anyorder.training.records import Record

TOLERANCE = 0.002
"""Largest gain over a tenth of the training, as a share of the value, of a curve that is called flat."""
FEWEST = 10
"""Evaluations without which there is no last tenth to see."""


def last_gain(values: Sequence[float], *, lower_is_better: bool = False) -> float:
    """How much better the last tenth of the evaluations is than the tenth before, as a share.

    >>> last_gain([0.0] * 8 + [0.6, 0.66])
    0.1
    >>> last_gain([3.0] * 8 + [2.0, 2.0], lower_is_better=True)
    0.0
    """
    width = max(1, round(len(values) / 10))
    before, last = fmean(values[-2 * width : -width]), fmean(values[-width:])
    gain = before - last if lower_is_better else last - before
    if before == 0:
        return math.inf if gain > 0 else 0.0
    return round(gain / abs(before), 6)


def is_rising(records: Sequence[Record], metric: str, *, lower_is_better: bool = False) -> bool:
    """Whether runs of a row were still getting better when they ended, cannot be seen not to, or are to be resumed.

    Over several seeds the mean gain must be above the tolerance by more than its standard error. A row that is evaluated
    once, or not at all, has no training to speak of.
    """
    if any(record.unfinished for record in records):
        return True
    curves = [[entry[metric] for entry in record.history if metric in entry] for record in records]
    if any(1 < len(curve) < FEWEST for curve in curves):
        return True
    gains = [last_gain(curve, lower_is_better=lower_is_better) for curve in curves if len(curve) > 1]
    if not gains:
        return False
    error = stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 and all(map(math.isfinite, gains)) else 0.0
    return not fmean(gains) - error <= TOLERANCE
