"""Features and index sets as values: checks, batches, copies to other types, devices and processes."""

from __future__ import annotations

import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

import strategies
from anyorder import CompleteIndexSet, DenseIndexSet, EquivariantLinear, Features, SparseIndexSet, collate
from anyorder.algebra import attention_program, classes, linear_program
from anyorder.layouts import Groups, Plan, Segments
from anyorder.testing import random_features, random_index_set

LAYOUTS = ["sparse", "dense", "complete"]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def layer(k=2, l=2, channels=3):
    torch.manual_seed(0)
    return EquivariantLinear(order_in=k, order_out=l, channels_in=channels, channels_out=2, reduce="mean").double()


def ints(*rows):
    return torch.tensor(rows, dtype=torch.int64)


class TestCollate:
    @strategies.few
    @given(st.integers(0, 3).flatmap(lambda order: st.lists(strategies.features(order), min_size=1, max_size=3)))
    def test_is_the_disjoint_union(self, items):
        batch = collate(items)
        expected, nodes, graphs = {}, 0, 0
        for item in items:
            for (axes, graph), row in strategies.as_dict(item).items():
                expected[tuple(v + nodes for v in axes), graph + graphs] = row
            nodes, graphs = nodes + item.num_nodes, graphs + item.num_graphs
        assert strategies.as_dict(batch) == expected
        assert (batch.num_nodes, batch.num_graphs) == (nodes, graphs)
        assert torch.equal(batch.rows, torch.cat([item.rows for item in items]))
        assert batch.index.find(batch.index.tuples, batch.index.entry_graph).tolist() == list(range(len(batch.rows)))

    @pytest.mark.parametrize("order", range(4))
    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_keeps_the_layout(self, order, layout):
        generator = torch.Generator().manual_seed(order)
        items = [random_features(order, layout=layout, num_nodes=n, generator=generator) for n in (5, 2, 0)]
        batch = collate(items)
        assert type(batch.index) is type(items[0].index) and batch.num_graphs == 6
        assert torch.equal(batch.rows, torch.cat([item.rows for item in items]))
        if layout == "dense":
            start = 0
            for item in items:
                width, stop = item.index.mask.shape[1], start + item.num_graphs
                part = batch.values[(slice(start, stop), *[slice(width)] * order)]
                assert torch.equal(part, item.values)
                start = stop


class TestCopies:
    def test_another_dtype_changes_values_and_nothing_else(self):
        x = random_features(2)
        single = x.to(torch.float32)
        assert single.dtype == torch.float32 and x.dtype == torch.float64
        assert torch.equal(single.rows, x.rows.float())
        assert torch.equal(single.index.tuples, x.index.tuples) and single.index.tuples.dtype == torch.int64
        assert x.to(torch.ones(1)).dtype == torch.float32
        with pytest.raises(TypeError, match=r"must stay floating, got torch\.int64"):
            x.to(torch.int64)

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_another_device_takes_everything_along(self, layout):
        x = random_features(2, layout=layout)
        x.index.plan(x.index).prepare(attention_program(2, 2, classes(2, 2), ("exact", "exact"), True))
        moved = x.to("meta")
        assert moved.device.type == moved.index.device.type == moved.index.tuples.device.type == "meta"
        seen = []
        moved.map_tensors(lambda tensor: seen.append(tensor.device.type) or tensor)
        assert set(seen) == {"meta"} and len(seen) > 20
        assert x.device.type == "cpu" and x.index.plan(x.index).members(classes(2, 2)[0], "exact").device.type == "cpu"

    def test_what_is_shared_stays_shared(self):
        x = random_features(2)
        plan = x.index.plan(x.index)
        moved = x.to(torch.float32)
        [(_, moved_plan)] = moved.index._plans
        assert moved_plan.source is moved_plan.target is moved.index and moved_plan is not plan
        assert moved.index.plan(moved.index) is moved_plan

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="pinned memory needs CUDA")
    def test_pinned_memory(self):
        x = random_features(2).pin_memory()
        assert x.rows.is_pinned() and x.index.tuples.is_pinned()


class TestPickling:
    @strategies.few
    @given(st.integers(0, 3).flatmap(strategies.features))
    def test_features_come_back(self, x):
        back = pickle.loads(pickle.dumps(x))
        assert strategies.as_dict(back) == strategies.as_dict(x)
        assert repr(back) == repr(x)

    @pytest.mark.parametrize("layout", LAYOUTS)
    def test_with_the_plans_that_were_made(self, layout, monkeypatch):
        x = random_features(2, layout=layout)
        expected = layer()(x).rows
        back = pickle.loads(pickle.dumps(x))
        refuse_to_plan(monkeypatch)
        assert torch.equal(layer()(back).rows, expected)


def refuse_to_plan(monkeypatch):
    """From here on, what a plan needs must have been worked out before."""

    def late(*_):
        raise AssertionError("planned again")

    for kind, name in [
        (Groups, "build"),
        (Segments, "build"),
        (Plan, "_gather"),
        (Plan, "_members"),
        (Plan, "_group_of_target"),
    ]:
        monkeypatch.setattr(kind, name, late)


def planned_batch(items):
    """A batch and a target, with the plan between them built."""
    x = collate(items)
    target = x.index.project(1)
    plan = x.index.plan(target)
    plan.prepare(attention_program(2, 1, classes(2, 1), ("exact", "exact"), False))
    plan.prepare(linear_program(2, 1, classes(2, 1), "mean"))
    return x, target


class Graphs(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, number):
        return random_features(2, num_graphs=1, num_nodes=3 + number, generator=torch.Generator().manual_seed(number))


def test_a_loader_worker_plans_and_the_training_process_does_not(monkeypatch):
    expected = [layer(2, 1)(*planned_batch([Graphs()[n], Graphs()[n + 1]])).rows for n in (0, 2)]
    loader = DataLoader(Graphs(), batch_size=2, collate_fn=planned_batch, num_workers=1)
    batches = list(loader)
    refuse_to_plan(monkeypatch)
    for (x, target), rows in zip(batches, expected, strict=True):
        assert torch.equal(layer(2, 1)(x, target).rows, rows)
    with pytest.raises(AssertionError, match="planned again"):
        layer(2, 1)(random_features(2))


class TestValues:
    def test_the_layout_gives_values_their_shape(self):
        assert random_features(2, layout="dense", num_nodes=4, num_graphs=2).values.shape == (2, 3, 3, 3)
        assert random_features(2, layout="complete", num_nodes=4, num_graphs=2).values.shape == (8, 3)

    def test_other_values_on_the_same_tuples(self):
        x = random_features(2)
        y = x.with_values(2 * x.values)
        assert y.index is x.index and torch.equal(y.rows, 2 * x.rows)

    def test_targets_that_follow(self):
        x = random_features(2)
        assert x.target(2) is x.index and x.target(1) is x.index.project(1)
        assert x.target(3, given := random_index_set(3, like=x.index)) is given
        dense = random_features(1, layout="dense")
        assert dense.target(3).order == 3

    def test_padding_may_hold_anything(self):
        index = DenseIndexSet(1, torch.tensor([[True, False]]))
        assert Features(index, torch.tensor([[[1.0], [torch.nan]]])).values.tolist() == [[[1.0], [0.0]]]

    def test_unchecked_values_may_be_infinite(self):
        assert Features(CompleteIndexSet(1, ints(1)), torch.tensor([[torch.inf]]), check=False).rows.isinf().all()


EDGE = ints([0, 1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: SparseIndexSet([[0, 1]], num_nodes=2), TypeError, "tuples must be a tensor of int64, got list"),
        (lambda: SparseIndexSet(EDGE.int(), num_nodes=2), TypeError, "tuples must be int64, got torch.int32"),
        (lambda: SparseIndexSet(EDGE.float(), num_nodes=2), TypeError, "tuples must be int64, got torch.float32"),
        (lambda: SparseIndexSet(EDGE[0], num_nodes=2), ValueError, r"expected shape \(num_entries, order\), got \(2,\)"),
        (lambda: SparseIndexSet(EDGE[None], num_nodes=2), ValueError, r"one column per axis: .* got \(1, 1, 2\)"),
        (lambda: SparseIndexSet(EDGE, num_nodes=-1), ValueError, "num_nodes must be an integer of at least 0, got -1"),
        (lambda: SparseIndexSet(EDGE, num_nodes=2.0), ValueError, "num_nodes must be an integer of at least 0, got 2.0"),
        (lambda: SparseIndexSet(ints([0, 1], [1, 2]), num_nodes=2), ValueError, r"must lie in 0..1: row 1 is \[1, 2\]"),
        (lambda: SparseIndexSet(ints([0, -1]), num_nodes=2), ValueError, r"must lie in 0..1: row 0 is \[0, -1\]"),
        (
            lambda: SparseIndexSet(ints([0, 1], [1, 1], [0, 1]), num_nodes=2),
            ValueError,
            r"tuples must be distinct: rows 0 and 2 are both \[0, 1\]",
        ),
        (
            lambda: SparseIndexSet(ints([0, 0], [1, 2]), num_nodes=3, node_graph=ints(0, 0, 1)),
            ValueError,
            r"stay within one graph: row 1 is \[1, 2\], whose nodes are of graphs \[0, 1\]",
        ),
        (lambda: SparseIndexSet(EDGE, num_nodes=2, node_graph=[0, 0]), TypeError, "tensor of int64, got list"),
        (lambda: SparseIndexSet(EDGE, num_nodes=2, node_graph=torch.zeros(2)), TypeError, "int64, got torch.float32"),
        (
            lambda: SparseIndexSet(EDGE, num_nodes=2, node_graph=ints(0, 0, 0)),
            ValueError,
            r"a graph per node: expected \(2,\), got \(3,\)",
        ),
        (
            lambda: SparseIndexSet(EDGE, num_nodes=2, node_graph=ints(1, 1), num_graphs=1),
            ValueError,
            "must lie in 0..0 for 1 graphs, got values from 1 to 1",
        ),
        (lambda: SparseIndexSet(EDGE, num_nodes=2, node_graph=ints(-1, 0)), ValueError, "got values from -1 to 0"),
        (lambda: SparseIndexSet(EDGE, num_nodes=2, num_graphs=1.5), ValueError, "num_graphs must be an integer .* got 1.5"),
        (
            lambda: SparseIndexSet(EDGE, num_nodes=2, node_graph=ints(0, 0).to("meta")),
            ValueError,
            "on the device of tuples: expected cpu, got meta",
        ),
        (
            lambda: SparseIndexSet(torch.empty(3, 0, dtype=torch.int64), num_nodes=2),
            ValueError,
            "order 0 has one entry per graph: expected 1, got 3",
        ),
        (lambda: SparseIndexSet(EDGE, num_nodes=2).project(3), ValueError, "between 0 and 2, got 3"),
        (lambda: CompleteIndexSet(-1, ints(2)), ValueError, "order must be an integer of at least 0, got -1"),
        (lambda: CompleteIndexSet(2, [1]), TypeError, r"sizes must be int64 of shape \(graphs,\), got list"),
        (lambda: CompleteIndexSet(2, torch.ones(2)), TypeError, r"got torch.float32 of shape \(2,\)"),
        (lambda: CompleteIndexSet(2, ints(1, -2)), ValueError, r"sizes must be at least 0, got \[1, -2\]"),
        (lambda: DenseIndexSet(2, torch.ones(1, 2)), TypeError, r"mask must be bool .* got torch.float32 of shape \(1, 2\)"),
        (lambda: DenseIndexSet(2, torch.ones(2, dtype=torch.bool)), TypeError, r"got torch.bool of shape \(2,\)"),
        (lambda: DenseIndexSet(2, [[True]]), TypeError, r"mask must be bool of shape \(batch, node\), got list"),
    ],
)
def test_bad_index_sets(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: Features(EDGE, x.values), TypeError, "index must be an IndexSet, got Tensor"),
        (lambda x: Features(x.index, [1.0]), TypeError, "values must be a floating tensor, got list"),
        (lambda x: Features(x.index, x.values.long()), TypeError, "values must be a floating tensor, got torch.int64"),
        (lambda x: Features(x.index, x.values[1:]), ValueError, r"row per entry: expected .*\(9, channels\), got \(8, 3\)"),
        (lambda x: Features(x.index, x.values[:, 0]), ValueError, r"expected shape \(9, channels\), got \(9,\)"),
        (lambda x: Features(x.index, x.values.to("meta")), ValueError, "index set's device: expected cpu, got meta"),
        (
            lambda x: Features(x.index, x.values.index_fill(0, ints(4), torch.nan)),
            ValueError,
            r"values must be finite: entry 4, tuple \[\d, \d\], is not",
        ),
        (
            lambda x: Features(DenseIndexSet(2, torch.ones(1, 3, dtype=torch.bool)), torch.ones(1, 3, 2, 1)),
            ValueError,
            r"values must have shape \(1, 3, 3, channels\), got \(1, 3, 2, 1\)",
        ),
        (
            lambda x: Features(CompleteIndexSet(2, ints(2)), torch.ones(3, 1)),
            ValueError,
            r"one row per entry: expected shape \(4, channels\), got \(3, 1\)",
        ),
        (lambda x: x.target(3), ValueError, "is needed: none of order 3 follows from a sparse input of order 2"),
        (lambda x: x.target(2, EDGE), TypeError, "target must be an IndexSet, got Tensor"),
        (lambda x: x.target(1, x.index), ValueError, "of the layer's output order: expected 1, got 2"),
        (lambda x: collate([]), ValueError, "cannot collate an empty list"),
        (lambda x: collate([x, 3]), TypeError, "collate takes Features, got int"),
        (lambda x: collate([x, random_features(1)]), ValueError, "features of one order: item 0 has 2, item 1 1"),
        (lambda x: collate([x, x, random_features(2, channels=4)]), ValueError, "one channels: item 0 has 3, item 2 4"),
        (lambda x: collate([x, x.to(torch.float32)]), ValueError, "of one dtype: item 0 has torch.float64, item 1 torch.f"),
        (lambda x: collate([x, x.to("meta")]), ValueError, "of one device: item 0 has cpu, item 1 meta"),
        (lambda x: collate([x, random_features(2, layout="dense")]), ValueError, "features of one layout, got"),
        (lambda x: SparseIndexSet.collate([x.index, x.index.project(1)]), ValueError, r"of one order, got orders \[1, 2\]"),
    ],
)
def test_bad_features(call, error, message):
    with pytest.raises(error, match=message):
        call(random_features(2))


def test_features_behave_like_tensors():
    x = random_features(order=2, channels=3)
    x.rows.requires_grad_()
    assert x.shape == x.values.shape and x.dtype == x.values.dtype and x.device == x.values.device
    assert not x.detach().values.requires_grad and x.detach().index is x.index
    copy = x.detach().clone()
    copy.rows.zero_()
    assert bool(x.rows.any()) and copy.cpu().shape == x.shape
