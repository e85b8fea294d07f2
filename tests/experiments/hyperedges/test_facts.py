from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from anyorder.cli import main
from anyorder.errors import InputError
from anyorder.experiments.hyperedges.completions import answer_facts
from anyorder.experiments.hyperedges.fact_batches import FactShapes, GapBatch, Gaps
from anyorder.experiments.hyperedges.fact_models import FactEncoder
from anyorder.experiments.hyperedges.fact_task import OwnFacts
from anyorder.experiments.hyperedges.facts import Facts, KnownAnswers, read_facts
from anyorder.experiments.hyperedges.pair_counts import PairCounts
from anyorder.experiments.hyperedges.ranking import ranked
from anyorder.experiments.hyperedges.wrong_answers import WrongAnswers
from anyorder.training.records import Record


def write(folder: Path, count: int = 240) -> Path:
    """Who lives where (two entities), and who bought what where (three): the city follows from the person."""
    facts = [f"lives\tp{n % 40}\tc{n % 4}" for n in range(40)]
    facts += [f"bought\tp{n % 40}\tt{(n % 40) % 5 + 5 * (n % 3)}\tc{n % 4}" for n in range(count)]
    facts = list(dict.fromkeys(facts))
    order = np.random.default_rng(0).permutation(len(facts))
    parts = {"train": order[: len(facts) * 7 // 10], "valid": order[len(facts) * 7 // 10 : len(facts) * 8 // 10]}
    parts["test"] = order[len(facts) * 8 // 10 :]
    for name, rows in parts.items():
        lines = [facts[n] for n in rows]
        if name == "test":
            lines = [f"instance{n}\t{line}" for n, line in enumerate(lines)]
        (folder / f"{name}.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder


def test_facts_of_mixed_arity_are_read_and_a_column_of_numbers_is_left_out(tmp_path):
    data = read_facts(write(tmp_path))
    assert set(data.relations) == {"lives", "bought"} and set(data.train.arity.tolist()) == {2, 3}
    assert data.notes == ("the first column of the test file numbers its lines and is left out",)
    assert data.test.entities.shape[1] == data.train.entities.shape[1] == 3


def test_one_file_is_split_without_repeats(tmp_path):
    (tmp_path / "f.csv").write_text("\n".join([f"r,a{n},b{n % 3}" for n in range(20)] * 2))
    data = read_facts(tmp_path / "f.csv", valid=0.2, test=0.2)
    assert [len(part) for part in (data.train, data.valid, data.test)] == [12, 4, 4]


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "has no facts"), ("r\ta\n", "line 1: expected a relation and two entities"), ("r,a,,b\n", "line 1: expected")],
)
def test_wrong_files_are_refused_by_line(tmp_path, text, problem):
    (tmp_path / "f.txt").write_text(text)
    with pytest.raises(ValueError, match=problem):
        read_facts(tmp_path / "f.txt")


def small() -> tuple[Facts, Facts]:
    train = Facts(np.array([0, 0, 0, 1]), np.array([[0, 1, -1], [0, 2, -1], [3, 1, -1], [0, 1, 4]]))
    return train, Facts(np.array([0]), np.array([[3, 2, -1]]))


def test_ranks_leave_out_what_is_known_to_be_right_and_share_ties():
    train, test = small()
    part = Gaps(test, KnownAnswers([train, test]), 1)
    batch = part.__getitems__([0, 1])  # (?, 2) with 0 known, (3, ?) with 1 known
    assert batch.target.tolist() == [3, 2] and batch.others.tolist() == [[0, 0], [1, 1]]
    scores = torch.tensor([[9.0, 2.0, 0.0, 1.0, 0.0], [0.0, 9.0, 1.0, 1.0, 1.0]])
    found = ranked(scores, batch)
    assert found["rank"].tolist() == [2.0, 2.0]
    assert found["below"].tolist() == pytest.approx([1 - 1 / 3, 1 - 1 / 3])


def test_counts_are_of_training_facts_alone():
    train, _ = small()
    counts = PairCounts(train, 2, 5)
    batch = GapBatch.of(Facts(np.array([0, 1]), np.array([[0, 1, -1], [0, 1, 4]])), np.array([1, 2]))
    weights = torch.tensor([[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, 0.0]])
    assert counts(batch, weights).tolist() == [[0, 1, 1, 0, 0], [0, 0, 0, 0, 2]]
    weights = torch.rand(2, 5, generator=torch.Generator().manual_seed(0))
    seen, others = counts.seen_with(batch, torch.arange(5).expand(2, -1))
    torch.testing.assert_close(counts(batch, weights), torch.einsum("bcw,bw->bc", torch.stack(seen, 2), weights))
    torch.testing.assert_close(seen.together[0], torch.tensor([0.0, 2, 1, 0, 1]).log1p())
    assert others.tolist()[1] == [1, 1, 1, 1, 2]
    assert counts.seen_with(batch, batch.target.unsqueeze(1), own=1.0)[0].others_alike.tolist() == [[0], [0]]
    assert counts.scores(batch).argmax(1).tolist() == [1, 4]


def test_wrong_answers_stand_for_all_entities():
    """The sum over a sample of exp(logits) with its weights is, on average, the sum over all but the right answer."""
    generator = np.random.default_rng(0)
    train = Facts(np.zeros(60, np.int64), generator.integers(0, 30, (60, 3)))
    counts = PairCounts(train, 1, 30)
    batch = GapBatch.of(train.chosen(np.repeat(np.arange(4), 50)), np.repeat([0, 1, 2, 0], 50))
    values = torch.rand(30, generator=torch.Generator().manual_seed(0)) + 0.1
    expected = values.sum() - values[batch.target[::50]]
    torch.manual_seed(0)
    sums = torch.zeros(4)
    for _ in range(100):
        wrong = WrongAnswers.likely(batch, counts, 16)
        sums += (values[wrong.entities] * wrong.weight.exp()).sum(1).view(4, 50).mean(1)
    torch.testing.assert_close(sums / 100, expected, rtol=0.08, atol=0)


def test_a_fact_is_no_evidence_for_itself(tmp_path):
    """Without this, training would learn to trust counts that are only its own."""
    train = Facts(np.zeros(3, np.int64), np.array([[0, 1], [2, 3], [4, 5]]))
    shapes = FactShapes(("r",), tuple("abcdef"), train.relation, train.entities)
    network = FactEncoder(channels=8, heads=2).build(shapes).eval()
    batch = GapBatch.of(train, np.array([1, 1, 1]))
    right = network.told_apart(batch, 4)[:, 0]
    torch.testing.assert_close(right, torch.zeros(3))  # begins with counts alone, and there are none but its own
    assert (network(batch).gather(1, batch.target.unsqueeze(1)) > 1).all()


def test_sets_of_other_sizes_in_a_batch_change_nothing():
    train, _ = small()
    shapes = FactShapes(("r", "s"), tuple("abcde"), train.relation, train.entities)
    network = FactEncoder(channels=8, heads=2, counts=False).build(shapes).eval()
    whole = network(GapBatch.of(train, np.array([0, 1, 0, 2])))
    alone = network(GapBatch.of(train.chosen(np.array([1])), np.array([1])))
    torch.testing.assert_close(whole[1:2], alone)


@pytest.mark.parametrize("counts", [True, False])
def test_no_fact_that_is_held_out_reaches_a_loss_or_a_count(tmp_path, counts):
    task = OwnFacts(path=str(write(tmp_path)))
    splits = task.load(seed=0, data_dir=None)
    data = task.read(0)
    assert splits.shapes.facts.entities.tolist() == data.train.entities.tolist()  # type: ignore[attr-defined]
    seen = {tuple(row) for row in splits.train.facts.entities.tolist()}  # type: ignore[attr-defined]
    assert seen.isdisjoint(tuple(row) for row in (*data.test.entities.tolist(), *data.valid.entities.tolist()))
    model = FactEncoder(channels=8, heads=2, counts=counts).build(splits.shapes)
    assert task.loss(model, splits.train.__getitems__(range(16))).isfinite()  # type: ignore[attr-defined]


def test_train_and_complete(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kg").mkdir()
    write(tmp_path / "kg")
    command = "train hyperedges kg --epochs 4 --out model --quiet --set model.channels=16 --batch-size 64"
    assert main(command.split()) == 0
    said = capsys.readouterr().out
    for part in ("MRR", "Hits@10", "AUC", "pair counts", "2 entities  model", "3 entities  pair counts"):
        assert part in said
    metrics = Record.read(tmp_path / "model" / "record.json").metrics
    assert metrics[""]["MRR"] > 0.3 and metrics["pair counts, 3 entities"]["MRR"] > 0
    assert main(["predict", "model", "--complete", "lives,p1,?", "--top", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main(["predict", "model", "--complete", "bought,p1,?,?", "--top", "4"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5
    (tmp_path / "asked.txt").write_text("lives,p1,?\nbought,?,t1,c1\nlives,nobody,?\n")
    assert main(["predict", "model", "--input", "asked.txt"]) == 1
    assert "line 3: entity 'nobody' is not of the training (--skip-unknown" in capsys.readouterr().err
    assert main(["predict", "model", "--input", "asked.txt", "--skip-unknown", "--top", "3"]) == 0
    assert "2 facts completed in asked-completed.csv, 1 with unknown names left out" in capsys.readouterr().out
    rows = (tmp_path / "asked-completed.csv").read_text().splitlines()
    assert rows[0] == "fact,rank,entity,score" and len(rows) == 7
    data = read_facts(tmp_path / "kg")
    known = {tuple(data.entities[n] for n in row if n >= 0) for row in data.train.entities.tolist()}
    found = [tuple(row.replace('"', "").split(",")) for row in rows[4:]]
    assert not any((entity, "t1", "c1") in known for *_, entity, _ in found)  # what training has is no new answer


def test_several_gaps_are_filled_as_trying_everything_does(tmp_path, monkeypatch):
    monkeypatch.setattr("anyorder.experiments.hyperedges.completions._BEAM", 1000)
    (tmp_path / "f.txt").write_text(
        "".join(f"r a{n % 3} b{n % 4} c{n % 2}\n" for n in range(8)) + "s a0 b1\ns a1 b2\ns a2 b3\n"
    )
    data = read_facts(tmp_path / "f.txt", valid=0.2, test=0.2)
    shapes = FactShapes.of(data)
    torch.manual_seed(0)
    model = FactEncoder(channels=8, heads=2).build(shapes).eval()
    request = SimpleNamespace(options={"complete": "r,?,b1,?", "top": "3"}, input=None, output=None)
    found = [line.split() for line in answer_facts(model, shapes, request).splitlines()[1:]]
    names, relation = list(shapes.entities), shapes.relations.index("r")

    def shares(entities, gap):
        facts = Facts(np.array([relation]), np.array([entities]))
        with torch.inference_mode():
            return model(GapBatch.of(facts, np.array([gap]))).log_softmax(1)[0]

    known = {tuple(row) for row in shapes.facts.entities[shapes.facts.relation == relation].tolist()}
    given, first = names.index("b1"), shares([0, names.index("b1"), -1], 0)
    every = {
        (a, c): float(first[a] + shares([a, given, 0], 2)[c])
        for a in range(len(names))
        for c in range(len(names))
        if (a, given, c) not in known
    }
    scores = [float(score) for _, _, score in found]
    assert scores == pytest.approx(sorted(every.values(), reverse=True)[:3], abs=1e-3)
    pairs = [tuple(map(names.index, who.split(","))) for _, who, _ in found]  # others may have equal scores
    assert scores == pytest.approx([every[pair] for pair in pairs], abs=1e-3)


class TestTables:
    TEXT = "subject,predicate,object,place\nann,lives,paris,\nbob,lives,rome,\nann,bought,lamp,paris\nbob,bought,sofa,rome\n"

    def test_a_column_names_the_relation_and_blank_cells_are_places_that_are_not_there(self, tmp_path):
        (tmp_path / "f.csv").write_text(self.TEXT)
        data = read_facts(tmp_path / "f.csv", valid=0.25, test=0.25, relation="predicate")
        assert sorted(data.relations) == ["bought", "lives"]
        assert sorted(data.entities) == ["ann", "bob", "lamp", "paris", "rome", "sofa"]
        assert sorted(np.concatenate([part.arity for part in (data.train, data.valid, data.test)])) == [2, 2, 3, 3]

    @pytest.mark.parametrize(
        ("text", "relation", "problem"),
        [
            (TEXT, "predicat", "has no column 'predicat'.*did you mean 'predicate'"),
            (TEXT + "ann,lives\n", "predicate", "line 6: expected 4 fields, got 2"),
            (TEXT + "ann,lives,,paris\n", "predicate", "line 6: expected a relation and two entities or more without gaps"),
            (TEXT + "ann,,rome,\n", "predicate", "line 6: expected a relation"),
            ("", "predicate", "no column|no rows|empty"),
        ],
    )
    def test_refusals(self, text, relation, problem, tmp_path):
        (tmp_path / "f.csv").write_text(text)
        with pytest.raises(InputError, match=problem):
            read_facts(tmp_path / "f.csv", relation=relation)

    def test_a_column_called_relation_is_taken_and_said(self, tmp_path, capsys):
        rows = [f"e{n % 5},r{n % 2},f{n % 7},{'' if n % 2 else 'g'}" for n in range(40)]
        (tmp_path / "f.csv").write_text("a,relation,b,c\n" + "\n".join(rows) + "\n")
        assert main(["train", "facts", str(tmp_path / "f.csv"), "--facts", "--dry-run"]) == 0
        out = capsys.readouterr().out
        assert "the entities of a fact are a, b, c" in out and "2 relations" in out
