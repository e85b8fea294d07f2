"""Classes by name: what a selection asks of patterns and matchings, and how to write out nothing but these classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import product
from typing import Literal, get_args

from anyorder.algebra.classes import EquivalenceClass, Matching, classes
from anyorder.algebra.partitions import SetPartition, set_partitions

Axes = tuple[int, ...]
Lightweight = Literal[
    "pointwise",
    "pointwise, aligned",
    "pointwise, in place",
    "pointwise, then in place",
    "pointwise, aligned, then in place",
]
"""Names of the classes that an MLP may have."""
Projecting = Literal["pointwise", "pointwise, in place"]
"""Names of the classes that queries and keys may be made by."""
PROJECTING: tuple[Projecting, ...] = get_args(Projecting)
LIGHTWEIGHT: tuple[Lightweight, ...] = get_args(Lightweight)
THEN = ", then in place"


@dataclass(frozen=True)
class Criterion:
    """What a named selection asks of a class.

    Attributes:
        meaning: in words, for help texts.
        pattern: whether a source or target pattern is allowed.
        least: how many blocks must be matched at least, from the numbers of source and target blocks.
        pair: whether a source block may equal a target block, from the axes of both.
        target: whether a target pattern is allowed.
    """

    meaning: str
    pattern: Callable[[SetPartition], bool] = lambda pattern: True
    least: Callable[[int, int], int] = lambda source, target: 0
    pair: Callable[[Axes, Axes], bool] = lambda source, target: True
    target: Callable[[SetPartition], bool] = lambda pattern: True


CRITERIA: dict[str, Criterion] = {
    "all": Criterion("every class"),
    "pointwise": Criterion("the output names every input node (the lightweight layer)", least=lambda source, target: source),
    "without global": Criterion("input and output share a node", least=lambda source, target: min(1, source)),
    "distinct": Criterion("no node twice in a tuple", pattern=lambda pattern: pattern.is_distinct),
    "match all but one": Criterion(
        "input and output differ in at most one node (the neighbourhoods of k-WL, at any axes)",
        least=lambda source, target: max(source, target) - 1,
    ),
    "in place": Criterion("shared nodes keep their axes", pair=lambda source, target: source == target),
    "aligned": Criterion(
        "shared nodes keep an axis (an edge reads its nodes and not its reversal)",
        pair=lambda source, target: not set(source).isdisjoint(target),
    ),
    "into nodes": Criterion("no two nodes in an output tuple", target=lambda pattern: pattern.num_blocks <= 1),
}


def parse(selection: str) -> tuple[Criterion, ...]:
    """The criteria of a name, or of several with commas between, all of which must hold.

    >>> [criterion.meaning for criterion in parse("distinct, in place")]
    ['no node twice in a tuple', 'shared nodes keep their axes']
    """
    names = [name.strip() for name in selection.split(",")]
    for name in names:
        if name not in CRITERIA:
            close = get_close_matches(name, CRITERIA, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            expected = f"a predicate, or names with commas between, of {[*CRITERIA]}"
            raise ValueError(f"unknown class selection {name!r}{hint}: expected {expected}")
    return tuple(CRITERIA[name] for name in names)


@cache
def named(order_in: int, order_out: int, selection: str) -> tuple[EquivalenceClass, ...]:
    """The classes of a named selection, in the order of ``classes``; the others are never made.

    >>> len(named(4, 4, "distinct, match all but one")), len(named(4, 4, "distinct, match all but one, in place"))
    (120, 5)
    """
    criteria = parse(selection)
    sources, targets = ([p for p in set_partitions(k) if all(c.pattern(p) for c in criteria)] for k in (order_in, order_out))
    return tuple(
        EquivalenceClass(source, target, matching)
        for source, target in product(sources, [p for p in targets if all(c.target(p) for c in criteria)])
        for matching in _matchings(source, target, criteria)
    )


def _matchings(source: SetPartition, target: SetPartition, criteria: tuple[Criterion, ...]) -> list[Matching]:
    least = max(c.least(source.num_blocks, target.num_blocks) for c in criteria)
    into = [
        [b for b, write in enumerate(target.blocks) if all(c.pair(read, write) for c in criteria)] for read in source.blocks
    ]
    found = _extend((), into, least)
    return sorted(found, key=lambda matching: (len(matching), [a for a, _ in matching], [b for _, b in matching]))


def _extend(matching: Matching, into: list[list[int]], least: int, block: int = 0) -> Iterator[Matching]:
    """All matchings that agree with this one on the blocks before ``block`` and have at least ``least`` pairs."""
    if len(matching) + len(into) - block < least:
        return
    if block == len(into):
        yield matching
        return
    yield from _extend(matching, into, least, block + 1)
    taken = {b for _, b in matching}
    for other in into[block]:
        if other not in taken:
            yield from _extend((*matching, (block, other)), into, least, block + 1)


Selection = str | Callable[[EquivalenceClass], bool] | Iterable[EquivalenceClass]


def select(order_in: int, order_out: int, selection: Selection = "all") -> tuple[EquivalenceClass, ...]:
    """The classes a layer uses: a name (or several with commas between), a predicate, or the classes themselves.

    A name writes out its own classes only, so that it is fast at orders whose classes are many.

    >>> len(select(2, 2, "pointwise")), len(select(2, 2, "without global")), len(select(4, 4, "distinct, match all but one"))
    (5, 11, 120)

    Args:
        order_in, order_out: k and l.
        selection: a name, several names with commas between, a predicate on classes, or classes.
    """
    if isinstance(selection, str):
        chosen = named(order_in, order_out, selection)
    elif callable(selection):
        chosen = tuple(cls for cls in classes(order_in, order_out) if selection(cls))
    elif isinstance(selection, Iterable):
        wanted = set(selection)
        foreign = [cls for cls in wanted if (cls.order_in, cls.order_out) != (order_in, order_out)]
        if foreign:
            raise ValueError(f"classes must belong to order {order_in} -> {order_out}, got {foreign[0]}")
        chosen = tuple(sorted(wanted, key=_place))
    else:
        raise TypeError(f"class selection must be a name, a predicate or classes, got {type(selection).__name__}")
    if not chosen:
        raise ValueError(f"class selection {selection!r} leaves no class of order {order_in} -> {order_out}")
    return chosen


def _place(cls: EquivalenceClass) -> tuple[object, ...]:
    """Sorts as ``classes`` lists them."""
    return cls.source, cls.target, len(cls.matching), cls.matched_source, cls.matched_target


def select_mlp(order: int, selection: Selection) -> tuple[tuple[EquivalenceClass, ...], tuple[EquivalenceClass, ...]]:
    """The classes of the two maps of a lightweight MLP; a name that ends in ``", then in place"`` names two selections.

    >>> [[len(some) for some in select_mlp(2, name)] for name in ("pointwise", "pointwise, aligned, then in place")]
    [[5, 5], [4, 2]]

    Args:
        order: of the entries.
        selection: as of ``select``, for both maps, or a name for the first, followed by ``", then in place"``.
    """
    names: tuple[Selection, Selection] = (selection, selection)
    if isinstance(selection, str) and selection.endswith(THEN):
        names = (selection.removesuffix(THEN), "pointwise, in place")
    first, second = (select(order, order, name) for name in names)
    if any(cls.kind != "pointwise" for cls in (*first, *second)):
        raise ValueError(f"mlp_classes must be pointwise classes of order {order}, got {selection!r}")
    return first, second
