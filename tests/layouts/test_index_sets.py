"""Index sets against plain Python: look-ups, patterns, projections, complete sets."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracles
import strategies
from anyorder import CompleteIndexSet, DenseIndexSet, SparseIndexSet
from anyorder.algebra import set_partitions
from anyorder.layouts import Segments, TupleIndex, complete_index_set

orders = st.integers(0, 4)
sets = orders.flatmap(strategies.index_sets)
masks = st.lists(st.lists(st.booleans(), min_size=3, max_size=3), max_size=3).map(
    lambda rows: torch.tensor(rows, dtype=torch.bool).reshape(len(rows), 3)
)


def listed(index):
    return [tuple(row) for row in index.tuples.tolist()]


def rows_of(entries):
    """The rows of the whole index set that a selection holds."""
    return list(range(entries.start, entries.start + len(entries))) if entries.rows is None else entries.rows.tolist()


class TestSparse:
    @strategies.few
    @given(sets)
    def test_every_tuple_is_found_where_it_stands_and_no_other(self, index):
        place = {key: row for row, key in enumerate(zip(listed(index), index.entry_graph.tolist()))}
        graphs = index.node_graph.tolist()
        if index.order:
            asked = [(t, graphs[t[0]]) for t in strategies.within_graphs(index.order, graphs)]
        else:
            asked = [((), graph) for graph in range(index.num_graphs)]
        tuples = torch.tensor([t for t, _ in asked], dtype=torch.int64).reshape(len(asked), index.order)
        graph = torch.tensor([g for _, g in asked], dtype=torch.int64)
        assert index.find(tuples, graph).tolist() == [place.get(key, -1) for key in asked]

    @strategies.few
    @given(sets)
    def test_graph_of_each_entry(self, index):
        graphs = index.node_graph.tolist()
        expected = [graphs[t[0]] for t in listed(index)] if index.order else list(range(index.num_graphs))
        assert index.entry_graph.tolist() == expected

    @strategies.few
    @given(sets, st.randoms())
    def test_projection_is_all_tuples_inside_one_tuple(self, index, random):
        order = random.randint(0, max(index.order - 1, 0))
        found = index.project(order)
        inside = {t for held in listed(index) for t in product(held, repeat=order)}
        assert sorted(listed(found)) == (sorted(inside) if order else [()] * index.num_graphs)
        assert (found.num_nodes, found.num_graphs) == (index.num_nodes, index.num_graphs)
        assert found is index.project(order) and index.with_order(order) is found
        assert index.project(index.order) is index
        assert index.with_order(index.order + 1) is None

    @strategies.few
    @given(st.integers(1, 3).flatmap(strategies.index_sets), st.integers(0, 3))
    def test_complete_is_all_tuples_within_graphs(self, index, order):
        found = index.complete(order)
        graphs = index.node_graph.tolist()
        expected = strategies.within_graphs(order, graphs) if order else [()] * index.num_graphs
        assert sorted(listed(found)) == expected
        assert torch.equal(found.node_graph, index.node_graph) and found.num_graphs == index.num_graphs
        assert found.find(found.tuples, found.entry_graph).tolist() == list(range(found.num_entries))


class TestPatterns:
    @strategies.few
    @given(sets)
    def test_patterns_partition_the_entries(self, index):
        held = [row for pattern in set_partitions(index.order) for row in rows_of(index.entries(pattern))]
        assert sorted(held) == list(range(index.num_entries))

    @strategies.few
    @given(sets)
    def test_an_entry_is_in_the_selection_of_its_pattern_as_a_compact_tuple(self, index):
        values = torch.arange(float(index.num_entries))[:, None]
        for pattern in set_partitions(index.order):
            entries = index.entries(pattern)
            rows = rows_of(entries)
            expected = [row for row, t in enumerate(listed(index)) if oracles.pattern(t) == oracles.pattern(pattern.labels)]
            assert rows == expected and len(entries) == len(expected)
            assert entries.tuples.tolist() == [list(dict.fromkeys(listed(index)[row])) for row in rows]
            assert entries.graph.tolist() == index.entry_graph[rows].tolist()
            assert entries.read(values).flatten().tolist() == [float(row) for row in rows]

    @strategies.few
    @given(sets)
    def test_rows_are_assembled_from_patterns(self, index):
        values = torch.arange(1.0, 2 * index.num_entries + 1).reshape(-1, 2)
        parts = {pattern: index.entries(pattern).read(values) for pattern in set_partitions(index.order)}
        assert torch.equal(index.assemble(parts), values)

    @strategies.few
    @given(sets)
    def test_rows_are_split_by_pattern_and_put_together_again_with_their_gradients(self, index):
        values = torch.arange(1.0, 2 * index.num_entries + 1).reshape(-1, 2).requires_grad_()
        parts = index.split(values)
        for pattern in set_partitions(index.order):
            assert torch.equal(parts[pattern], index.entries(pattern).read(values))
        weights = torch.linspace(1, 2, values.numel()).view_as(values)
        whole = index.assemble({pattern: rows * 2 for pattern, rows in parts.items()})
        assert torch.equal(whole, values * 2)
        if index.num_entries:
            (grad,) = torch.autograd.grad((whole * weights).sum(), values)
            assert torch.equal(grad, weights * 2)

    def test_entries_that_stand_together_are_read_without_a_copy(self):
        index = SparseIndexSet(torch.tensor([[0, 0], [1, 1], [0, 1], [1, 0]]), num_nodes=2)
        values = torch.arange(4.0)[:, None]
        loops, edges = (index.entries(pattern) for pattern in set_partitions(2))
        assert loops.rows is None and edges.rows is None
        assert edges.read(values).data_ptr() == values[2:].data_ptr()


class TestComplete:
    @strategies.few
    @given(st.lists(st.integers(0, 3), max_size=3), st.integers(0, 3))
    def test_all_tuples_row_by_row(self, sizes, order):
        index = CompleteIndexSet(order, torch.tensor(sizes, dtype=torch.int64))
        expected, start = [], 0
        for graph, size in enumerate(sizes):
            expected += [(t, graph) for t in product(range(start, start + size), repeat=order)]
            start += size
        assert listed(index) == [t for t, _ in expected]
        assert index.entry_graph.tolist() == [graph for _, graph in expected]
        assert index.num_entries == len(expected) and index.num_nodes == sum(sizes) and index.num_graphs == len(sizes)
        assert index.find(index.tuples, index.entry_graph).tolist() == list(range(len(expected)))

    @strategies.few
    @given(masks, st.integers(0, 3))
    def test_a_padded_grid_holds_the_tuples_of_its_nodes(self, mask, order):
        index = DenseIndexSet(order, mask)
        values = torch.arange(1.0, len(mask) * 3**order * 2 + 1).reshape(len(mask), *[3] * order, 2)
        rows = index.flatten(values)
        expected = [
            values[(graph, *cell)].tolist()
            for graph in range(len(mask))
            for cell in product(mask[graph].nonzero().flatten().tolist(), repeat=order)
        ]
        assert rows.tolist() == expected
        back = index.unflatten(rows)
        assert back.shape == values.shape
        assert torch.equal(index.flatten(back), rows)
        assert int((back != 0).all(-1).sum()) == len(expected)
        assert not (back != values)[(back != 0).any(-1)].any()

    @strategies.few
    @given(masks, st.integers(0, 3), st.integers(0, 3))
    def test_another_order_of_the_same_nodes(self, mask, order, other):
        index = DenseIndexSet(order, mask)
        follows = index.with_order(other)
        assert isinstance(follows, DenseIndexSet) and follows.order == other and torch.equal(follows.mask, mask)
        assert follows is index.with_order(other)
        assert index.with_order(order) is index
        assert index.complete(other) is follows

    def test_nodes_that_do_not_stand_together(self):
        index = complete_index_set(2, torch.tensor([1, 0, 1]), num_graphs=3)
        assert isinstance(index, SparseIndexSet)
        assert listed(index) == [(1, 1), (0, 0), (0, 2), (2, 0), (2, 2)]
        assert index.entry_graph.tolist() == [0, 1, 1, 1, 1]


class TestTupleIndex:
    @settings(parent=strategies.few, max_examples=60)
    @given(
        st.sampled_from([1, 7, 10**6, 2**31, 2**40]),
        st.integers(1, 6),
        st.integers(0, 2**32 - 1),
    )
    def test_finds_tuples_that_do_not_fit_into_one_integer(self, num_nodes, order, seed):
        generator = torch.Generator().manual_seed(seed)
        near = torch.randint(0, min(num_nodes, 3), (30, order), generator=generator)
        flip = torch.rand(30, order, generator=generator) < 0.3
        tuples = torch.where(flip, num_nodes - 1 - near, near)
        known, asked = tuples[:15], tuples
        index = TupleIndex.build(known, num_nodes)
        rows = [tuple(row) for row in known.tolist()]
        expected = [rows.index(t) if t in rows else -1 for t in map(tuple, asked.tolist())]
        assert index.find(asked).tolist() == expected
        assert (index.repeated() is None) == (len(set(rows)) == len(rows))

    def test_order_four_of_a_million_nodes(self):
        generator = torch.Generator().manual_seed(0)
        tuples = torch.randint(0, 10**6, (20_000, 4), generator=generator)
        tuples[:10_000, :3] = tuples[10_000:, :3]
        index = SparseIndexSet(tuples, num_nodes=10**6)
        shuffled = torch.randperm(len(tuples), generator=generator)
        graph = torch.zeros(len(tuples), dtype=torch.int64)
        assert torch.equal(index.find(tuples[shuffled], graph), shuffled)
        others = tuples.clone()
        others[:, 3] = (others[:, 3] + 1) % 10**6
        known = {tuple(row) for row in tuples.tolist()}
        there = [tuple(row) in known for row in others.tolist()]
        assert (index.find(others, graph) >= 0).tolist() == there
        with pytest.raises(ValueError, match="tuples must be distinct: rows 3 and 20000 are both"):
            SparseIndexSet(torch.cat([tuples, tuples[3:4]]), num_nodes=10**6)

    def test_no_tuples(self):
        index = TupleIndex.build(torch.empty(0, 3, dtype=torch.int64), 10**9)
        assert index.find(torch.tensor([[1, 2, 3]])).tolist() == [-1]
        assert index.repeated() is None


@strategies.few
@given(st.integers(0, 4).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(-1, n - 1)))))
def test_segments(problem):
    num_groups, group = problem
    segments = Segments.build(torch.tensor(group, dtype=torch.int64), num_groups)
    assert segments.num_groups == num_groups and len(segments.rows) == sum(g >= 0 for g in group)
    for number in range(num_groups):
        rows = segments.rows[segments.pointer[number] : segments.pointer[number + 1]].tolist()
        assert rows == [row for row, g in enumerate(group) if g == number]
        assert segments.sizes[number] == len(rows)
