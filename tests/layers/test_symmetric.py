"""Symmetric layers equal ordered layers on symmetrised input with tied weights; mixed layers are sums of their blocks."""

from __future__ import annotations

from itertools import combinations, permutations
from math import comb, factorial

import pytest
import torch

from anyorder import EquivariantLinear, Features, RandomFeatures, SparseIndexSet, collate
from anyorder.convert import separate
from anyorder.layers.symmetric import SymmetricLinear
from anyorder.layouts.mixed import MixedFeatures
from anyorder.layouts.symmetric import SymmetricIndexSet
from anyorder.models.mixed import MixedEncoder, mixed_linear
from anyorder.testing import random_features, random_index_set

NODES = {"num_nodes": 7, "node_graph": torch.tensor([0, 0, 0, 0, 1, 1, 1])}


def hyperedges(order, share, seed):
    graphs = NODES["node_graph"].tolist()
    every = [c for c in combinations(range(7), order) if len({graphs[v] for v in c}) == 1]
    keep = torch.randperm(len(every), generator=torch.Generator().manual_seed(seed))[: max(1, round(share * len(every)))]
    return SymmetricIndexSet(torch.tensor(every)[keep], **NODES)


ORDERS = [(k, l) for k in (1, 2, 3) for l in (1, 2, 3)]


@pytest.mark.parametrize(("k", "l"), ORDERS)
@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_matches_the_definition(k, l, reduce):
    torch.manual_seed(0)
    source, target = hyperedges(k, 0.7, 1), hyperedges(l, 0.7, 2)
    layer = SymmetricLinear(order_in=k, order_out=l, channels_in=2, channels_out=3, reduce=reduce).double()
    x = torch.randn(source.num_entries, 2, dtype=torch.float64)
    expected = layer.bias.expand(target.num_entries, -1).clone()
    for row, e in enumerate(target.tuples.tolist()):
        for t in range(min(k, l) + 1):
            same = [
                n for n, f in enumerate(source.tuples.tolist())
                if len({*e} & {*f}) == t and source.entry_graph[n] == target.entry_graph[row]
            ]  # fmt: skip
            if same:
                total = x[same].sum(0) / (len(same) if reduce == "mean" else 1)
                expected[row] += total @ layer.weight[t]
    torch.testing.assert_close(layer(Features(source, x), target).rows, expected)


@pytest.mark.parametrize(("k", "l"), ORDERS)
@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_no_hyperedges_give_the_bias(k, l, reduce):
    layer = SymmetricLinear(order_in=k, order_out=l, channels_in=2, channels_out=3, reduce=reduce)
    none = SymmetricIndexSet(torch.empty(0, k, dtype=torch.int64), **NODES)
    target = hyperedges(l, 0.7, 2)
    rows = layer(Features(none, torch.zeros(0, 2)), target).rows
    torch.testing.assert_close(rows, layer.bias.expand_as(rows))
    x = Features(hyperedges(k, 0.7, 1), torch.ones(hyperedges(k, 0.7, 1).num_entries, 2))
    nothing = SymmetricIndexSet(torch.empty(0, l, dtype=torch.int64), **NODES)
    assert layer(x, nothing).rows.shape == (0, 3)


def test_targets_on_other_nodes_or_graphs_are_refused():
    layer = SymmetricLinear(order_in=2, order_out=2, channels_in=1, channels_out=1)
    x = Features(hyperedges(2, 0.7, 1), torch.ones(hyperedges(2, 0.7, 1).num_entries, 1))
    edge = torch.tensor([[0, 1]])
    for other in ({"num_nodes": 7}, {"num_nodes": 2}, {"num_nodes": 9, "node_graph": torch.zeros(9, dtype=torch.int64)}):
        with pytest.raises(ValueError, match="target must be on the same nodes and graphs"):
            layer(x, SymmetricIndexSet(edge, **other))


def test_layers_for_ordered_tuples_refuse_hyperedges_without_an_order():
    edges = hyperedges(2, 0.7, 1)
    x = Features(edges, torch.ones(edges.num_entries, 2))
    with pytest.raises(TypeError, match=r"use SymmetricLinear, or \.ordered\(\)"):
        EquivariantLinear(order_in=2, order_out=1, channels_in=2, channels_out=2)(x)


def test_lower_orders_are_sets_of_different_nodes():
    triangle = SymmetricIndexSet(torch.tensor([[2, 0, 1], [0, 1, 3]]), num_nodes=4)
    pairs = triangle.project(2)
    assert isinstance(pairs, SymmetricIndexSet)
    assert sorted(pairs.tuples.tolist()) == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3]]
    assert triangle.project(1).tuples.flatten().tolist() == [0, 1, 2, 3]
    assert triangle.project(2) is pairs


def test_batches_of_hyperedges_stay_without_an_order():
    layer = SymmetricLinear(order_in=2, order_out=2, channels_in=2, channels_out=3)
    torch.manual_seed(0)
    sets = [SymmetricIndexSet(torch.tensor(edges), num_nodes=4) for edges in ([[0, 1]], [[1, 2], [3, 2]])]
    parts = [Features(index, torch.randn(index.num_entries, 2)) for index in sets]
    together = layer(collate(parts))
    for part, found in zip(parts, separate(together), strict=True):
        assert isinstance(found.index, SymmetricIndexSet)
        torch.testing.assert_close(found.rows, layer(part).rows)
    ordered = Features(SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=2), torch.ones(1, 2))
    with pytest.raises(TypeError, match="can only collate index sets of one kind"):
        collate([parts[0], ordered])


def test_orderings_beyond_memory_are_refused():
    with pytest.raises(ValueError, match=r"1 hyperedges of 12 nodes have 479,001,600 orderings"):
        SymmetricIndexSet(torch.arange(12)[None], num_nodes=12).ordered()


@pytest.mark.parametrize(("k", "l"), ORDERS)
def test_equals_the_ordered_layer_with_tied_weights(k, l):
    """Every order of the nodes of f that overlaps e in t nodes is one ordered tuple: divide by how many classes share it."""
    torch.manual_seed(0)
    source, target = hyperedges(k, 0.7, 1), hyperedges(l, 0.7, 2)
    layer = SymmetricLinear(order_in=k, order_out=l, channels_in=2, channels_out=3, bias=False).double()
    ordered = EquivariantLinear(
        order_in=k,
        order_out=l,
        channels_in=2,
        channels_out=3,
        bias=False,
        classes=lambda cls: cls.source.is_distinct and cls.target.is_distinct,
    ).double()
    with torch.no_grad():
        for n, cls in enumerate(ordered.classes):
            ordered.weight[n] = layer.weight[len(cls.matching)] / factorial(k)
    x = torch.randn(source.num_entries, 2, dtype=torch.float64)
    symmetrised = Features(source.ordered(), x.repeat_interleave(factorial(k), 0))
    out = ordered(symmetrised, target.ordered()).rows.unflatten(0, (-1, factorial(l)))
    expected = layer(Features(source, x), target).rows
    for p in range(factorial(l)):
        torch.testing.assert_close(out[:, p], expected)
    counts = [sum(len(cls.matching) == t for cls in ordered.classes) for t in range(min(k, l) + 1)]
    assert counts == [comb(k, t) * comb(l, t) * factorial(t) for t in range(min(k, l) + 1)]


def test_unordered_hyperedges_are_checked():
    with pytest.raises(ValueError, match="distinct nodes: row 0"):
        SymmetricIndexSet(torch.tensor([[1, 1]]), num_nodes=2)
    with pytest.raises(ValueError, match="tuples must be distinct"):
        SymmetricIndexSet(torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    with pytest.raises(TypeError, match="takes a SymmetricIndexSet"):
        x = Features(SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=2), torch.zeros(1, 2))
        SymmetricLinear(order_in=2, order_out=2, channels_in=2, channels_out=2)(x)
    one = SymmetricIndexSet(torch.tensor([[2, 1, 0]]), num_nodes=3)
    assert one.ordered().num_entries == len(list(permutations(range(3))))


def mixed(orders, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    first = random_features(orders[0], channels=3, dtype=dtype, generator=generator)
    parts = {orders[0]: first}
    for order in orders[1:]:
        index = random_index_set(order, like=first.index, generator=generator, density=0.3)
        parts[order] = Features(index, torch.randn(index.num_entries, 3, dtype=dtype, generator=generator))
    return MixedFeatures(parts)


def test_a_mixed_linear_layer_is_the_sum_of_its_blocks():
    x = mixed((1, 2, 3))
    layer = mixed_linear(orders_in=(1, 2, 3), orders_out=(1, 2), channels_in=3, channels_out=4).double()
    out = layer(x)
    for l in (1, 2):
        parts = [layer.blocks[f"{k}to{l}"](x[k], x[l].index).rows for k in (1, 2, 3)]
        torch.testing.assert_close(out[l].rows, sum(parts))


@pytest.mark.parametrize("options", [{}, {"kernel": RandomFeatures()}, {"kernel": RandomFeatures(), "coupling": "exact"}])
def test_a_mixed_encoder_is_equivariant(options):
    torch.manual_seed(0)
    x = mixed((1, 2, 3))
    model = MixedEncoder(
        orders_in=(1, 2, 3), orders=((1, 2), (1,)), channels_in=3, channels=8, channels_out=2, heads=2, head_channels=4,
        **options,
    ).double()  # fmt: skip
    rename = torch.randperm(x[1].num_nodes, generator=torch.Generator().manual_seed(1))
    graphs = torch.empty_like(x[1].index.node_graph)
    graphs[rename] = x[1].index.node_graph
    moved = MixedFeatures(
        {
            k: Features(SparseIndexSet(rename[x[k].index.tuples], num_nodes=len(rename), node_graph=graphs), x[k].rows)
            for k in x
        }
    )
    torch.testing.assert_close(model(moved)[1].rows, model(x)[1].rows)


def test_mixed_features_are_checked():
    x = mixed((1, 2))
    with pytest.raises(ValueError, match="of order 2 are of order 1"):
        MixedFeatures({2: x[1]})
    with pytest.raises(ValueError, match="takes features of orders"):
        mixed_linear(orders_in=(1, 3), orders_out=(1,), channels_in=3, channels_out=3).double()(x)


def test_a_mixed_encoder_names_what_it_takes():
    sizes = {"channels": 8, "channels_out": 2, "heads": 2, "head_channels": 4}
    with pytest.raises(ValueError, match=r"channels_in must name the orders of the input: expected \[1, 2\], got \[1\]"):
        MixedEncoder(orders_in=(1, 2), orders=((1,),), channels_in={1: 3}, **sizes)
    model = MixedEncoder(orders_in=(1, 2), orders=((1,),), channels_in=3, **sizes)
    only = MixedFeatures({1: Features(SparseIndexSet(torch.arange(7)[:, None], **NODES), torch.ones(7, 3))})
    with pytest.raises(ValueError, match=r"takes features of orders \(1, 2\), got \(1,\)"):
        model(only)
