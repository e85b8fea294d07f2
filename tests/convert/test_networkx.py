"""NetworkX graphs to features and back."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import strategies
from anyorder import Features, SparseIndexSet
from anyorder.convert import from_networkx, to_networkx
from anyorder.testing import random_features

nx = pytest.importorskip("networkx")


@st.composite
def graphs(draw, kind):
    """A graph with named nodes, attributes of one and of two channels, self loops and isolated nodes."""
    names = draw(st.lists(st.text("abc", min_size=1, max_size=3), unique=True, max_size=5))
    graph = kind()
    for place, name in enumerate(names):
        graph.add_node(name, age=place, at=[place + 0.5, -1.0])
    if names:
        for place, (u, v) in enumerate(draw(st.lists(st.tuples(*[st.sampled_from(names)] * 2), max_size=8))):
            graph.add_edge(u, v, weight=place + 1.0)
    return graph


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
class TestRoundTrip:
    @strategies.few
    @given(data=st.data())
    def test_a_graph_comes_back(self, kind, data):
        graph = data.draw(graphs(kind))
        x = from_networkx(graph, node={"age": 1, "at": 2}, edge="weight")
        assert x.channels == 4
        back = to_networkx(
            x,
            node={"age": 1, "at": 2},
            edge="weight",
            node_channels=3,
            directed=graph.is_directed(),
            labels=list(graph.nodes),
        )
        assert type(back) is kind
        assert dict(back.nodes(data=True)) == dict(graph.nodes(data=True)) and list(back) == list(graph)
        assert nx.utils.edges_equal(back.edges(data=True), graph.edges(data=True), directed=graph.is_directed())

    @strategies.few
    @given(data=st.data())
    def test_entries_are_the_adjacency_matrix(self, kind, data):
        graph = data.draw(graphs(kind))
        x = from_networkx(graph, node=(), edge=("weight",))
        weight = np.zeros((len(graph), len(graph)))
        there = np.eye(len(graph), dtype=bool)
        for (u, v), row in zip(x.index.tuples.tolist(), x.rows.tolist()):
            weight[u, v], there[u, v] = row[1], True
            assert row[0] == float(u == v)
        expected = nx.to_numpy_array(graph) if len(graph) else np.zeros((0, 0))
        np.testing.assert_array_equal(weight, expected)
        assert x.index.num_entries == int((there | (expected != 0)).sum())


def test_ones_where_no_attribute_is_named():
    x = from_networkx(nx.path_graph(3))
    assert x.index.tuples.tolist() == [[0, 0], [1, 1], [2, 2], [0, 1], [1, 0], [1, 2], [2, 1]]
    assert x.rows.tolist() == [[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 4
    assert nx.utils.graphs_equal(to_networkx(x, node_channels=1, directed=False), nx.path_graph(3))


@pytest.mark.parametrize("value", [2, 2.0, True, np.float32(2), np.int64(2), torch.tensor(2.0)])
def test_any_number_is_a_channel(value):
    graph = nx.Graph()
    graph.add_node("a", h=value)
    assert from_networkx(graph, node="h").rows[0, 0] == float(value)


@pytest.mark.parametrize("value", [[1, 2.5], (1, 2.5), np.array([1, 2.5]), torch.tensor([1, 2.5])])
def test_any_vector_is_several_channels(value):
    graph = nx.Graph()
    graph.add_node("a", h=value)
    x = from_networkx(graph, node="h", dtype=torch.float64)
    assert x.rows.tolist() == [[1.0, 2.5, 0.0]] and x.dtype == torch.float64


def test_multigraphs_sum_parallel_edges_when_told():
    graph = nx.MultiDiGraph([(0, 1, {"w": 2.0}), (0, 1, {"w": 3.0})])
    with pytest.raises(ValueError, match=r"edges 0 and 1 are both \[0, 1\]"):
        from_networkx(graph, edge="w")
    assert from_networkx(graph, edge="w", duplicates="sum").rows[2:].tolist() == [[0.0, 5.0]]


def test_shared_channels():
    graph = nx.DiGraph()
    graph.add_node(0, h=1.0)
    graph.add_node(1, h=2.0)
    graph.add_edge(0, 1, h=3.0)
    x = from_networkx(graph, node="h", edge="h", share=True)
    assert x.rows.flatten().tolist() == [1.0, 2.0, 3.0]
    assert nx.utils.graphs_equal(to_networkx(x, node="h", edge="h"), graph)


def one_way():
    return Features(SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=2), torch.ones(1, 1))


def attributed(**attributes):
    graph = nx.Graph()
    graph.add_node("first", h=[1.0, 2.0])
    graph.add_node("second", **attributes)
    return graph


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: from_networkx([1]), TypeError, "takes a graph of networkx, got list"),
        (lambda: from_networkx(attributed(), node="h"), ValueError, r"node 'second' has no attribute 'h': it has \[\]"),
        (lambda: from_networkx(attributed(h=1), node="h"), ValueError, "one width: expected 2, got 1 at node 'second'"),
        (lambda: from_networkx(attributed(h=[1, 2]), node={"h": 3}), ValueError, "expected 3, got 2 at node 'first'"),
        (lambda: from_networkx(attributed(h="red"), node="h"), TypeError, "must be a number .* got 'red' at node 'second'"),
        (lambda: from_networkx(attributed(h=None), node="h"), TypeError, "got None at node 'second'"),
        (lambda: from_networkx(attributed(h=[1, "2"]), node="h"), TypeError, r"got \[1, '2'\] at node 'second'"),
        (lambda: from_networkx(attributed(h=[[1, 2]]), node="h"), TypeError, "must be a number or a list of numbers"),
        (lambda: from_networkx(attributed(h=[1, float("nan")]), node="h"), ValueError, r"values must be finite: entry 1"),
        (lambda: from_networkx(nx.path_graph(2), edge=["w"]), ValueError, r"edge \(0, 1\) has no attribute 'w'"),
        (lambda: from_networkx(nx.path_graph(2), node=("h", "h")), ValueError, "names must be distinct strings"),
        (lambda: to_networkx(3), TypeError, "to_networkx takes Features, got int"),
        (lambda: to_networkx(random_features(2)), ValueError, r"takes one graph, got 2: separate\(features\) gives them"),
        (lambda: to_networkx(random_features(1, num_graphs=1)), ValueError, "features of order 2, got order 1"),
        (lambda: to_networkx(one_way(), directed=False), ValueError, r"both directions .*: \(0, 1\) and \(1, 0\) differ"),
        (lambda: to_networkx(one_way(), edge=("a", "b")), ValueError, "edge names must cover the edge channels: expected 1"),
        (lambda: to_networkx(one_way(), labels=["a"]), ValueError, "name each node once: expected 2 distinct labels"),
        (lambda: to_networkx(one_way(), labels=["a", "a"]), ValueError, "expected 2 distinct labels, got"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
