from __future__ import annotations

import csv
import json

import pytest

from anyorder.cli import main


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two groups of nodes that meet within their group, as a list of hyperedges with labels and as HIF."""
    monkeypatch.chdir(tmp_path)
    edges = [[f"{group}{(3 * n + k * (n + 1)) % 16}" for k in range(2 + n % 3)] for n in range(16) for group in "ab"]
    edges = [list(dict.fromkeys(edge)) for edge in edges]
    nodes = [f"{group}{n}" for n in range(16) for group in "ab"]
    (tmp_path / "edges.txt").write_text("\n".join("\t".join(edge) for edge in edges))
    (tmp_path / "labels.csv").write_text("node,label\n" + "\n".join(f"{node},{node[0]}" for node in nodes))
    x = {node: (1.0 if node[0] == "a" else -1.0) + (hash_free(node) - 0.5) for node in nodes}
    (tmp_path / "x.csv").write_text("node,x\n" + "\n".join(f"{node},{value}" for node, value in x.items()))
    document = {
        "incidences": [{"edge": number, "node": node} for number, edge in enumerate(edges) for node in edge],
        "nodes": [{"node": node, "attrs": {"x": x[node], "team": node[0]}} for node in nodes],
    }
    (tmp_path / "graph.json").write_text(json.dumps(document))
    return tmp_path


def hash_free(name: str) -> float:
    return (int(name[1:]) * 7 % 16) / 16


def test_train_and_predict_an_edge_list(files, capsys):
    command = "train hypergraph --edges edges.txt --labels labels.csv --features x.csv --epochs 20 --out model --quiet"
    assert main([*command.split(), "--model", "GCN (clique)", "--set", "model.channels=8"]) == 0
    assert "anyorder predict model" in capsys.readouterr().out
    assert main(["predict", "model"]) == 0
    with (files / "model" / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 32 and sum(row["label"] == row["predicted"] for row in rows) >= 29
    assert main(["predict", "model", "--input", "edges.txt", "--features", "x.csv", "--output", "again.csv"]) == 0
    with (files / "again.csv").open() as file:
        assert [row["predicted"] for row in csv.DictReader(file)] == [row["predicted"] for row in rows]
    assert main(command.split()) == 1
    assert "holds a trained model already" in capsys.readouterr().err


def test_train_and_predict_hif(files, capsys):
    command = "train hypergraph --hif graph.json --label team --epochs 20 --out model --quiet --model MLP"
    assert main(command.split()) == 0
    assert main(["predict", "model", "--input", "graph.json"]) == 0
    with (files / "graph-predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["label"] for row in rows} == {"a", "b"} and len(rows) == 32


def test_attributes_of_hyperedges_tell_classes_apart(tmp_path, monkeypatch, capsys):
    """The class of a node is the colour of its edge, a number that nothing else knows."""
    monkeypatch.chdir(tmp_path)
    colours = [number % 2 for number in range(40)]
    document = {
        "network-type": "undirected",
        "incidences": [{"edge": e, "node": f"n{2 * e + k}"} for e in range(40) for k in (0, 1)],
        "nodes": [{"node": f"n{v}", "attrs": {"label": "ab"[colours[v // 2]], "one": 1.0}} for v in range(80)],
        "edges": [{"edge": e, "attrs": {"colour": 5.0 + colours[e]}} for e in range(40)],
    }
    (tmp_path / "graph.json").write_text(json.dumps(document))
    command = "train hypergraph --hif graph.json --epochs 30 --out model --quiet --model ours --set model.channels=16"
    assert main(command.split()) == 0
    assert "model                100" in capsys.readouterr().out
    document["edges"] = [{"edge": e, "attrs": {"colour": 6.0 - colours[e]}} for e in range(40)]
    (tmp_path / "other.json").write_text(json.dumps(document))
    assert main(["predict", "model", "--input", "other.json"]) == 0
    with (tmp_path / "other-predictions.csv").open() as file:
        assert all(row["label"] != row["predicted"] for row in csv.DictReader(file))
    document["edges"] = []
    (tmp_path / "none.json").write_text(json.dumps(document))
    assert main(["predict", "model", "--input", "none.json"]) == 1
    assert "attribute of hyperedges 'colour' of the training is missing; there are []" in capsys.readouterr().err


def test_a_training_of_little_time_goes_on_with_the_same_command(files, capsys):
    line = "train hypergraph --hif graph.json --label team --epochs 3 --quiet --model mlp --minutes 1e-9"
    command = line.split()
    for reached in ("1 of 3", "2 of 3"):
        assert main(command) == 0
        said = capsys.readouterr().out
        assert f"{reached} epochs so far" in said and "`anyorder resume runs/hypergraph/graph-mlp` resumes" in said
    assert main(["predict", "runs/hypergraph/graph-mlp"]) == 0
    assert main(command) == 0 and "so far" not in capsys.readouterr().out
    assert main(command) == 1


def test_predictions_take_the_place_of_nothing_they_are_made_from(files, capsys):
    line = "train hypergraph --hif graph.json --label team --epochs 2 --out model --quiet --model mlp"
    assert main(line.split()) == 0
    for output, problem in (
        ("graph.json", "the answer is made from"),
        ("model/model.safetensors", "name another file"),
    ):
        assert main(["predict", "model", "--input", "graph.json", "--output", output]) == 1
        assert problem in capsys.readouterr().err
    assert main(["predict", "model", "--input", "graph.json"]) == 0


def test_a_training_does_not_go_on_with_other_data(files, capsys):
    line = "train hypergraph --edges edges.txt --labels labels.csv --epochs 3 --quiet --model mlp --minutes 1e-9 --out model"
    assert main(line.split()) == 0
    *lines, last = (files / "labels.csv").read_text().splitlines()
    (files / "labels.csv").write_text("\n".join(lines))
    assert main(line.split()) == 1
    assert "the data changed since the training in model began" in capsys.readouterr().err
    (files / "labels.csv").write_text("\n".join([*lines, last]))
    assert main(line.split()) == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--edges edges.txt", "--labels is needed with --edges"),
        ("--hif graph.json --labels labels.csv", "has its features and labels inside"),
        ("--edges edges.txt --labels labels.csv --model GCN-clik", "unknown model 'gcn-clik'; did you mean 'gcn-clique'?"),
        ("--edges no.txt --labels labels.csv", "no file or folder no.txt"),
        ("--hif graph.json --label colour", "no node has a known class: expected them in attribute 'colour'"),
    ],
)
def test_errors_teach(files, capsys, options, problem):
    assert main(["train", "hypergraph", *options.split(), "--out", "model", "--quiet"]) == 1
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--layers 0", "--channels -1", "--batch-size 0", "--epochs many"])
def test_numbers_that_count_are_at_least_one(option, capsys):
    with pytest.raises(SystemExit):
        main(["train", "set-to-graph", "--data", "x.npz", *option.split()])
    assert f"argument {option.split()[0]}: expected a whole number of at least 1" in capsys.readouterr().err
