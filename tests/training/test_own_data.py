"""Own data of every kind: nothing that answers are made from is lost, changed data are refused, answers are numbers."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from anyorder.cli import main
from anyorder.errors import InputError
from anyorder.experiments.set_to_graph.sets import SetSample
from anyorder.experiments.set_to_graph.task import batches_by_pairs
from anyorder.files import replacing
from anyorder.training.answers import finite_answers

FEW = ["--epochs", "3", "--quiet", "--minutes", "1e-9", "--out", "model"]


def write_sets(path: Path, last: int = 1) -> None:
    points = np.random.default_rng(0).normal(size=(30, 4, 2))
    np.savez(path, features=points, partition=np.tile([0, 0, 1, last], 30))


def write_molecules(path: Path, scale: float = 1.0) -> None:
    rows = [f"{'C' * (1 + n % 7)}O,{scale * (n % 5)}" for n in range(30)]
    path.write_text("\n".join(["smiles,gap", *rows]) + "\n")


def write_tuples(path: Path, other: int = 0) -> None:
    rows = [f"u{n % 7},i{(n * n + other * (n == 3)) % 23}" for n in range(90)]
    path.write_text("\n".join(["user,item", *rows]) + "\n")


def write_hif(path: Path, label: str = "x") -> None:
    incidences = [{"edge": n // 3, "node": n % 12} for n in range(30)]
    nodes = [{"node": n, "attrs": {"a": float(n), "label": label if n == 5 else "xy"[n % 2]}} for n in range(12)]
    path.write_text(json.dumps({"incidences": incidences, "nodes": nodes}))


KINDS = {
    "sets": (write_sets, ["set-to-graph", "--data", "data.npz", "--channels", "8", "--layers", "1"], "data.npz", 0),
    "molecules": (
        write_molecules,
        ["molecules", "--data", "data.csv", "--target", "gap", "--model", "fingerprint", "--channels", "8", "--layers", "1"],
        "data.csv",
        2.0,
    ),
    "tuples": (write_tuples, ["hyperedges", "--data", "data.csv", "--columns", "user,item"], "data.csv", 1),
    "hypergraph": (write_hif, ["hypergraph", "--hif", "data.json", "--model", "mlp"], "data.json", "y"),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANYORDER_DATA", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_of_any_kind_does_not_go_on_with_other_data(kind, here, capsys):
    write, arguments, name, other = KINDS[kind]
    write(here / name)
    before = (here / name).read_bytes()
    assert main(["train", *arguments, *FEW]) == 0
    write(here / name, other)
    assert (here / name).read_bytes() != before
    assert main(["train", *arguments, *FEW]) == 1
    assert "the data changed since the training in model began" in capsys.readouterr().err
    (here / name).write_bytes(before)
    assert main(["train", *arguments, *FEW]) == 0


def test_predictions_never_take_the_place_of_the_data_of_the_training(here, capsys):
    write_hif(here / "data.json")
    before = (here / "data.json").read_bytes()
    assert main(["train", *KINDS["hypergraph"][1], *FEW]) == 0
    os.link(here / "data.json", here / "link.csv")
    (here / "soft.csv").symlink_to(here / "data.json")
    for output in ("data.json", "link.csv", "soft.csv", "./cache/../data.json"):
        (here / "cache").mkdir(exist_ok=True)
        assert main(["predict", "model", "--output", output]) == 1
        assert "the answer is made from" in capsys.readouterr().err
    assert (here / "data.json").read_bytes() == before
    assert main(["predict", "model", "--output", "new.csv"]) == 0


def test_what_is_no_file_is_written_into_and_stays_what_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    with replacing(pipe) as temporary:
        temporary.write_bytes(b"answers")
    reader.join(timeout=10)
    assert received == [b"answers"] and pipe.is_fifo()
    device = Path("/dev/null")
    with replacing(device) as temporary:
        temporary.write_bytes(b"answers")
    assert device.is_char_device()


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "file.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("file.csv")
    with replacing(tmp_path / "link.csv") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.csv").is_symlink() and (tmp_path / "file.csv").read_text() == "new"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_answer_is_made_of_what_is_no_number(value):
    with pytest.raises(InputError, match=r"no answer for 1 of 3 nodes \(the first is number 1\)"):
        finite_answers(torch.tensor([[0.0, 1.0], [0.0, value], [0.0, 0.0]]), "nodes")


def test_inputs_that_overflow_give_no_answers(here, capsys):
    write_molecules(here / "data.csv")
    write_hif(here / "data.json")
    assert main(["train", *KINDS["hypergraph"][1], *FEW]) == 0
    document = json.loads((here / "data.json").read_text())
    document["nodes"][3]["attrs"]["a"] = 3e38
    (here / "new.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    assert main(["predict", "model", "--input", "new.json.gz", "--output", "new.csv"]) in (0, 1)
    assert not (here / "new.csv").exists() or "nan" not in (here / "new.csv").read_text()


def test_batches_of_sets_go_by_their_pairs():
    sets = [SetSample(np.zeros((n, 1), np.float32)) for n in (3, 3, 1, 10, 1, 1)]
    groups = list(batches_by_pairs([*sets[:2], None, *sets[2:]], most_pairs=20, most_sets=3))
    assert [[0 if s is None else len(s.points) for s in group] for group in groups] == [[3, 3, 0], [1], [10], [1, 1]]


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "npz"])
def test_predictions_of_streamed_sets_are_in_the_order_of_the_file(ending, here):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    write_sets(here / "data.npz")
    assert main(["train", *KINDS["sets"][1], *FEW]) == 0
    rng = np.random.default_rng(1)
    many = [rng.normal(size=(2 + n % 5, 2)).tolist() for n in range(1500)]
    parquet.write_table(arrow.table({"features": many}), here / "many.parquet")
    parquet.write_table(arrow.table({"features": many[1400:]}), here / "last.parquet")
    for name in ("many", "last"):
        assert main(["predict", "model", "--input", f"{name}.parquet", "--output", f"{name}-answers.{ending}"]) == 0
    assert sizes(here / f"many-answers.{ending}") == [len(points) for points in many]
    assert sizes(here / f"last-answers.{ending}") == [len(points) for points in many[1400:]]


def sizes(path: Path) -> list[int]:
    """How many points each predicted partition has."""
    if path.suffix == ".jsonl":
        return [len(json.loads(line)["partition"]) for line in path.read_text().splitlines()]
    if path.suffix == ".npz":
        found: list[int] = np.load(path)["sizes"].tolist()
        return found
    import pyarrow.parquet

    return [len(row) for row in pyarrow.parquet.read_table(path)["partition"].to_pylist()]


def test_a_bad_row_of_a_streamed_file_is_named_by_its_number(here, capsys):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    write_sets(here / "data.npz")
    assert main(["train", *KINDS["sets"][1], *FEW]) == 0
    many = [[[0.0, 1.0]]] * 1500
    many[1300] = [[0.0, float("nan")]]
    parquet.write_table(arrow.table({"features": many}), here / "many.parquet")
    assert main(["predict", "model", "--input", "many.parquet"]) == 1
    assert "many.parquet: row 1300: feature 1 is nan" in capsys.readouterr().err
    assert not (here / "many.predicted.jsonl").exists()


def test_targets_too_large_for_the_numbers_of_a_model_are_refused_with_their_row(here, capsys):
    write_molecules(here / "data.csv", 1e300)
    assert main(["train", *KINDS["molecules"][1], *FEW]) == 1
    assert "target 'gap' is '1e+300', expected a finite number of at most 1e+30" in capsys.readouterr().err


def test_labelled_nodes_in_no_hyperedge_are_named(here, capsys):
    document = {"incidences": [{"edge": n // 3, "node": n % 12} for n in range(30)]}
    nodes = [
        {"node": n, "attrs": {"a": float(place), "label": "xy"[place % 2]}} for place, n in enumerate([*range(12), "alone"])
    ]
    (here / "data.json").write_text(json.dumps({**document, "nodes": nodes}))
    assert main(["train", *KINDS["hypergraph"][1], *(option for option in FEW if option != "--quiet")]) == 0
    assert "1 labelled nodes are in no hyperedge and are judged by their features alone: 'alone'" in capsys.readouterr().out


@pytest.mark.parametrize("header", ["name,label", "label,name", "node,node"])
def test_the_column_of_nodes_is_found_by_its_name(header, here, capsys):
    (here / "edges.txt").write_text("a,b\nb,c\nc,d\nd,e\n")
    (here / "labels.csv").write_text(f"{header}\n" + "\n".join(f"{n},{n > 'b'}" for n in "abcde"))
    line = ["train", "hypergraph", "--edges", "edges.txt", "--labels", "labels.csv", *FEW]
    assert main(line) == 1
    assert "labels.csv: expected a header with one column node" in capsys.readouterr().err
    turned = "label,node\n" + "\n".join(f"{int(n > 'c')},{n}" for n in "abcde")
    (here / "labels.csv").write_text(turned)
    assert main(line) == 0


def test_scores_of_a_table_with_tabs_go_to_a_file_that_says_so(here):
    write_tuples(here / "data.csv")
    (here / "data.tsv").write_text((here / "data.csv").read_text().replace(",", "\t"))
    line = ["train", "hyperedges", "--data", "data.tsv", "--delimiter", "tab", "--columns", "user,item", *FEW]
    assert main(line) == 0
    (here / "new.tsv").write_text("user\titem\nu0\ti0\n")
    assert main(["predict", "model", "--candidates", "new.tsv"]) == 0
    assert (here / "new-scored.tsv").read_text().startswith("user\titem\tscore\nu0\ti0\t")


def test_a_commit_is_ours_or_none(here, monkeypatch):
    import shutil
    import subprocess

    import anyorder
    from anyorder.training import records

    shutil.copytree(Path(anyorder.__file__).parent / "training", here / "venv" / "anyorder" / "training")
    for line in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "theirs"],
    ):
        subprocess.run(["git", *line], cwd=here, check=True)
    monkeypatch.setattr(records, "__file__", str(here / "venv" / "anyorder" / "training" / "records.py"))
    assert records.commit.__wrapped__() == ""


def test_many_classes_are_listed_when_asked(capsys):
    assert main(["classes", "2", "9"]) == 1
    assert "L_{2->9} has 678,570 classes, a line each: --all lists them" in capsys.readouterr().err
    assert main(["classes", "3", "3"]) == 0


def test_going_on_with_other_threads_is_said(here, capsys, monkeypatch):
    write_hif(here / "data.json")
    threads = torch.get_num_threads()
    assert main(["train", *KINDS["hypergraph"][1], *FEW]) == 0
    assert "threads" not in capsys.readouterr().err
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert main(["train", *KINDS["hypergraph"][1], *FEW]) == 0
    said = capsys.readouterr().err
    # where several threads wait for each other, it has begun on one
    assert any(f"began on {began} threads and goes on with 3" in said for began in (1, threads))
