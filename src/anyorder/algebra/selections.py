"""Classes by name: what a selection asks of patterns and matchings, and how to write out nothing but these classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import product

from anyorder.algebra.classes import EquivalenceClass, Matching
from anyorder.algebra.partitions import SetPartition, set_partitions

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Criterion:
    """What a named selection asks of a class.

    Attributes:
        meaning: in words, for help texts.
        pattern: whether a source or target pattern is allowed.
        least: how many blocks must be matched at least, from the numbers of source and target blocks.
        pair: whether a source block may equal a target block, from the axes of both.
    """

    meaning: str
    pattern: Callable[[SetPartition], bool] = lambda pattern: True
    least: Callable[[int, int], int] = lambda source, target: 0
    pair: Callable[[Axes, Axes], bool] = lambda source, target: True


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
    allowed = [[p for p in set_partitions(k) if all(c.pattern(p) for c in criteria)] for k in (order_in, order_out)]
    return tuple(
        EquivalenceClass(source, target, matching)
        for source, target in product(*allowed)
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
