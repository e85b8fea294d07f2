from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from anyorder.algebra import select
from anyorder.cli import main
from anyorder.experiments.hyperedges import recipes
from anyorder.experiments.hyperedges.batches import Known, NumberedBatches, Positives, TupleBatch, TupleSet, distinct_tuples
from anyorder.experiments.hyperedges.data import TypedHyperedges
from anyorder.experiments.hyperedges.models import (
    IntoTuples,
    TupleDHNE,
    TupleEncoder,
    TupleMLP,
    TupleNetwork,
    TupleSAGNN,
    TupleSimilarity,
    into_distinct_nodes,
)
from anyorder.experiments.hyperedges.tally import PairTally
from anyorder.experiments.hyperedges.task import Hyperedges, PublishedHyperedges
from anyorder.experiments.hyperedges.tuples import KnownTuples, offsets_of
from anyorder.layers import Elu, EncoderLayer, RandomFeatures, Softmax
from anyorder.layouts import CompleteIndexSet, Features, SparseIndexSet
from learning import assert_falls_as_the_gradient_says, descend

SIZES = (7, 6, 4)
SMALL = {"channels": 8, "heads": 2, "head_channels": 4}
MODELS = {
    "ours": TupleEncoder(**SMALL),
    "ours softmax": TupleEncoder(**SMALL, kernel=Softmax()),
    "ours, one layer": TupleEncoder(**{**SMALL, "layers": 0}),
    "ours elu": TupleEncoder(**SMALL, kernel=Elu(), layers=2),
    "s2g mean": TupleMLP(channels=8),
    "s2g sum": TupleMLP(channels=8, reduce="sum"),
    "sagnn-e": TupleSAGNN(**SMALL),
    "sagnn-w": TupleSAGNN("walks", **SMALL),
    "dhne": TupleDHNE(channels=8),
    "mean": TupleSimilarity("mean", channels=8),
    "min": TupleSimilarity("min", channels=8),
}


def hyperedges(sizes: tuple[int, ...] = SIZES, train: int = 40, test: int = 10, seed: int = 0) -> TypedHyperedges:
    rows = np.random.default_rng(seed).integers(0, sizes, size=(train + test, len(sizes)))
    rows = rows + np.array(offsets_of(sizes))
    return TypedHyperedges(sizes=sizes, train=rows[:train], test=rows[train:])


@dataclass(frozen=True)
class Given(Hyperedges):
    """The random tuples of these tests as a task."""

    def read(self, *, seed, data_dir):
        return hyperedges(), None


def shapes_of(data: TypedHyperedges) -> Known:
    return Known.from_data(json.loads(json.dumps(Known.of(data).to_data())))


class TestBatches:
    def test_numbers_through_epochs_are_positives_with_their_negatives(self):
        data = hyperedges()
        items = TupleSet([Positives.of(data, "train", per_positive=3)], seed=1)
        known = KnownTuples.of(data.train, SIZES)
        seen = []
        for epoch in range(3):
            numbers = [epoch * len(items) + place for place in (5, 0, 7)]
            batch = items.__getitems__(numbers)
            tuples = batch.tuples[batch.place].numpy()
            np.testing.assert_array_equal(tuples[:, 0], data.train[[5, 0, 7]])
            assert not known.contains(tuples[:, 1:].reshape(-1, 3)).any()
            again = TupleSet([Positives.of(data, "train", per_positive=3)], seed=1).__getitems__(numbers)
            np.testing.assert_array_equal(again.tuples[again.place].numpy(), tuples)
            seen.append(tuples[:, 1:].tolist())
        assert seen[0] != seen[1] != seen[2]

    def test_test_negatives_are_positives_of_no_part_and_parts_differ(self):
        data = hyperedges().with_validation(0.2, seed=0)
        parts = [Positives.of(data, "validation", per_positive=4, fresh=False), Positives.of(data, "test", per_positive=4)]
        both = np.concatenate([data.train, data.validation, data.test])
        assert not KnownTuples.of(both, SIZES).contains(parts[1].draw(0, 0)[:, 1:].reshape(-1, 3)).any()
        np.testing.assert_array_equal(parts[0].draw(0, 0), parts[0].draw(0, 5))
        assert (parts[1].draw(0, 0) != parts[1].draw(0, 5)).any()
        assert (parts[1].draw(0, 0) != parts[1].draw(1, 0)).any()

    def test_equal_tuples_are_scored_once(self):
        rows = np.array([[0, 7, 13], [1, 7, 13], [0, 7, 13]])
        distinct, place = distinct_tuples(rows, SIZES)
        assert len(distinct) == 2
        np.testing.assert_array_equal(distinct[place], rows)

    def test_every_positive_comes_once_an_epoch_over_all_processes(self):
        for epoch in (0, 3):
            seen = []
            for rank in range(2):
                batches = NumberedBatches(11, batch_size=4, seed=2, rank=rank, world=2)
                batches.sampler.set_epoch(epoch)
                seen += [number for batch in batches for number in batch]
            assert sorted(seen) == [epoch * 11 + item for item in range(11)]

    def test_what_a_model_knows_survives_as_plain_data(self):
        data = replace(hyperedges(), names=("a", "b", "c"), weights=np.arange(1.0, 41.0))
        known = shapes_of(data)
        np.testing.assert_array_equal(known.train, data.train)
        np.testing.assert_array_equal(known.weights, data.train_weights)
        assert known.names == ("a", "b", "c") and known.sizes == SIZES
        assert shapes_of(hyperedges()).weights.tolist() == [1.0] * 40


class TestTask:
    def test_loss_is_the_weighted_cross_entropy_and_a_hundredth_of_the_reconstruction(self):
        class Fixed(nn.Module):
            def with_auxiliary_loss(self, tuples):
                return tuples[:, 0].float() / 4, torch.tensor(3.0)

        place = torch.tensor([[0, 1, 2], [3, 1, 1]])
        neither = torch.zeros(2, dtype=torch.bool)
        batch = TupleBatch(torch.tensor([[2], [-4], [1], [8]]), place, torch.tensor([1.0, 0.5]), neither, neither)
        logits = [[0.5, -1.0, 0.25], [2.0, -1.0, -1.0]]
        total = 0.0
        for row, weight in zip(logits, (5.0, 2.5), strict=True):
            total += weight * math.log(1 + math.exp(-row[0])) + sum(math.log(1 + math.exp(z)) for z in row[1:])
        loss = Given().loss(Fixed(), batch)
        assert float(loss) == pytest.approx(total / 6 + 0.01 * 3.0, rel=1e-6)

    def test_metrics_pool_all_scores_and_keep_parts_apart(self):
        logits = torch.tensor([[3.0, 1.0], [0.5, 0.7], [9.0, 8.0], [-5.0, -4.0]])
        unseen = torch.tensor([True, False, False, True])
        watched = torch.tensor([False, False, True, True])
        found = Given().metrics({"logits": logits, "unseen": unseen, "watched": watched})
        assert found["AUC"] == pytest.approx(2 / 4)
        assert found["AUPR"] == pytest.approx((1 + 2 / 4) / 2)
        assert found["unseen/AUC"] == 1.0
        assert found["test AUC"] == pytest.approx(2 / 4)
        assert "unseen/AUC" not in Given().metrics({"logits": logits, "unseen": ~unseen & False, "watched": watched})

    def test_validation_is_taken_from_training_and_the_test_set_is_only_watched(self):
        splits = Given(validation=0.25).load(seed=0, data_dir=None)
        assert (len(splits.train), len(splits.valid), len(splits.test)) == (30, 10 + 10, 10)
        batch = splits.valid.__getitems__(range(20))
        assert batch.watched.tolist() == [False] * 10 + [True] * 10
        assert len(splits.shapes.train) == 30, "validation tuples do not make features"
        assert len(Given(watch_test=False).load(seed=0, data_dir=None).valid) == 4

    def test_published_trains_on_everything_and_scores_whole_batches_of_another_choice_in_each_epoch(self):
        task = Given(selection_by="published", published_batch=4)
        splits = task.load(seed=0, data_dir=None)
        assert (len(splits.train), len(splits.valid), len(splits.test)) == (40, 10, 10)
        assert not splits.valid.__getitems__(range(10)).watched.any()
        options = {"batch_size": 5, "seed": 0, "shuffle": False}
        chosen = []
        for epoch in range(20):
            parts = [task.batches(splits.valid, **options, rank=rank, world=2) for rank in range(2)]
            for part in parts:
                part.set_epoch(epoch)
            numbers = [number for part in parts for batch in part for number in batch]
            assert len(numbers) == len(set(numbers)) == 8 and {number // 10 for number in numbers} == {epoch}
            assert [len(part) for part in parts] == [2, 2]
            chosen.append(frozenset(number % 10 for number in numbers))
        assert len(set(chosen)) > 10 and frozenset.union(*chosen) == frozenset(range(10))
        train = task.batches(splits.train, batch_size=12, seed=0, shuffle=True, rank=0, world=1)
        assert [len(batch) for batch in train] == [12, 12, 12] and len(train) == 3
        assert len(Given().batches(splits.train, batch_size=12, seed=0, shuffle=True, rank=0, world=1)) == 4
        whole = task.batches(splits.test, **options, rank=0, world=1)
        assert [number for batch in whole for number in batch] == list(range(10))

    def test_a_test_set_below_one_batch_is_scored_whole(self):
        splits = Given(selection_by="published", published_batch=11).load(seed=0, data_dir=None)
        assert splits.valid.scored == len(splits.valid) == 10

    def test_history_tells_the_best_test_epoch_and_the_mean_of_the_last(self):
        history = [{"AUC": 0.5 + n, "AUPR": 0.1 * n, "test AUC": abs(n - 3.0), "test AUPR": float(n)} for n in range(30)]
        history.append({"loss": 1.0})
        found = Given().from_history(history)
        assert found["best test epoch/AUC"] == 26.0 and found["best test epoch/AUPR"] == 29.0
        assert found["last 20 epochs/AUPR"] == pytest.approx(np.mean(range(10, 30)))
        assert "AUC" not in found
        published = Given(selection_by="published").from_history(history)
        assert published["AUC"] == 29.5 and published["AUPR"] == pytest.approx(2.9)
        assert Given().from_history([{"loss": 1.0}]) == {} == Given().from_history(history[:1])
        assert set(Given().from_history(history[:5])) == {"best test epoch/AUC", "best test epoch/AUPR"}


class TestModels:
    @pytest.mark.numeric
    @pytest.mark.parametrize("name", MODELS)
    @pytest.mark.parametrize("sizes", [(6, 5), SIZES])
    def test_every_row_goes_down_its_gradient_and_is_rebuilt_from_its_configuration(self, name, sizes):
        torch.manual_seed(0)
        data = hyperedges(sizes)
        shapes, task = shapes_of(data), Given()
        model = MODELS[name].build(shapes)
        batch = TupleSet([Positives.of(data, "train", per_positive=5)], seed=0).__getitems__(range(40))
        descend(model, lambda: task.loss(model, batch), steps=10, rate=0.01)
        assert_falls_as_the_gradient_says(model, lambda: task.loss(model, batch))
        rebuilt = MODELS[name].build(shapes)
        rebuilt.load_state_dict(model.state_dict())
        model.eval(), rebuilt.double().eval()
        torch.testing.assert_close(rebuilt(batch.tuples), model(batch.tuples))
        torch.testing.assert_close(model(batch.tuples[3:9]), model(batch.tuples)[3:9], msg="a tuple does not see the others")

    @pytest.mark.parametrize("kernel", [Softmax(), RandomFeatures(), Elu()])
    def test_into_tuples_is_the_encoder_layer_on_typed_tuples(self, kernel):
        torch.manual_seed(0)
        width = {"channels": 8, "heads": 2, "head_channels": 4, "kernel": kernel, "dropout": 0.0}
        ours = IntoTuples(order=3, **width).double()
        whole = EncoderLayer(order_in=1, order_out=3, **width).double()
        with torch.no_grad():
            for cls in select(1, 3, into_distinct_nodes):
                for name, weight in whole.attention.weights_of(cls).items():
                    ours.attention.weights_of(cls)[name].copy_(weight)
            if whole.attention.directions is not None:
                ours.attention.directions.copy_(whole.attention.directions)
            itself = next(n for n, c in enumerate(whole.widen.classes) if c.matching == ((0, 0), (1, 1), (2, 2)))
            pattern = whole.widen.patterns.index(whole.widen.classes[itself].target)
            for mine, theirs in ((ours.mlp[1], whole.widen), (ours.mlp[4], whole.narrow)):
                mine.weight.copy_(theirs.weight[itself].T)
                mine.bias.copy_(theirs.bias[pattern])
            ours.norm.load_state_dict(whole.norm_attention.state_dict())
            ours.mlp[0].load_state_dict(whole.norm_mlp.state_dict())
        nodes = CompleteIndexSet(1, torch.tensor([sum(SIZES)]))
        tuples = torch.from_numpy(distinct_tuples(hyperedges().train, SIZES)[0])
        target = SparseIndexSet(tuples, num_nodes=sum(SIZES))
        x = Features.of_rows(nodes, torch.randn(sum(SIZES), 8, dtype=torch.float64))
        torch.testing.assert_close(ours(x, target).rows, whole(x, target).rows)

    @pytest.mark.parametrize("name", ["ours", "ours softmax", "s2g mean"])
    def test_relabelling_the_nodes_changes_nothing(self, name):
        torch.manual_seed(0)
        data = hyperedges()
        model = MODELS[name].build(shapes_of(data)).double().eval()
        assert isinstance(model, TupleNetwork)
        tuples = torch.from_numpy(distinct_tuples(data.train, SIZES)[0])
        embedded = torch.randn(data.num_nodes, 8, dtype=torch.float64)
        order = torch.cat([first + torch.randperm(size) for first, size in zip(data.offsets, SIZES, strict=True)])
        torch.testing.assert_close(model.score(embedded[order], order.argsort()[tuples]), model.score(embedded, tuples))

    def test_nodes_encoded_once_give_the_same_scores(self):
        torch.manual_seed(0)
        model = MODELS["ours elu"].build(shapes_of(hyperedges())).eval()
        tuples = torch.from_numpy(distinct_tuples(hyperedges().train, SIZES)[0])
        torch.testing.assert_close(model.scorer()(tuples), model(tuples))

    def test_walk_embeddings_are_made_by_training_and_never_again(self):
        torch.manual_seed(0)
        model = MODELS["mean"].build(shapes_of(hyperedges()))
        tuples = torch.tensor(hyperedges().train)
        model.eval()(tuples)
        assert not model.embed.made
        model.train()(tuples)
        made = model.embed.weight.clone()
        model(tuples)
        assert model.embed.made and torch.equal(model.embed.weight, made)
        nodes = functional.normalize(made[tuples], dim=-1)
        cosines = [(nodes[:, a] * nodes[:, b]).sum(-1) for a, b in ((0, 1), (0, 2), (1, 2))]
        expected = functional.softplus(torch.ones(())) * torch.stack(cosines).mean(0)
        torch.testing.assert_close(model(tuples), expected)


class TestRecipes:
    def test_the_full_scale_is_the_protocol(self):
        for recipe in recipes.RECIPES:
            run = recipe.make("full")
            assert run.reduced == "" and run.batch_size == 96 and run.optimiser.learning_rate == 1e-3
            if "node2vec" not in recipe.row:
                assert run.schedule.epochs == 300

    def test_quick_is_said_to_be_reduced(self):
        for recipe in recipes.RECIPES:
            run, full = recipe.make("quick"), recipe.make("full")
            same = [getattr(run, name) == getattr(full, name) for name in ("model", "optimiser", "schedule", "batch_size")]
            assert bool(run.reduced) == (not all(same))
            assert not full.reduced
            assert isinstance(run.task, PublishedHyperedges)
            assert (run.task.selection_by == "published") == ("published" in recipe.dataset)

    def test_the_papers_values_belong_to_rows_and_datasets(self):
        datasets = {recipe.dataset for recipe in recipes.RECIPES}
        for dataset, row, metric in recipes.TABLE.paper:
            assert dataset in datasets and row in recipes.TABLE.rows and metric in recipes.METRICS
        assert len(recipes.TABLE.paper) == (8 * 3 + 2) * 2  # as written on all three, as published on two

    def test_rows_as_published_have_the_papers_training_and_the_depth_behind_its_numbers(self):
        made = {recipe.name: recipe.make("full") for recipe in recipes.RECIPES}
        depth = {"gps": (0, 3), "movielens": (2, 1)}
        for dataset in ("gps", "movielens", "drug"):
            rows = {"written": (1, 4) if dataset == "gps" else (3, 2)}
            rows |= {"published": depth[dataset]} if dataset in depth else {}
            for name, (layers, hidden) in rows.items():
                run = made[f"hyperedges/{dataset}-published/ours-s-phi-as-{name}"]
                assert (run.model.layers, run.model.hidden, run.model.dropout) == (layers, hidden, 0.0)
                assert (run.schedule.decay, run.optimiser.average, run.optimiser.name) == ("none", 0.0, "adam")
                assert (run.schedule.epochs, run.batch_size, run.optimiser.learning_rate) == (300, 96, 1e-3)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A model of own triples: a user likes what has the colour of the user's number."""
    folder = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    lines = ["user,note,item,colour"]
    for _ in range(300):
        user, item = rng.integers(20), rng.integers(12)
        lines.append(f"user{user},x,item {(user + 4 * item) % 12},{['red', 'green', 'blue', 'grey'][user % 4]}")
    (folder / "triples.csv").write_text("\n".join(lines) + "\n")
    data = ["--data", str(folder / "triples.csv"), "--columns", "user,item,colour"]
    size = ["--epochs", "12", "--batch-size", "32", "--quiet", "--set", "optimiser.learning_rate=0.01"]
    assert main(["train", "hyperedges", *data, *size, "--out", str(folder / "model")]) == 0
    return folder


class TestOwnTuples:
    def test_candidates_get_a_score_each_in_a_copy_of_their_table(self, trained, capsys):
        table = trained / "candidates.csv"
        table.write_text("colour,id,user,item\nred,1,user4,item 0\nblue,2,user4,item 0\nred,3,user4,item 0\n")
        assert main(["predict", str(trained / "model"), "--candidates", str(table)]) == 0
        written = (trained / "candidates-scored.csv").read_text().splitlines()
        assert written[0] == "colour,id,user,item,score" and len(written) == 4
        rows = [line.split(",") for line in written[1:]]
        assert [row[:4] for row in rows] == [line.split(",") for line in table.read_text().splitlines()[1:]]
        scores = [float(row[4]) for row in rows]
        assert scores[0] == scores[2] > scores[1], "users have one colour"
        assert "3 candidates" in capsys.readouterr().out

    def test_completions_are_ranked(self, trained, capsys):
        assert main(["predict", str(trained / "model"), "--complete", "user4,?,?", "--top", "3"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].split() == ["rank", "user", "item", "colour", "score", "in", "training"]
        best = [line.split() for line in lines[1:4]]
        assert [row[0] for row in best] == ["1", "2", "3"] and {row[1] for row in best} == {"user4"}
        scores = [float(row[5]) for row in best]
        assert scores == sorted(scores, reverse=True)
        assert best[0][4] == "red"
        assert lines[-1] == "3 of 48 completions"
        out = trained / "best.csv"
        assert main(["predict", str(trained / "model"), "--complete", "?,item 3,?", "--output", str(out)]) == 0
        assert len(out.read_text().splitlines()) == 11

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--complete", "usr4,?,?"], "user 'usr4' is unknown (20 known); the nearest known name is 'user4'"),
            (["--complete", "user4,?"], "expected 3 names (user, item, colour), got ['user4', '?']"),
            (["--complete", "user4,?,?", "--top", "0"], "--top must be at least 1"),
            (["--complete", "user4\n,?,?"], "--complete takes one tuple of names and gaps"),
            (["--candidates", "nothing.csv"], "there is no file or folder nothing.csv"),
            (["--complete", "user4,?,?", "--features", __file__], "--features is not for this model: TableHyperedges"),
            ([], "say what to predict"),
        ],
    )
    def test_questions_that_cannot_be_answered(self, trained, capsys, arguments, message):
        assert main(["predict", str(trained / "model"), *arguments]) == 1
        assert message in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "has no candidates: it is empty"),
            (b"user,item,colour\n", "has no candidates below its header"),
            (b"user,item,colour,score\nuser4,item 0,red,1\n", "has a column 'score' already"),
            ("user,item,colour\nuser4,item 0,r\u00f6d\n".encode("latin-1"), "line 2: byte 0xf6 at column 15 is not UTF-8"),
        ],
    )
    def test_tables_without_candidates(self, trained, capsys, content, message):
        table = trained / "bad.csv"
        table.write_bytes(content)
        assert main(["predict", str(trained / "model"), "--candidates", str(table)]) == 1
        assert message in capsys.readouterr().err and not (trained / "bad-scored.csv").exists()

    def test_an_unknown_name_in_a_table_is_refused_with_its_line(self, trained, capsys):
        table = trained / "unknown.csv"
        table.write_text("user,item,colour\nuser4,item 0,red\nuser4,item 0,pink\n")
        assert main(["predict", str(trained / "model"), "--candidates", str(table)]) == 1
        error = capsys.readouterr().err
        assert "line 3" in error and "colour 'pink' is unknown" in error
        assert not (trained / "unknown-scored.csv").exists()

    @pytest.mark.parametrize(
        ("content", "columns", "message"),
        [
            (b"a,b\nx,y\nx,\n", "a,b", "line 3: the value of column 'b' is missing"),
            (b"a\nx\n", "a", "at least two columns"),
            (b"a,b\nx,\xff\n", "a,b", "line 2: byte 0xff"),
            (b"a,b\nx,y\nx,y\n", "a,b", "leaves a part empty"),
            (b"a,b\nx,y\n", "a,c", "the header must name 'c'"),
        ],
    )
    def test_tables_that_cannot_be_learned_from(self, tmp_path, capsys, content, columns, message):
        path = tmp_path / "bad.csv"
        path.write_bytes(content)
        arguments = ["--data", str(path), "--columns", columns, "--quiet", "--out", str(tmp_path / "model")]
        assert main(["train", "hyperedges", *arguments]) == 1
        assert message in capsys.readouterr().err


def test_pair_counts_score_tuples_by_what_was_seen_together():
    train = np.array([[0, 2, 4], [0, 2, 5], [1, 3, 4]])
    tally = PairTally(Known((2, 2, 2), ("a", "b", "c"), train, np.ones(3)))
    scores = tally(torch.tensor([[0, 2, 4], [1, 2, 5], [1, 3, 5]])).tolist()
    expected = [np.log1p(2) + 2 * np.log1p(1), np.log1p(1), np.log1p(1)]
    assert scores == pytest.approx(expected)
