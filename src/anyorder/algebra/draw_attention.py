"""Attention of a class as a picture: queries and keys of compact orders, what is compared, and where it goes (Prop. 1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path
from typing import Any

from anyorder.algebra.classes import EquivalenceClass
from anyorder.algebra.draw import FAINT, INK, INPUT, OUTPUT, check_drawing, save_drawing
from anyorder.algebra.partitions import SetPartition
from anyorder.extras import require

Index = tuple[int, ...]
NODES, HIGHEST = 3, 2
CELL, SPACE, TOP = 1.0, 1.6, 1.7
ALLOWED, EMPTY = "#6b4c9a", "#eceef1"


@dataclass(frozen=True)
class Compared:
    """The queries and keys of a class on a few nodes, by the nodes of their blocks, and the pairs that are compared.

    >>> from anyorder.algebra import select
    >>> [cls] = select(2, 1, lambda cls: cls.name == "(j,j) -> (i)")
    >>> Compared.of(cls, 2).pairs
    (((0,), (1,)), ((1,), (0,)))
    """

    cls: EquivalenceClass
    nodes: int
    queries: tuple[Index, ...]
    keys: tuple[Index, ...]
    pairs: tuple[tuple[Index, Index], ...]

    @classmethod
    def of(cls, drawn: EquivalenceClass, nodes: int = NODES) -> Compared:
        queries = tuple(permutations(range(nodes), drawn.target.num_blocks))
        keys = tuple(permutations(range(nodes), drawn.source.num_blocks))
        pairs = tuple((q, k) for q, k in product(queries, keys) if _is_in(drawn, q, k))
        return cls(drawn, nodes, queries, keys, pairs)

    def entries(self, query: Index) -> dict[Index, Index]:
        """The input entries i that a query attends to, each with its key."""
        return {spread(self.cls.source, key): key for asking, key in self.pairs if asking == query}


def _is_in(cls: EquivalenceClass, query: Index, key: Index) -> bool:
    """Whether exactly the matched blocks are the same node."""
    same = {(a, b) for a, node in enumerate(key) for b, other in enumerate(query) if node == other}
    return same == set(cls.matching)


def spread(pattern: SetPartition, blocks: Index) -> Index:
    """The index whose axes name the nodes of their blocks.

    >>> spread(SetPartition((0, 0)), (2,))
    (2, 2)
    """
    return tuple(blocks[block] for block in pattern.labels)


def draw_attention(classes: Iterable[EquivalenceClass], path: str | Path) -> Path:
    """Draw for each class that has something to weigh: its keys, its queries, their products, and the coefficients.

    Queries and keys have as many axes as their index has different nodes. All of it stands on three nodes.
    """
    drawn, target = [cls for cls in classes if cls.kind != "pointwise"], Path(path)
    check_drawing(drawn, target)
    first = drawn[0]
    if not 1 <= first.order_in <= HIGHEST or first.order_out > HIGHEST:
        raise ValueError(
            f"expected orders 1 or 2 to draw from and 0 to 2 to draw into, got {first.order_in} and {first.order_out}"
        )
    rows = [_Row(Compared.of(cls)) for cls in drawn]
    width = max(row.width for row in rows)
    height = sum(row.height for row in rows) + 1.2
    figure = require("matplotlib.figure", "plot").Figure(figsize=(0.42 * width, 0.42 * height), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(-height, 0), aspect="equal")
    axes.set_axis_off()
    text = "queries and keys have an axis for each node, not for each index (Prop. 1); numbers are nodes"
    axes.text(0.5, -0.7, text, fontsize=10, color=FAINT, va="center")
    top = -1.2
    for row in rows:
        row.draw(axes, top)
        top -= row.height
    save_drawing(figure, target)
    return target


class _Row:
    """One class: its grids side by side."""

    def __init__(self, made: Compared) -> None:
        self.made = made
        side = made.nodes * CELL
        self.key_axes, self.query_axes = made.cls.source.num_blocks, made.cls.target.num_blocks
        self.coefficients = len(made.queries) * (side + 0.5)
        key, query = side + 0.3, (side if self.query_axes == 2 else CELL) + 0.3
        self.starts = [0.8, 0.8 + key + SPACE]
        self.starts.append(self.starts[-1] + query + SPACE)
        self.starts.append(self.starts[-1] + max(6.0, len(made.keys) * CELL) + SPACE + 0.8)
        self.width = self.starts[-1] + max(8.5, self.coefficients) + 0.3
        self.height = TOP + max(len(made.queries) * CELL, side) + 1.2

    def draw(self, axes: Any, top: float) -> None:
        made, (keys, queries, table, last) = self.made, self.starts
        name = made.cls.name.replace("->", "→")
        axes.text(keys, top - 0.4, f"{name}    {made.cls}", fontsize=12, color=INK, va="center", weight="bold")
        top -= TOP
        self._title(axes, keys, top, f"keys, order {self.key_axes}")
        self._tensor(axes, keys, top, made.keys, INPUT, flat=False)
        self._title(axes, queries, top, f"queries, order {self.query_axes}")
        self._tensor(axes, queries, top, made.queries, OUTPUT, flat=True)
        self._title(axes, table, top, "compared: query (down) with key (across)")
        for row, column in product(range(len(made.queries)), range(len(made.keys))):
            pair = made.queries[row], made.keys[column]
            self._cell(axes, table + column * CELL, top - row * CELL, _pair(*pair) if pair in made.pairs else "", ALLOWED)
        self._title(axes, last, top, "coefficients of the input entries, for each output entry")
        for number, query in enumerate(made.queries):
            self._coefficients(axes, last + number * (made.nodes * CELL + 0.5), top, query)

    def _coefficients(self, axes: Any, left: float, top: float, query: Index) -> None:
        made = self.made
        found = made.entries(query)
        down = made.nodes if made.cls.order_in == 2 else 1
        for row, column in product(range(down), range(made.nodes)):
            index = (row, column) if down > 1 else (column,)
            text = _pair(query, found[index]) if index in found else ""
            self._cell(axes, left + column * CELL, top - row * CELL, text, ALLOWED)
        label = f"j = {_shown(spread(made.cls.target, query))}"
        axes.text(left, top - down * CELL - 0.35, label, fontsize=8, color=FAINT, va="center")

    def _tensor(self, axes: Any, left: float, top: float, there: Sequence[Index], colour: str, *, flat: bool) -> None:
        order = len(there[0])
        if order == 2:
            for index in product(range(self.made.nodes), repeat=2):
                text = _digits(index) if index in there else ""
                self._cell(axes, left + index[1] * CELL, top - index[0] * CELL, text, colour)
            return
        for number, index in enumerate(there):
            x, y = (left, top - number * CELL) if flat else (left + number * CELL, top)
            self._cell(axes, x, y, _digits(index) or "q", colour)

    def _cell(self, axes: Any, x: float, y: float, text: str, colour: str) -> None:
        patches = require("matplotlib.patches", "plot")
        axes.add_patch(patches.Rectangle((x, y - CELL), CELL, CELL, fc=colour if text else EMPTY, ec="white", lw=1.2))
        axes.text(
            x + CELL / 2, y - CELL / 2, text, fontsize=7 if len(text) < 4 else 6, color="white", ha="center", va="center"
        )

    @staticmethod
    def _title(axes: Any, x: float, y: float, text: str) -> None:
        axes.text(x, y + 0.4, text, fontsize=8.5, color=INK, va="center")


def _digits(index: Index) -> str:
    return "".join(str(node + 1) for node in index)


def _pair(query: Index, key: Index) -> str:
    return f"{_digits(query) or 'q'}·{_digits(key)}"


def _shown(index: Index) -> str:
    return f"({','.join(str(node + 1) for node in index)})"
