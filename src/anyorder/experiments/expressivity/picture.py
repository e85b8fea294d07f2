"""What each order tells apart, group by group, and what it costs, as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from anyorder.errors import InputError
from anyorder.experiments.expressivity.pairs import GROUPS
from anyorder.experiments.expressivity.recipes import TABLE
from anyorder.experiments.expressivity.verdicts import HOWS
from anyorder.extras import require
from anyorder.files import replacing
from anyorder.training.records import Record

FORMATS = (".png", ".svg", ".pdf")
NAMES = {"strongly regular": "strongly\nregular", "4-vertex condition": "4-vertex\ncondition"}
BLUE, INK, NONE, ABSENT = "#2f6db5", "#22262e", "#f1f3f5", "#c9ced6"


def draw_orders(records: Sequence[Record], path: Path) -> Path:
    """A row for each row of the table, a field for each group, and the CPU seconds of a pair beside them."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"expected a file name that ends in {', '.join(FORMATS)}, got {path.name!r}")
    chosen = {record.row: record for record in records if record.dataset == "BREC" and not record.overrides}
    rows = [row for row in TABLE.rows if row in chosen]
    if not rows:
        raise InputError("there are no records of BREC: `anyorder run expressivity/brec --all` makes some")
    require("matplotlib", "plot").use("Agg")
    pyplot = require("matplotlib.pyplot", "plot")
    figure, (field, cost) = pyplot.subplots(
        1, 2, figsize=(11.5, 0.36 * len(rows) + 1.5), width_ratios=(4.2, 1.3), sharey=True, layout="constrained"
    )
    for place, row in enumerate(rows):
        _draw_row(field, place, chosen[row])
    _finish(field, cost, rows, chosen)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, format=path.suffix.removeprefix("."))
    pyplot.close(figure)
    return path


def _draw_row(field: Any, place: int, record: Record) -> None:
    """How many pairs of each group are told apart: the darker, the more; grey where none could be judged."""
    patches = require("matplotlib.patches", "plot")
    colours = require("matplotlib.colors", "plot").LinearSegmentedColormap.from_list("told", [NONE, BLUE])
    for column, (group, (_, total)) in enumerate(GROUPS.items()):
        found = record.metrics.get(group, {"pairs": 0.0, "judged": 0.0})
        pairs, judged = int(found["pairs"]), int(found["judged"])
        share = pairs / total
        colour = ABSENT if judged == 0 else colours(share)
        field.add_patch(patches.Rectangle((column - 0.48, place - 0.44), 0.96, 0.88, color=colour, lw=0))
        text = "not judged" if judged == 0 else f"{pairs}" if judged == total else f"{pairs} of {judged}"
        field.text(column, place, text, ha="center", va="center", fontsize=8, color="white" if share > 0.5 else INK)
    whole = record.metrics[""]
    field.text(len(GROUPS) - 0.1, place, f"{int(whole['pairs'])}", ha="center", va="center", fontsize=9, weight="bold")


def _finish(field: Any, cost: Any, rows: list[str], chosen: dict[str, Record]) -> None:
    field.set_xlim(-0.55, len(GROUPS) + 0.3)
    field.set_ylim(len(rows) - 0.4, -0.6)
    labels = [f"{NAMES.get(group, group.replace(' ', chr(10)))}\n({total})" for group, (_, total) in GROUPS.items()]
    field.set_xticks([*range(len(GROUPS)), len(GROUPS) - 0.1], [*labels, "of 400"], fontsize=8)
    field.set_yticks(range(len(rows)), rows, fontsize=9)
    seconds = [max(_seconds(chosen[row]), 1e-4) for row in rows]
    cost.barh(range(len(rows)), seconds, height=0.6, color=BLUE)
    cost.set_xscale("log")
    cost.set_xlabel("CPU seconds per judged pair (mean)", fontsize=8)
    cost.tick_params(labelsize=8, left=False)
    for place, value in enumerate(seconds):
        cost.text(value * 1.15, place, f"{value:.2g}", va="center", fontsize=7, color=INK)
    cost.set_xlim(min(seconds) / 2, max(seconds) * 6)
    for axes in (field, cost):
        for side in axes.spines.values():
            side.set_visible(False)
    field.tick_params(length=0)
    field.set_title("Pairs of BREC that are told apart (n of m: m were judged)", fontsize=11, loc="left")
    cost.set_title("what it costs", fontsize=11, loc="left")


def _seconds(record: Record) -> float:
    judged = [entry["seconds"] for entry in record.history if entry["how"] != HOWS.index("does not fit")]
    return fmean(judged) if judged else 0.0
