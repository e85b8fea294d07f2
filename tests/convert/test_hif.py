"""The HIF exchange format to features and back."""

from __future__ import annotations

import gzip
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import strategies
from anyorder import Features, SparseIndexSet
from anyorder.convert import from_hif, from_hif_by_size, read_hif, to_hif, write_hif

names = st.one_of(st.integers(-3, 3), st.text("abc", min_size=1, max_size=2))


@st.composite
def documents(draw, size=None):
    """Undirected documents: nodes named by strings or integers, isolated nodes, weights and attributes."""
    nodes = draw(st.lists(names, unique=True, min_size=size or 1, max_size=6))
    sizes = st.integers(1, 4) if size is None else st.just(size)
    subsets = sizes.flatmap(lambda k: st.sets(st.sampled_from(nodes), min_size=min(k, len(nodes)), max_size=k))
    edges = draw(st.lists(subsets.map(frozenset), unique=True, min_size=1, max_size=5))
    return {
        "network-type": "undirected",
        "metadata": {"name": "random"},
        "incidences": [{"edge": f"e{n}", "node": node} for n, edge in enumerate(edges) for node in edge],
        "nodes": [{"node": node, "attrs": {"at": [n, 1.0]}} for n, node in enumerate(nodes)],
        "edges": [{"edge": f"e{n}", "weight": n + 1.0, "attrs": {"year": 2000 + n}} for n in range(len(edges))],
    }


def content(document):
    """What a document says, whatever the order of its records and the names of its edges."""
    members, attributes = {}, {}
    for record in document["incidences"]:
        members.setdefault(record["edge"], set()).add((record["node"], record.get("direction")))
    for record in document["edges"]:
        attributes[record["edge"]] = (record.get("weight"), sorted(record.get("attrs", {}).items()))
    nodes = [(record["node"], record.get("weight"), record.get("attrs", {})) for record in document["nodes"]]
    return nodes, {frozenset(held): attributes[edge] for edge, held in members.items()}


@strategies.few
@given(documents())
def test_a_document_comes_back(document):
    parts = from_hif_by_size(document, node="at", edge=("weight", "year"))
    labels = [record["node"] for record in document["nodes"]]
    back = to_hif(parts, node={"at": 2}, edge=("weight", "year"), node_channels=2, labels=labels)
    assert content(back) == content(document)
    assert back["network-type"] == "undirected"


@strategies.few
@given(documents(size=3))
def test_files_hold_what_was_written(tmp_path_factory, document):
    folder = tmp_path_factory.mktemp("hif")
    for name in ("some.json", "some.json.gz"):
        write_hif(folder / name, document)
        assert read_hif(folder / name) == document
        x = from_hif(folder / name, edge="year")
        assert strategies.as_dict(x) == strategies.as_dict(from_hif(document, edge="year"))
    assert json.loads(gzip.decompress((folder / "some.json.gz").read_bytes())) == document


@strategies.few
@given(st.integers(1, 3).flatmap(lambda order: strategies.features(order, max_graphs=1)))
def test_features_come_back(x):
    if any(len(set(row)) < x.order for row in x.index.tuples.tolist()):
        with pytest.raises(ValueError, match="repeats node"):
            to_hif(x, edge=("a", "b"), num_tails=0)
        return
    document = to_hif(x, edge=("a", "b"), num_tails=0)
    back = from_hif(document, order=x.order, edge=("a", "b"))
    assert torch.equal(back.index.tuples, x.index.tuples) and torch.equal(back.rows, x.rows)
    assert back.num_nodes == x.num_nodes


def test_xgi_reads_and_writes_the_same():
    xgi = pytest.importorskip("xgi")
    from anyorder.convert import from_xgi_by_size, to_xgi

    hypergraph = xgi.Hypergraph([[1, 2, 3], [3, 4], [5]])
    ours, theirs = from_xgi_by_size(hypergraph), from_hif_by_size(json.loads(json.dumps(xgi.to_hif_dict(hypergraph))))
    members = {frozenset(edge) for edge in hypergraph.edges.members()}
    read = xgi.from_hif_dict(to_hif(ours, labels=list(hypergraph.nodes)))
    assert {frozenset(edge) for edge in read.edges.members()} == members
    assert len(members) == len(to_xgi(theirs).edges) and set(ours) == set(theirs)
    assert all(ours[size].index.num_entries == theirs[size].index.num_entries for size in ours)


def test_directed():
    def incidence(edge, node, direction):
        return {"edge": edge, "node": node, "direction": direction}

    document = {
        "network-type": "directed",
        "incidences": [
            incidence(1, "a", "head"),
            incidence(1, "b", "tail"),
            incidence(2, "a", "tail"),
            incidence(2, "a", "head"),
        ],
    }
    x = from_hif(document)
    assert x.index.tuples.tolist() == [[1, 0], [0, 0]]
    back = to_hif(x, num_tails=1, labels=["a", "b"])
    assert back["network-type"] == "directed"
    assert {(r["node"], r["direction"]) for r in back["incidences"] if r["edge"] == 0} == {("b", "tail"), ("a", "head")}
    assert torch.equal(from_hif(back).index.tuples, x.index.tuples)


def test_nodes_stand_as_listed_and_isolated_ones_stay():
    document = {
        "incidences": [{"edge": 0, "node": n} for n in ("z", "y", "x")],
        "nodes": [{"node": "alone"}, {"node": "y"}],
    }
    x = from_hif(document, orderings="one")
    assert x.num_nodes == 4
    assert x.index.tuples.tolist() == [[2, 1, 3]]
    assert [record["node"] for record in to_hif(x)["nodes"]] == [0, 1, 2, 3]


def test_metadata_and_weights_are_written():
    x = Features(SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=2), torch.tensor([[2.0, 3.0]]))
    document = to_hif(x, edge=("weight", "year"), metadata={"name": "made"})
    assert document["metadata"] == {"name": "made"}
    assert document["edges"] == [{"edge": 0, "weight": 2.0, "attrs": {"year": 3.0}}]
    assert document["nodes"] == [{"node": 0}, {"node": 1}]


def with_incidences(*records, **fields):
    return {"incidences": list(records), **fields}


@pytest.mark.parametrize(
    ("document", "error", "message"),
    [
        ([], TypeError, "a HIF document must be a JSON object, got list"),
        ({"nodes": []}, ValueError, r"must have incidences, got \['nodes'\]"),
        (with_incidences(extra=1), ValueError, r"incidences, nodes and edges, got \['extra'\]"),
        ({"incidences": {}}, TypeError, "incidences must be a list, got dict"),
        (with_incidences(nodes={}), TypeError, "nodes must be a list, got dict"),
        (with_incidences(metadata=[]), TypeError, "metadata must be an object, got list"),
        ({**with_incidences(), "network-type": "mixed"}, ValueError, "network-type must be one of .* got 'mixed'"),
        (with_incidences(3), TypeError, r"incidences\[0\] must be an object, got 3"),
        (with_incidences({"edge": 0}), ValueError, r"incidences\[0\] must have node, got {'edge': 0}"),
        (with_incidences({"edge": 0.5, "node": 1}), TypeError, "edge must be a string or an integer, got 0.5"),
        (with_incidences({"edge": 0, "node": True}), TypeError, "node must be a string or an integer, got True"),
        (with_incidences({"edge": 0, "node": 1, "w": 2}), ValueError, r"got \['w'\]: other values belong in attrs"),
        (with_incidences({"edge": 0, "node": 1, "weight": "2"}), TypeError, "weight must be a number, got '2'"),
        (with_incidences({"edge": 0, "node": 1, "attrs": 2}), TypeError, "attrs must be an object, got 2"),
        (with_incidences({"edge": 0, "node": 1, "direction": "up"}), ValueError, "must be 'tail' or 'head', got 'up'"),
        (with_incidences(edges=[{"edge": 1, "node": 2}]), ValueError, r"edges\[0\] may have .* got \['node'\]"),
        (with_incidences(nodes=[{"edge": 1}]), ValueError, r"nodes\[0\] may have"),
        (with_incidences(edges=[{"edge": 1}]), ValueError, "at least one node: 1 has none"),
    ],
)
def test_bad_documents(document, error, message, tmp_path):
    with pytest.raises(error, match=message):
        from_hif_by_size(document) if isinstance(document, dict) else write_hif(tmp_path / "bad.json", document)


def test_what_the_standard_leaves_open_is_read():
    twice = with_incidences(
        {"edge": 0, "node": 1, "weight": 2},
        {"edge": 0, "node": 1, "attrs": {"role": "first"}},
        {"edge": 0, "node": 2},
        nodes=[{"node": 2, "attrs": {"a": 1.0}}, {"node": 1, "attrs": {"a": 3.0}}, {"node": 2, "weight": 5}],
    )
    x = from_hif(twice, node=("a",), orderings="one")
    assert x.num_nodes == 2 and x.index.tuples.tolist()[-1] == [1, 0]
    directed = with_incidences(
        {"edge": 0, "node": "a", "direction": "head"}, {"edge": 0, "node": "b"}, **{"network-type": "directed"}
    )
    assert from_hif(directed).index.tuples.tolist() == [[1, 0]]  # without a direction: a tail


def test_bad_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_hif(tmp_path / "none.json")
    for name, raw, message in [
        ("cut.json", b'{"incidences": [', "cut.json is not JSON: Expecting value"),
        ("not.json.gz", b"{}", "not.json.gz is not JSON: Not a gzipped file"),
        ("bad.json", b"{}", r"bad.json: a HIF document must have incidences"),
    ]:
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(ValueError, match=message):
            read_hif(tmp_path / name)


def test_nothing_that_is_not_hif_is_written(tmp_path):
    x = Features(SparseIndexSet(torch.tensor([[0, 1]]), num_nodes=2), torch.ones(1, 1))
    with pytest.raises(TypeError, match=r"names nodes by strings or integers, got \(0, 1\)"):
        to_hif(x, labels=[(0, 1), "b"])
    with pytest.raises(ValueError, match="must have incidences"):
        write_hif(tmp_path / "bad.json", {})
    assert not (tmp_path / "bad.json").exists()
