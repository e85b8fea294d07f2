"""Equivalence classes as pictures: what is read on the left, what is written on the right, what both share between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import cos, hypot, pi, radians, sin, sqrt
from pathlib import Path
from typing import Any

from anyorder.algebra.classes import KINDS, EquivalenceClass, Kind
from anyorder.extras import require

INPUT, OUTPUT, FLOW, INK, FAINT, PANEL = "#2f6db5", "#e07b1a", "#5d6470", "#22262e", "#8b919c", "#f6f7f9"
FORMATS = (".png", ".svg", ".pdf")
RADIUS, LOOP = 0.23, 0.2  # of a node and of a loop, in the units of a panel
WIDTH, HEIGHT, GAP, HEADER = 3.8, 3.3, 0.22, 0.95
INCHES = 0.5  # per unit
KIND_NOTES: dict[Kind, str] = {
    "pointwise": "the output names every input node: a look-up",
    "local": "some input nodes are shared, the others are summed over",
    "global": "no node is shared: a sum over everything else",
}

Point = tuple[float, float]


@dataclass(frozen=True)
class Arrangement:
    """Where the nodes of a class stand: summed ones on the left, shared ones between, written ones on the right.

    >>> from anyorder.algebra import select
    >>> [cls] = select(2, 2, lambda cls: cls.name == "(i,k) -> (i,j)")
    >>> arrangement = Arrangement.of(cls)
    >>> arrangement.summed, arrangement.shared, arrangement.written
    (('k',), ('i',), ('j',))
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    summed: tuple[str, ...]
    shared: tuple[str, ...]
    written: tuple[str, ...]

    @classmethod
    def of(cls, drawn: EquivalenceClass) -> Arrangement:
        inputs, outputs = drawn.names()
        return cls(
            inputs,
            outputs,
            summed=tuple(name for name in dict.fromkeys(inputs) if name not in outputs),
            shared=tuple(name for name in dict.fromkeys(outputs) if name in inputs),
            written=tuple(name for name in dict.fromkeys(outputs) if name not in inputs),
        )

    def spots(self) -> dict[str, Point]:
        """The place of each node around the middle of its panel."""
        left: Sequence[str] = self.summed if self.inputs else ["input"]  # an empty tuple stands for the whole graph
        right: Sequence[str] = self.written if self.outputs else ["output"]
        columns = [column for column in (left, self.shared, right) if column]
        step = 1.15 if len(columns) == 3 else 1.6
        places: dict[str, Point] = {}
        for number, column in enumerate(columns):
            x = step * (number - (len(columns) - 1) / 2)
            outward = -1.0 if column is left else 1.0
            for row, name in enumerate(column):
                lift = (len(column) - 1) / 2 - row
                inner = len(column) > 2 and 0 < row < len(column) - 1
                places[name] = (
                    x + (0.32 * outward if inner else 0.0),
                    lift * (1.1 if len(column) < 3 else 1.6 / (len(column) - 1)),
                )
        return places


def draw_classes(classes: Iterable[EquivalenceClass], path: str | Path, *, columns: int | None = None) -> Path:
    """Draw every class as a small diagram, grouped by kind, into a PNG, SVG or PDF file (by suffix).

    A tuple is drawn as the walk over its axes: an edge is an arrow, a loop is a node; tuples of three axes and more are
    hyperedges with a border.
    """
    drawn, target = list(classes), Path(path)
    check_drawing(drawn, target)
    groups = [(kind, [cls for cls in drawn if cls.kind == kind]) for kind in KINDS]
    groups = [(kind, members) for kind, members in groups if members]
    across = columns or _columns([len(members) for _, members in groups])
    height = 1.5 + sum(HEADER + (HEIGHT + GAP) * -(-len(members) // across) for _, members in groups)
    width = max(across, 3) * (WIDTH + GAP) + GAP
    figure = require("matplotlib.figure", "plot").Figure(figsize=(width * INCHES, height * INCHES), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(-height, 0), aspect="equal")
    axes.set_axis_off()
    _draw_heading(axes, drawn)
    top = -1.5
    for kind, members in groups:
        axes.text(GAP, top - 0.5, kind, fontsize=13, weight="bold", color=INK, va="center")
        note = f"{len(members)} of {len(drawn)}: {KIND_NOTES[kind]}"
        axes.text(GAP + 2.45, top - 0.5, note, fontsize=10, color=FAINT, va="center")
        top -= HEADER
        for number, cls in enumerate(members):
            row, column = divmod(number, across)
            _Panel(axes, cls, GAP + column * (WIDTH + GAP), top - row * (HEIGHT + GAP)).draw()
        top -= (HEIGHT + GAP) * -(-len(members) // across)
    save_drawing(figure, target)
    return target


def _columns(counts: list[int]) -> int:
    """The number of columns, near a square grid, that leaves the fewest places empty; of equals the largest.

    >>> _columns([5, 6, 4]), _columns([9, 33, 10])
    (6, 5)
    """
    square = sqrt(sum(counts))
    most = min(max(counts), max(8, int(1.1 * square)))
    least = min(most, max(4, int(0.7 * square)))
    return max(range(least, most + 1), key=lambda across: (-sum(-count % across for count in counts), across))


def check_drawing(drawn: list[EquivalenceClass], target: Path) -> None:
    """Refuse what cannot be drawn, or not into this file."""
    if target.suffix.lower() not in FORMATS:
        raise ValueError(f"expected a file name that ends in {', '.join(FORMATS)}, got {target.name!r}")
    if not drawn:
        raise ValueError("expected at least one class to draw, got none")
    orders = {(cls.order_in, cls.order_out) for cls in drawn}
    if len(orders) > 1:
        raise ValueError(f"expected classes of one pair of orders, got {sorted(orders)}")
    if not target.absolute().parent.is_dir():
        raise FileNotFoundError(f"the folder {target.absolute().parent} does not exist: make it first")


def _draw_heading(axes: Any, drawn: list[EquivalenceClass]) -> None:
    first = drawn[0]
    plural = "class" if len(drawn) == 1 else "classes"
    title = rf"$L_{{{first.order_in}\to {first.order_out}}}$   {len(drawn)} equivalence {plural}"
    axes.text(GAP, -0.62, title, fontsize=16, color=INK, va="center")
    patches = require("matplotlib.patches", "plot")
    legend = [("input", INPUT, 1), ("summed over", INPUT, 3), ("shared", INPUT, 1), ("output", OUTPUT, 1)]
    x, y = GAP + 0.2, -1.3
    for text, colour, copies in legend:
        for copy in reversed(range(copies)):
            shown = patches.Circle((x + 0.1 * (copies - 1 - copy), y), 0.15, fc=colour, ec="white", lw=0.8)
            shown.set_alpha(1.0 - 0.35 * copy)
            axes.add_patch(shown)
        if text == "shared":
            axes.add_patch(patches.Wedge((x, y), 0.14, -90, 90, fc=OUTPUT, lw=0))
        x += 0.1 * copies + 0.18
        axes.text(x, y, text, fontsize=10, color=INK, va="center")
        x += 0.5 + 0.19 * len(text)


def save_drawing(figure: Any, target: Path) -> None:
    """Write the file without the date, so that drawing twice gives the same bytes; text in SVG stays text."""
    dates: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with require("matplotlib", "plot").rc_context({"svg.hashsalt": "anyorder", "svg.fonttype": "none"}):
        figure.savefig(target, dpi=160, metadata=dates.get(target.suffix.lower()))


class _Panel:
    """One diagram on its card, whose upper left corner is (``left``, ``top``)."""

    def __init__(self, axes: Any, cls: EquivalenceClass, left: float, top: float) -> None:
        self.axes, self.cls, self.left, self.top = axes, cls, left, top
        self.patches = require("matplotlib.patches", "plot")
        self.nodes = Arrangement.of(cls)
        x, y = left + WIDTH / 2, top - (0.88 + HEIGHT) / 2
        self.spots = {name: (x + dx, y + dy) for name, (dx, dy) in self.nodes.spots().items()}

    def draw(self) -> None:
        corner, middle = (self.left, self.top - HEIGHT), self.left + WIDTH / 2
        rounded = "round,pad=0,rounding_size=0.15"
        self.axes.add_patch(self.patches.FancyBboxPatch(corner, WIDTH, HEIGHT, boxstyle=rounded, fc=PANEL, ec="none"))
        self._text((middle, self.top - 0.34), self.cls.name.replace("->", "→"), 10.5, INK)
        self._text((middle, self.top - 0.68), self.cls.kind, 8.5, FAINT)
        start = self._tuple(self.nodes.inputs, INPUT, side=-1.0)
        end = self._tuple(self.nodes.outputs, OUTPUT, side=1.0)
        self._flow(start, end)
        for name in self.spots:
            self._node(name)

    def _tuple(self, names: tuple[str, ...], colour: str, *, side: float) -> Point:
        """Draw an index tuple as the walk over its axes, and return where the flow leaves or enters it."""
        if not names:
            x, y = self.spots["input" if side < 0 else "output"]
            return x - 0.36 * side, y
        steps = list(dict.fromkeys(pairwise(names)))
        edges = [self._edge(a, b, colour, side, paired=(b, a) in steps) for a, b in steps if a != b]
        loops = [self._loop(a, colour, side, alone=not edges) for a, b in steps if a == b]
        if len(names) > 2:
            rounds = [(self.spots[name], 0.36) for name in names]
            self._border(rounds + [(loop, 0.3) for loop in loops] + [(edge, 0.12) for edge in edges], colour)
        if edges:
            return sum(x for x, _ in edges) / len(edges), sum(y for _, y in edges) / len(edges)
        if loops and names[0] in self.nodes.shared:
            return loops[0][0], loops[0][1] + LOOP
        return self.spots[names[0]]

    def _border(self, rounds: list[tuple[Point, float]], colour: str) -> None:
        """The convex hull of some circles."""
        turns = [2 * pi * step / 48 for step in range(48)]
        around = [(x + radius * cos(turn), y + radius * sin(turn)) for (x, y), radius in rounds for turn in turns]
        self.axes.add_patch(self.patches.Polygon(_hull(around), fc=colour + "1c", ec=colour + "80", lw=1.0, zorder=1))

    def _loop(self, name: str, colour: str, side: float, *, alone: bool) -> Point:
        """A ring at the node, turned away from the edges that meet there; its middle."""
        (x, y), lift = self.spots[name], self.spots[name][1] - (self.top - (0.88 + HEIGHT) / 2)
        turn = (0 if alone else -45) if abs(lift) < 0.1 else 55 if lift > 0 else -55
        middle = (x + side * 0.32 * cos(radians(turn)), y + 0.32 * sin(radians(turn)))
        self.axes.add_patch(self.patches.Circle(middle, LOOP, fill=False, ec=colour, lw=2.0, zorder=3))
        return middle

    def _edge(self, first: str, second: str, colour: str, side: float, *, paired: bool) -> Point:
        """An arrow between two nodes, bent outward where both stand in one column; its middle."""
        start, end = self.spots[first], self.spots[second]
        dx, dy = end[0] - start[0], end[1] - start[1]
        rad = 0.2 if paired else 0.0
        if abs(dx) < 0.4:
            rad = side * (1 if dy > 0 else -1) * (1.0 if paired and dy > 0 else 0.5)
        self._arrow(start, end, colour, rad, width=2.0, shrink=(RADIUS, RADIUS), zorder=2)
        return (start[0] + end[0] + rad * dy) / 2, (start[1] + end[1] - rad * dx) / 2

    def _flow(self, start: Point, end: Point) -> None:
        """The arrow from what is read to what is written, over what stands between."""
        if start == end:
            start, end = (start[0] - 0.24, start[1] + 0.2), (end[0] + 0.24, end[1] + 0.2)
        near = hypot(end[0] - start[0], end[1] - start[1]) < 0.7
        between = [spot for spot in self.spots.values() if spot not in (start, end)]
        level = abs(end[1] - start[1]) < 0.3
        blocked = any(_distance(spot, start, end) < RADIUS + 0.1 for spot in between)
        along = level and any(spot in (start, end) for name, spot in self.spots.items() if name in self.nodes.shared)
        rad = -1.1 if near and (blocked or along) else -0.65 if blocked or along else -0.15
        if near and start in self.spots.values():  # a node into its own loop
            start = (start[0] - 0.22, start[1] + 0.16)
        shrink = [RADIUS + 0.04 if point in self.spots.values() else 0.06 for point in (start, end)]
        self._arrow(start, end, FLOW, rad, width=1.4, shrink=(shrink[0], shrink[1]), zorder=6)

    def _arrow(self, start: Point, end: Point, colour: str, rad: float, *, width: float, shrink: Point, zorder: int) -> None:
        style = {"arrowstyle": "-|>", "mutation_scale": 10, "connectionstyle": f"arc3,rad={rad}"}
        ends = {"shrinkA": shrink[0] * 72 * INCHES, "shrinkB": shrink[1] * 72 * INCHES}
        self.axes.add_patch(self.patches.FancyArrowPatch(start, end, color=colour, lw=width, zorder=zorder, **style, **ends))

    def _node(self, name: str) -> None:
        """A disc with its letter: in both colours where it is shared, with a trail where it is summed over."""
        x, y = self.spots[name]
        if name in ("input", "output"):
            colour, rounded = INPUT if name == "input" else OUTPUT, "round,pad=0,rounding_size=0.1"
            box = self.patches.FancyBboxPatch((x - 0.38, y - 0.2), 0.76, 0.4, boxstyle=rounded, fc=colour, ec="none")
            self.axes.add_patch(box)
            self._text((x, y), "graph", 8, "white", zorder=7)
            return
        for shift, alpha in ((0.22, 0.25), (0.11, 0.5)) if name in self.nodes.summed else ():
            ghost = self.patches.Circle((x - shift, y + shift / 4), RADIUS, fc=INPUT, ec="white", lw=0.8, alpha=alpha)
            self.axes.add_patch(ghost)
        colour = INPUT if name in self.nodes.inputs else OUTPUT
        self.axes.add_patch(self.patches.Circle((x, y), RADIUS, fc=colour, ec="white", lw=0.9, zorder=4))
        if name in self.nodes.shared:
            self.axes.add_patch(self.patches.Wedge((x, y), RADIUS - 0.015, -90, 90, fc=OUTPUT, lw=0, zorder=5))
        self._text((x, y - 0.01), name, 9.5, "white", weight="bold", zorder=7)

    def _text(self, spot: Point, text: str, size: float, colour: str, *, weight: str = "normal", zorder: int = 5) -> None:
        style = {"fontsize": size, "color": colour, "weight": weight, "ha": "center", "va": "center", "zorder": zorder}
        self.axes.text(*spot, text, **style)


def _hull(points: list[Point]) -> list[Point]:
    """The convex hull, by Andrew's monotone chain.

    >>> _hull([(0, 0), (2, 0), (1, 1), (2, 2), (0, 2)])
    [(0, 0), (2, 0), (2, 2), (0, 2)]
    """
    halves: list[list[Point]] = []
    for ordered in (sorted(points), sorted(points, reverse=True)):
        half: list[Point] = []
        for point in ordered:
            while len(half) > 1 and _turn(half[-2], half[-1], point) <= 0:
                half.pop()
            half.append(point)
        halves.append(half[:-1])
    return halves[0] + halves[1]


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _distance(point: Point, start: Point, end: Point) -> float:
    """Distance of a point to a segment."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    along = ((point[0] - start[0]) * dx + (point[1] - start[1]) * dy) / (dx * dx + dy * dy)
    along = min(max(along, 0.0), 1.0)
    return hypot(point[0] - start[0] - along * dx, point[1] - start[1] - along * dy)
