"""Readers: what they see in each format, and one clear line for what is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

from anyorder.experiments.graphs.readers.anything import ReadOptions, read_graphs
from anyorder.experiments.graphs.readers.arrays import from_arrays, from_pyg, load_arrays, save_arrays
from anyorder.experiments.graphs.readers.networkx_files import from_networkx
from anyorder.experiments.graphs.readers.tables import TableNames

nx = pytest.importorskip("networkx")


@pytest.fixture
def tu(tmp_path):
    folder = tmp_path / "SET"
    folder.mkdir()
    (folder / "SET_A.txt").write_text("1, 2\n2, 1\n3, 4\n4, 3\n")
    (folder / "SET_graph_indicator.txt").write_text("1\n1\n2\n2\n2\n")
    (folder / "SET_graph_labels.txt").write_text("1\n-1\n")
    (folder / "SET_node_labels.txt").write_text("0\n1\n0\n1\n2\n")
    (folder / "SET_edge_labels.txt").write_text("7\n7\n8\n8\n")
    (folder / "SET_node_attributes.txt").write_text("".join(f"0.5, {n}\n" for n in range(5)))
    return folder


class TestTU:
    def test_reads_labels_attributes_and_one_direction(self, tu):
        graphs = read_graphs(tu)
        assert (graphs.num_graphs, graphs.num_nodes, graphs.edges.tolist()) == (2, 5, [[0, 1], [2, 3]])
        assert not graphs.directed and graphs.graph_columns.texts("label") == ["1", "-1"]
        assert graphs.node_columns.numbers[:, 1].tolist() == [0, 1, 2, 3, 4]
        assert graphs.edge_columns.texts("label") == ["7", "8"]

    def test_edges_whose_directions_differ_are_directed(self, tu):
        (tu / "SET_edge_labels.txt").write_text("7\n8\n8\n8\n")
        graphs = read_graphs(tu)
        assert graphs.directed and len(graphs.edges) == 4

    @pytest.mark.parametrize(
        ("name", "text", "message"),
        [
            ("A", "1, 9\n", "line 1: an edge to a missing node"),
            ("A", "1, x\n", "expected comma separated numbers"),
            ("graph_labels", "1\n", "has 1 lines, expected 2"),
            ("graph_indicator", "1.5\n2\n", "expected whole numbers"),
        ],
    )
    def test_says_what_is_wrong(self, tu, name, text, message):
        (tu / f"SET_{name}.txt").write_text(text)
        with pytest.raises(ValueError, match=message):
            read_graphs(tu)


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "edges.csv").write_text("src,dst,weight\na,b,1\nb,c,2\n")
    (tmp_path / "nodes.csv").write_text("id,age,kind,label\na,1,x,yes\nb,,y,no\nc,3,x,yes\nd,4,,no\n")
    return tmp_path


class TestTables:
    def test_guesses_columns_and_says_so(self, tables):
        graphs = read_graphs(tables)
        assert graphs.node_names == ("a", "b", "c", "d") and graphs.edges.tolist() == [[0, 1], [1, 2]]
        assert graphs.node_columns.number_names == ("age",) and graphs.node_columns.category_names == ("kind", "label")
        assert any("'src' and 'dst' are taken for the ends" in note for note in graphs.notes)

    def test_named_columns_are_taken(self, tables):
        options = ReadOptions(nodes=tables / "nodes.csv", names=TableNames("dst", "src", "id"), directed=True)
        assert read_graphs(tables / "edges.csv", options).edges.tolist() == [[1, 0], [2, 1]]

    @pytest.mark.parametrize("mark", ["\t", " ", ",", ";"])
    def test_a_list_of_edges_without_header_or_nodes(self, tmp_path, mark):
        (tmp_path / "list.txt").write_text(
            "# a comment\n" + "\n".join(mark.join(pair) for pair in (("0", "1"), ("10", "2")))
        )
        graphs = read_graphs(tmp_path / "list.txt")
        assert graphs.node_names == ("0", "1", "2", "10") and graphs.edges.tolist() == [[0, 1], [3, 2]]

    def test_parquet_reads_as_csv_does(self, tables):
        pandas = pytest.importorskip("pandas")
        pandas.read_csv(tables / "edges.csv").to_parquet(tables / "e.parquet")
        options = ReadOptions(nodes=tables / "nodes.csv")
        assert read_graphs(tables / "e.parquet", options).edges.tolist() == [[0, 1], [1, 2]]

    def test_many_graphs_by_a_column(self, tables):
        (tables / "nodes.csv").write_text("id,graph\na,2\nb,2\nc,2\nd,1\n")
        (tables / "graphs.csv").write_text("graph,y\n1,0.5\n2,1.5\n")
        graphs = read_graphs(tables)
        assert graphs.num_graphs == 2 and graphs.node_names == ("d", "a", "b", "c")
        assert graphs.graph_columns.numbers.ravel().tolist() == [0.5, 1.5]

    def test_names_of_rows_are_no_feature(self, tables):
        rows = "".join(f"n{n},title {n},{n % 2}\n" for n in range(30))
        (tables / "nodes.csv").write_text("id,title,label\n" + rows)
        (tables / "edges.csv").write_text("src,dst\nn0,n1\n")
        graphs = read_graphs(tables)
        assert "title" not in graphs.node_columns.names and any("'title'" in note for note in graphs.notes)

    @pytest.mark.parametrize(
        ("name", "text", "message"),
        [
            ("edges.csv", "src,dst\na,z\n", r"row 1: the edge a - z leads to node 'z', which .*nodes.csv does not have"),
            ("edges.csv", "src,dst\na,b\nb,a\n", "1 of 2 edges are repeated, such as b - a"),
            ("edges.csv", "", "is empty"),
            ("edges.csv", '{"nodes": []}', "begins like JSON"),
            ("edges.csv", "only\na\n", "has one column"),
            ("nodes.csv", "id\na\na\nb\nc\n", "node 'a' stands in more than one row"),
        ],
    )
    def test_says_what_is_wrong(self, tables, name, text, message):
        (tables / name).write_text(text)
        with pytest.raises(ValueError, match=message):
            read_graphs(tables)

    def test_a_file_in_another_format_than_its_name_says(self, tables):
        (tables / "e.parquet").write_text("src,dst\na,b\n")
        (tables / "e.csv").write_bytes(b"PAR1\0\0")
        for name, message in (("e.parquet", "not a Parquet file"), ("e.csv", "is no text")):
            with pytest.raises(ValueError, match=message):
                read_graphs(tables / name)


def small() -> nx.Graph:
    graph = nx.Graph(label="good")
    graph.add_node("a", size=1.5, kind="x")
    graph.add_node("b", size=2.0)
    graph.add_node("alone", size=0.0, kind="y")
    graph.add_edge("a", "b", weight=3.0)
    return graph


class TestNetworkX:
    @pytest.mark.parametrize("form", ["graphml", "gml", "gexf", "json"])
    def test_formats_hold_the_same_graph(self, tmp_path, form):
        path = tmp_path / f"graph.{form}"
        graph = small()
        if form == "json":
            path.write_text(json.dumps(nx.node_link_data(graph, edges="links")))
        else:
            if form in ("gml", "gexf"):
                graph.nodes["b"]["kind"] = "x"
            getattr(nx, f"write_{form}")(graph, path)
        found = read_graphs(path)
        assert found.num_nodes == 3 and found.edges.tolist() == [[0, 1]] and not found.directed
        size = found.node_columns.numbers[:, found.node_columns.number_names.index("size")]
        assert size.tolist() == [1.5, 2.0, 0.0]
        assert found.edge_columns.numbers[0, found.edge_columns.number_names.index("weight")] == 3.0

    @pytest.mark.parametrize("form", ["graphml", "gml", "gexf", "json"])
    def test_another_format_is_named(self, tmp_path, form):
        path = tmp_path / f"graph.{form}"
        path.write_text("src,dst\na,b\n")
        with pytest.raises(ValueError, match=f"(?i)is not a .*{form} file"):
            read_graphs(path)

    def test_node_link_with_an_edge_to_nowhere(self, tmp_path):
        path = tmp_path / "graph.json"
        path.write_text(json.dumps({"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}))
        with pytest.raises(ValueError, match="leads to a missing node 2"):
            read_graphs(path)

    def test_lists_become_columns(self):
        graph = nx.DiGraph()
        graph.add_node(0, x=[1.0, 2.0])
        graph.add_node(1, x=[3.0, 4.0])
        graph.add_edge(0, 1)
        made = from_networkx([graph])
        assert made.directed and made.node_columns.numbers.tolist() == [[1, 2], [3, 4]]


ARRAYS = {
    "edge_index": np.array([[0, 1, 2, 3], [1, 0, 3, 2]]),
    "x": np.arange(8.0).reshape(4, 2),
    "batch": np.array([0, 0, 1, 1]),
    "y": np.array([0, 1]),
}


class TestArrays:
    def test_npz_and_safetensors_hold_the_same(self, tmp_path):
        np.savez(tmp_path / "a.npz", **ARRAYS)
        safetensors = pytest.importorskip("safetensors.numpy")
        safetensors.save_file(ARRAYS, tmp_path / "a.safetensors")
        for name in ("a.npz", "a.safetensors"):
            graphs = read_graphs(tmp_path / name)
            assert graphs.num_graphs == 2 and graphs.edges.tolist() == [[0, 1], [2, 3]]
            assert graphs.graph_columns.numbers.ravel().tolist() == [0, 1]

    def test_pyg_data(self):
        data = pytest.importorskip("torch_geometric.data")
        torch = pytest.importorskip("torch")
        item = data.Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([1]))
        graphs = from_pyg([item, item])
        assert graphs.num_graphs == 2 and graphs.directed and graphs.edges.tolist() == [[0, 1], [3, 4]]

    @pytest.mark.parametrize("name", ["a.npz", "a.safetensors"])
    def test_says_what_is_wrong(self, tmp_path, name):
        (tmp_path / name).write_text("no arrays")
        with pytest.raises(ValueError, match="is not a"):
            read_graphs(tmp_path / name)

    def test_pickles_are_refused(self, tmp_path):
        (tmp_path / "a.pt").write_text("")
        with pytest.raises(ValueError, match="may run code"):
            read_graphs(tmp_path / "a.pt")

    def test_texts_of_saved_graphs_are_lists(self, tmp_path):
        save_arrays(tmp_path / "kept.npz", from_arrays(ARRAYS))
        held = dict(np.load(tmp_path / "kept.npz"))
        np.savez(tmp_path / "bad.npz", **{**held, "node_category_names": np.zeros((10**7, 0), "<U1")})
        with pytest.raises(ValueError, match=r"bad\.npz: node_category_names must be a list of texts"):
            read_graphs(tmp_path / "bad.npz")

    def test_saved_graphs_come_back_as_they_were(self, tmp_path):
        graphs = from_networkx([small(), small()])
        save_arrays(tmp_path / "held.npz", graphs)
        again = load_arrays(tmp_path / "held.npz")
        assert again.node_names == graphs.node_names and again.edges.tolist() == graphs.edges.tolist()
        assert again.node_columns.values == graphs.node_columns.values
        np.testing.assert_array_equal(again.node_columns.numbers, graphs.node_columns.numbers)
