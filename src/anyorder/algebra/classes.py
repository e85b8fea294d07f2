"""Equivalence classes of Eq. 1: two patterns and a partial matching of their blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, permutations, product
from typing import Literal

from anyorder.algebra.partitions import SetPartition, set_partitions

Kind = Literal["pointwise", "local", "global"]
KINDS: tuple[Kind, ...] = ("pointwise", "local", "global")
Matching = tuple[tuple[int, int], ...]


@dataclass(frozen=True, order=True)
class EquivalenceClass:
    """All (i, j) where i has pattern ``source``, j has pattern ``target`` and exactly the matched blocks are equal.

    >>> incoming = EquivalenceClass(SetPartition((0, 1)), SetPartition((0, 0)), ((1, 0),))
    >>> incoming.kind, incoming.name, str(incoming)
    ('local', '(j,i) -> (i,i)', '{{i1},{i2,j1,j2}}')

    Args:
        source, target: which axes of i and of j are tied.
        matching: pairs (block of the source, block of the target) that are one node, sorted.
    """

    source: SetPartition
    target: SetPartition
    matching: Matching

    def __post_init__(self) -> None:
        read, write = self.matched_source, self.matched_target
        if list(read) != sorted(set(read)) or len(set(write)) != len(write):
            raise ValueError(f"matching must be a partial one-to-one map, sorted by source block: got {self.matching}")
        if any(not 0 <= a < self.source.num_blocks for a in read) or any(not 0 <= b < self.target.num_blocks for b in write):
            raise ValueError(
                f"matching must map blocks 0..{self.source.num_blocks - 1} of the source to blocks "
                f"0..{self.target.num_blocks - 1} of the target, got {self.matching}"
            )

    @property
    def order_in(self) -> int:
        """The order of the input, k."""
        return self.source.order

    @property
    def order_out(self) -> int:
        """The order of the output, l."""
        return self.target.order

    @cached_property
    def matched_source(self) -> tuple[int, ...]:
        """Source blocks that hold a node of the output tuple."""
        return tuple(a for a, _ in self.matching)

    @cached_property
    def matched_target(self) -> tuple[int, ...]:
        """Target blocks that the matched source blocks equal, in the same order."""
        return tuple(b for _, b in self.matching)

    @cached_property
    def unmatched_source(self) -> tuple[int, ...]:
        """Source blocks that are summed over."""
        return tuple(a for a in range(self.source.num_blocks) if a not in self.matched_source)

    @cached_property
    def unmatched_target(self) -> tuple[int, ...]:
        """Target blocks that no source block equals."""
        return tuple(b for b in range(self.target.num_blocks) if b not in self.matched_target)

    @cached_property
    def kind(self) -> Kind:
        """Pointwise: j determines i. Local: they share some nodes. Global: they share none."""
        if not self.unmatched_source:
            return "pointwise"
        return "local" if self.matching else "global"

    @property
    def pool(self) -> Pool:
        """How the class groups the entries that it sums over."""
        return Pool(self.source, self.matched_source)

    @property
    def partition(self) -> SetPartition:
        """The same class as a partition of the k + l positions, as the paper writes it."""
        to_source = {b: a for a, b in self.matching}
        fresh = self.source.num_blocks
        labels = tuple(to_source.get(b, fresh + b) for b in self.target.labels)
        return SetPartition.of(self.source.labels + labels)

    @classmethod
    def of_partition(cls, partition: SetPartition, order_in: int) -> EquivalenceClass:
        """The class of a partition of the k + l positions.

        >>> EquivalenceClass.of_partition(SetPartition((0, 1, 1, 1)), order_in=2).kind
        'local'
        """
        left, right = partition.labels[:order_in], partition.labels[order_in:]
        source, target = SetPartition.of(left), SetPartition.of(right)
        write = {label: target.labels[axis] for axis, label in reversed(list(enumerate(right)))}
        matching = sorted({(source.labels[axis], write[label]) for axis, label in enumerate(left) if label in write})
        return cls(source, target, tuple(matching))

    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Letters for the input and the output tuple; equal letters are equal nodes."""
        letters = _letters(self.source.num_blocks + self.target.num_blocks)
        outputs = letters[: self.target.num_blocks]
        fresh = iter(letters[self.target.num_blocks :])
        matched = dict(self.matching)
        inputs = tuple(outputs[matched[a]] if a in matched else next(fresh) for a in range(self.source.num_blocks))
        return self.source.expand(inputs), self.target.expand(outputs)

    @property
    def name(self) -> str:
        """Input tuple, arrow, output tuple; equal letters are equal nodes."""
        inputs, outputs = self.names()
        return f"({','.join(inputs)}) -> ({','.join(outputs)})"

    def __str__(self) -> str:
        positions = [*(f"i{a + 1}" for a in range(self.order_in)), *(f"j{b + 1}" for b in range(self.order_out))]
        return "{" + ",".join("{" + ",".join(positions[a] for a in axes) + "}" for axes in self.partition.blocks) + "}"


def _letters(count: int) -> tuple[str, ...]:
    alphabet = "ijklmnopqrstuvwxyzabcdefgh"
    return tuple(alphabet[n] if n < len(alphabet) else f"{alphabet[n % 26]}{n // 26}" for n in range(count))


def _matchings(num_source: int, num_target: int) -> Iterator[Matching]:
    for size in range(min(num_source, num_target) + 1):
        for read in combinations(range(num_source), size):
            for write in permutations(range(num_target), size):
                yield tuple(zip(read, write, strict=True))


@cache
def classes(order_in: int, order_out: int) -> tuple[EquivalenceClass, ...]:
    """The basis of L_{k->l}: one exact equivalence class per weight matrix, Bell(k + l) in all.

    >>> [len(classes(*orders)) for orders in [(1, 1), (1, 2), (2, 2), (3, 2), (3, 3)]]
    [2, 5, 15, 52, 203]

    Args:
        order_in, order_out: k and l.
    """
    return tuple(
        EquivalenceClass(source, target, matching)
        for source, target in product(set_partitions(order_in), set_partitions(order_out))
        for matching in _matchings(source.num_blocks, target.num_blocks)
    )


def pointwise_into(order_in: int, pattern: SetPartition) -> tuple[EquivalenceClass, ...]:
    """The pointwise classes into a pattern: each matches all blocks of its source.

    >>> [cls.name for cls in pointwise_into(2, SetPartition((0, 1)))]
    ['(i,i) -> (i,j)', '(j,j) -> (i,j)', '(i,j) -> (i,j)', '(j,i) -> (i,j)']

    Args:
        order_in: k.
        pattern: of the output entries.
    """
    return tuple(
        EquivalenceClass(source, pattern, tuple(enumerate(write)))
        for source in set_partitions(order_in)
        for write in permutations(range(pattern.num_blocks), source.num_blocks)
    )


def projecting(order_in: int, pattern: SetPartition, in_place: bool) -> tuple[EquivalenceClass, ...]:
    """The pointwise classes that queries or keys at a pattern are made by: all, or the entry itself where it is one.

    >>> [cls.name for cls in projecting(2, SetPartition((0, 1)), in_place=True)]
    ['(i,j) -> (i,j)']

    Args:
        order_in: k.
        pattern: of the entries that have the queries or keys.
        in_place: the entry itself alone, where it is one of the input's.
    """
    every = pointwise_into(order_in, pattern)
    own = tuple(cls for cls in every if cls.source == pattern and all(a == b for a, b in cls.matching))
    return own or every if in_place else every


def expansion(cls: EquivalenceClass) -> tuple[tuple[int, EquivalenceClass], ...]:
    """The exact class as an alternating sum of classes that keep only their equalities.

    ``O_sigma = sum over tau >= sigma of (-1)^(|tau| - |sigma|) D_tau``, where D_tau sums over all i whose blocks
    matched by tau equal those of j, whatever the other blocks hold. The first term is the class itself.

    >>> [(sign, term.matching) for sign, term in expansion(classes(1, 1)[0])]
    [(1, ()), (-1, ((0, 0),))]

    Args:
        cls: the class.
    """
    fixed = set(cls.matching)
    return tuple(
        ((-1) ** (len(matching) - len(fixed)), EquivalenceClass(cls.source, cls.target, matching))
        for matching in _matchings(cls.source.num_blocks, cls.target.num_blocks)
        if fixed <= set(matching)
    )


@dataclass(frozen=True, order=True)
class Pool:
    """A grouping of input entries: those of one pattern, by the nodes of some of its blocks.

    >>> next(iter(pools(classes(2, 1))))
    Pool(source=SetPartition(labels=(0, 0)), blocks=())

    Args:
        source: the pattern of the entries.
        blocks: the blocks of ``source`` whose nodes a group has in common; none: all entries of a graph are one group.
    """

    source: SetPartition
    blocks: tuple[int, ...]


def pools(selected: Iterable[EquivalenceClass]) -> dict[Pool, tuple[EquivalenceClass, ...]]:
    """Which classes share their groups: same source pattern, same matched source blocks.

    >>> sorted(len(shared) for shared in pools(classes(2, 2)).values())
    [2, 2, 2, 3, 3, 3]

    Args:
        selected: some classes from one order to another.
    """
    shared: dict[Pool, tuple[EquivalenceClass, ...]] = {}
    for cls in selected:
        shared[cls.pool] = (*shared.get(cls.pool, ()), cls)
    return shared
