"""The program of an attention layer, whole and in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

from anyorder.algebra.classes import EquivalenceClass, pools, projecting
from anyorder.algebra.partitions import SetPartition, set_partitions
from anyorder.algebra.program import (
    Attend,
    Attentions,
    ColumnSpan,
    Combine,
    Program,
    Project,
    Role,
    Sharing,
    Side,
    Step,
    Values,
)
from anyorder.algebra.selections import Projecting


def pooled(classes: Sequence[EquivalenceClass]) -> tuple[EquivalenceClass, ...]:
    """The classes that sum over something, those that share their groups together: the order of attention's weights."""
    some = [cls for cls in classes if cls.kind != "pointwise"]
    return tuple(sorted(some, key=lambda cls: (cls.source, cls.matched_source, cls.target, cls.matching)))


@cache
def attention_program(
    order_in: int,
    order_out: int,
    classes: tuple[EquivalenceClass, ...],
    attention: Attentions,
    same: bool,
    sharing: Sharing = "none",
    projection_classes: Projecting = "pointwise",
) -> Program:
    """The program of an attention layer; ``same`` where it writes to the index set that it reads from.

    ``attention`` says how local and how global classes attend, ``sharing`` which weights they have in common.

    Queries at a target pattern, keys at a source pattern and the pointwise part of the output that read the same rows
    share their products. ``parts`` of the program do the same with one attention at a time, where none share queries.

    >>> from anyorder.algebra import classes
    >>> len(attention_program(1, 1, classes(1, 1), ("softmax", "softmax"), same=True).steps)
    4

    Args:
        order_in, order_out: k and l.
        classes: those that the layer uses.
        attention: ``"relaxed"``, ``"exact"``, ``"pairs"`` or ``"softmax"``, for the local and for the global ones.
        same: whether the layer writes to the index set that it reads from.
        sharing: which of queries and keys the classes of a pattern have together, as of ``EquivariantAttention``.
        projection_classes: what queries and keys are made from, as of ``EquivariantAttention``.
    """
    attends = tuple(_attends(pooled(classes), attention, "keys" in sharing))
    layer = _Layer(order_in, order_out, classes, attends, same, sharing, projection_classes != "pointwise")
    parts = [layer.program((), True), *(layer.program((attend,), False) for attend in attends)]
    divides = len(attends) > 1 and "queries" not in sharing
    return replace(layer.program(attends, True), parts=tuple(parts) if divides else ())


@dataclass(frozen=True)
class _Layer:
    """An attention layer, of which programs do all or a part."""

    order_in: int
    order_out: int
    classes: tuple[EquivalenceClass, ...]
    attends: tuple[Attend, ...]
    same: bool
    sharing: Sharing
    in_place: bool

    def program(self, some: tuple[Attend, ...], is_direct: bool) -> Program:
        """What some of the attentions do, and the pointwise part of the output."""
        side: Side = "target" if self.same else "source"
        wanted: dict[tuple[Side, SetPartition, tuple[EquivalenceClass, ...]], tuple[ColumnSpan, ...]] = {}

        def want(side: Side, pattern: SetPartition, reads: tuple[EquivalenceClass, ...], *columns: ColumnSpan) -> None:
            wanted[side, pattern, reads] = (*wanted.get((side, pattern, reads), ()), *columns)

        targets = dict.fromkeys(c.target for attend in some for c in attend.classes)
        sources = dict.fromkeys(attend.pool.source for attend in sorted(some, key=lambda a: a.pool.source))
        direct = {p: tuple(c for c in self.classes if c.kind == "pointwise" and c.target == p) for p in self._patterns()}
        for p in targets:
            shared = (ColumnSpan("query", -1, 0, 1),)
            spans = shared if "queries" in self.sharing else self._queries(p, some)
            want("target", p, projecting(self.order_in, p, self.in_place), *spans)
        for p in sources:
            want(side, p, projecting(self.order_in, p, self.in_place), *self._keys("key", p, some))
        for p, reads in direct.items():
            if reads and is_direct:
                want("target", p, reads, ColumnSpan("direct", -1, 0, 1))
        steps: list[Step] = [Project(*site, columns) for site, columns in wanted.items()]
        steps += [Values(p, self._keys("value", p, some)) for p in sources]
        steps += some
        for p in self._patterns() if is_direct else targets:
            spans = self._queries(p, some)
            first = spans[0].start if spans else 0
            steps.append(Combine(p, tuple(span.attend for span in spans), is_direct and bool(direct[p]), first))
        return Program(self.order_in, self.order_out, tuple(steps))

    def _patterns(self) -> Sequence[SetPartition]:
        return set_partitions(self.order_out)

    def _queries(self, pattern: SetPartition, some: tuple[Attend, ...]) -> tuple[ColumnSpan, ...]:
        """Of some attentions into a pattern: the columns of queries, where none are shared, and the rows of the output."""
        counts = [(a.number, dict(a.targets)[pattern]) for a in self.attends if pattern in dict(a.targets)]
        return _spans("query", counts, some)

    def _keys(self, role: Role, pattern: SetPartition, some: tuple[Attend, ...]) -> tuple[ColumnSpan, ...]:
        """Of some attentions, as keys and values of all that read a pattern lie side by side."""
        every = pooled(self.classes)
        reading = sorted((a for a in self.attends if a.pool.source == pattern), key=lambda a: every.index(a.classes[0]))
        return _spans(role, [(a.number, a.key_classes) for a in reading], some)


def _spans(role: Role, counts: Sequence[tuple[int, int]], some: tuple[Attend, ...]) -> tuple[ColumnSpan, ...]:
    """The columns of some attentions, where those of all lie side by side: numbers of attentions and their classes."""
    wanted = {attend.number for attend in some}
    starts = accumulate((count for _, count in counts), initial=0)
    pairs = zip(counts, starts, strict=False)
    return tuple(ColumnSpan(role, number, start, count) for (number, count), start in pairs if number in wanted)


def _attends(every: tuple[EquivalenceClass, ...], attention: Attentions, shares_keys: bool) -> list[Attend]:
    """One attention for each pool and target pattern, or for each pool where its classes share their keys."""
    apart = [every] if shares_keys else [[c for c in every if c.target == p] for p in dict.fromkeys(c.target for c in every)]
    runs = [run for some in apart for run in pools(some).values()]
    return [Attend(n, run, attention[run[0].kind == "global"], shares_keys) for n, run in enumerate(runs)]
