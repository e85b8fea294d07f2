"""``anyorder train graph`` and ``predict`` from files to answers."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from anyorder.cli import main
from anyorder.errors import InputError
from anyorder.experiments.graphs.predictions import candidates
from anyorder.experiments.graphs.readers.anything import read_graphs

SMALL = ["--channels", "8", "--epochs", "3", "--quiet", "--out", "model"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two groups of nodes that are linked within their group, as tables."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    pairs = {tuple(sorted(random.choice(30, 2, replace=False).tolist())) for _ in range(150)}
    pairs = sorted((a, b) for a, b in pairs if a % 2 == b % 2)
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"n{a},n{b}\n" for a, b in pairs))
    nodes = "".join(f"n{n},{random.random() + n % 2:.3f},{'odd' if n % 2 else 'even'}\n" for n in range(30))
    (tmp_path / "nodes.csv").write_text("node,x,label\n" + nodes)
    return tmp_path


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_nodes_from_tables_to_predictions(files, capsys):
    assert main(["train", "graph", "edges.csv", "--node-table", "nodes.csv", *SMALL]) == 0
    out = capsys.readouterr().out
    assert "baseline: " in out and "95 % interval" in out and "next: anyorder predict model" in out
    assert main(["predict", "model"]) == 0
    rows = rows_of(files / "model" / "predictions.csv")
    assert len(rows) == 30 and {row["predicted label"] for row in rows} <= {"odd", "even"}
    assert main(["predict", "model", "--input", "edges.csv", "--node-table", "nodes.csv", "--output", "again.csv"]) == 0
    assert rows_of(files / "again.csv") == rows


@pytest.mark.parametrize(
    ("far", "message"),
    [
        ("3e38", "column 'x' is 3e+38 in row 0, which float32 does not hold"),
        ("1e25", "the model has no answer for 30 of 30"),
    ],
)
def test_answers_that_are_no_numbers_are_not_written(files, far, message, capsys):
    assert main(["train", "graph", "edges.csv", "--node-table", "nodes.csv", *SMALL]) == 0
    lines = (files / "nodes.csv").read_text().splitlines()
    moved = [",".join([name, far, label]) for name, _, label in (line.split(",") for line in lines[1:])]
    (files / "far.csv").write_text("\n".join([lines[0], *moved]))
    assert main(["predict", "model", "--input", "edges.csv", "--node-table", "far.csv", "--output", "far-out.csv"]) == 1
    assert message in capsys.readouterr().err
    assert not (files / "far-out.csv").exists()


def test_links_without_nodes(files, capsys):
    assert main(["train", "graph", "edges.csv", *SMALL]) == 0
    assert "common neighbours" in capsys.readouterr().out
    (files / "pairs.csv").write_text("a,b\nn0,n2\nn0,n1\n")
    assert main(["predict", "model", "--pairs", "pairs.csv", "--output", "p.csv"]) == 0
    assert {(row["first"], row["second"]) for row in rows_of(files / "p.csv")} == {("n0", "n2"), ("n0", "n1")}
    (files / "pairs.csv").write_bytes(b"a,b\nn0,n\xff\n")
    with pytest.raises(InputError, match=r"pairs\.csv is no table: 'utf-8' codec can't decode"):
        candidates(read_graphs(files / "edges.csv"), files / "pairs.csv")


def test_a_dry_run_says_what_it_would_do_and_trains_nothing(files, capsys):
    assert main(["train", "graph", "edges.csv", "--node-table", "nodes.csv", "--dry-run", "--out", "model"]) == 0
    out = capsys.readouterr().out
    assert "1 graphs, 30 nodes" in out and "minutes" in out and "weights" in out and "2 classes" in out
    assert not (files / "model").exists()


def test_folds_have_a_mean_and_a_deviation(files, capsys):
    options = ["--folds", "3", *SMALL]
    assert main(["train", "graph", "edges.csv", "--node-table", "nodes.csv", *options]) == 0
    assert "deviation" in capsys.readouterr().out and (files / "model" / "fold-2" / "record.json").exists()


@pytest.mark.parametrize("other", [["--test", "0"], ["--split", "part"], ["--test-data", "edges.csv"]])
def test_folds_and_parts_that_are_given_otherwise_are_refused(other, files, capsys):
    assert main(["train", "graph", "edges.csv", "--node-table", "nodes.csv", "--folds", "3", *other, *SMALL]) == 1
    assert "take one of them" in capsys.readouterr().err and not (files / "model").exists()


def test_a_finished_model_is_not_overwritten_and_settings_are_kept(files, capsys):
    command = ["train", "graph", "edges.csv", "--node-table", "nodes.csv", "--model", "gin", *SMALL]
    assert main(command) == 0
    record = json.loads((files / "model" / "record.json").read_text())
    assert record["config"]["model"]["convolution"] == "gin" and record["row"] == "gin"
    assert main(command) == 1
    assert "holds a trained model already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nowhere.csv"], "there is no file or folder nowhere.csv"),
        (["edges.csv", "--node-table", "nodes.csv", "--target", "lable"], "no column 'lable'"),
        (
            ["edges.csv", "--node-table", "nodes.csv", "--target", "label", "--goal", "regression"],
            "text where numbers belong",
        ),
        (["edges.csv", "--node-table", "nodes.csv", "--split", "x"], "must hold train, valid or test"),
        (["edges.csv", "--node-table", "nodes.csv", "--valid", "0.6", "--test", "0.6"], "together below 1"),
    ],
)
def test_one_line_for_what_is_wrong(files, capsys, options, message):
    assert main(["train", "graph", *options, "--out", "model"]) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_attention_is_drawn_on_a_graph_and_its_class_is_named(files, capsys):
    assert main(["train", "graph", "edges.csv", "--node-table", "nodes.csv", *SMALL]) == 0
    capsys.readouterr()
    assert main(["explain", "model", "--layer", "1", "--output", "picture.svg"]) == 0
    out = capsys.readouterr().out
    assert "nodes: " in out and "edges: " in out and "moves the answer by" in out
    assert (files / "picture.svg").read_text().startswith("<?xml")
    assert main(["explain", "model", "--output", "picture.txt"]) == 1
    assert "a picture is a" in capsys.readouterr().err
    assert main(["explain", "model", "--node", "nobody", "--output", "picture.svg"]) == 1
    assert "there is no node 'nobody'" in capsys.readouterr().err


def test_own_trainings_have_tables_and_curves(files, capsys):
    assert main(["train", "graph", "edges.csv", "--node-table", "nodes.csv", *SMALL]) == 0
    capsys.readouterr()
    assert main(["table", "model"]) == 0
    out = capsys.readouterr().out
    assert "baseline: " in out and "paper" not in out
    assert main(["plot", "model", "--output", "curves.png"]) == 0
    assert (files / "curves.png").stat().st_size > 1000


def test_without_a_test_part_all_rows_train(files, capsys):
    assert main(["train", "graph", "edges.csv", "--node-table", "nodes.csv", "--test", "0", *SMALL]) == 0
    assert capsys.readouterr().out.startswith("validation ")
    record = json.loads((files / "model" / "record.json").read_text())
    assert [*record["metrics"]] == ["validation"] and record["config"]["task"]["everything"]
    assert main(["predict", "model"]) == 0
