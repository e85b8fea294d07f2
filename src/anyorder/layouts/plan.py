"""What a layer between two index sets needs to know of them: selections, groups and look-ups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.algebra import EquivalenceClass, Pool, expansion
from anyorder.layouts.index_set import Entries, IndexSet
from anyorder.layouts.lookup import Segments, TupleIndex
from anyorder.layouts.memory import Built, Memory


@dataclass(frozen=True, eq=False)
class Spread:
    """Which row each target entry reads: ``rows`` None is the identity, ``missing`` None says that every row is there.

    Where no row is read twice, ``inverse`` says which entry reads each row, -1 for none.
    """

    rows: Tensor | None
    missing: Tensor | None
    inverse: Tensor | None = None

    @classmethod
    def build(cls, rows: Tensor, num_sources: int, *, one_to_one: bool = False) -> Spread:
        missing = rows < 0
        some = bool(missing.any())
        if not some and len(rows) == num_sources and torch.equal(rows, torch.arange(num_sources, device=rows.device)):
            return cls(None, None)
        inverse = None
        if one_to_one:
            inverse = rows.new_full((num_sources + 1,), -1)
            inverse[rows] = torch.arange(len(rows), device=rows.device)  # those that read nothing, -1, write to the end
            inverse = inverse[:-1]
        return cls(rows.clamp(min=0), missing, inverse) if some else cls(rows, None, inverse)

    @property
    def signed(self) -> Tensor | None:
        """The rows with -1 where there is none."""
        return self.rows if self.rows is None or self.missing is None else self.rows.masked_fill(self.missing, -1)

    def __call__(self, values: Tensor) -> Tensor:
        """The rows, zero where there is none."""
        if self.rows is None:
            return values
        if self.missing is None:
            return values.index_select(0, self.rows)
        if len(values) == 0:
            return values.new_zeros(len(self.rows), *values.shape[1:])
        shape = (-1, *[1] * (values.ndim - 1))
        return values.index_select(0, self.rows).masked_fill(self.missing.view(shape), 0)


@dataclass(frozen=True, eq=False)
class Groups:
    """Input entries of one pattern, grouped by the nodes of some of their blocks; by graph if by no block."""

    ids: Tensor
    num_groups: int
    width: int
    index: TupleIndex | None

    @classmethod
    def build(cls, entries: Entries, blocks: tuple[int, ...], index_set: IndexSet) -> Groups:
        if len(blocks) == 0:
            return cls(entries.graph, index_set.num_graphs, 0, None)
        if len(blocks) == 1:
            return cls(entries.tuples[:, blocks[0]], index_set.num_nodes, 1, None)
        keys = entries.tuples[:, list(blocks)]
        sorting = TupleIndex.build(keys, index_set.num_nodes)
        first = sorting.first
        ids = torch.empty_like(sorting.order)
        ids[sorting.order] = first.cumsum(0) - 1
        distinct = TupleIndex.build(keys[sorting.order[first]], index_set.num_nodes)
        return cls(ids, len(distinct.codes), len(blocks), distinct)

    def find(self, tuples: Tensor, graph: Tensor) -> Tensor:
        """The group of each tuple of matched nodes, -1 where there is none."""
        if self.width == 0:
            return graph
        if self.width == 1:
            return tuples[:, 0]
        assert self.index is not None
        return self.index.find(tuples)


@dataclass(frozen=True, eq=False)
class Queries:
    """Output entries by class and group: class c reads group g for ``order[pointer[c, g]:pointer[c, g + 1]]``."""

    order: Tensor
    pointer: Tensor


class Plan(Memory):
    """Selections, groups and look-ups from one index set to another; each is worked out when first asked for."""

    def __init__(self, source: IndexSet, target: IndexSet) -> None:
        super().__init__()
        self.source = source
        self.target = target

    def prepare(self, classes: Iterable[EquivalenceClass], *, coupling: str = "relaxed") -> None:
        """Work out what these classes need now (in a data-loader worker, say), so that no layer waits for it."""
        for cls in classes:
            if cls.kind == "pointwise":
                self.pointwise(cls)
                continue
            terms = [term for _, term in expansion(cls)] if coupling == "exact" else [cls]
            for term in terms:
                self.keys(term), self.asked((term,))
            self.members(cls, coupling)

    def pointwise(self, cls: EquivalenceClass) -> Spread:
        """For a pointwise class: the entry of the source pattern that each entry of the target pattern reads."""
        return self._once(("pointwise", _key(cls)), lambda: self._pointwise(cls))

    def _pointwise(self, cls: EquivalenceClass) -> Spread:
        target, source = self.target.entries(cls.target), self.source.entries(cls.source)
        blocks = dict(cls.matching)
        columns = [blocks[label] for label in cls.source.labels]
        rows = self.source.find(target.tuples[:, columns], target.graph)
        if len(source) != self.source.num_entries:
            place = torch.full((self.source.num_entries + 1,), -1, dtype=torch.int64, device=rows.device)
            every = torch.arange(len(source), device=rows.device)
            place[every + source.start if source.rows is None else source.rows] = every
            rows = place[rows]
        return Spread.build(rows, len(source), one_to_one=cls.source.num_blocks == cls.target.num_blocks)

    def groups(self, pool: Pool) -> Groups:
        """The groups that classes of one pool share."""
        return self._once(("groups", pool.source.labels, pool.blocks), lambda: self._groups(pool))

    def _groups(self, pool: Pool) -> Groups:
        return Groups.build(self.source.entries(pool.source), pool.blocks, self.source)

    def keys(self, cls: EquivalenceClass) -> Segments:
        """The entries of the source pattern, sorted by the group of the class."""
        pool = Pool(cls.source, cls.matched_source)
        return self._once(("keys", pool.source.labels, pool.blocks), lambda: self._keys(pool))

    def _keys(self, pool: Pool) -> Segments:
        groups = self.groups(pool)
        return Segments.build(groups.ids, groups.num_groups)

    def reads(self, cls: EquivalenceClass) -> Tensor:
        """The group that each entry of the target pattern reads, -1 for none."""
        return self._once(("reads", _key(cls)), lambda: self._reads(cls))

    def _reads(self, cls: EquivalenceClass) -> Tensor:
        target = self.target.entries(cls.target)
        groups = self.groups(Pool(cls.source, cls.matched_source))
        return groups.find(target.tuples[:, list(cls.matched_target)], target.graph)

    def spread(self, cls: EquivalenceClass) -> Spread:
        """The same as a gather from the groups."""
        groups = self.groups(Pool(cls.source, cls.matched_source))
        return self._once(("spread", _key(cls)), lambda: Spread.build(self.reads(cls), groups.num_groups))

    def queries(self, cls: EquivalenceClass) -> Segments:
        """The entries of the target pattern, sorted by the group that they read."""
        groups = self.groups(Pool(cls.source, cls.matched_source))
        return self._once(("queries", _key(cls)), lambda: Segments.build(self.reads(cls), groups.num_groups))

    def asked(self, classes: tuple[EquivalenceClass, ...]) -> Queries:
        """The queries of several classes that share their groups."""
        return self._once(("asked", *[_key(cls) for cls in classes]), lambda: self._asked(classes))

    def _asked(self, classes: tuple[EquivalenceClass, ...]) -> Queries:
        each = [self.queries(cls) for cls in classes]
        starts = [0]
        for segments in each:
            starts.append(starts[-1] + len(segments.order))
        pointer = torch.stack([segments.pointer + start for segments, start in zip(each, starts[:-1], strict=True)])
        return Queries(torch.cat([segments.order for segments in each]), pointer)

    def askers(self, cls: EquivalenceClass) -> Spread:
        """For a class that matches all nodes of its output entries, so that a group has one query: the query of each key."""
        return self._once(("askers", _key(cls)), lambda: self._askers(cls))

    def _askers(self, cls: EquivalenceClass) -> Spread:
        assert not cls.unmatched_target
        groups, reads = self.groups(Pool(cls.source, cls.matched_source)), self.reads(cls)
        query = torch.full((groups.num_groups + 1,), -1, dtype=torch.int64, device=reads.device)
        query[reads] = torch.arange(len(reads), device=reads.device)  # those of no group, -1, write to the end
        return Spread.build(query[groups.ids], len(reads))

    def members(self, cls: EquivalenceClass, coupling: str) -> Tensor:
        """How many input entries each output entry receives: exactly, or with the equalities of the class only."""
        return self._once(("members", _key(cls), coupling), lambda: self._members(cls, coupling))

    def _members(self, cls: EquivalenceClass, coupling: str) -> Tensor:
        terms = expansion(cls) if coupling == "exact" else ((1, cls),)
        total = torch.zeros(len(self.target.entries(cls.target)), dtype=torch.int64, device=self.target.device)
        for sign, term in terms:
            sizes = torch.cat([self.keys(term).sizes, total.new_zeros(1)])
            total = total + sign * sizes[self.reads(term)]
        return total

    def once(self, key: object, build: Callable[[], Built]) -> Built:
        """Keep something that a layer works out from this plan alone."""
        return self._once(("layer", key), build)


def _key(cls: EquivalenceClass) -> tuple[object, ...]:
    return (cls.source.labels, cls.target.labels, cls.matching)
