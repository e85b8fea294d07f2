"""XGI hypergraphs to features and back."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import strategies
from anyorder import EquivariantLinear, Features, SparseIndexSet
from anyorder.convert import from_xgi, from_xgi_by_size, to_xgi
from anyorder.testing import random_features

xgi = pytest.importorskip("xgi")


@st.composite
def hypergraphs(draw, sizes=(1, 2, 3, 4)):
    """Named nodes with an attribute, distinct hyperedges of some sizes with a weight and a vector; isolated nodes."""
    names = draw(st.lists(st.text("abcd", min_size=1, max_size=2), unique=True, min_size=max(sizes), max_size=6))
    made = xgi.Hypergraph()
    made.add_nodes_from([(name, {"age": float(place)}) for place, name in enumerate(names)])
    subsets = st.sampled_from(sizes).flatmap(lambda k: st.sets(st.sampled_from(names), min_size=k, max_size=k))
    for place, edge in enumerate(draw(st.lists(subsets.map(frozenset), unique=True, max_size=6))):
        made.add_edge(edge, place, weight=place + 1.0, at=[place - 0.5, 2.0])
    return made


def nodes_of(hypergraph):
    return {name: dict(hypergraph.nodes[name]) for name in hypergraph.nodes}


def edges_of(hypergraph):
    return {frozenset(hypergraph.edges.members(e)): dict(hypergraph.edges[e]) for e in hypergraph.edges}


@strategies.few
@given(hypergraphs(), st.sampled_from(["all", "one"]))
def test_mixed_sizes_come_back(hypergraph, orderings):
    parts = from_xgi_by_size(hypergraph, edge={"weight": 1, "at": 2}, orderings=orderings)
    assert set(parts) == {len(edge) for edge in edges_of(hypergraph)}
    assert all(part.order == size and part.num_nodes == len(hypergraph.nodes) for size, part in parts.items())
    assume(parts)
    back = to_xgi(parts, edge={"weight": 1, "at": 2}, labels=list(hypergraph.nodes))
    assert list(back.nodes) == list(hypergraph.nodes)
    assert edges_of(back) == edges_of(hypergraph)


@strategies.few
@given(hypergraphs(sizes=(3,)))
def test_uniform_comes_back_with_node_attributes(hypergraph):
    x = from_xgi(hypergraph, order=3, node="age", edge="weight")
    n = len(hypergraph.nodes)
    assert x.index.tuples[:n].tolist() == [[v] * 3 for v in range(n)]
    assert x.rows[:n].tolist() == [[float(v), 0.0] for v in range(n)]
    back = to_xgi(x, node="age", edge="weight", node_channels=1, labels=list(hypergraph.nodes))
    assert nodes_of(back) == nodes_of(hypergraph)
    assert edges_of(back) == {edge: {"weight": held["weight"]} for edge, held in edges_of(hypergraph).items()}


@strategies.few
@given(hypergraphs(sizes=(3,)))
def test_all_orderings_are_all_orderings(hypergraph):
    every, one = (from_xgi(hypergraph, order=3, edge="weight", orderings=o) for o in ("all", "one"))
    number = {name: place for place, name in enumerate(hypergraph.nodes)}
    expected = {
        tuple(number[name] for name in ordering): [held["weight"]]
        for edge, held in edges_of(hypergraph).items()
        for ordering in permutations(edge)
    }
    assert {key: row for (key, _), row in strategies.as_dict(every).items()} == expected
    ordered = {key: row for key, row in expected.items() if list(key) == sorted(key)}
    assert {key: row for (key, _), row in strategies.as_dict(one).items()} == ordered


def test_sizes_stand_on_the_same_nodes():
    parts = from_xgi_by_size(xgi.Hypergraph([[1, 2, 3], [3, 4]]))
    layer = EquivariantLinear(order_in=3, order_out=2, channels_in=1, channels_out=2)
    assert layer(parts[3], parts[2].index).index is parts[2].index


def test_singletons_beside_node_attributes():
    hypergraph = xgi.Hypergraph([[0], [1, 2]])
    x = from_xgi_by_size(hypergraph, node=())[1]
    assert x.rows.tolist() == [[1.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    assert edges_of(to_xgi(x, node_channels=1)) == {frozenset({0}): {}}


def test_simplicial_complexes_list_their_faces():
    assert sorted(from_xgi_by_size(xgi.SimplicialComplex([[0, 1, 2]]))) == [2, 3]


def test_directed_hyperedges_keep_tails_before_heads():
    made = xgi.DiHypergraph()
    made.add_nodes_from(range(4))
    made.add_edge(([3], [0, 1]), weight=2.0)
    made.add_edge(([0], [2, 3]), weight=3.0)
    x = from_xgi(made, edge="weight")
    assert strategies.as_dict(x) == {((3, 0, 1), 0): [2.0], ((0, 2, 3), 0): [3.0]}
    back = to_xgi(x, edge="weight", num_tails=1)
    assert isinstance(back, xgi.DiHypergraph)
    assert back.edges.dimembers() == made.edges.dimembers()
    assert [back.edges[e] for e in back.edges] == [made.edges[e] for e in made.edges]
    with pytest.raises(ValueError, match="one ordering, tails before heads: expected orderings='one', got 'all'"):
        from_xgi(made, orderings="all")
    made.add_edge(([0, 1], [2]), weight=1.0)
    with pytest.raises(ValueError, match=r"equally many tails: those of 3 nodes have \[1, 2\]"):
        from_xgi(made)


def test_hyperedges_on_the_same_nodes_are_refused_or_summed():
    hypergraph = xgi.Hypergraph()
    hypergraph.add_edge([0, 1], weight=2.0)
    hypergraph.add_edge([1, 0], weight=3.0)
    with pytest.raises(ValueError, match=r"edges 0 and 2 are both \[0, 1\]"):
        from_xgi(hypergraph, edge="weight")
    assert from_xgi(hypergraph, edge="weight", duplicates="sum").rows.tolist() == [[5.0], [5.0]]


def test_orderings_that_differ_are_refused_or_averaged():
    index = SparseIndexSet(torch.tensor([[0, 1], [2, 1], [1, 0]]), num_nodes=3)
    x = Features(index, torch.tensor([[1.0], [4.0], [2.0]]))
    with pytest.raises(ValueError, match=r"must agree: \[0, 1\] and \[1, 0\] differ; orderings='mean' averages"):
        to_xgi(x, edge="w")
    back = to_xgi(x, edge="w", orderings="mean")
    assert edges_of(back) == {frozenset({0, 1}): {"w": 1.5}, frozenset({1, 2}): {"w": 4.0}}


def test_no_hyperedges():
    empty = xgi.Hypergraph()
    empty.add_nodes_from("ab")
    assert from_xgi(empty, order=3).index.num_entries == 0
    assert from_xgi_by_size(empty) == {}
    assert list(to_xgi(from_xgi(empty, order=3), labels="ab").nodes) == ["a", "b"]
    with pytest.raises(ValueError, match="one size, got none: order says what size they have"):
        from_xgi(empty)


def repeated():
    return Features(SparseIndexSet(torch.tensor([[0, 1, 0]]), num_nodes=2), torch.ones(1, 1))


def other_nodes():
    values = {n: torch.full((n, 1), 1.0) for n in (2, 3)}
    return {n: Features(SparseIndexSet(torch.arange(n)[:, None], num_nodes=n), values[n]) for n in (2, 3)}


def other_values():
    index = SparseIndexSet(torch.arange(2)[:, None], num_nodes=2)
    return {1: Features(index, torch.ones(2, 1)), 2: Features(index, torch.zeros(2, 1))}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: from_xgi([[0, 1]]), TypeError, "Hypergraph, SimplicialComplex or DiHypergraph of xgi, got list"),
        (lambda: from_xgi(xgi.Hypergraph([[0, 1], [0, 1, 2]])), ValueError, r"one size, got sizes \[2, 3\]: features by"),
        (lambda: from_xgi(xgi.Hypergraph([[0, 1]]), order=3), ValueError, "hyperedges must have 3 nodes: 0 has 2"),
        (lambda: from_xgi(xgi.Hypergraph([[0, 1]]), order=0), ValueError, "at least 1, got 0"),
        (lambda: from_xgi_by_size(xgi.Hypergraph([[0], []])), ValueError, "at least one node: 1 has none"),
        (lambda: from_xgi(xgi.Hypergraph([[0, 1]]), edge="w"), ValueError, "edge 0 has no attribute 'w'"),
        (lambda: from_xgi(xgi.Hypergraph([[0, 1]]), node="h"), ValueError, "node 0 has no attribute 'h'"),
        (lambda: from_xgi(xgi.Hypergraph([[0, 1]]), orderings="some"), ValueError, "must be 'all' or 'one', got 'some'"),
        (lambda: to_xgi({}), ValueError, "at least one size, got none"),
        (lambda: to_xgi(3), TypeError, "takes Features, got int"),
        (lambda: to_xgi(random_features(2)), ValueError, "takes one graph, got 2"),
        (lambda: to_xgi(random_features(0, num_graphs=1)), ValueError, "expected order 1 or more"),
        (lambda: to_xgi(repeated()), ValueError, r"distinct nodes: entry \[0, 1, 0\] repeats one"),
        (lambda: to_xgi(repeated(), num_tails=4), ValueError, r"num_tails must lie in 0..3, the order, got 4"),
        (lambda: to_xgi(repeated(), orderings="first"), ValueError, "must be 'refuse' or 'mean', got 'first'"),
        (lambda: to_xgi(repeated(), num_tails=1, node="h"), ValueError, "no node channels for 'h': node_channels says"),
        (lambda: to_xgi(other_nodes()), ValueError, r"on the same nodes, got \[2, 3\] nodes"),
        (lambda: to_xgi(other_values(), node="h", node_channels=1), ValueError, "same values at nodes, and they differ"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
