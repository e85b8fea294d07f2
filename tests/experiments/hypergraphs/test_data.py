from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
import torch

from anyorder.errors import InputError
from anyorder.experiments.hypergraphs.data import (
    UNKNOWN,
    Hypergraph,
    NamedHypergraph,
    NodeSplit,
    random_split,
    split_around,
    stratified_split,
)
from anyorder.experiments.hypergraphs.files import read_edge_list, read_hif_hypergraph
from anyorder.experiments.hypergraphs.published import SOURCES, _read_citations, noisy_classes, read_published
from anyorder.experiments.hypergraphs.structure import STRUCTURE, structural_features
from data_folder import DATA

needs_data = pytest.mark.skipif(
    not (DATA / "hypergraph_nodeclass").is_dir() or not (DATA / "hypergcn_cocitation").is_dir(),
    reason="the published hypergraphs are not on this machine",
)


def test_sizes_degrees_and_members():
    graph = Hypergraph.of_edges([[4, 0], [2], [1, 2, 4]], num_nodes=6)
    assert (graph.num_edges, graph.sizes.tolist(), graph.degrees.tolist()) == (3, [2, 1, 3], [1, 1, 2, 0, 2, 0])
    assert graph.edge_of.tolist() == [0, 0, 1, 2, 2, 2]
    assert [graph.edge(number) for number in range(3)] == [(4, 0), (2,), (1, 2, 4)]


def test_a_hypergraph_may_have_no_edges():
    graph = Hypergraph.of_edges([], num_nodes=2)
    assert graph.num_edges == 0 and graph.degrees.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("edges", "problem"),
    [
        ([[0, 1], []], "at least one node: edge 1 has 0"),
        ([[0, 1], [2, 0, 2]], "edge 1 has node 2 more than once"),
        ([[0, 3]], r"nodes must lie in 0\.\.2: edge 0 has node 3"),
        ([[0], [1, -1]], "edge 1 has node -1"),
    ],
)
def test_wrong_edges_are_refused(edges, problem):
    with pytest.raises(ValueError, match=problem):
        Hypergraph.of_edges(edges, num_nodes=3)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"node_features": torch.zeros(2, 4)}, r"node_features .* expected shape \(3, channels\), got \(2, 4\)"),
        ({"node_features": torch.zeros(3, 4).double()}, "must be float32, got torch.float64"),
        ({"node_features": torch.tensor([[0.0], [float("nan")], [0.0]])}, "finite: that of node 1"),
        ({"edge_weights": torch.tensor([0.0])}, "positive: edge 0 has 0.0"),
        ({"labels": torch.tensor([0, 1])}, r"expected shape \(3,\)"),
        ({"labels": torch.tensor([0, 1, -2])}, "-1 for unknown, got -2"),
    ],
)
def test_wrong_fields_are_refused(fields, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        Hypergraph.of_edges([[0, 1]], num_nodes=3, **fields)


def test_offsets_must_fit_the_members():
    with pytest.raises(ValueError, match="end with the 3 members"):
        Hypergraph(3, torch.tensor([0, 1, 2]), torch.tensor([0, 2]))
    with pytest.raises(TypeError, match="flat int64"):
        Hypergraph(3, torch.tensor([0, 1], dtype=torch.int32), torch.tensor([0, 2]))


def test_a_hypergraph_moves_with_all_its_tensors():
    graph = Hypergraph.of_edges([[0, 1]], num_nodes=2, node_features=torch.ones(2, 1), edge_weights=torch.ones(1))
    moved = graph.to("meta")
    tensors = [moved.members, moved.offsets, moved.node_features, moved.edge_weights]
    assert all(tensor is not None and tensor.device.type == "meta" for tensor in tensors)
    assert graph.members.device.type == "cpu"


def test_what_is_worked_out_once_is_kept():
    graph, calls = Hypergraph.of_edges([[0]], num_nodes=1), []
    assert [graph.once("key", lambda _: calls.append(1) or len(calls)) for _ in range(2)] == [1, 1]


def test_random_splits_are_disjoint_whole_and_seeded():
    nodes = torch.arange(101)
    split = random_split(nodes, seed=3)
    assert torch.cat([split.train, split.valid, split.test]).sort().values.tolist() == nodes.tolist()
    assert (len(split.train), len(split.valid), len(split.test)) == (50, 26, 25)
    assert torch.equal(split.train, random_split(nodes, seed=3).train)
    assert not torch.equal(split.train, random_split(nodes, seed=4).train)


def test_a_published_training_set_is_kept():
    train = torch.tensor([7, 3, 5])
    split = split_around(train, torch.arange(20), num_valid=4, seed=0)
    assert split.train.tolist() == [3, 5, 7] and len(split.valid) == 4 and len(split.test) == 13
    assert not set(split.train.tolist()) & set(split.valid.tolist() + split.test.tolist())
    with pytest.raises(ValueError, match=r"num_valid must lie in 1\.\.16"):
        split_around(train, torch.arange(20), num_valid=17, seed=0)


def test_splits_that_cannot_work_are_refused():
    with pytest.raises(ValueError, match="no test nodes"):
        random_split(torch.arange(2), seed=0)
    with pytest.raises(ValueError, match="leave some nodes for the test"):
        random_split(torch.arange(9), seed=0, train=0.8, valid=0.2)
    with pytest.raises(ValueError, match="must not overlap"):
        NodeSplit(torch.tensor([0]), torch.tensor([0]), torch.tensor([1]))


def test_synthetic_features_are_the_class_and_noise_of_the_given_size():
    labels = torch.arange(3).repeat(4000)
    features = noisy_classes(labels, 3, noise=0.6, seed=1)
    assert torch.equal(features, noisy_classes(labels, 3, noise=0.6, seed=1))
    noise = features - torch.nn.functional.one_hot(labels, 100)
    assert features.shape == (12000, 100)
    assert abs(float(noise.std()) - 0.6) < 0.01 and abs(float(noise.mean())) < 0.01


def test_names_must_fit():
    graph = Hypergraph.of_edges([[0, 1]], num_nodes=2, labels=torch.tensor([0, 2]))
    with pytest.raises(ValueError, match="node_names must name all or none: expected 2, got 1"):
        NamedHypergraph(graph, node_names=("a",))
    with pytest.raises(ValueError, match="label_names must name 3 classes, got 2"):
        NamedHypergraph(graph, label_names=("red", "blue"))


PUBLISHED = {  # nodes, hyperedges, smallest and largest edge, classes, features, published splits
    "cora": (2708, 1579, 2, 5, 7, 1433, 10),
    "citeseer": (3312, 1079, 2, 26, 6, 3703, 10),
    "cora-coauthorship": (2708, 1072, 2, 43, 7, 1433, 10),
    "zoo": (101, 43, 1, 93, 7, 16, 0),
    "ntu2012": (2012, 2012, 5, 5, 67, 100, 0),
    "mushroom": (8124, 298, 1, 1808, 2, 22, 0),
    "20newsw100": (16242, 100, 29, 2241, 4, 100, 0),
    "house-committees": (1290, 341, 1, 81, 2, 100, 0),
    "walmart-trips": (88860, 69906, 2, 25, 11, 100, 0),
}


@needs_data
@pytest.mark.parametrize("name", SOURCES)
def test_published_hypergraphs_have_their_published_counts(name):
    data = read_published(name, data_dir=DATA)
    graph = data.hypergraph
    assert graph.node_features is not None and graph.labels is not None
    assert int(graph.labels.min()) == 0 and len(graph.labels.unique()) == graph.num_classes
    sizes = (int(graph.sizes.min()), int(graph.sizes.max()))
    counts = (graph.num_nodes, graph.num_edges, *sizes, graph.num_classes, graph.node_features.shape[1])
    assert (*counts, len(data.train_nodes)) == PUBLISHED[name]


@needs_data
def test_rows_of_20news_are_matched_to_nodes_by_their_number():
    graph = read_published("20newsw100", data_dir=DATA).hypergraph
    incidence = torch.zeros(graph.num_nodes, graph.num_edges)
    incidence[graph.members, graph.edge_of] = 1.0  # its hyperedges are its 100 words, and so are its features
    assert graph.node_features is not None and torch.equal(graph.node_features, incidence)


@pytest.mark.parametrize("ends", [[0, 2, 1], [-5, 0, 1], [-(2**62), 0, 1], [0, 1]])
def test_pointers_that_do_not_rise_are_refused_before_memory_is_taken(ends, tmp_path):
    arrays = {"num_nodes": 2, "feat_shape": [2, 3], "feat_indptr": ends, "feat_indices": [0]}
    np.savez(tmp_path / "c.npz", **{name: np.array(values) for name, values in arrays.items()})
    with pytest.raises(InputError, match="feat_indptr must rise from 0 to the 1 features"):
        _read_citations(tmp_path / "c.npz", 2)


def test_an_unknown_hypergraph_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown hypergraph 'coro': expected one of cora, citeseer"):
        read_published("coro")


@pytest.mark.parametrize("separator", [",", "\t", " ", ", "])
def test_an_edge_list_with_features_and_labels(tmp_path, separator):
    names = ["a", "b", "c"] if separator == " " else ["a", "b b", "c"]
    (tmp_path / "edges.txt").write_text(f"# people\n{separator.join(names)}\n\n{names[1]}{separator}d\n")
    rows = [f"{name},{place},{place * 0.5}" for place, name in enumerate([*names, "d", "e"])]
    (tmp_path / "x.csv").write_text("node,age,height\n" + "\n".join(rows))
    (tmp_path / "y.csv").write_text("node,label\na,10\nd,9\ne,\n")
    data = read_edge_list(tmp_path / "edges.txt", features=tmp_path / "x.csv", labels=tmp_path / "y.csv")
    graph = data.hypergraph
    assert data.node_names == (*names, "d", "e") and data.feature_names == ("age", "height")
    assert [graph.edge(0), graph.edge(1)] == [(0, 1, 2), (1, 3)]
    assert graph.node_features is not None and graph.node_features[3].tolist() == [3.0, 1.5]
    assert data.label_names == ("9", "10")  # numbers as numbers, not as text
    assert graph.labels is not None and graph.labels.tolist() == [1, UNKNOWN, UNKNOWN, 0, UNKNOWN]


def test_without_features_nodes_have_those_of_the_structure(tmp_path):
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(gzip.compress(b"a b c\na b\n"))
    data = read_edge_list(path)
    assert data.feature_names == STRUCTURE
    expected = torch.tensor([[3.0, (6**0.5)], [3.0, (6**0.5)], [2.0, 3.0]]).log()
    torch.testing.assert_close(data.hypergraph.node_features, expected)
    assert structural_features(Hypergraph.of_edges([[0]], num_nodes=2))[1].tolist() == [0.0, 0.0]


def test_repeated_hyperedges_are_weights_and_repeated_nodes_count_once(tmp_path):
    (tmp_path / "edges").write_text("a b\nb c b\nb a\nc b\na b\n")
    data = read_edge_list(tmp_path / "edges")
    graph = data.hypergraph
    assert [graph.edge(0), graph.edge(1)] == [(0, 1), (1, 2)] and graph.num_edges == 2
    assert graph.edge_weights is not None and graph.edge_weights.tolist() == [3.0, 2.0]
    assert data.notes == (
        "1 lines name a node more than once: it counts once",
        "5 lines have 2 distinct hyperedges: how often is their weight",
    )


def test_a_class_per_line_is_that_of_the_node_of_this_number(tmp_path):
    (tmp_path / "edges").write_text("1,3\n3,4\n")
    (tmp_path / "labels").write_text("red\nblue\n\nred\n")
    data = read_edge_list(tmp_path / "edges", labels=tmp_path / "labels")
    assert data.node_names == ("1", "3", "4", "2") and data.label_names == ("blue", "red")
    assert data.hypergraph.labels.tolist() == [1, UNKNOWN, 1, 0]


def test_a_stratified_split_has_all_classes_in_all_parts():
    labels = torch.tensor([0] * 20 + [1] * 8 + [2] * 4)
    split = stratified_split(torch.arange(32), labels, seed=3)
    for part, share in ((split.train, 2), (split.valid, 4), (split.test, 4)):
        assert torch.bincount(labels[part]).tolist() == [20 // share, 8 // share, 4 // share]
    assert stratified_split(torch.arange(32), labels, seed=4).train.tolist() != split.train.tolist()


@pytest.mark.parametrize(
    ("edges", "features", "labels", "problem"),
    [
        ("", None, None, "has no hyperedges"),
        (f"1,2\n{'9' * 5000}\n", None, "x\ny\n", "expected a header with one column node"),
        ("1,2\n3\n", None, "x\ny\n", "a class per line is for nodes that are called 1 to 2, got 1 to 3"),
        ("a,,b\n", None, None, "line 1: a node without a name"),
        ("a,b\n", "node,x\na,1\n", None, "lacks 1 of 2 nodes, such as 'b'"),
        ("a,b\n", "node,x\na,1\nb,red\n", None, "line 3, column 'x': expected a finite number, got 'red'"),
        ("a,b\n", "node,x\na,1\nb,inf\n", None, "expected a finite number, got 'inf'"),
        ("a,b\n", "node,x\na,1\na,2\n", None, "line 3: node 'a' has features already"),
        ("a,b\n", "node,x\na,1,2\n", None, "line 2: expected 2 columns, got 3"),
        ("a,b\n", "node\na\n", None, "a column of nodes and different columns of numbers"),
        ("a,b\n", None, "node,label,x\n", "two columns, node and label"),
        ("a,b\n", None, "node,label\na,x\na,y\n", "line 3: node 'a' has a label already"),
        ("a,b\n", None, 'node,label\na,"x\nb,y\n', "line 3: not a CSV line"),
        ("a,b\n", None, "a,x\nb,y\n", "expected a header such as node,label before the rows, got the row of node 'a'"),
        ("a,b\n", None, "node,label\n,x\n", "line 2: a node without a name"),
        ("a,b\n", None, "node,label\nA,x\nB,y\n", "no node with a label is in a hyperedge"),
        ('a,b\n"c,d\n', None, None, "line 2: unexpected end of data"),
        ('{"incidences": []}', None, None, "begins like a JSON file"),
    ],
)
def test_wrong_files_are_refused_by_line(tmp_path, edges, features, labels, problem):
    texts = {"edges": edges, "features": features, "labels": labels}
    paths = {name: tmp_path / name for name, text in texts.items() if text is not None}
    for name, path in paths.items():
        path.write_text(texts[name] or "")
    with pytest.raises(ValueError, match=problem):
        read_edge_list(paths.pop("edges"), **paths)


@pytest.mark.parametrize(
    ("text", "names", "edges"),
    [
        ("a\nb,c\nc,d,e\n", ("a", "b", "c", "d", "e"), [(0,), (1, 2), (2, 3, 4)]),
        ("# one, two\nNew York\nBoston, New York\n", ("New York", "Boston"), [(0,), (1, 0)]),
        ('"Smith, J.", bob\nbob\n', ("Smith, J.", "bob"), [(0, 1), (1,)]),
        ("a b\nb\n", ("a", "b"), [(0, 1), (1,)]),
        ("a,x\tb\n", ("a,x", "b"), [(0, 1)]),
    ],
)
def test_what_separates_names_is_told_by_the_whole_file(tmp_path, text, names, edges):
    (tmp_path / "edges").write_text(text)
    data = read_edge_list(tmp_path / "edges")
    assert data.node_names == names
    assert [data.hypergraph.edge(number) for number in range(data.hypergraph.num_edges)] == edges


def test_damaged_bytes_are_named(tmp_path):
    packed = gzip.compress(b"a,b\nb,c\n" * 1000)
    for broken, problem in ((packed[:-9], "not a whole gzip file"), (b"a,b\n", "not a whole gzip file")):
        (tmp_path / "edges.txt.gz").write_bytes(broken)
        with pytest.raises(ValueError, match=problem):
            read_edge_list(tmp_path / "edges.txt.gz")
    (tmp_path / "edges.txt").write_bytes("a,b\nb,caf\u00e9\n".encode("latin-1"))
    with pytest.raises(ValueError, match="line 2: byte 0xe9 at column 6 is not UTF-8"):
        read_edge_list(tmp_path / "edges.txt")


def test_classes_of_hif_are_names_or_whole_numbers(tmp_path):
    def read(*values):
        nodes = [{"node": node, "attrs": {"kind": value}} for node, value in zip(("a", "b", 7), values, strict=True)]
        return read_hif_hypergraph(hif(tmp_path, nodes=nodes), label="kind")

    data = read(float("nan"), 1, 1.0)
    assert data.label_names == ("1",) and data.hypergraph.labels.tolist() == [UNKNOWN, 0, 0]
    with pytest.raises(ValueError, match=r"a class is a name or a whole number, node 'b' has \[1, 2\]"):
        read("x", [1, 2], "y")


@pytest.mark.parametrize("weight", ["heavy", None, [1]])
def test_weights_of_hif_are_numbers(tmp_path, weight):
    with pytest.raises(ValueError, match="weight of edge 'x': expected a finite number"):
        read_hif_hypergraph(hif(tmp_path, edges=[{"edge": "x", "attrs": {"weight": weight}}]), label="kind")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.txt does not exist"):
        read_edge_list(tmp_path / "no.txt")


def hif(tmp_path, **changes):
    document = {
        "network-type": "undirected",
        "incidences": [{"edge": e, "node": n} for e, n in (("x", "a"), ("x", "b"), ("y", "b"), ("y", 7))],
        "nodes": [
            {"node": "a", "attrs": {"kind": "cat", "age": 3, "at": [1.0, 2.0], "note": "shy"}},
            {"node": "b", "attrs": {"kind": "dog", "age": 4, "at": [0.0, 1.0]}},
            {"node": 7, "attrs": {"age": 5, "at": [0.5, 0.5]}},
        ],
        "edges": [{"edge": "x", "weight": 2.0, "attrs": {"year": 2001}}, {"edge": "y"}],
        **changes,
    }
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(document))
    return path


def test_a_hif_file_has_everything(tmp_path):
    data = read_hif_hypergraph(hif(tmp_path), label="kind")
    graph = data.hypergraph
    assert data.node_names == ("a", "b", "7") and data.label_names == ("cat", "dog")
    assert data.feature_names == ("age", "at[0]", "at[1]")
    assert graph.node_features is not None and graph.node_features[0].tolist() == [3.0, 1.0, 2.0]
    assert graph.labels is not None and graph.labels.tolist() == [0, 1, UNKNOWN]
    assert graph.edge_weights is not None and graph.edge_weights.tolist() == [2.0, 1.0]
    assert data.edge_feature_names == ("log weight",), "one edge has no year"
    edges = [{"edge": name, "attrs": {"year": year, "at": [1, 2]}} for name, year in (("x", 2001), ("y", 2002))]
    both = read_hif_hypergraph(hif(tmp_path, edges=edges), label="kind")
    assert both.edge_feature_names == ("year", "at[0]", "at[1]") and both.hypergraph.edge_weights is None
    assert both.hypergraph.edge_features is not None
    assert both.hypergraph.edge_features.tolist() == [[2001.0, 1.0, 2.0], [2002.0, 1.0, 2.0]]
    assert graph.edge(1) == (1, 2)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"edges": [{"edge": "z"}]}, "'z' has none"),
        ({"nodes": [{"node": "7"}]}, "names must differ"),
        ({"nodes": [{"node": "a", "attrs": {"age": 1}}]}, "node 'b' has no attribute 'age'"),
        (
            {"network-type": "directed", "incidences": [{"edge": 0, "node": 0, "direction": "tail"}], "nodes": []},
            "directions are not used",
        ),
    ],
)
def test_wrong_hif_files_are_refused(tmp_path, changes, problem):
    with pytest.raises(ValueError, match=problem):
        read_hif_hypergraph(hif(tmp_path, **changes))
