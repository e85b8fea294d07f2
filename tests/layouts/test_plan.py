"""Plans against plain Python: look-ups, groups, spreads, members and tiles of every class."""

from __future__ import annotations

import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import oracles
import strategies
from anyorder import CompleteIndexSet, DenseIndexSet, SparseIndexSet, SymmetricIndexSet
from anyorder.algebra import attention_program, classes, linear_program
from anyorder.layouts import tiles
from anyorder.layouts.index_set import MOST_PLANS
from anyorder.layouts.plan import Plan
from anyorder.ops.gather import read_rows
from anyorder.testing import random_index_set

ORDERS = [(k, l) for k in range(4) for l in range(4) if k + l <= 4] + [(4, 1), (1, 4)]
at_orders = pytest.mark.parametrize(("k", "l"), [pytest.param(k, l, id=f"{k}to{l}") for k, l in ORDERS])


@st.composite
def problems(draw, chosen):
    """Two index sets on the same nodes, and one of some classes between them."""
    k, l = chosen[0].order_in, chosen[0].order_out
    source = draw(strategies.index_sets(k))
    target = draw(st.just(source) if k == l and draw(st.booleans()) else strategies.index_sets(l, on=source))
    return Problem(Plan(source, target), draw(st.sampled_from(chosen)))


class Problem:
    """A class, and by brute force which input entry each of its output entries may read."""

    def __init__(self, plan, cls):
        self.plan, self.cls = plan, cls
        self.inputs = self._of(plan.source, cls.source)
        self.outputs = self._of(plan.target, cls.target)

    def __repr__(self):
        return f"{self.cls.name}: {self.inputs} -> {self.outputs}"

    @staticmethod
    def _of(index, pattern):
        pairs = zip(map(tuple, index.tuples.tolist()), index.entry_graph.tolist())
        return [(t, graph) for t, graph in pairs if oracles.pattern(t) == oracles.pattern(pattern.labels)]

    def read(self, member):
        """For each output entry, the input entries that belong to the class."""
        labels, k = self.cls.partition.labels, self.cls.order_in
        return [
            [row for row, (i, other) in enumerate(self.inputs) if other == graph and member(i, j, labels, k)]
            for j, graph in self.outputs
        ]


def of_kind(k, l, *kinds):
    """The classes of some kinds; the test is skipped where an order has none."""
    chosen = [cls for cls in classes(k, l) if cls.kind in kinds]
    if not chosen:
        pytest.skip(f"no class {k} -> {l} is {' or '.join(kinds)}")
    return chosen


def taken(segments, group):
    return [] if group < 0 else segments.rows[segments.pointer[group] : segments.pointer[group + 1]].tolist()


@at_orders
class TestAllOrders:
    @strategies.few
    @given(data=st.data())
    def test_pointwise_classes_look_up_their_one_entry(self, k, l, data):
        problem = data.draw(problems(of_kind(k, l, "pointwise")))
        expected = problem.read(oracles.same_class)
        assert all(len(rows) <= 1 for rows in expected)
        values = torch.arange(1.0, len(problem.inputs) + 1)[:, None]
        spread = problem.plan.gather(problem.cls)
        assert read_rows(values, spread).flatten().tolist() == [float(rows[0] + 1) if rows else 0.0 for rows in expected]

    @strategies.few
    @given(data=st.data())
    def test_groups_hold_entries_with_the_same_matched_nodes(self, k, l, data):
        problem = data.draw(problems(classes(k, l)))
        cls, plan = problem.cls, problem.plan
        groups = plan.groups(cls.pool)
        entries = plan.source.entries(cls.source)
        keys = [
            tuple(t[block] for block in cls.matched_source) if cls.matching else graph
            for t, graph in zip(entries.tuples.tolist(), entries.graph.tolist())
        ]
        ids = groups.ids.tolist()
        assert [[a == b for b in ids] for a in ids] == [[a == b for b in keys] for a in keys]
        assert all(0 <= group < groups.num_groups for group in ids)

    @strategies.few
    @given(data=st.data())
    def test_output_entries_read_the_group_with_their_equalities(self, k, l, data):
        problem = data.draw(problems(classes(k, l)))
        cls, plan = problem.cls, problem.plan
        expected = problem.read(oracles.equalities_hold)
        keys, reads, queries = plan.key_segments(cls.pool), plan.group_of_target(cls).tolist(), plan.query_segments(cls)
        assert [taken(keys, group) for group in reads] == expected
        for group in range(keys.num_groups):
            assert taken(queries, group) == [row for row, read in enumerate(reads) if read == group]
        sums = torch.tensor([float(sum(taken(keys, group))) for group in range(keys.num_groups)])[:, None]
        assert read_rows(sums, plan.group_gather(cls)).flatten().tolist() == [float(sum(rows)) for rows in expected]

    @strategies.few
    @given(data=st.data())
    def test_members_are_counted_exactly_and_with_equalities_only(self, k, l, data):
        problem = data.draw(problems(classes(k, l)))
        for coupling, member in (("exact", oracles.same_class), ("relaxed", oracles.equalities_hold)):
            expected = [len(rows) for rows in problem.read(member)]
            assert problem.plan.members(problem.cls, coupling).tolist() == expected

    @strategies.few
    @given(data=st.data())
    def test_tiles_hold_each_pair_of_a_class_once(self, k, l, data):
        problem = data.draw(problems(of_kind(k, l, "local", "global")))
        small = data.draw(st.sampled_from([1, 3, 1 << 20]))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tiles, "TILE_PAIRS", small)
            cut = problem.plan.tiles(problem.cls)
        pairs = [pair for tile in cut for pair in allowed_pairs(tile)]
        expected = [(query, key) for query, rows in enumerate(problem.read(oracles.same_class)) for key in rows]
        assert sorted(pairs) == expected
        asked = [query for tile in cut for query in tile.queries.padded().flatten().tolist() if query >= 0]
        assert len(asked) == len(set(asked))
        most = max([len(problem.inputs), small])
        assert all(len(tile.queries.begin) * tile.queries.longest * tile.keys.longest <= most for tile in cut)


def test_small_groups_of_any_size_share_a_tile_and_long_lists_are_cut_evenly():
    def cut(*sizes):
        index = CompleteIndexSet(1, torch.tensor(sizes))
        pairs = CompleteIndexSet(2, torch.tensor(sizes))
        [cls] = [cls for cls in of_kind(1, 2, "global") if len(cls.unmatched_target) == 2]
        return [(len(tile.queries.begin), tile.queries.longest, tile.keys.longest) for tile in index.plan(pairs).tiles(cls)]

    assert cut(3, 4, 9) == [(3, 72, 9)]
    assert cut(50, 50) == [(6, 817, 50)]  # 2,450 queries of a set in three pieces
    assert cut(3, 50) == [(1, 6, 3), (3, 817, 50)], "padding would cost more than a tile"


def test_tiles_take_linear_memory(monkeypatch):
    monkeypatch.setattr(tiles, "TILE_PAIRS", 1 << 8)
    for count in (64, 128, 256):
        index = SparseIndexSet(torch.stack([torch.arange(count), torch.arange(1, count + 1)], 1), num_nodes=count + 1)
        [cls] = [cls for cls in of_kind(2, 2, "global") if len(cls.unmatched_target) == 2 == len(cls.unmatched_source)]
        cut = index.plan(index).tiles(cls)
        assert len(cut) == count * count // 256
        tensors = {id(part): part for tile in cut for part in _tensors(tile)}
        # keys, queries and both ends of each, once, and four numbers for a tile
        assert sum(part.numel() for part in tensors.values()) == 6 * count + 4 * len(cut)


def _tensors(tile):
    found = []
    tile.map_tensors(lambda tensor: found.append(tensor) or tensor)
    return found


def allowed_pairs(tile):
    queries, keys = tile.queries.padded(), tile.keys.padded()
    allowed = tile.allowed(queries, keys)
    if allowed is None:
        allowed = torch.ones(*queries.shape, keys.shape[1], dtype=torch.bool)
    for number, query, key in allowed.nonzero().tolist():
        if queries[number, query] >= 0:
            yield int(queries[number, query]), int(keys[number, key])


@pytest.mark.parametrize(("k", "l"), [(2, 2), (3, 2), (2, 3), (3, 3), (4, 2)])
def test_all_classes_of_an_order_at_once(k, l):
    generator = torch.Generator().manual_seed(0)
    source = random_index_set(k, num_nodes=4, num_graphs=1, density=24 / 4**k, generator=generator)
    target = random_index_set(l, like=source, density=12 / 4**l, generator=generator)
    for cls in classes(k, l):
        problem = Problem(source.plan(target), cls)
        keys, reads = problem.plan.key_segments(cls.pool), problem.plan.group_of_target(cls).tolist()
        assert [taken(keys, group) for group in reads] == problem.read(oracles.equalities_hold)
        exact = [len(rows) for rows in problem.read(oracles.same_class)]
        assert problem.plan.members(cls, "exact").tolist() == exact


PROGRAMS = {
    "linear": linear_program(2, 1, classes(2, 1), "sum"),
    "mean": linear_program(2, 1, classes(2, 1), "mean"),
    **{mode: attention_program(2, 1, classes(2, 1), (mode, mode), False) for mode in ("softmax", "relaxed", "exact")},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_plan_is_prepared_once_for_each_program(name, monkeypatch):
    source = SparseIndexSet(torch.tensor([[0, 1], [1, 1], [2, 0]]), num_nodes=3)
    plan = source.plan(source.project(1))
    known = plan.prepare(PROGRAMS[name])
    assert len(known) == len(PROGRAMS[name].steps)

    def late(*_):
        raise AssertionError("built after prepare")

    for method in ("_gather", "_group_of_target", "_members", "_single", "_grouped"):
        monkeypatch.setattr(type(plan), method, late)
    assert plan.prepare(pickle.loads(pickle.dumps(PROGRAMS[name]))) is known
    with pytest.raises(AssertionError, match="built after prepare"):
        source.plan(source).members(classes(2, 2)[0], "exact")


def test_a_plan_is_made_once_for_each_target():
    source = SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=2)
    assert source.plan(source) is source.plan(source)
    assert source.plan(source.project(1)) is source.plan(source.project(1))
    assert source.plan(source) is not source.plan(source.project(1))


class TestRefusals:
    def test_other_nodes(self):
        source = SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=2)
        target = SparseIndexSet(torch.tensor([[0]]), num_nodes=3)
        with pytest.raises(ValueError, match="expected 2 nodes and 1 graphs, got 3 and 1"):
            source.plan(target)

    def test_other_graphs(self):
        nodes = {"num_nodes": 3, "num_graphs": 2}
        source = SparseIndexSet(torch.tensor([[0, 1]]), node_graph=torch.tensor([0, 0, 1]), **nodes)
        target = SparseIndexSet(torch.tensor([[1, 2]]), node_graph=torch.tensor([0, 1, 1]), **nodes)
        with pytest.raises(ValueError, match=r"same graph.* node 1 is of graph 0 .* of graph 1"):
            source.plan(target)
        with pytest.raises(ValueError, match="same graph"):
            source.plan(CompleteIndexSet(1, torch.tensor([1, 2])))
        assert source.plan(DenseIndexSet(1, torch.tensor([[True, True], [False, True]])))

    def test_other_devices(self):
        source = SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=2)
        with pytest.raises(ValueError, match="same device: expected cpu, got meta"):
            source.plan(source.to("meta"))


class TestWhatIsKept:
    """Plans towards several index sets are built once each, and no more are kept than a loop has use for."""

    def test_plans_of_index_sets(self):
        source = SparseIndexSet(torch.tensor([[0], [1]]), num_nodes=2)
        targets = [SparseIndexSet(torch.tensor([[0]]), num_nodes=2) for _ in range(MOST_PLANS + 1)]
        first = [source.plan(target) for target in targets[:-1]]
        assert all(source.plan(target) is made for target, made in zip(targets, first, strict=False))
        last = source.plan(targets[-1])
        assert source.plan(targets[0]) is not first[0] and source.plan(targets[-1]) is last

    def test_what_hyperedges_have_towards_others(self):
        source, *targets = (SymmetricIndexSet(torch.tensor([[0, 1]]), num_nodes=2) for _ in range(MOST_PLANS + 2))
        built: list[int] = []

        def ask(number: int) -> None:
            source.towards(targets[number], "this", lambda: built.append(number) or number)

        for _ in range(2):
            for number in range(MOST_PLANS):
                ask(number)
        assert built == list(range(MOST_PLANS))
        for number in (MOST_PLANS, 1, MOST_PLANS, 0):  # the oldest had to go
            ask(number)
        assert built[MOST_PLANS:] == [MOST_PLANS, 0]
