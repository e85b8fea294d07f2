"""graph6 against NetworkX, damaged strings, and the pairs."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from anyorder.errors import InputError
from anyorder.experiments.expressivity.graphs import Graph, parse_graph6
from anyorder.experiments.expressivity.pairs import SKIPS, csl, read_pairs, skip_links


@pytest.mark.parametrize("size", [0, 1, 2, 5, 12, 62, 63, 100])
def test_graph6_is_read_as_networkx_reads_it(size: int) -> None:
    graph = nx.gnp_random_graph(size, 0.4, seed=size)
    for header in (True, False):
        found = parse_graph6(nx.to_graph6_bytes(graph, header=header))
        assert found.num_nodes == size
        assert {(int(u), int(v)) for u, v in found.edges if u < v} == {tuple(sorted(edge)) for edge in graph.edges}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "graph6 string is empty"),
        ("Dhc?", "5 nodes take 2 characters after the size, got 3"),
        ("Dh", "5 nodes take 2 characters after the size, got 1"),
        ("D h", "character 2, ' ', is none of"),
        ("~?", "ends within its size"),
        ("~~???", "ends within its size"),
        ("Bx", "bits beyond the 3 pairs"),
        (":An", "begins with ':', as sparse6 and digraph6 do: expected graph6"),
    ],
)
def test_damaged_strings_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", "\\(")):
        parse_graph6(text)


def test_a_damaged_file_says_which_string_it_is(tmp_path: Path) -> None:
    np.save(tmp_path / "pairs.npy", np.array(["Bw", "Bw", "Bw", "B"]))
    with pytest.raises(InputError, match="pairs\\.npy, string 3: graph6 string 'B': 3 nodes take 1 characters"):
        read_pairs(tmp_path / "pairs.npy", "mine")
    np.save(tmp_path / "odd.npy", np.array(["Bw"]))
    with pytest.raises(InputError, match="an even number of graph6 strings, got 1"):
        read_pairs(tmp_path / "odd.npy", "mine")
    np.save(tmp_path / "few.npy", np.array(["Bw", "B?"]))
    with pytest.raises(InputError, match="expected 60 pairs, got 1"):
        read_pairs(tmp_path / "few.npy", "mine", 60)


def test_strings_of_what_are_no_characters_and_sizes_that_are_not_there_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "good.npy", np.array(["Bw", "BW"]))
    raw = (tmp_path / "good.npy").read_bytes()
    cases = (
        (raw[:-4] + b"\xff" * 4, "are no characters"),
        (
            raw.replace(b"(2,)", b"(2" + b"0" * 12 + b",)").replace(b" " * 12 + b"\n", b"\n"),
            r"bad\.npy is not a NumPy array",
        ),
        (b"PK\5\6" + bytes(18), r"bad\.npy: expected one array"),
        (raw.replace(b"<U2", b"<U0"), r"bad\.npy"),
    )
    for content, message in cases:
        (tmp_path / "bad.npy").write_bytes(content)
        with pytest.raises(InputError, match=message):
            read_pairs(tmp_path / "bad.npy", "mine")


def test_relabelled_graphs_are_isomorphic() -> None:
    graph = parse_graph6(nx.to_graph6_bytes(nx.gnp_random_graph(9, 0.4, seed=1)))
    other = graph.relabel(np.random.default_rng(0).permutation(9))
    assert not (graph.adjacency == other.adjacency).all()
    assert nx.is_isomorphic(nx.from_numpy_array(graph.adjacency), nx.from_numpy_array(other.adjacency))
    with pytest.raises(ValueError, match="expected a permutation of 9 nodes"):
        graph.relabel(np.zeros(9, dtype=np.int64))


def test_skip_links_are_circulant_and_differ() -> None:
    for skip in SKIPS:
        wanted = nx.circulant_graph(41, [1, skip])
        assert (nx.to_numpy_array(wanted).astype(bool) == skip_links(41, skip).adjacency).all()
    assert len(csl()) == 45
    assert not any(nx.is_isomorphic(*(nx.from_numpy_array(g.adjacency) for g in (p.first, p.second))) for p in csl()[:9])


def test_graphs_must_be_simple() -> None:
    with pytest.raises(ValueError, match="symmetric and without loops"):
        Graph(np.ones((2, 2), dtype=np.bool_))
