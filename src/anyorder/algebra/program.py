"""What a layer does, step by step: instructions that follow from its classes, worked out once and without tensors."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from anyorder.algebra.classes import EquivalenceClass, Pool, expansion
from anyorder.algebra.partitions import SetPartition

Side = Literal["source", "target"]
Role = Literal["query", "key", "value", "direct"]
Attention = Literal["softmax", "relaxed", "exact", "pairs"]
"""``pairs`` is exact: pair by pair where groups have few keys, by signed sums where they have many."""
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
    start: int
    """The first of the columns in the weights of all classes of the pattern, in classes."""
    classes: int

    def __str__(self) -> str:
        if self.attend < 0:
            return self.role
        return f"{self.role}[{self.attend}] x {self.classes}"


def _joined(columns: tuple[ColumnSpan, ...]) -> tuple[ColumnSpan, ...]:
    """One span for all columns of a role, which are neighbours in its weights."""
    by_role = [[each for each in columns if each.role == role] for role in dict.fromkeys(each.role for each in columns)]
    return tuple(ColumnSpan(some[0].role, -1, some[0].start, sum(each.classes for each in some)) for some in by_role)


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
    spans: tuple[ColumnSpan, ...] = field(init=False, repr=False)
    """Neighbouring columns that are for the same, as one span of no attention."""
    name: str = field(init=False, repr=False)
    """Of the weights."""

    def __post_init__(self) -> None:
        blocks = self.pattern.num_blocks
        whole = tuple(n for n, cls in enumerate(self.classes) if cls.source.num_blocks == blocks)
        object.__setattr__(self, "whole", whole)
        object.__setattr__(self, "spans", _joined(self.columns))
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
    spans: tuple[ColumnSpan, ...] = field(init=False, repr=False)
    """All columns as one span."""
    name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spans", _joined(self.columns))
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
    start: int = 0
    """The first of its rows in the matrix of all classes that write the pattern, in classes."""
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

    >>> from anyorder.algebra import linear_program, select
    >>> print(linear_program(1, 1, select(1, 1, "pointwise"), "sum"))
    project   target (i): direct = (i) w0

    Args:
        order_in, order_out: of the tensors that the layer maps.
        steps: what it does, in this order.
        parts: programs whose results add up to those of this one, each with little in hand; none where it is not divided.
    """

    order_in: int
    order_out: int
    steps: tuple[Step, ...]
    parts: tuple[Program, ...] = ()
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", hashlib.sha1(repr((self.order_in, self.order_out, self.steps)).encode()).hexdigest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))
