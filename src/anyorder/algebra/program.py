"""What a layer does, step by step: instructions that follow from its classes, worked out once and without tensors."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from anyorder.algebra.classes import EquivalenceClass, Pool, expansion, pointwise_into, pools
from anyorder.algebra.partitions import SetPartition, set_partitions

Side = Literal["source", "target"]
Role = Literal["query", "key", "value", "direct"]
Attention = Literal["softmax", "relaxed", "exact"]
Attentions = tuple[Attention, Attention]
"""Of local and of global classes."""
Sharing = Literal["none", "keys", "queries", "keys and queries"]
"""What classes share: keys and values those of one pool, queries those of one target pattern."""
SHARINGS: tuple[Sharing, ...] = ("none", "keys", "queries", "keys and queries")


@dataclass(frozen=True)
class ColumnSpan:
    """Columns of a product: the queries, keys or values of one ``Attend``, or what is written as it is.

    Queries that all classes of their pattern share belong to no ``Attend``: its number is -1.
    """

    role: Role
    attend: int
    classes: int

    def __str__(self) -> str:
        if self.attend < 0:
            return self.role
        return f"{self.role}[{self.attend}] x {self.classes}"


def module_name(pattern: SetPartition) -> str:
    """A pattern as the name of a module or weight: the block of each axis.

    >>> module_name(SetPartition((0, 0, 1)))
    'p0_0_1'
    """
    return "p" + "_".join(map(str, pattern.labels))


@dataclass(frozen=True)
class Project:
    """Rows of a pattern: for each pointwise class, the input row that it reads times a matrix, added up.

    Classes that keep all nodes of the pattern are gathered first, side by side, and multiplied by one tall matrix. The
    others read fewer entries (nodes, when edges are written): they are multiplied first and their products are gathered.
    """

    side: Side
    pattern: SetPartition
    classes: tuple[EquivalenceClass, ...]
    columns: tuple[ColumnSpan, ...]
    numbers: tuple[int, ...] = ()
    """Of the matrices, where the weights of all steps are numbered together (linear layers)."""
    whole: tuple[int, ...] = field(init=False, repr=False)
    """The numbers of the classes that keep all nodes."""
    roles: tuple[Role, ...] = field(init=False, repr=False)
    """What the columns are for, each once."""
    name: str = field(init=False, repr=False)
    """Of the weights."""

    def __post_init__(self) -> None:
        blocks = self.pattern.num_blocks
        whole = tuple(n for n, cls in enumerate(self.classes) if cls.source.num_blocks == blocks)
        object.__setattr__(self, "whole", whole)
        object.__setattr__(self, "roles", tuple(dict.fromkeys(each.role for each in self.columns)))
        object.__setattr__(self, "name", module_name(self.pattern))

    def __str__(self) -> str:
        numbers = self.numbers or range(len(self.classes))
        reads = " + ".join(f"{cls.name.split(' ')[0]} w{n}" for n, cls in zip(numbers, self.classes, strict=True)) or "bias"
        return f"project   {self.side} {self.pattern.name}: {', '.join(map(str, self.columns))} = {reads}"


@dataclass(frozen=True)
class Values:
    """The values of all classes that read a source pattern, by one product."""

    pattern: SetPartition
    columns: tuple[ColumnSpan, ...]
    name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", module_name(self.pattern))

    def __str__(self) -> str:
        return f"project   source {self.pattern.name}: {', '.join(map(str, self.columns))}"


@dataclass(frozen=True)
class Attend:
    """Attention of classes that share their groups, from the entries of the pool's source.

    Where they share keys and values, too, they may write to several target patterns.
    """

    number: int
    classes: tuple[EquivalenceClass, ...]
    attention: Attention
    shares_keys: bool = False
    pool: Pool = field(init=False, repr=False)
    is_global: bool = field(init=False, repr=False)
    targets: tuple[tuple[SetPartition, int], ...] = field(init=False, repr=False)
    """The target patterns and how many of the classes, which are sorted by them, write to each."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pool", self.classes[0].pool)
        object.__setattr__(self, "is_global", not self.pool.blocks)
        object.__setattr__(self, "targets", tuple(Counter(cls.target for cls in self.classes).items()))

    @property
    def key_classes(self) -> int:
        """How many keys and values an entry has."""
        return 1 if self.shares_keys else len(self.classes)

    @property
    def terms(self) -> tuple[tuple[tuple[int, EquivalenceClass], ...], ...]:
        """For each class, the signed sums with equalities only that make its exact sum."""
        return tuple(expansion(cls) for cls in self.classes)

    def __str__(self) -> str:
        names = ", ".join(cls.name for cls in self.classes)
        return f"attend    [{self.number}] {self.attention} by {_by(self.pool)}: {names}"


@dataclass(frozen=True)
class Combine:
    """The rows of a target pattern: what its attentions received, side by side, times one matrix, and the direct part."""

    pattern: SetPartition
    attends: tuple[int, ...]
    is_direct: bool
    name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", module_name(self.pattern))

    def __str__(self) -> str:
        parts = [f"[{', '.join(map(str, self.attends))}] w"] if self.attends else []
        return f"write     target {self.pattern.name} = {' + '.join([*parts, *['direct'] * self.is_direct]) or '0'}"


@dataclass(frozen=True)
class Reduce:
    """Sums of input rows over the groups of a pool, multiplied by the matrices of some terms."""

    pool: Pool
    terms: tuple[int, ...]

    def __str__(self) -> str:
        columns = ", ".join(f"w{n}" for n in self.terms)
        return f"pool      source {self.pool.source.name} by {_by(self.pool)}" + (f", times {columns}" if columns else "")


@dataclass(frozen=True)
class Deliver:
    """Results of pools, added up where output entries read them through the same nodes, gathered by a target pattern."""

    pattern: SetPartition
    reads: tuple[tuple[EquivalenceClass, tuple[int, ...]], ...]
    """The class that says which group an entry reads, and the numbers of the terms whose results are added up for it."""

    def __str__(self) -> str:
        parts = [f"({' + '.join(f'w{n}' for n in terms)}) at {_at(cls)}" for cls, terms in self.reads]
        return f"spread    target {self.pattern.name} += {' + '.join(parts)}"


@dataclass(frozen=True)
class Average:
    """The exact sum of a class divided by its number of members, times its matrix."""

    number: int
    cls: EquivalenceClass

    def __str__(self) -> str:
        signs = " ".join(f"{'+' if sign > 0 else '-'} {_at(term)}" for sign, term in expansion(self.cls))
        return f"average   target {self.cls.target.name} += mean of {self.cls.name} = {signs}, times w{self.number}"


Step = Project | Values | Attend | Combine | Reduce | Deliver | Average


def _by(pool: Pool) -> str:
    return " and ".join("ijklmnopqrst"[b] for b in pool.blocks) if pool.blocks else "graph"


def _at(cls: EquivalenceClass) -> str:
    return f"({','.join('ijklmnopqrst'[b] for b in cls.matched_target)})" if cls.matching else "graph"


@dataclass(frozen=True, eq=False)
class Program:
    """The steps of a layer; equal programs have equal keys, in every process.

    >>> print(linear_program(1, 1, pointwise_into(1, SetPartition((0,))), "sum"))
    project   target (i): direct = (i) w0

    Args:
        order_in, order_out: of the tensors that the layer maps.
        steps: what it does, in this order.
    """

    order_in: int
    order_out: int
    steps: tuple[Step, ...]
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", hashlib.sha1(repr((self.order_in, self.order_out, self.steps)).encode()).hexdigest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))


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
) -> Program:
    """The program of an attention layer; ``same`` where it writes to the index set that it reads from.

    ``attention`` says how local and how global classes attend, ``sharing`` which weights they have in common.

    Queries at a target pattern, keys at a source pattern and the pointwise part of the output that read the same rows
    share their products.

    >>> from anyorder.algebra import classes
    >>> len(attention_program(1, 1, classes(1, 1), ("softmax", "softmax"), same=True).steps)
    4

    Args:
        order_in, order_out: k and l.
        classes: those that the layer uses.
        attention: ``"relaxed"``, ``"exact"`` or ``"softmax"``, for the local and for the global ones.
        same: whether the layer writes to the index set that it reads from.
        sharing: which of queries and keys the classes of a pattern have together, as of ``EquivariantAttention``.
    """
    every = pooled(classes)
    attends = _attends(every, attention, "keys" in sharing)
    sources = list(dict.fromkeys(c.source for c in every))
    reading = {
        p: sorted((a for a in attends if a.pool.source == p), key=lambda a: every.index(a.classes[0])) for p in sources
    }
    direct = {p: tuple(c for c in classes if c.kind == "pointwise" and c.target == p) for p in set_partitions(order_out)}
    side: Side = "target" if same else "source"
    wanted: dict[tuple[Side, SetPartition, tuple[EquivalenceClass, ...]], tuple[ColumnSpan, ...]] = {}

    def want(side: Side, pattern: SetPartition, reads: tuple[EquivalenceClass, ...], *columns: ColumnSpan) -> None:
        wanted[side, pattern, reads] = (*wanted.get((side, pattern, reads), ()), *columns)

    for p in dict.fromkeys(c.target for c in every):
        spans = [ColumnSpan("query", a.number, dict(a.targets)[p]) for a in attends if p in dict(a.targets)]
        want("target", p, pointwise_into(order_in, p), *([ColumnSpan("query", -1, 1)] if "queries" in sharing else spans))
    for p, some in reading.items():
        want(side, p, pointwise_into(order_in, p), *[ColumnSpan("key", a.number, a.key_classes) for a in some])
    for p, reads in direct.items():
        if reads:
            want("target", p, reads, ColumnSpan("direct", -1, 1))
    steps: list[Step] = [Project(*site, columns) for site, columns in wanted.items()]
    steps += [Values(p, tuple(ColumnSpan("value", a.number, a.key_classes) for a in some)) for p, some in reading.items()]
    steps += attends
    for p in set_partitions(order_out):
        steps.append(Combine(p, tuple(a.number for a in attends if p in dict(a.targets)), bool(direct[p])))
    return Program(order_in, order_out, tuple(steps))


def _attends(every: tuple[EquivalenceClass, ...], attention: Attentions, shares_keys: bool) -> list[Attend]:
    """One attention for each pool and target pattern, or for each pool where its classes share their keys."""
    apart = [every] if shares_keys else [[c for c in every if c.target == p] for p in dict.fromkeys(c.target for c in every)]
    runs = [run for some in apart for run in pools(some).values()]
    return [Attend(n, run, attention[run[0].kind == "global"], shares_keys) for n, run in enumerate(runs)]


@cache
def linear_terms(
    classes: tuple[EquivalenceClass, ...],
) -> tuple[tuple[EquivalenceClass, ...], tuple[tuple[int, int, int], ...]]:
    """The terms with equalities only that make some exact classes, and (term, class, sign) for each part of them."""
    signed = {(term, n): sign for n, cls in enumerate(classes) for sign, term in expansion(cls)}
    terms = tuple(dict.fromkeys(term for term, _ in signed))
    place = {term: n for n, term in enumerate(terms)}
    return terms, tuple((place[term], n, sign) for (term, n), sign in signed.items())


@cache
def linear_program(
    order_in: int, order_out: int, classes: tuple[EquivalenceClass, ...], reduce: Literal["sum", "mean"]
) -> Program:
    """The program of a linear layer: sums with equalities only under recombined weights, or averages class by class.

    >>> from anyorder.algebra import classes
    >>> print(linear_program(1, 0, classes(1, 0), "sum"))
    pool      source (i) by graph, times w0
    spread    target () += (w0) at graph

    Args:
        order_in, order_out: k and l.
        classes: those that the layer uses.
        reduce: take the ``"sum"`` or the ``"mean"`` over the entries of a class.
    """
    if reduce == "mean":
        terms = [term for cls in classes for _, term in expansion(cls)]
        steps: list[Step] = [Reduce(pool, ()) for pool in dict.fromkeys(term.pool for term in terms)]
        return Program(order_in, order_out, (*steps, *[Average(n, cls) for n, cls in enumerate(classes)]))
    terms = list(linear_terms(classes)[0])
    place = {term: n for n, term in enumerate(terms)}
    steps = []
    for p in set_partitions(order_out):
        into = tuple(term for term in terms if term.kind == "pointwise" and term.target == p)
        if into:
            steps.append(Project("target", p, into, (ColumnSpan("direct", -1, 1),), tuple(place[term] for term in into)))
    rest = [term for term in terms if term.kind != "pointwise"]
    steps += [Reduce(pool, tuple(place[term] for term in some)) for pool, some in pools(rest).items()]
    for p in set_partitions(order_out):
        reads: dict[object, tuple[EquivalenceClass, tuple[int, ...]]] = {}
        for term in (term for term in rest if term.target == p):
            key = term.matched_target if len(term.matching) < 2 else term
            cls, numbers = reads.get(key, (term, ()))
            reads[key] = (cls, (*numbers, place[term]))
        if reads:
            steps.append(Deliver(p, tuple(reads.values())))
    return Program(order_in, order_out, tuple(steps))
