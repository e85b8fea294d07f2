"""What a layer between two index sets needs to know of them: selections, groups and look-ups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from anyorder.algebra import EquivalenceClass, Pool, Program, expansion
from anyorder.algebra.program import Attend, Average, Combine, Deliver, Project, Reduce, Step
from anyorder.layouts.entries import Entries, Indexed
from anyorder.layouts.lookup import TupleIndex
from anyorder.layouts.memory import Memory, Owner, is_exported
from anyorder.layouts.segments import Queries, Segments, Spread
from anyorder.layouts.tiles import EntryPairs, Tiling, pairs_within
from anyorder.layouts.transfer import Transferable

FEW_KEYS = 256
"""Keys that a query meets in the mean, up to which a kernel that can do both looks at them one by one."""


@dataclass(frozen=True, eq=False)
class Groups(Transferable):
    """Input entries of one pattern, grouped by the nodes of some of their blocks; by graph if by no block.

    >>> from anyorder import SparseIndexSet
    >>> from anyorder.algebra import SetPartition
    >>> index = SparseIndexSet(torch.tensor([[0, 1], [0, 2], [1, 2]]), num_nodes=3)
    >>> Groups.build(index.entries(SetPartition((0, 1))), (0,), index).ids.tolist()
    [0, 0, 1]

    Args:
        ids: (entry,), the group of each.
        num_groups: number of groups, empty ones too.
        width: number of nodes by which entries are grouped.
        index: the tuples of nodes that groups stand for, where they are two or more.
    """

    ids: Tensor
    num_groups: int
    width: int
    index: TupleIndex | None

    @classmethod
    def build(cls, entries: Entries, blocks: tuple[int, ...], source: Indexed) -> Groups:
        """Group the entries of a pattern of ``source`` by the nodes of ``blocks``."""
        if len(blocks) == 0:
            return cls(entries.graph, source.num_graphs, 0, None)
        if len(blocks) == 1:
            return cls(entries.tuples[:, blocks[0]], source.num_nodes, 1, None)
        keys = entries.tuples[:, list(blocks)]
        ids, distinct = TupleIndex.build(keys, source.num_nodes).distinct(keys)
        return cls(ids, distinct.count, len(blocks), distinct)

    def find(self, tuples: Tensor, graph: Tensor) -> Tensor:
        """The group of each tuple of matched nodes, -1 where there is none."""
        if self.width == 0:
            return graph
        if self.width == 1:
            return tuples[:, 0]
        assert self.index is not None
        return self.index.find(tuples)


@dataclass(frozen=True, eq=False)
class Grouped(Transferable):
    """Keys and queries of classes that share their groups, see ``Plan.grouped``.

    >>> from anyorder import SparseIndexSet
    >>> from anyorder.algebra import SetPartition
    >>> index = SparseIndexSet(torch.tensor([[0, 1], [0, 2], [1, 2]]), num_nodes=3)
    >>> siblings = EquivalenceClass(SetPartition((0, 1)), SetPartition((0, 1)), ((0, 0),))
    >>> Plan(index, index).grouped((siblings,)).keys.sizes.tolist()
    [2, 1, 0]

    Args:
        keys: input entries by group.
        queries: output entries by class and group.
        key_graph: (key,), the graph of each.
        num_graphs: number of graphs.
    """

    keys: Segments
    queries: Queries
    key_graph: Tensor
    num_graphs: int


@dataclass(frozen=True, eq=False)
class Single(Transferable):
    """A class whose groups have one query each, see ``Plan.single``.

    >>> from anyorder import SparseIndexSet
    >>> from anyorder.algebra import SetPartition
    >>> index = SparseIndexSet(torch.tensor([[0, 0], [1, 1], [0, 1]]), num_nodes=2)
    >>> outgoing = EquivalenceClass(SetPartition((0, 1)), SetPartition((0, 0)), ((0, 0),))
    >>> Plan(index, index).single(outgoing).query_of_key.rows.tolist()
    [0]

    Args:
        groups: the group of each key.
        query_of_key: the query that reads each key.
        grouped: keys and queries by group.
    """

    groups: Groups
    query_of_key: Spread
    grouped: Grouped


@dataclass(frozen=True, eq=False)
class Exact(Transferable):
    """A class as signed sums with equalities only, see ``Plan.exact``.

    >>> from anyorder import SparseIndexSet
    >>> from anyorder.algebra import SetPartition
    >>> index = SparseIndexSet(torch.tensor([[0, 0], [1, 1], [0, 1]]), num_nodes=2)
    >>> others = EquivalenceClass(SetPartition((0, 0)), SetPartition((0, 0)), ())
    >>> Plan(index, index).exact(others).signs
    (1, -1)

    Args:
        signs: of each sum.
        terms: the keys and queries of each sum.
        empty: (query,), true where it has no key at all.
    """

    signs: tuple[int, ...]
    terms: tuple[Grouped, ...]
    empty: Tensor


class Plan(Memory, Transferable):
    """Selections, groups and look-ups from one index set to another; each is built when it is first asked for.

    >>> from anyorder import SparseIndexSet
    >>> from anyorder.algebra import SetPartition
    >>> index = SparseIndexSet(torch.tensor([[0, 1], [1, 0], [1, 2]]), num_nodes=3)
    >>> reverse = EquivalenceClass(SetPartition((0, 1)), SetPartition((0, 1)), ((0, 1), (1, 0)))
    >>> Plan(index, index).gather(reverse).signed.tolist()
    [1, 0, -1]

    Args:
        source, target: the index sets of the input and of the output.
        owner: the index set, if any, that holds the plan, and which the plan does not hold in return.
    """

    def __init__(self, source: Indexed, target: Indexed, owner: Indexed | None = None) -> None:
        super().__init__()
        self._source = Owner(source) if source is owner else source
        self._target = Owner(target) if target is owner else target

    @property
    def source(self) -> Indexed:
        """The index set of the input."""
        return self._source() if isinstance(self._source, Owner) else self._source

    @property
    def target(self) -> Indexed:
        """The index set of the output."""
        return self._target() if isinstance(self._target, Owner) else self._target

    def prepare(self, program: Program) -> tuple[Any, ...]:
        """What each step of a program needs to know, built once."""
        return self._once(program.key, lambda: tuple(self._bind(step, program) for step in program.steps))

    def _bind(self, step: Step, program: Program) -> Any:
        if isinstance(step, Project):
            plan = self if step.side == "target" else self._own()
            return plan.target.entries(step.pattern).count, tuple(plan.gather(cls) for cls in step.classes)
        if isinstance(step, Attend):
            if step.attention == "softmax":
                return tuple(self.single(cls) if not cls.unmatched_target else self.tiles(cls) for cls in step.classes)
            if step.attention == "exact":
                return tuple(map(self.exact, step.classes))
            if step.attention == "pairs":
                return tuple(self.tiles(cls) if self._has_few_keys(cls) else self.exact(cls) for cls in step.classes)
            return self.stacked(step.classes) if step.shares_keys else self.grouped(step.classes)
        if isinstance(step, Combine):
            return self.target.entries(step.pattern).count
        if isinstance(step, Reduce):
            return None if len(step.pool.blocks) == step.pool.source.num_blocks else self.groups(step.pool)
        if isinstance(step, Deliver):
            return tuple(self.group_gather(cls) for cls, _ in step.reads)
        if isinstance(step, Average):
            pools = [other.pool for other in program.steps if isinstance(other, Reduce)]
            parts = [(sign, self._read(term), pools.index(term.pool)) for sign, term in expansion(step.cls)]
            return tuple(parts), self.members(step.cls, "exact").clamp(min=1).unsqueeze(1)
        return None

    def _own(self) -> Plan:
        """From the source to itself."""
        if self.source is self.target:
            return self
        return self._once("own", lambda: Plan(self.source, self.source, self.source))

    def _read(self, term: EquivalenceClass) -> Spread:
        return self.gather(term) if term.kind == "pointwise" else self.group_gather(term)

    def gather(self, cls: EquivalenceClass) -> Spread:
        """For a pointwise class: the entry of the source pattern that each entry of the target pattern reads."""
        return self._once(("gather", cls), lambda: self._gather(cls))

    def _gather(self, cls: EquivalenceClass) -> Spread:
        target, source = self.target.entries(cls.target), self.source.entries(cls.source)
        blocks = dict(cls.matching)
        columns = [blocks[label] for label in cls.source.labels]
        rows = self.source.find(target.tuples[:, columns], target.graph)
        if source.rows is not None if is_exported() else source.count != self.source.num_entries:
            place = torch.full((self.source.num_entries + 1,), -1, dtype=torch.int64, device=rows.device)
            every = torch.arange(source.count, device=rows.device)
            place[every + source.start if source.rows is None else source.rows] = every
            rows = place[rows]
        return Spread.build(rows, source.count, one_to_one=cls.source.num_blocks == cls.target.num_blocks)

    def groups(self, pool: Pool) -> Groups:
        """The groups that classes of one pool share."""
        return self._once(("groups", pool), lambda: Groups.build(self.source.entries(pool.source), pool.blocks, self.source))

    def key_segments(self, pool: Pool) -> Segments:
        """The entries of the source pattern, sorted by group."""
        groups = self.groups(pool)
        return self._once(("key_segments", pool), lambda: Segments.build(groups.ids, groups.num_groups))

    def group_of_target(self, cls: EquivalenceClass) -> Tensor:
        """The group that each entry of the target pattern reads, -1 for none."""
        return self._once(("group_of_target", cls), lambda: self._group_of_target(cls))

    def _group_of_target(self, cls: EquivalenceClass) -> Tensor:
        target = self.target.entries(cls.target)
        return self.groups(cls.pool).find(target.tuples[:, list(cls.matched_target)], target.graph)

    def group_gather(self, cls: EquivalenceClass) -> Spread:
        """The same as a gather of rows of groups."""
        groups = self.groups(cls.pool)
        return self._once(("group_gather", cls), lambda: Spread.build(self.group_of_target(cls), groups.num_groups))

    def query_segments(self, cls: EquivalenceClass) -> Segments:
        """The entries of the target pattern, sorted by the group that they read."""
        groups = self.groups(cls.pool)
        return self._once(("query_segments", cls), lambda: Segments.build(self.group_of_target(cls), groups.num_groups))

    def grouped(self, classes: tuple[EquivalenceClass, ...]) -> Grouped:
        """The keys and queries of classes that share their groups."""
        return self._once(("grouped", *classes), lambda: self._grouped(classes))

    def _grouped(self, classes: tuple[EquivalenceClass, ...]) -> Grouped:
        pool = classes[0].pool
        queries = Queries.build([self.query_segments(cls) for cls in classes])
        return Grouped(self.key_segments(pool), queries, self.source.entries(pool.source).graph, self.source.num_graphs)

    def stacked(self, classes: tuple[EquivalenceClass, ...]) -> Grouped:
        """The same for classes that share their keys: one class whose queries are those of all, one below the other."""
        return self._once(("stacked", *classes), lambda: self._stacked(classes))

    def _stacked(self, classes: tuple[EquivalenceClass, ...]) -> Grouped:
        pool = classes[0].pool
        reads = torch.cat([self.group_of_target(cls) for cls in classes])
        queries = Queries.build([Segments.build(reads, self.groups(pool).num_groups)])
        return Grouped(self.key_segments(pool), queries, self.source.entries(pool.source).graph, self.source.num_graphs)

    def exact(self, cls: EquivalenceClass) -> Exact:
        """The signed terms of a class."""
        signs, terms = zip(*expansion(cls), strict=True)
        return self._once(
            ("exact", cls),
            lambda: Exact(signs, tuple(self.grouped((term,)) for term in terms), self.members(cls, "exact") == 0),
        )

    def single(self, cls: EquivalenceClass) -> Single:
        """For a class that matches all nodes of its output entries, so that a group has one query."""
        return self._once(("single", cls), lambda: self._single(cls))

    def _single(self, cls: EquivalenceClass) -> Single:
        assert not cls.unmatched_target
        groups, reads = self.groups(cls.pool), self.group_of_target(cls)
        query = torch.full((groups.num_groups + 1,), -1, dtype=torch.int64, device=reads.device)
        query[reads] = torch.arange(reads.shape[0], device=reads.device)  # those of no group, -1, write to the end
        return Single(groups, Spread.build(query[groups.ids], reads.shape[0]), self.grouped((cls,)))

    def tiles(self, cls: EquivalenceClass) -> Tiling | EntryPairs:
        """Blocks of queries and the keys that they may attend to; pair by pair in an exported graph, if groups are local."""
        source = self.source.entries(cls.source).tuples[:, list(cls.unmatched_source)]
        target = self.target.entries(cls.target).tuples[:, list(cls.unmatched_target)]
        keys, queries = self.key_segments(cls.pool), self.query_segments(cls)
        if is_exported() and cls.matching:
            query, key = pairs_within(keys, queries)
            apart = (target[query][:, :, None] != source[key][:, None, :]).all(-1).all(-1).nonzero().flatten()
            return EntryPairs(query[apart], key[apart], self.target.entries(cls.target).count)
        return self._once(("tiles", cls), lambda: Tiling.build(keys, queries, source, target))

    def _has_few_keys(self, cls: EquivalenceClass) -> bool:
        """Whether a query of a class meets so few keys in the mean that they are looked at one by one: still linear time."""
        if is_exported():  # which of the two would depend on the data
            return False
        queries = self.query_segments(cls).sizes
        return int((self.key_segments(cls.pool).sizes * queries).sum()) <= FEW_KEYS * int(queries.sum())

    def members(self, cls: EquivalenceClass, coupling: str) -> Tensor:
        """How many input entries each output entry receives: exactly, or with the equalities of the class only."""
        return self._once(("members", cls, coupling), lambda: self._members(cls, coupling))

    def _members(self, cls: EquivalenceClass, coupling: str) -> Tensor:
        terms: Iterable[tuple[int, EquivalenceClass]] = expansion(cls) if coupling == "exact" else ((1, cls),)
        total = torch.zeros(self.target.entries(cls.target).count, dtype=torch.int64, device=self.target.device)
        for sign, term in terms:
            sizes = torch.cat([self.key_segments(term.pool).sizes, total.new_zeros(1)])
            total = total + sign * sizes[self.group_of_target(term)]
        return total
