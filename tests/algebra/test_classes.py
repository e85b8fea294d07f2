"""Set partitions and equivalence classes against brute force over small numbers of nodes."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import comb

import pytest

import oracles
from anyorder.algebra import (
    EquivalenceClass,
    Pool,
    SetPartition,
    classes,
    expansion,
    formula,
    meaning,
    pools,
    select,
    set_partitions,
)

ORDERS = [(k, l) for k in range(4) for l in range(4)] + [(1, 4), (4, 1), (2, 4), (4, 2)]
at_orders = pytest.mark.parametrize(("k", "l"), ORDERS)
NODES = 4


def bell(n):
    return sum(comb(n - 1, k) * bell(k) for k in range(n)) if n else 1


def indices(order, num_nodes=NODES):
    return list(product(range(num_nodes), repeat=order))


def related(cls, i, j):
    """Membership by the definition of a class: two patterns and a matching, in plain Python."""
    if oracles.pattern(i) != oracles.pattern(cls.source.labels) or oracles.pattern(j) != oracles.pattern(cls.target.labels):
        return False
    read, write = dict.fromkeys(i), dict.fromkeys(j)
    shared = {(a, b) for a, u in enumerate(read) for b, v in enumerate(write) if u == v}
    return shared == set(cls.matching)


class TestSetPartitions:
    @pytest.mark.parametrize("order", range(8))
    def test_there_are_bell_many_and_no_two_are_equal(self, order):
        every = set_partitions(order)
        assert len(every) == len(set(every)) == bell(order)
        assert all(partition.order == order for partition in every)

    @pytest.mark.parametrize("order", range(5))
    def test_they_are_the_patterns_of_tuples(self, order):
        patterns = {SetPartition.of(index) for index in indices(order, order or 1)}
        assert patterns == set(set_partitions(order))

    def test_blocks_representatives_and_names(self):
        partition = SetPartition((0, 1, 0, 2))
        assert partition.blocks == ((0, 2), (1,), (3,))
        assert partition.representatives == (0, 1, 3)
        assert partition.num_blocks == 3 and not partition.is_distinct and SetPartition((0, 1)).is_distinct
        assert partition.expand(("a", "b", "c")) == ("a", "b", "a", "c")
        assert SetPartition(()).num_blocks == 0 and SetPartition(()).is_distinct

    def test_refusals(self):
        with pytest.raises(ValueError, match=r"order of first appearance: expected \(0, 1\), got \(1, 0\); SetPartition.of"):
            SetPartition((1, 0))
        with pytest.raises(ValueError, match="order must be at least 0, got -1"):
            set_partitions(-1)


class TestClasses:
    @at_orders
    def test_they_are_the_partitions_of_all_positions(self, k, l):
        every = classes(k, l)
        assert len(every) == bell(k + l)
        partitions = [cls.partition for cls in every]
        assert set(partitions) == set(set_partitions(k + l)) and len(set(partitions)) == len(every)
        assert [EquivalenceClass.of_partition(partition, k) for partition in partitions] == list(every)

    @pytest.mark.parametrize(("k", "l"), [orders for orders in ORDERS if sum(orders) <= 5])
    def test_every_pair_of_indices_is_in_exactly_one(self, k, l):
        by_partition = {cls.partition: cls for cls in classes(k, l)}
        for i, j in product(indices(k, 3), indices(l, 3)):
            inside = [cls for cls in by_partition.values() if related(cls, i, j)]
            assert inside == [by_partition[SetPartition.of(i + j)]]
            assert oracles.same_class(i, j, inside[0].partition.labels, k)

    @pytest.mark.parametrize(
        ("k", "l", "expected"),
        [
            (1, 1, {"pointwise": 1, "global": 1}),
            (1, 2, {"pointwise": 3, "global": 2}),
            (2, 1, {"pointwise": 1, "local": 2, "global": 2}),
            (2, 2, {"pointwise": 5, "local": 6, "global": 4}),
            (0, 2, {"pointwise": 2}),
            (2, 0, {"global": 2}),
        ],
    )
    def test_how_many_of_each_kind(self, k, l, expected):
        assert Counter(cls.kind for cls in classes(k, l)) == expected

    @at_orders
    def test_kinds_are_what_they_say(self, k, l):
        for cls in classes(k, l):
            i = tuple(cls.partition.labels[:k])
            j = tuple(cls.partition.labels[k:])
            shared = set(i) & set(j)
            kind = "pointwise" if set(i) <= set(j) else "local" if shared else "global"
            assert cls.kind == kind
            assert (cls.order_in, cls.order_out) == (k, l)
            assert len(cls.matched_source) == len(cls.matched_target) == len(shared)
            assert len(cls.unmatched_source) == len(set(i) - shared) and len(cls.unmatched_target) == len(set(j) - shared)

    @at_orders
    def test_names_are_distinct_and_say_which_nodes_are_equal(self, k, l):
        every = classes(k, l)
        for texts in (*({f(cls) for cls in every} for f in (str, formula)), {cls.name for cls in every}):
            assert len(texts) == len(every)
        for cls in every:
            inputs, outputs = cls.names()
            assert oracles.pattern(inputs + outputs) == oracles.pattern(cls.partition.labels)
            assert meaning(cls)

    @pytest.mark.parametrize("matching", [((0, 0), (0, 1)), ((0, 0), (1, 0)), ((1, 0), (0, 1))])
    def test_a_matching_is_one_to_one(self, matching):
        with pytest.raises(ValueError, match="partial one-to-one map, sorted by source block: got"):
            EquivalenceClass(SetPartition((0, 1)), SetPartition((0, 1)), matching)

    @pytest.mark.parametrize("matching", [((2, 0),), ((0, 1),), ((-1, 0),)])
    def test_a_matching_is_of_blocks_that_exist(self, matching):
        with pytest.raises(ValueError, match=r"blocks 0..1 of the source to blocks 0..0 of the target, got"):
            EquivalenceClass(SetPartition((0, 1)), SetPartition((0, 0)), matching)


class TestSelections:
    def test_by_name_predicate_and_listing(self):
        every = classes(2, 2)
        assert select(2, 2) == every
        assert select(2, 2, "pointwise") == tuple(cls for cls in every if cls.kind == "pointwise")
        assert select(2, 2, "without global") == tuple(cls for cls in every if cls.kind in ("pointwise", "local"))
        assert select(2, 2, lambda cls: cls.target.is_distinct) == tuple(cls for cls in every if cls.target.is_distinct)
        assert select(2, 2, [every[7], every[2]]) == (every[2], every[7])

    @pytest.mark.parametrize("k", [2, 3, 4])
    def test_into_uniform_hyperedges_there_are_one_and_k(self, k):
        assert len(select(1, k, lambda cls: cls.target.is_distinct)) == 1 + k

    @pytest.mark.parametrize(
        ("selection", "error", "message"),
        [
            ("local", ValueError, "unknown class selection 'local'"),
            (7, TypeError, "must be a name, a predicate or classes, got int"),
            ([], ValueError, "leaves no class of order 2 -> 2"),
            (classes(1, 2), ValueError, "classes must belong to order 2 -> 2"),
        ],
    )
    def test_refusals(self, selection, error, message):
        with pytest.raises(error, match=message):
            select(2, 2, selection)


class TestExpansion:
    @at_orders
    def test_exact_is_an_alternating_sum_of_equalities_only(self, k, l):
        num_nodes = NODES if k + l <= 4 else 3
        for cls in classes(k, l) if k + l <= 5 else classes(k, l)[::17]:
            terms = expansion(cls)
            assert terms[0] == (1, cls)
            labels = [(sign, term.partition.labels) for sign, term in terms]
            some = indices(k, num_nodes), indices(l, num_nodes) if k + l <= 5 else indices(l, num_nodes)[::5]
            for i, j in product(*some):
                if oracles.pattern(i) != oracles.pattern(cls.source.labels):
                    continue
                if oracles.pattern(j) != oracles.pattern(cls.target.labels):
                    continue
                total = sum(sign * oracles.equalities_hold(i, j, label, k) for sign, label in labels)
                assert total == related(cls, i, j)

    @at_orders
    def test_terms_extend_the_matching(self, k, l):
        for cls in classes(k, l):
            for sign, term in expansion(cls):
                assert (term.source, term.target) == (cls.source, cls.target)
                assert set(cls.matching) <= set(term.matching)
                assert sign == (-1) ** (len(term.matching) - len(cls.matching))


class TestPools:
    @at_orders
    def test_classes_share_a_pool_when_they_group_the_same_entries_by_the_same_blocks(self, k, l):
        shared = pools(classes(k, l))
        assert {cls for held in shared.values() for cls in held} == set(classes(k, l))
        assert sum(map(len, shared.values())) == bell(k + l)
        for pool, held in shared.items():
            assert all(Pool(cls.source, cls.matched_source) == pool for cls in held)

    def test_edges_to_edges_need_six(self):
        found = pools(classes(2, 2))
        loops, edges = set_partitions(2)
        assert set(found) == {
            *(Pool(loops, blocks) for blocks in ((), (0,))),
            *(Pool(edges, blocks) for blocks in ((), (0,), (1,), (0, 1))),
        }
