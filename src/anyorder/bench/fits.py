"""Exponents of time and memory, as a table and as the figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anyorder.bench.measure import Clock
from anyorder.bench.scaling import NOT_TRIED, Row
from anyorder.extras import require
from anyorder.files import replacing

FIT_FROM = 10_000  # below, what does not depend on the graph takes a share of the time
MARKS = {"out of memory": "X", "out of time": "P", "failed": "*"}


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of log(value) against log(size), by least squares.

    >>> round(exponent([10, 100, 1000], [3, 300, 30000]), 6)
    2.0
    """
    if len(sizes) < 2 or len(sizes) != len(values):
        raise ValueError(f"an exponent needs at least two sizes with a value each, got {len(sizes)} and {len(values)}")
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


@dataclass(frozen=True)
class Curve:
    """One quantity of one model against edges."""

    model: str
    edges: tuple[int, ...]
    values: tuple[float, ...]
    stop: str = ""
    """Why it was not measured on larger graphs; empty if nothing stopped it."""

    @property
    def fitted(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """The points that the exponent is fitted to: from ``FIT_FROM`` edges on if there are two, else the last three."""
        points = list(zip(self.edges, self.values, strict=True))
        large = [point for point in points if point[0] >= FIT_FROM]
        chosen = large if len(large) > 1 else points[-3:]
        return tuple(edges for edges, _ in chosen), tuple(value for _, value in chosen)

    @property
    def exponent(self) -> float | None:
        """The slope in the logarithmic plot; None for a single point."""
        sizes, values = self.fitted
        return exponent(sizes, values) if len(sizes) > 1 else None


def curves(rows: Sequence[Row], quantity: str) -> list[Curve]:
    """The curves of a column of the rows, such as ``forward_seconds``, in the order of the models."""
    found = []
    for model in dict.fromkeys(row.model for row in rows):
        own = sorted((row for row in rows if row.model == model), key=lambda row: row.edges)
        points = [(row.edges, float(value)) for row in own if (value := getattr(row, quantity))]
        stop = next((row.status for row in own if row.status not in ("ok", NOT_TRIED)), "")
        found.append(Curve(model, tuple(edges for edges, _ in points), tuple(value for _, value in points), stop))
    return found


def seconds_of(clock: Clock, what: str = "forward") -> str:
    """The column with the seconds of a clock."""
    return f"{what}_seconds" if clock == "wall" else f"{what}_cpu_seconds"


def table(rows: Sequence[Row], clock: Clock) -> str:
    """The largest graph of each model, what it took, the exponents, and what stopped it."""
    heads = ("model", "largest", "forward s", "MB", "step s", "MB", "time ~", "memory ~", "plan/forward", "stopped by")
    lines: list[tuple[str, ...]] = [heads]
    by = {name: {c.model: c for c in curves(rows, name)} for name in (seconds_of(clock), "forward_bytes")}
    for model in dict.fromkeys(row.model for row in rows):
        done = [row for row in rows if row.model == model and row.forward_seconds is not None]
        time, memory = (by[name][model] for name in (seconds_of(clock), "forward_bytes"))
        if not done:
            lines.append((model, "none", *["-"] * 7, time.stop))
            continue
        last = max(done, key=lambda row: row.edges)
        plan, forward, step = (getattr(last, seconds_of(clock, what)) for what in ("plan", "forward", "step"))
        lines.append(
            (
                model,
                f"{last.edges:,}",
                f"{forward:.4f}",
                f"{(last.forward_bytes or 0) / 1e6:,.0f}",
                "-" if step is None else f"{step:.4f}",
                "-" if last.step_bytes is None else f"{last.step_bytes / 1e6:,.0f}",
                _power(time),
                _power(memory),
                f"{plan / forward:.1%}",
                time.stop or "-",
            )
        )
    return aligned(lines)


def _power(curve: Curve) -> str:
    return "-" if curve.exponent is None else f"m^{curve.exponent:.2f}"


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns side by side: the first one to the left, the others to the right, a rule below the first line.

    >>> print(aligned([("a", "n"), ("bcd", "10")]))
    a     n
    ---  --
    bcd  10
    """
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    texts = []
    for first, *others in lines:
        texts.append("  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])]))
    texts.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(text.rstrip() for text in texts)


def draw(rows: Sequence[Row], path: Path, clock: Clock = "wall") -> Path:
    """Forward time and memory, and those of a training step if there are any, against edges; marked where a model stops."""
    matplotlib = require("matplotlib", "plot")
    matplotlib.use("Agg")
    pyplot = require("matplotlib.pyplot", "plot")
    panels = [(seconds_of(clock), f"forward pass, {clock} seconds", 1.0), ("forward_bytes", "forward pass, GB", 1e-9)]
    if any(row.step_seconds is not None for row in rows):
        panels += [(seconds_of(clock, "step"), f"training step, {clock} seconds", 1.0)]
        panels += [("step_bytes", "training step, GB", 1e-9)]
    lines = len(panels) // 2
    figure, grid = pyplot.subplots(lines, 2, figsize=(13, 5 * lines), layout="constrained", squeeze=False)
    for axes, (quantity, label, scale) in zip(grid.flat, panels, strict=True):
        for number, curve in enumerate(curves(rows, quantity)):
            _draw_curve(axes, curve, number, scale)
        axes.set(xscale="log", yscale="log", xlabel="directed edges", ylabel=label)
        axes.grid(alpha=0.3)
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=8)
    figure.suptitle("Barabasi-Albert graphs. Beyond a cross: out of memory; beyond a plus: out of time")
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150)
    pyplot.close(figure)
    return path


def _draw_curve(axes: object, curve: Curve, number: int, scale: float) -> None:
    if not curve.edges:
        return
    values = [value * scale for value in curve.values]
    plot, scatter = axes.plot, axes.scatter  # type: ignore[attr-defined]
    colour, line = f"C{number}", "-" if number < 10 else "--"  # there are ten colours
    plot(curve.edges, values, line, color=colour, marker="o", ms=3, lw=1.2, label=f"{curve.model}  {_power(curve)}")
    if curve.stop:
        scatter(curve.edges[-1], values[-1], color=colour, marker=MARKS[curve.stop], s=80, zorder=3)
