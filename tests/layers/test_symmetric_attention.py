"""Symmetric attention equals its definition, written out hyperedge by hyperedge."""

from __future__ import annotations

from itertools import combinations
from math import comb

import pytest
import torch

from anyorder import (
    Elu,
    EquivariantAttention,
    Features,
    RandomFeatures,
    Softmax,
    SparseIndexSet,
    SymmetricAttention,
    SymmetricEncoder,
    SymmetricIndexSet,
)
from anyorder.layouts.mixed import MixedFeatures
from anyorder.models.mixed import MixedLayer

NODES = {"num_nodes": 8, "node_graph": torch.tensor([0, 0, 0, 0, 0, 1, 1, 1])}
KERNELS = {
    "softmax": {},
    "relu": {"kernel": RandomFeatures(num_features=3)},
    "relu exact": {"kernel": RandomFeatures(num_features=3), "coupling": "exact"},
    "elu exact sums": {"kernel": Elu(), "coupling": "exact", "normalize": False},
}
ORDERS = [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)]


def hyperedges(order, share, seed):
    if order == 0:
        return SymmetricIndexSet(torch.empty(2, 0, dtype=torch.int64), **NODES)
    graphs = NODES["node_graph"].tolist()
    every = [c for c in combinations(range(8), order) if len({graphs[v] for v in c}) == 1]
    keep = torch.randperm(len(every), generator=torch.Generator().manual_seed(seed))[: max(1, round(share * len(every)))]
    return SymmetricIndexSet(torch.tensor(every)[keep], **NODES)


def layer(k, l, kernel="softmax", channels=3):
    torch.manual_seed(0)
    sizes = {"channels": channels, "heads": 2, "head_channels": 2}
    return SymmetricAttention(order_in=k, order_out=l, **sizes, **KERNELS[kernel]).double()


def definition(module, source, x, target):
    """For each target e: the hyperedges inside it, and for each overlap t attention to those that share t nodes with it."""
    rows = []
    for e, graph in zip(map(set, target.tuples.tolist()), target.entry_graph.tolist()):
        inside = x.new_zeros(x.shape[1])
        for n, f in enumerate(source.tuples.tolist()):
            if {*f} <= e and module.order_in <= module.order_out:
                inside = inside + x[n]
        total = module.direct(inside) if module.direct is not None else x.new_zeros(x.shape[1])
        query = module._heads(module.query(inside)[None])[0]
        key, value = module._heads(module.key(x)), module._heads(module.value(x))
        parts = []
        for t in range(module.classes):
            for h in range(module.heads):
                weights, values = [], []
                for n, f in enumerate(source.tuples.tolist()):
                    shared = len({*f} & e)
                    exact = isinstance(module.kernel, Softmax) or module.coupling == "exact"
                    times = float(shared == t) if exact else comb(shared, t)
                    if int(source.entry_graph[n]) == graph and times:
                        weights.append(times * compare(module, query[t, h], key[n, t, h]))
                        values.append(value[n, t, h])
                received = x.new_zeros(module.head_channels)
                if weights:
                    scale = sum(weights) if module.normalize else 1
                    received = sum(w * v for w, v in zip(weights, values)) / scale
                parts.append(received)
        rows.append(total + module.output(torch.cat(parts)))
    return torch.stack(rows)


def compare(module, q, k):
    if isinstance(module.kernel, Softmax):
        return (q @ k / len(q) ** 0.5).exp()
    phi = module.kernel.feature_map(module.directions)
    return phi(q) @ phi(k)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("k", "l"), ORDERS)
def test_matches_the_definition(k, l, kernel):
    module, source, target = layer(k, l, kernel), hyperedges(k, 0.6, 1), hyperedges(l, 0.7, 2)
    x = torch.randn(source.num_entries, 3, dtype=torch.float64)
    found = module(Features(source, x), target).rows
    torch.testing.assert_close(found, definition(module, source, x, target), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_order_of_nodes_and_their_names_do_not_matter(kernel):
    model = SymmetricEncoder(
        order_in=1, orders=(1, 3), channels_in=4, channels=4, channels_out=1, heads=2, head_channels=2,
        **{name: value for name, value in KERNELS[kernel].items() if name != "normalize"},
    ).double()  # fmt: skip
    nodes = SymmetricIndexSet(torch.arange(5)[:, None], num_nodes=5)
    x = torch.randn(5, 4, dtype=torch.float64)
    expected = model(Features(nodes, x), SymmetricIndexSet(torch.tensor([[0, 1, 2], [1, 3, 4]]), num_nodes=5)).rows
    turned = model(Features(nodes, x), SymmetricIndexSet(torch.tensor([[2, 0, 1], [4, 1, 3]]), num_nodes=5)).rows
    assert torch.equal(turned, expected)
    new = torch.tensor([3, 0, 4, 1, 2])
    renamed = SymmetricIndexSet(new[torch.tensor([[0, 1, 2], [1, 3, 4]])], num_nodes=5)
    moved = torch.empty_like(x).index_copy(0, new, x)
    torch.testing.assert_close(model(Features(nodes, moved), renamed).rows, expected)


def test_one_to_one_is_the_ordered_layer():
    """For sets there is no order to leave out: the classes are the same, and so are the results with the same weights."""
    torch.manual_seed(0)
    symmetric = layer(1, 1, "relu exact")
    sizes = {"channels": 3, "heads": 2, "head_channels": 2, "kernel": RandomFeatures(num_features=3), "coupling": "exact"}
    ordered = EquivariantAttention(order_in=1, order_out=1, **sizes).double()
    ordered.directions.copy_(symmetric.directions)
    with torch.no_grad():
        for cls in ordered.classes:
            weights = ordered.weights_of(cls)
            if cls.kind == "pointwise":
                weights["pointwise"].copy_(symmetric.direct.weight.T)
                continue
            for name in ("query", "key"):
                linear = getattr(symmetric, name)
                weights[name][0].copy_(linear.weight.T.unflatten(1, (2, 2)))
                weights[f"{name}_bias"].copy_(linear.bias.unflatten(0, (2, 2)))
            weights["value"].copy_(symmetric.value.weight.T.unflatten(1, (2, 2)))
            weights["output"].copy_(symmetric.output.weight.T.unflatten(0, (2, 2)))
    x = torch.randn(8, 3, dtype=torch.float64)
    sets = Features(SymmetricIndexSet(torch.arange(8)[:, None], **NODES), x)
    plain = Features(SparseIndexSet(torch.arange(8)[:, None], **NODES), x)
    torch.testing.assert_close(symmetric(sets).rows, ordered(plain).rows)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_and_empty_sets(kernel):
    module, source, target = layer(2, 2, kernel), hyperedges(2, 0.5, 1), hyperedges(2, 0.5, 2)
    x = torch.randn(source.num_entries, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda rows: module(Features.of_rows(source, rows), target).rows, (x,))
    none = SymmetricIndexSet(torch.empty(0, 2, dtype=torch.int64), **NODES)
    rows = module(Features(none, torch.zeros(0, 3, dtype=torch.float64)), target).rows
    assert rows.isfinite().all()
    rows.sum().backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in module.parameters())


def test_any_mix_of_sizes():
    torch.manual_seed(0)
    blocks = {(k, l): layer(k, l, "relu") for k in (1, 2, 3) for l in (2, 3)}
    parts = {
        k: Features(hyperedges(k, 0.6, k), torch.randn(hyperedges(k, 0.6, k).num_entries, 3).double()) for k in (1, 2, 3)
    }
    out = MixedLayer(blocks)(MixedFeatures(parts))
    assert out.orders == (2, 3) and all(out[l].rows.isfinite().all() for l in out)
    total = sum(blocks[k, 3](parts[k], parts[3].index).rows for k in (1, 2, 3))
    torch.testing.assert_close(out[3].rows, total)
