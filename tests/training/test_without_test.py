"""``--test 0``: validation chooses the epoch, then all rows are trained on, whatever the kind of data."""

from __future__ import annotations

import json
import random

import pytest

from anyorder.cli import main


def write_all(folder):
    """Two groups of ten names; what belongs together is of one group."""
    draw = random.Random(0)
    groups = [[f"{group}{n}" for n in range(10)] for group in "ab"]
    sets = [draw.sample(groups[n % 2], 2 + n % 3) for n in range(60)]
    (folder / "edges.txt").write_text("".join(" ".join(nodes) + "\n" for nodes in sets))
    (folder / "labels.csv").write_text("node,label\n" + "".join(f"{node},{node[0]}\n" for group in groups for node in group))
    rows = {tuple(draw.choice(groups[n % 2]) for _ in range(3)) for n in range(120)}
    (folder / "triples.csv").write_text("x,y,z\n" + "".join(",".join(row) + "\n" for row in sorted(rows)))
    facts = {(f"r{n % 3}", *draw.sample(groups[n % 2], 2 + n % 2)) for n in range(120)}
    (folder / "facts.txt").write_text("".join("\t".join(fact) + "\n" for fact in sorted(facts)))


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("hypergraph edges.txt --labels labels.csv", []),
        ("hyperedges triples.csv", ["--candidates", "triples.csv"]),
        ("hyperedges edges.txt", ["--candidates", "edges.txt"]),
        ("hyperedges facts.txt --facts", ["--complete", "r0,a1,?"]),
    ],
)
def test_all_rows_train_once_the_epoch_is_chosen(line, answer, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_all(tmp_path)
    assert main(["train", *line.split(), "--test", "0", "--epochs", "2", "--out", "model"]) == 0
    out = capsys.readouterr().out
    assert "0 to test" in out or "0 facts to test" in out
    assert "\nvalidation " in out
    assert "pair counts" in out or "neighbour vote" in out
    record = json.loads((tmp_path / "model" / "record.json").read_text())
    chosen = json.loads((tmp_path / "model" / "choosing" / "record.json").read_text())
    assert "validation" in record["metrics"] and record["config"]["task"]["everything"]
    assert not chosen["config"]["task"]["everything"]
    assert main(["predict", "model", *answer]) == 0


@pytest.mark.parametrize(
    "kind", ["hypergraph edges.txt --labels labels.csv", "hyperedges edges.txt", "hyperedges facts.txt"]
)
def test_shares_leave_something_to_train_on(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_all(tmp_path)
    assert main(["train", *kind.split(), "--valid", "0.5", "--test", "0.5"]) == 1
    assert "got 0.5 and 0.5" in capsys.readouterr().err
