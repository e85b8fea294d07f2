"""Learning curves of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from anyorder.extras import require
from anyorder.files import replacing
from anyorder.suggest import nearest
from anyorder.training.records import Record
from anyorder.training.tables import OWN

_COLUMNS = 3
_STYLES = ("-", "--", ":", "-.")


def draw_curves(records: Sequence[Record], metric: str, path: Path, *, title: str = "", rows: Sequence[str] = ()) -> Path:
    """Draw a metric (or the loss) against the epoch: a panel per dataset and scale, a colour per row.

    Thick lines are means over seeds, thin ones the seeds. ``rows`` says in which order they are named.
    """
    chosen = [record for record in records if (record.table == OWN or not record.overrides) and _points(record, metric)]
    if not chosen:
        known = {name for record in records for entry in record.history for name in entry} - {"epoch", "step"}
        raise ValueError(f"no record has a history of {metric!r}{nearest(metric, known) if known else ''}")
    matplotlib = require("matplotlib", "plot")
    matplotlib.use("Agg")
    pyplot = require("matplotlib.pyplot", "plot")
    panels = sorted({(record.dataset, record.scale) for record in chosen})
    names = sorted({record.row for record in chosen}, key=lambda row: ([*rows, row].index(row), row))
    columns = min(_COLUMNS, len(panels))
    height = math.ceil(len(panels) / columns)
    size = (4.6 * columns + 2.4, 3.6 * height + 0.4)
    figure, grid = pyplot.subplots(height, columns, figsize=size, squeeze=False, layout="constrained")
    for axes, panel in zip(grid.flat, panels, strict=False):
        inside = [record for record in chosen if (record.dataset, record.scale) == panel]
        _draw_panel(axes, inside, metric, names)
        axes.set_title(f"{panel[0]}, {panel[1]}", fontsize=10)
    for axes in grid.flat[len(panels) :]:
        axes.axis("off")
    figure.suptitle(title)
    lines = [pyplot.Line2D([], [], label=name, **_look(number)) for number, name in enumerate(names)]
    figure.legend(handles=lines, loc="outside right center", frameon=False, fontsize=8)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, format=path.suffix.removeprefix(".") or "png")
    pyplot.close(figure)
    return path


def _draw_panel(axes: Any, records: Sequence[Record], metric: str, names: Sequence[str]) -> None:
    for number, name in enumerate(names):
        curves = [_points(record, metric) for record in records if record.row == name]
        for points in curves if len(curves) > 1 else []:
            axes.plot(*zip(*points.items(), strict=True), **{**_look(number), "lw": 0.5, "alpha": 0.4})
        epochs = sorted({epoch for points in curves for epoch in points})
        means = [fmean(points[epoch] for points in curves if epoch in points) for epoch in epochs]
        marker = "o" if len(epochs) == 1 else None
        axes.plot(epochs, means, **_look(number), marker=marker)
    axes.set_xlabel("epoch")
    axes.set_ylabel(metric)
    values = [value for record in records for value in _points(record, metric).values()]
    if metric == "loss" and min(values) > 0 and max(values) > 10 * min(values):
        axes.set_yscale("log")
        ticker = require("matplotlib.ticker", "plot")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    axes.grid(alpha=0.3)


def _points(record: Record, metric: str) -> dict[float, float]:
    """The metric after each epoch."""
    return {entry["epoch"] + 1: entry[metric] for entry in record.history if metric in entry}


def _look(number: int) -> dict[str, Any]:
    return {"color": f"C{number % 10}", "ls": _STYLES[number // 10 % len(_STYLES)], "lw": 1.6}
