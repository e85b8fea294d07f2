"""Masked grids to features and back."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import strategies
from anyorder import CompleteIndexSet, DenseIndexSet, Features, SparseIndexSet
from anyorder.convert import from_dense, node_mask, to_dense
from anyorder.testing import random_features


@strategies.few
@given(st.integers(0, 3).flatmap(strategies.features))
def test_sparse_to_grid_cell_by_cell(x):
    values, mask = to_dense(x)
    width = node_mask(x).shape[1]
    assert values.shape == (x.num_graphs, *[width] * x.order, x.channels) and mask.shape == values.shape[:-1]
    graphs = x.index.node_graph.tolist()
    place = [graphs[:v].count(graphs[v]) for v in range(x.num_nodes)]
    filled = torch.zeros_like(mask)
    for row, (axes, graph) in enumerate(zip(x.index.tuples.tolist(), x.index.entry_graph.tolist())):
        cell = (graph, *(place[v] for v in axes))
        assert values[cell].tolist() == x.rows[row].tolist()
        filled[cell] = True
    assert torch.equal(mask, filled)
    assert not values[~mask].any()


@strategies.few
@given(st.integers(0, 3).flatmap(strategies.features))
def test_grid_and_mask_come_back(x):
    back = from_dense(*to_dense(x), nodes=node_mask(x))
    assert (back.num_nodes, back.num_graphs, back.order) == (x.num_nodes, x.num_graphs, x.order)
    again = to_dense(back)
    for one, other in zip(to_dense(x), again):
        assert torch.equal(one, other)
    if x.order:
        assert isinstance(back.index, SparseIndexSet)


@strategies.few
@given(st.integers(1, 3).flatmap(lambda order: strategies.features(order, together=True)))
def test_nodes_that_stand_together_keep_their_numbers(x):
    assert strategies.as_dict(from_dense(*to_dense(x), nodes=node_mask(x))) == strategies.as_dict(x)


@pytest.mark.parametrize("order", range(4))
@pytest.mark.parametrize("layout", ["dense", "complete"])
def test_complete_layouts_keep_their_entries(order, layout):
    x = random_features(order, layout=layout, num_nodes=5, num_graphs=2, generator=torch.Generator().manual_seed(order))
    values, mask = to_dense(x)
    assert int(mask.sum()) == x.index.num_entries
    torch.testing.assert_close(values[mask], x.rows)
    if layout == "dense":
        torch.testing.assert_close(values, x.values)


def test_a_mask_of_nodes_gives_a_dense_set():
    values = torch.arange(18.0).reshape(1, 3, 3, 2)
    x = from_dense(values, torch.tensor([[True, False, True]]))
    assert isinstance(x.index, DenseIndexSet)
    assert x.rows[:, 0].tolist() == [0.0, 4.0, 12.0, 16.0]


def test_no_mask_means_all_nodes():
    assert from_dense(torch.ones(2, 3, 3, 1)).index.num_entries == 18
    assert from_dense(torch.ones(2, 3, 1)).index.num_nodes == 6
    assert from_dense(torch.ones(2, 4)).order == 0


def test_nodes_alone_are_a_mask_of_nodes():
    nodes = torch.tensor([[True, False], [True, True]])
    assert torch.equal(from_dense(torch.ones(2, 2, 2, 1), nodes=nodes).index.mask, nodes)


def test_a_mask_of_tuples_finds_its_nodes():
    mask = torch.zeros(2, 4, 4, dtype=torch.bool)
    mask[1, 1, 3] = mask[1, 3, 3] = True
    x = from_dense(torch.arange(32.0).reshape(2, 4, 4, 1), mask)
    assert x.index.tuples.tolist() == [[0, 1], [1, 1]]
    assert x.index.node_graph.tolist() == [1, 1] and x.num_graphs == 2
    assert x.rows.flatten().tolist() == [23.0, 31.0]


def test_gradients_flow_both_ways():
    index = SparseIndexSet(torch.tensor([[0, 1], [1, 1]]), num_nodes=2)
    rows = torch.ones(2, 1, requires_grad=True)
    values, mask = to_dense(Features(index, rows))
    (from_dense(values, mask).rows * torch.tensor([[2.0], [3.0]])).sum().backward()
    assert rows.grad.flatten().tolist() == [2.0, 3.0]


def test_no_graphs():
    x = Features(CompleteIndexSet(2, torch.zeros(0, dtype=torch.int64)), torch.zeros(0, 3))
    values, mask = to_dense(x)
    assert values.shape == (0, 0, 0, 3) and mask.shape == (0, 0, 0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: from_dense(torch.ones(3)), ValueError, r"shape \(batch, node, ..., node, channels\), got shape \(3,\)"),
        (lambda: from_dense([1.0]), ValueError, "must be a tensor of shape .* got list"),
        (lambda: from_dense(torch.ones(1, 2, 3, 1)), ValueError, r"node axes of values must have one size, got \(2, 3\)"),
        (lambda: from_dense(torch.ones(1, 2, 2, 1), torch.ones(1, 2)), TypeError, "mask must be a bool tensor, got torch.f"),
        (lambda: from_dense(torch.ones(1, 2, 1), [True]), TypeError, "mask must be a bool tensor, got list"),
        (
            lambda: from_dense(torch.ones(1, 2, 2, 1), torch.ones(2, 2, dtype=torch.bool)),
            ValueError,
            r"mask must have shape \(1, 2\) for nodes or \(1, 2, 2\) for tuples, got \(2, 2\)",
        ),
        (
            lambda: from_dense(torch.ones(2, 1), torch.tensor([True, False])),
            ValueError,
            r"order 0 have a row per graph: expected no mask, got one of shape \(2,\)",
        ),
        (
            lambda: from_dense(
                torch.ones(1, 2, 2, 1), torch.ones(1, 2, 2, dtype=torch.bool), nodes=torch.tensor([[True, False]])
            ),
            ValueError,
            "batch 0 has no node 1",
        ),
        (
            lambda: from_dense(torch.ones(1, 2, 2, 1), torch.ones(1, 2, 2, dtype=torch.bool), nodes=torch.ones(1, 2)),
            ValueError,
            r"nodes must be bool of shape \(1, 2\), got torch.float32",
        ),
        (lambda: from_dense(torch.ones(1, 2, 2, 1, dtype=torch.int64)), TypeError, "values must be a floating tensor"),
        (lambda: to_dense(torch.ones(2)), TypeError, "to_dense takes Features, got Tensor"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
