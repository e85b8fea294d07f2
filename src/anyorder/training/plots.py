"""Learning curves of runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anyorder.extras import require
from anyorder.training.records import Record


def draw_curves(records: Sequence[Record], metric: str, path: Path) -> Path:
    """Draw a metric (or the loss) against the epoch, one colour per row and dataset, one line per seed."""
    matplotlib = require("matplotlib", "plot")
    matplotlib.use("Agg")
    pyplot = require("matplotlib.pyplot", "plot")
    chosen = [record for record in records if any(metric in entry for entry in record.history)]
    if not chosen:
        known = sorted({name for record in records for entry in record.history for name in entry} - {"epoch", "step"})
        raise ValueError(f"no record has a history of {metric!r}: expected one of {known}")
    names = list(dict.fromkeys((record.dataset, record.row, record.scale) for record in chosen))
    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for number, name in enumerate(names):
        for record in chosen:
            if (record.dataset, record.row, record.scale) != name:
                continue
            points = [(entry["epoch"] + 1, entry[metric]) for entry in record.history if metric in entry]
            first = not any(line.get_label() == " · ".join(name) for line in axes.lines)
            label = " · ".join(name) if first else None
            style = "-" if number < 10 else "--"
            axes.plot(*zip(*points, strict=True), color=f"C{number % 10}", ls=style, lw=1, label=label)
    axes.set_xlabel("epoch")
    axes.set_ylabel(metric)
    if metric == "loss" and all(entry.get(metric, 1) > 0 for record in chosen for entry in record.history):
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path
