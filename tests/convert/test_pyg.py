"""PyTorch Geometric graphs to features and back."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import strategies
from anyorder import Features, SparseIndexSet
from anyorder.convert import from_pyg, to_pyg
from anyorder.testing import random_features

pyg = pytest.importorskip("torch_geometric.data")


@st.composite
def graphs(draw, loops=True):
    """A graph with distinct edges in any order, isolated nodes, perhaps no nodes at all."""
    num_nodes = draw(st.integers(0, 5))
    pairs = [(u, v) for u in range(num_nodes) for v in range(num_nodes) if loops or u != v]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return pyg.Data(
        x=torch.arange(1.0, 2 * num_nodes + 1).reshape(num_nodes, 2),
        edge_index=torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T,
        edge_attr=torch.arange(1.0, 3 * len(edges) + 1).reshape(len(edges), 3),
        num_nodes=num_nodes,
    )


def edges_of(data):
    return dict(zip(map(tuple, data.edge_index.T.tolist()), data.edge_attr.tolist()))


@strategies.few
@given(graphs())
def test_entries_are_nodes_then_edges(data):
    x = from_pyg(data)
    n = data.num_nodes
    plain = [(pair, row) for pair, row in edges_of(data).items() if pair[0] != pair[1]]
    assert x.index.tuples.tolist() == [[v, v] for v in range(n)] + [list(pair) for pair, _ in plain]
    assert x.rows[n:].tolist() == [[0.0, 0.0, *row] for _, row in plain]
    loops = edges_of(data)
    assert x.rows[:n].tolist() == [data.x[v].tolist() + loops.get((v, v), [0.0] * 3) for v in range(n)]


@strategies.few
@given(graphs())
def test_a_graph_comes_back_with_its_self_loops(data):
    back = to_pyg(from_pyg(data), node_channels=2)
    assert back.num_nodes == data.num_nodes and type(back) is pyg.Data
    assert torch.equal(back.x, data.x)
    assert edges_of(back) == edges_of(data)


@strategies.few
@given(st.lists(graphs(), min_size=2, max_size=4))
def test_a_batch_comes_back(items):
    batch = pyg.Batch.from_data_list(items)
    x = from_pyg(batch)
    assert x.num_graphs == len(items)
    assert torch.equal(x.index.node_graph, batch.batch)
    back = to_pyg(x, node_channels=2)
    assert isinstance(back, pyg.Batch) and back.num_graphs == len(items)
    assert torch.equal(back.batch, batch.batch) and torch.equal(back.ptr, batch.ptr)
    for one, other in zip(back.to_data_list(), items):
        assert torch.equal(one.x, other.x) and edges_of(one) == edges_of(other)


@strategies.few
@given(strategies.features(2, together=True))
def test_features_come_back(x):
    data = to_pyg(x, node_channels=0)
    back = from_pyg(data, node=None)
    edges = {key: row[1:] for key, row in strategies.as_dict(back).items() if any(row[1:])}
    assert edges == strategies.as_dict(x)


@strategies.few
@given(graphs(loops=False))
def test_shared_channels(data):
    data.edge_attr = data.edge_attr[:, :2]
    x = from_pyg(data, share=True)
    assert x.channels == 2
    assert torch.equal(x.rows, torch.cat([data.x, data.edge_attr]))
    back = to_pyg(x)
    assert torch.equal(back.x, data.x) and torch.equal(back.edge_index, data.edge_index)
    assert torch.equal(back.edge_attr, data.edge_attr)


def small(edges=((0, 1), (1, 2)), **changes):
    count = len(edges)
    held = {
        "x": torch.ones(3, 2),
        "edge_attr": torch.arange(1.0, count + 1)[:, None],
        "edge_index": torch.tensor(edges).reshape(-1, 2).T,
    }
    return pyg.Data(**{**held, **changes})


def test_duplicate_edges_are_refused_or_summed():
    data = small([(0, 1), (1, 2), (0, 1)])
    with pytest.raises(ValueError, match=r"edges 0 and 2 are both \[0, 1\]; duplicates='sum' adds their values"):
        from_pyg(data)
    x = from_pyg(data, duplicates="sum")
    assert x.index.tuples[3:].tolist() == [[0, 1], [1, 2]]
    assert x.rows[3:, 2].tolist() == [4.0, 2.0]


def test_other_names_and_ones():
    data = small(pos=torch.zeros(3, 1), weight=torch.tensor([5.0, 6.0]))
    assert from_pyg(data, node="pos", edge="weight").rows[3:].tolist() == [[0.0, 5.0], [0.0, 6.0]]
    ones = from_pyg(data, node=None, edge=None)
    assert ones.rows.tolist() == [[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 2
    double = from_pyg(small(x=torch.ones(3, 2, dtype=torch.float64)), edge=None)
    assert double.dtype == torch.float64
    back = to_pyg(from_pyg(data), node="h", edge=None, node_channels=2)
    assert torch.equal(back.h, data.x) and back.edge_attr is None and back.x is None


def test_a_data_with_a_batch_vector_is_several_graphs():
    data = small([(0, 1)], batch=torch.tensor([0, 0, 1]), edge_attr=torch.ones(1, 1))
    assert from_pyg(data).num_graphs == 2


def test_nodes_without_an_entry_have_zeros_and_scattered_nodes_are_brought_together():
    index = SparseIndexSet(torch.tensor([[0, 2], [2, 2]]), num_nodes=3, node_graph=torch.tensor([1, 0, 1]))
    first, second = to_pyg(Features(index, torch.tensor([[1.0], [2.0]]))).to_data_list()
    assert first.x.tolist() == [[0.0]] and first.edge_index.shape == (2, 0)
    assert second.x.tolist() == [[0.0], [2.0]] and second.edge_index.tolist() == [[0], [1]]


def test_dense_features_become_a_complete_graph():
    data = to_pyg(random_features(2, layout="dense", num_nodes=3, num_graphs=1))
    assert data.edge_index.shape == (2, 6) and data.x.shape == (3, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: from_pyg(3), TypeError, "takes a Data or Batch of torch_geometric, got int"),
        (lambda: from_pyg(pyg.HeteroData()), TypeError, "takes a Data or Batch of torch_geometric, got HeteroData"),
        (lambda: from_pyg(small(edge_attr=None)), ValueError, "has no edge_attr: .* or edge=None for a channel of ones"),
        (lambda: from_pyg(small(), node="z"), ValueError, r"has no z: expected one of \[.*'x'.*\], or node=None"),
        (lambda: from_pyg(small(x=torch.ones(3, 2, dtype=torch.int64))), TypeError, "x must be floating, got torch.int64"),
        (lambda: from_pyg(small(x=[1, 2, 3], num_nodes=3)), TypeError, "x must be a tensor, got list"),
        (lambda: from_pyg(small(x=torch.ones(3, 2, 2))), ValueError, r"x must have shape \(3, channels\), got \(3, 2, 2\)"),
        (lambda: from_pyg(small(edge_attr=torch.ones(5, 1))), ValueError, r"edge_attr must have shape \(2, channels\)"),
        (lambda: from_pyg(small(x=torch.ones(3, 2).double())), TypeError, "one dtype, got torch.float64 and torch.float32"),
        (lambda: from_pyg(small(edge_index=None, num_nodes=3)), TypeError, "edge_index must be a tensor of int64, got None"),
        (lambda: from_pyg(small(edge_index=torch.ones(2, 2))), TypeError, "of int64, got torch.float32"),
        (
            lambda: from_pyg(small(edge_index=torch.ones(3, 2, dtype=torch.int64))),
            ValueError,
            r"edge_index must have shape \(2, edges\), got \(3, 2\)",
        ),
        (lambda: from_pyg(small([(0, 1), (0, 3)])), ValueError, r"nodes must lie in 0..2: edge 1 is \[0, 3\]"),
        (lambda: from_pyg(small([(0, -1), (0, 2)])), ValueError, r"nodes must lie in 0..2: edge 0 is \[0, -1\]"),
        (lambda: from_pyg(small([(0, 0)]), share=True), ValueError, "of one width: got 2 for nodes and 1 for edges"),
        (
            lambda: from_pyg(small([(0, 1), (1, 1)], edge_attr=torch.ones(2, 2)), share=True),
            ValueError,
            r"edge \[1, 1\] is a self loop, .* self loops need share=False",
        ),
        (lambda: from_pyg(small(), duplicates="mean"), ValueError, "duplicates must be 'refuse' or 'sum', got 'mean'"),
        (lambda: from_pyg(small([(0, 2)], batch=torch.tensor([0, 0, 1]))), ValueError, "a tuple must stay within one graph"),
        (lambda: to_pyg(3), TypeError, "to_pyg takes Features, got int"),
        (lambda: to_pyg(random_features(3)), ValueError, "features of order 2, got order 3"),
        (lambda: to_pyg(random_features(2), node_channels=4), ValueError, r"node_channels must lie in 0..3, .* got 4"),
        (lambda: to_pyg(random_features(2, num_nodes=0, num_graphs=0)), ValueError, "at least one graph, got none"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
