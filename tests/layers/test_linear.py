"""Laws of EquivariantLinear, over all orders and layouts."""

from __future__ import annotations

import pytest
import torch

import oracles
from anyorder import EquivariantLinear, Features, SparseIndexSet, collate
from anyorder.algebra import classes, set_partitions
from anyorder.algebra.program import Project
from anyorder.ops.gather import project
from anyorder.testing import assert_equivariant, random_features, random_index_set

ORDERS = [
    pytest.param(k, l, id=f"{k}to{l}", marks=[pytest.mark.slow] if k + l > 5 else [])
    for k, l in [(k, l) for k in range(4) for l in range(4)] + [(1, 4), (2, 4), (4, 1), (4, 2)]
]
SMALL = [(k, l) for k in range(4) for l in range(4) if k + l <= 4]


def layer(k, l, **options):
    torch.manual_seed(k * 10 + l)
    return EquivariantLinear(order_in=k, order_out=l, channels_in=2, channels_out=3, **options).double()


def problem(k, l, layout="sparse", num_nodes=5, num_graphs=2):
    generator = torch.Generator().manual_seed(7)
    density = 0.6 if k + l < 6 else 0.2
    x = random_features(
        k, channels=2, num_nodes=num_nodes, num_graphs=num_graphs, layout=layout, density=density, generator=generator
    )
    if layout != "sparse":
        return x, x.index.with_order(l)
    return x, random_index_set(l, density=density, like=x.index, generator=generator)


def definition(module, x, target):
    weights = {cls.partition.labels: module.weight[n] for n, cls in enumerate(module.classes)}
    bias = {oracles.pattern(tuple(p.labels)): module.bias[n] for n, p in enumerate(set_partitions(module.order_out))}
    return oracles.linear(
        x.rows,
        x.index.tuples.tolist(),
        x.index.entry_graph.tolist(),
        target.tuples.tolist(),
        target.entry_graph.tolist(),
        weights,
        bias,
        module.reduce,
    )


@pytest.mark.parametrize(("k", "l"), ORDERS)
class TestAllOrders:
    @pytest.mark.parametrize("layout", ["sparse", "dense"])
    @pytest.mark.parametrize("reduce", ["sum", "mean"])
    def test_is_equivariant(self, k, l, layout, reduce):
        x, target = problem(k, l, layout)
        assert_equivariant(layer(k, l, reduce=reduce), x, target)

    @pytest.mark.parametrize("reduce", ["sum", "mean"])
    def test_matches_the_definition(self, k, l, reduce):
        x, target = problem(k, l, num_nodes=4 if k + l < 6 else 3)
        module = layer(k, l, reduce=reduce)
        torch.testing.assert_close(module(x, target).rows, definition(module, x, target), rtol=1e-9, atol=1e-9)

    def test_sparse_on_the_full_index_set_equals_dense(self, k, l):
        x, target = problem(k, l, "dense")
        nodes = {"num_nodes": x.num_nodes, "node_graph": x.index.node_graph, "num_graphs": x.num_graphs}
        sparse = SparseIndexSet(x.index.tuples, **nodes)
        sparse_target = SparseIndexSet(target.tuples, **nodes)
        module = layer(k, l)
        torch.testing.assert_close(module(Features(sparse, x.rows), sparse_target).rows, module(x, target).rows)

    @pytest.mark.parametrize("reduce", ["sum", "mean"])
    def test_a_graph_does_not_see_its_batch_neighbours(self, k, l, reduce):
        x, target = problem(k, l, num_graphs=1)
        y, other = problem(k, l, num_graphs=1, num_nodes=3)
        module = layer(k, l, reduce=reduce)
        both = module(collate([x, y]), SparseIndexSet.collate([target, other])).rows
        torch.testing.assert_close(both[: target.num_entries], module(x, target).rows)
        torch.testing.assert_close(both[target.num_entries :], module(y, other).rows)

    def test_padding_changes_nothing(self, k, l):
        x, _ = problem(k, l, "dense")
        values = torch.nn.functional.pad(x.values, (0, 0, *[0, 2] * k), value=5.0)
        wide = Features(type(x.index)(k, torch.nn.functional.pad(x.index.mask, (0, 2))), values)
        module = layer(k, l)
        torch.testing.assert_close(module(wide).rows, module(x).rows)


@pytest.mark.parametrize(("k", "l"), SMALL)
def test_empty_input_gives_finite_output_and_gradients(k, l):
    nodes = {"num_nodes": 2, "node_graph": torch.tensor([0, 2]), "num_graphs": 3}
    source = SparseIndexSet(torch.empty(3 if k == 0 else 0, k, dtype=torch.int64), **nodes)
    target = SparseIndexSet(torch.empty(3, 0, dtype=torch.int64) if l == 0 else torch.tensor([[0] * l, [1] * l]), **nodes)
    values = torch.zeros(source.num_entries, 2, dtype=torch.float64, requires_grad=True)
    for reduce in ("sum", "mean"):
        module = layer(k, l, reduce=reduce)
        out = module(Features(source, values), target).rows
        out.sum().backward()
        assert out.isfinite().all()
        assert all(p.grad is None or p.grad.isfinite().all() for p in module.parameters())


@pytest.mark.numeric
def test_float32_is_close_to_float64():
    x, target = problem(2, 2)
    module = layer(2, 2)
    expected = module(x, target).rows
    single = module.float()(Features(x.index, x.rows.float()), target).rows
    torch.testing.assert_close(single.double(), expected, rtol=1e-4, atol=1e-4)


def test_class_selection():
    assert len(layer(2, 2, classes="pointwise").classes) == 5
    assert len(layer(2, 2, classes="without global").classes) == 11
    only = layer(2, 2, classes=lambda cls: cls.source.is_distinct)
    assert {cls.source.labels for cls in only.classes} == {(0, 1)}
    x, target = problem(2, 2)
    torch.testing.assert_close(only(x, target).rows, definition(only, x, target))


def test_constant_number_of_classes_into_uniform_hyperedges():
    into = [cls for cls in classes(1, 4) if cls.target.is_distinct]
    assert len(into) == 1 + 4


def test_target_follows_by_projection():
    triples = SparseIndexSet(torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=4)
    out = layer(3, 2)(Features(triples, torch.ones(2, 2, dtype=torch.float64)))
    assert sorted(map(tuple, out.index.tuples.tolist())) == sorted(
        {(a, b) for edge in ([0, 1, 2], [1, 2, 3]) for a in edge for b in edge}
    )


def test_a_projection_that_reads_nothing_gives_rows_of_its_own():
    """What is added to them without gradients is written in place, and must not reach the bias."""
    index = SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=2)  # no loops
    loops = [cls for cls in classes(2, 2) if cls.name == "(i,i) -> (i,j)"]
    bias, parts = torch.ones(4), index.split(torch.ones(1, 3))
    step = Project("target", loops[0].target, tuple(loops), ())
    rows = project(step, (1, [index.plan(index).gather(loops[0])]), parts, torch.ones(1, 3, 4), bias)
    assert torch.equal(rows, bias[None]) and rows.data_ptr() != bias.data_ptr()
