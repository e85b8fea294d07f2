"""Scores on a test part with intervals, and the table in which a model stands beside its baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Z = 1.959964
"""Of a normal deviate: 95 of 100 lie within."""


@dataclass(frozen=True)
class Score:
    """A metric on the test part with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float

    @classmethod
    def of_share(cls, name: str, percent: float, count: int) -> Score:
        """A share of ``count`` test rows in percent, such as an accuracy, with its Wilson interval.

        >>> score = Score.of_share("accuracy", 95.0, 60)
        >>> round(score.low, 1), round(score.high, 1)
        (86.3, 98.3)
        """
        return cls(name, percent, *(100.0 * bound for bound in wilson(percent / 100.0, count)))


def wilson(share: float, count: int) -> tuple[float, float]:
    """The Wilson interval of a share of ``count``.

    >>> [round(bound, 3) for bound in wilson(1.0, 20)]
    [0.839, 1.0]
    """
    if count < 1:
        raise ValueError(f"an interval needs at least one row, got {count}")
    middle = (share + Z**2 / (2 * count)) / (1 + Z**2 / count)
    reach = Z / (1 + Z**2 / count) * (share * (1 - share) / count + Z**2 / (4 * count**2)) ** 0.5
    return max(0.0, middle - reach), min(1.0, middle + reach)


def score_table(rows: Sequence[tuple[str, Sequence[Score]]], spread: str = "95 % interval", part: str = "test") -> str:
    """Scores on a part, aligned.

    >>> rows = [("model", [Score("accuracy", 90.0, 80.0, 95.0)]), ("baseline", [Score("accuracy", 70.0, 60.0, 80.0)])]
    >>> print(score_table(rows))
    test      accuracy  95 % interval
    model     90        80 to 95
    baseline  70        60 to 80
    """
    names = list(dict.fromkeys(score.name for _, scores in rows for score in scores))
    lines = [[part, *(text for name in names for text in (name, spread))]]
    for title, scores in rows:
        known = {score.name: score for score in scores}
        cells = [title]
        for name in names:
            score = known.get(name)
            cells += ["-", ""] if score is None else [f"{score.value:.4g}", _spread(score)]
        lines.append(cells)
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _spread(score: Score) -> str:
    return f"{score.low:.4g} to {score.high:.4g}" if score.low == score.low else ""
