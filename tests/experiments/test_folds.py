"""``anyorder train KIND DATA --folds N``: every row is tested once, by a model that has not seen it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from anyorder.cli import main
from anyorder.training.checkpoints import load_run

QUICK = ["--folds", "3", "--epochs", "1"]


def sets(folder: Path) -> list[str]:
    random = np.random.default_rng(0)
    edges = np.concatenate([np.array([[0, 1], [1, 2]])] * 9)
    arrays = {"features": random.normal(size=(36, 2)), "sizes": np.full(9, 4), "edges": edges, "edge_counts": np.full(9, 2)}
    np.savez(folder / "sets.npz", **arrays)
    return ["sets", str(folder / "sets.npz"), "--channels", "8", "--layers", "1"]


def molecules(folder: Path) -> list[str]:
    pytest.importorskip("rdkit")
    rows = [f"{'C' * n}O,{n}" for n in range(1, 10)]
    (folder / "table.csv").write_text("\n".join(["smiles,y", *rows]))
    return ["molecules", str(folder / "table.csv"), "--channels", "8", "--layers", "1", "--alone"]


def tuples(folder: Path) -> list[str]:
    rows = [f"u{a},i{b},t{c}" for a, b, c in itertools.product(range(4), range(4), range(3)) if (a + b + c) % 3 == 0]
    (folder / "rows.csv").write_text("\n".join(["user,item,tag", *rows]))
    return ["tuples", str(folder / "rows.csv"), "--columns", "user,item,tag", "--valid", "0.25"]


def facts(folder: Path) -> list[str]:
    rows = [f"likes a{a} b{b}" for a, b in itertools.product(range(4), range(4))]
    (folder / "facts.txt").write_text("\n".join(rows))
    return ["facts", str(folder / "facts.txt"), "--facts"]


def hypergraph(folder: Path) -> list[str]:
    (folder / "edges.txt").write_text("\n".join(f"n{a} n{(a + 1) % 9} n{(a + 4) % 9}" for a in range(9)))
    (folder / "labels.csv").write_text("\n".join(["node,label", *(f"n{a},{'xy'[a % 2]}" for a in range(9))]))
    return ["hypergraph", str(folder / "edges.txt"), "--labels", str(folder / "labels.csv")]


def hyperedges(folder: Path) -> list[str]:
    (folder / "sets.txt").write_text("\n".join(f"n{a} n{b} n{(a + b) % 9 + 9}" for a in range(6) for b in range(a)))
    return ["hyperedges", str(folder / "sets.txt")]


KINDS = (sets, molecules, tuples, facts, hypergraph, hyperedges)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_row_is_tested_once(kind, tmp_path, capsys):
    folder = tmp_path / "model"
    assert main(["train", *kind(tmp_path), *QUICK, "--out", str(folder), "--data-dir", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "fold 2: " in said and "deviation" in said and "without --folds" in said
    tested = []
    for number in range(3):
        run = load_run(folder / f"fold-{number}")[0]
        assert (run.task.folds, run.task.fold) == (3, number)
        parts = run.task.load(seed=run.seed, data_dir=tmp_path)
        tested.append(set(rows_of(parts.test, parts.shapes)))
        assert tested[-1] and not tested[-1] & set(rows_of(parts.train, parts.shapes))
        assert not tested[-1] & set(rows_of(parts.valid, parts.shapes))
    assert not tested[0] & tested[1] and not tested[1] & tested[2] and not tested[0] & tested[2]
    whole = set(rows_of(parts.train, parts.shapes)) | set(rows_of(parts.valid, parts.shapes)) | tested[2]
    assert set.union(*tested) == whole


def rows_of(part, shapes) -> list[object]:
    """What a part is made of, whatever its kind."""
    if hasattr(part, "indices"):  # sets
        return list(part.indices)
    if hasattr(part, "nodes"):  # of a hypergraph
        return part.nodes.tolist()
    if hasattr(part, "facts"):  # numbers of entities follow from the split
        return [tuple(shapes.entities[entity] for entity in fact) for fact in part.facts.entities.tolist()]
    if hasattr(part, "unseen"):  # tuples
        return [tuple(row) for each in part.parts for row in each.tuples.tolist()]
    if hasattr(part, "members"):  # molecules
        return part.members.tolist()
    return [frozenset(each) for each in part[0].positives.listed()]


def test_folds_and_no_test_part_are_refused(tmp_path, capsys):
    assert main(["train", *sets(tmp_path), *QUICK, "--test", "0", "--out", str(tmp_path / "model")]) == 1
    assert "take one of them" in capsys.readouterr().err


def test_more_folds_than_rows_are_refused(tmp_path, capsys):
    assert main(["train", *sets(tmp_path), "--folds", "10", "--out", str(tmp_path / "model")]) == 1
    assert "at most as many as rows: got 10 for 9" in capsys.readouterr().err
