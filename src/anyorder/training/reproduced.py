"""What was reproduced: one line per table of the paper and dataset, from records alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from anyorder.training.records import Record
from anyorder.training.tables import SCALES, Claim, Line, Table, Value, lines

NEAR = 0.01
"""How far below the paper's value, as a share of it, a value may be that counts as reached."""
HEAD = (
    "paper",
    "measured on",
    "scale",
    "metrics",
    "ours",
    "seeds",
    "measured",
    "paper",
    "rival",
    "seeds",
    "measured",
    "paper",
    "verdict",
)


PAGE = f"""# What was reproduced

One line per table of the paper and dataset, made from the records with `anyorder reproduced`: ours and the strongest rival
of the paper at the largest scale that both were run at, each beside the paper's value. Where ours was run at
a larger scale than the rival, a line before has that.

{{table}}

- *value reached*: at least the paper's value less {NEAR:.0%} of it, in every metric; only said of the paper's own dataset.
- *ahead*, *behind*: by the first metric; *level*: the means are no further apart than the larger deviation over seeds.
  With one seed there is no deviation, and a small difference says nothing.
- *not converged*: see the table of the experiment. A lead over a row that has not converged is none over its authors.
"""


def page(tables: Iterable[Table], records: Sequence[Record]) -> str:
    """The page "What was reproduced"."""
    return PAGE.format(table=summarise(tables, records)).rstrip("\n")


def summarise(tables: Iterable[Table], records: Sequence[Record]) -> str:
    """A Markdown table of all claims: ours and its strongest rival, each beside the paper's value, and a verdict."""
    cells = [list(HEAD)]
    for table in tables:
        known = lines(table, records)
        cells += [_cells(table, claim, *pair) for claim in table.claims for pair in _pairs(claim, known)]
    return "\n".join(["| " + " | ".join(row) + " |" if n else _head(row) for n, row in enumerate(cells)])


def _head(row: Sequence[str]) -> str:
    return "| " + " | ".join(row) + " |\n|" + "---|" * len(row)


def _cells(table: Table, claim: Claim, ours: Line | None, rival: Line | None) -> list[str]:
    measured_on = claim.dataset if claim.stands_for else "the same"
    front = [claim.title, measured_on, ours.scale if ours else "-", ", ".join(claim.metrics)]
    sides = []
    for row, line in ((claim.ours, ours), (claim.rival, rival)):
        paper = [table.paper.get((claim.stands_for or claim.dataset, _paper_row(claim, row), m), "-") for m in claim.metrics]
        values = [line.values[m].text(table.digits) for m in claim.metrics] if line else ["-"]
        sides += [row, str(line.seeds) if line else "0", ", ".join(values), ", ".join(paper)]
    return [*front, *sides, verdict(table, claim, ours, rival)]


def _paper_row(claim: Claim, row: str) -> str:
    return claim.paper_rows.get(row, row)


def _pairs(claim: Claim, known: Sequence[Line]) -> list[tuple[Line | None, Line | None]]:
    """Ours and the rival at the largest scale of ours, and at the largest that both have if that is another."""
    mine = {line.scale: line for line in known if (line.dataset, line.row) == (claim.dataset, claim.ours)}
    theirs = {line.scale: line for line in known if (line.dataset, line.row) == (claim.dataset, claim.rival)}
    if not mine:
        return [(None, next((theirs[scale] for scale in SCALES if scale in theirs), None))]
    largest = next(scale for scale in SCALES if scale in mine)
    both = next((scale for scale in SCALES if scale in mine and scale in theirs), largest)
    return [(mine[scale], theirs.get(scale)) for scale in dict.fromkeys((largest, both))]


def verdict(table: Table, claim: Claim, ours: Line | None, rival: Line | None) -> str:
    """In words: whether the paper's value was reached, who is ahead, and what stands in the way of saying so."""
    if ours is None:
        return "not run"
    parts = []
    if not claim.stands_for:
        reached = all(_is_reached(table, claim, metric, ours.values[metric]) for metric in claim.metrics)
        parts.append("value reached" if reached else "value not reached")
    missing = f"rival not run{'' if ours.scale == 'full' else ' at this scale'}"
    parts.append(missing if rival is None else _standing(table, claim.metrics[0], ours, rival))
    if ours.scale != "full":
        parts.append(f"{ours.scale} scale")
    parts += [f"{line.row} {line.note}" for line in (ours, rival) if line is not None and line.note]
    return "; ".join(parts)


def _is_reached(table: Table, claim: Claim, metric: str, value: Value) -> bool:
    """Whether a value is that of the paper but for a hundredth, or better."""
    found = re.match(r"[\d.]+", table.paper.get((claim.dataset, _paper_row(claim, claim.ours), metric), ""))
    if found is None:
        return False
    paper = float(found.group())
    return value.mean <= paper * (1 + NEAR) if table.lower_is_better else value.mean >= paper * (1 - NEAR)


def _standing(table: Table, metric: str, ours: Line, rival: Line) -> str:
    """Ahead of the rival or behind it; level where the means are no further apart than the deviations over seeds."""
    mine, theirs = ours.values[metric], rival.values[metric]
    gain = (mine.mean - theirs.mean) * (-1 if table.lower_is_better else 1)
    if abs(gain) <= max(mine.std, theirs.std):
        return "level with the rival"
    return "ahead of the rival" if gain > 0 else "behind the rival"
