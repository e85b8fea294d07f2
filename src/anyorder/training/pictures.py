"""Pictures of attention: colours relative to equal shares, with a bar that says what they mean."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyorder.extras import require
from anyorder.files import replacing

REACH = 2.0
"""Colours are full at this power of 2: four times as much as equal shares, or a quarter."""
_MAP = "PuOr_r"
ENDINGS = (".png", ".svg", ".pdf")


def check_picture(path: Path) -> None:
    """Refuse a file that is no picture before anything is computed for it."""
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"a picture is a {', '.join(ENDINGS)} file, got {path.name!r}")


def contrast_colours(ratios: Sequence[float]) -> list[tuple[float, ...]]:
    """A colour for each ratio to equal shares: 1 is white, more is orange, less is violet.

    >>> [round(channel, 1) for channel in contrast_colours([1.0])[0]]
    [1.0, 1.0, 1.0]
    """
    colours = require("matplotlib", "plot").colormaps[_MAP]
    places = [0.5 + math.log2(max(ratio, 1e-9)) / (2 * REACH) for ratio in ratios]
    return [tuple(map(float, colours(min(1.0, max(0.0, place)))[:3])) for place in places]


@contextmanager
def figure_into(path: Path, title: str) -> Iterator[tuple[Any, Any]]:
    """A figure with axes that show nothing of themselves, written to a file."""
    require("matplotlib", "plot").use("Agg")
    pyplot = require("matplotlib.pyplot", "plot")
    figure, axes = pyplot.subplots(figsize=(8, 5.6), layout="constrained")
    axes.axis("off")
    axes.set_title(title, fontsize=9)
    try:
        yield figure, axes
        with replacing(path) as temporary:
            figure.savefig(temporary, dpi=150, format=path.suffix.removeprefix(".").lower())
    finally:
        pyplot.close(figure)


def add_colour_bar(figure: Any, axes: Any) -> None:
    """What the colours mean."""
    colours, cm = require("matplotlib.colors", "plot"), require("matplotlib.cm", "plot")
    bar = figure.colorbar(cm.ScalarMappable(colours.Normalize(-REACH, REACH), _MAP), ax=axes, shrink=0.7)
    bar.set_ticks([-2, -1, 0, 1, 2], labels=["1/4", "1/2", "1", "2", "4"])
    bar.set_label("attention, as a multiple of equal shares", fontsize=8)
