"""The front door: what a file is taken for, files that are not there, data named once."""

import json
import subprocess
import sys

import numpy as np
import pytest

from anyorder.cli import main
from anyorder.cli.front import taken_for, with_kind
from anyorder.peek import look


def write_all(folder):
    (folder / "mol.csv").write_text('id,SMILES,"gap, eV"\n1,CCO,1.5\n2,CC,2\n')
    (folder / "edges.csv").write_text("source,target,weight\na,b,1\nb,c,2\n")
    (folder / "pairs.txt").write_text("a b\nb c\nc a\n")
    (folder / "triples.csv").write_text("user,item,tag\nu1,i1,t1\nu2,i2,t2\n")
    (folder / "sets.txt").write_text("a b c\nb c\nc a d e\n")
    (folder / "graph.json").write_text(json.dumps({"nodes": [{"id": 0}], "links": []}))
    (folder / "hif.json").write_text(json.dumps({"incidences": [{"edge": 0, "node": 0}]}))
    (folder / "hif-label.json").write_text(json.dumps({"incidences": [], "nodes": [{"node": 0, "attrs": {"label": "x"}}]}))
    (folder / "graph.graphml").write_text("<?xml version='1.0'?><graphml/>")
    np.savez(folder / "sets.npz", features=np.zeros((2, 3, 2)), partition=np.zeros(6, int))
    np.savez(folder / "pyg.npz", edge_index=np.zeros((2, 1), int))
    (folder / "TU").mkdir()
    (folder / "TU" / "TU_A.txt").write_text("1, 2\n")


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        ("mol.csv", [], "molecules"),
        ("edges.csv", [], "graph"),
        ("pairs.txt", [], "graph"),
        ("triples.csv", [], "hyperedges"),
        ("sets.txt", [], "hyperedges"),
        ("sets.txt", ["--labels", "l.csv"], "hypergraph"),
        ("graph.json", [], "graph"),
        ("hif.json", [], "hyperedges"),
        ("hif-label.json", [], "hypergraph"),
        ("hif.json", ["--label", "team"], "hypergraph"),
        ("graph.graphml", [], "graph"),
        ("sets.npz", [], "set-to-graph"),
        ("pyg.npz", [], "graph"),
        ("TU", [], "graph"),
    ],
)
def test_a_file_is_taken_for_one_kind_and_a_reason_is_said(name, options, kind, tmp_path):
    write_all(tmp_path)
    found, reason = taken_for(look(tmp_path / name), options)
    assert found == kind
    assert reason


def test_names_of_columns_may_hold_the_mark(tmp_path):
    write_all(tmp_path)
    assert look(tmp_path / "mol.csv").names == ("id", "SMILES", "gap, eV")


@pytest.mark.parametrize(
    ("text", "problem"), [("user,item\nu1,i1\n", "say which with"), ("\0\1\2", "expected graphs, molecules, sets")]
)
def test_what_may_be_several_or_no_kind_is_asked_back(text, problem, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(text)
    assert main(["train", "data.csv"]) == 1
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("line", ["train molecul", "train grph", "train nothing.csv"])
def test_neither_a_kind_nor_a_file(line, capsys):
    assert main(line.split()) == 1
    assert "neither a kind of data nor a file" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["sets", "graphs", "tuples", "hypergraphs", "molecule"])
def test_a_kind_has_other_names(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert with_kind(["train", kind, "data.csv"]) == ["train", kind, "data.csv"]
    (tmp_path / kind).mkdir()
    (tmp_path / kind / "TU_A.txt").write_text("1, 2\n")
    assert with_kind(["train", kind, "data.csv"]) == ["train", kind, "data.csv"]
    assert with_kind(["train", kind, "--quiet"]) == ["train", "graph", kind, "--quiet"]  # a folder of that name


def test_data_are_named_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_all(tmp_path)
    assert main(["train", "set-to-graph", "sets.npz", "--data", "sets.npz"]) == 1
    assert "named twice" in capsys.readouterr().err
    assert main(["train", "hyperedges"]) == 1
    assert "name the data: anyorder train hyperedges DATA" in capsys.readouterr().err


def test_several_columns_that_may_be_asked_are_listed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("smiles,a,b\nCCO,1,2\n")
    assert main(["train", "data.csv"]) == 1
    assert "say what to predict with --target: expected one of ['a', 'b']" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "train molecules no.csv --target gap",
        "train graph no",
        "train set-to-graph --data no.npz",
        "train hyperedges no.csv",
        "train hypergraph --hif no.json",
        "predict no",
        "predict delaunay --input no.npz",
        "explain no --smiles C",
    ],
)
def test_a_missing_file_is_named_before_torch_is_imported(line):
    code = f"import sys; from anyorder.cli import main; sys.exit(main({line.split()}) + 10 * ('torch' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "there is no" in done.stderr
