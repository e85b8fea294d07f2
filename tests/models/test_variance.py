"""A fresh MLP_pi answers in the size of its input, whatever its depth, the orders and the number of nodes."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from anyorder import EquivariantMLP, Features, IndexSet, SparseIndexSet
from anyorder.layouts import DenseIndexSet


def index_set(order: int, nodes: int) -> IndexSet:
    """All tuples of few nodes; of many, nodes and all tuples within random groups of three."""
    if nodes**order <= 20_000:
        return DenseIndexSet(order, torch.ones(1, nodes, dtype=torch.bool))
    groups = torch.randperm(nodes)[: nodes // 3 * 3].view(-1, 3)
    every = torch.cat([groups[:, list(axes)] for axes in product(range(3), repeat=order)])
    return SparseIndexSet(every.unique(dim=0), num_nodes=nodes)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("nodes", [10, 100, 1000])
@pytest.mark.parametrize(("k", "l"), [(1, 1), (1, 2), (2, 2), (3, 3)])
def test_outputs_have_the_size_of_inputs(k, l, nodes, reduce):
    torch.manual_seed(0)
    index, target = index_set(k, nodes), index_set(l, nodes)
    target = index if k == l else target
    x = Features(index, index.unflatten(torch.randn(index.num_entries, 16)))
    for depth in (2, 8):
        model = EquivariantMLP(order_in=k, orders=(l,) * depth, channels_in=16, channels=32, reduce=reduce)
        with torch.no_grad():
            size = float(model(x, target).rows.square().mean().sqrt())
        assert 0.2 < size < 5, f"{depth} layers: {size}"


def test_the_uniform_start_of_sums_explodes():
    torch.manual_seed(0)
    x = Features(index_set(2, 100), torch.randn(1, 100, 100, 16))
    model = EquivariantMLP(order_in=2, orders=(2,) * 8, channels_in=16, channels=32, reduce="sum", start="uniform")
    with torch.no_grad():
        assert float(model(x).rows.square().mean().sqrt()) > 1e6


def test_sums_learn_from_zero():
    model = EquivariantMLP(order_in=1, orders=(1, 1), channels_in=4, channels=4, reduce="sum")
    x = Features(index_set(1, 5), torch.randn(1, 5, 4))
    model(x).rows.square().sum().backward()
    assert all(bool((layer.weight.grad.flatten(1) != 0).any(1).all()) for layer in model.layers)
