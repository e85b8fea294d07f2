"""Models of pairs, the Delaunay task and people's own sets, from files to predictions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from anyorder.cli import main
from anyorder.experiments.set_to_graph import models
from anyorder.experiments.set_to_graph.baselines.rows import DELAUNAY_ROWS, JETS_ROWS
from anyorder.experiments.set_to_graph.baselines.siamese import SiameseTriplet
from anyorder.experiments.set_to_graph.delaunay_picture import Panel, draw_models
from anyorder.experiments.set_to_graph.delaunay_recipes import MODELS, RECIPES, SIZES, TABLE
from anyorder.experiments.set_to_graph.delaunay_task import Delaunay
from anyorder.experiments.set_to_graph.edge_metrics import partition_loss, soft_f1
from anyorder.experiments.set_to_graph.files import LabelKind
from anyorder.experiments.set_to_graph.fitting import SetFit, model_of
from anyorder.experiments.set_to_graph.models import SetEncoder, as_settings, narrowed
from anyorder.experiments.set_to_graph.sets import SetBatch, SetSample, SetShapes, collate_sets
from anyorder.experiments.set_to_graph.task import SetsFromFile, StandardisedSets, summed_partition_loss
from anyorder.experiments.set_to_graph.triangulations import DelaunaySets, triangulate
from anyorder.experiments.set_to_graph.writers import write_sets
from anyorder.layers import SHARP, RandomFeatures, Softmax
from anyorder.training.checkpoints import load_model, load_run
from anyorder.training.config import from_data, to_data
from anyorder.training.fit import Job, Machine, carry_out, resume
from anyorder.training.records import Record
from anyorder.training.run import Optimiser, PredictRequest, Run, Schedule
from learning import assert_learns

QUIET = Machine(progress=False, accelerator="cpu")
SMALL = SetEncoder(layers=1, channels=8, heads=2, head_channels=4, head=(8,), dropout=0.0)
KERNELS = [Softmax(), RandomFeatures(num_features=6)]


def ragged(sizes: tuple[int, ...] = (4, 7, 3, 5)) -> list[SetSample]:
    rng = np.random.default_rng(0)
    return [SetSample(rng.random((size, 2), dtype=np.float32), triangulate(rng.random((size, 2)))) for size in sizes]


class TestPairEncoder:
    @pytest.mark.parametrize("kernel", KERNELS)
    def test_a_set_does_not_see_its_batch_neighbours(self, kernel):
        config = replace(SMALL, kernel=kernel)
        model, samples = config.build(SetShapes(2)).eval(), ragged()
        together = model(config.collate()(samples))
        alone = torch.cat([model(config.collate()([sample])) for sample in samples])
        torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_permuting_points_permutes_pairs(self, kernel):
        model, [sample] = replace(SMALL, kernel=kernel).build(SetShapes(2)).eval(), ragged((6,))
        order = np.random.default_rng(1).permutation(6)
        before = model(collate_sets([sample])).view(6, 6)
        after = model(collate_sets([SetSample(sample.points[order])])).view(6, 6)
        torch.testing.assert_close(after, before[order][:, order], atol=1e-5, rtol=1e-4)

    @pytest.mark.parametrize("kernel", KERNELS)
    def test_what_workers_prepare_changes_nothing(self, kernel):
        config = replace(SMALL, kernel=kernel)
        model, samples = config.build(SetShapes(2)).eval(), ragged()
        prepared = config.collate()(samples)
        assert prepared.nodes is not None  # type: ignore[attr-defined]
        torch.testing.assert_close(model(prepared.to("cpu")), model(collate_sets(samples)))

    def test_a_prediction_leaves_nothing_that_a_training_could_not_use(self):
        model, batch = SMALL.build(SetShapes(2)), collate_sets(ragged((7, 7)))
        with torch.inference_mode():
            model(batch)
        model(batch).sum().backward()

    def test_equal_sizes_take_the_shared_index_set(self):
        model, samples = SMALL.build(SetShapes(2)).eval(), ragged((5, 5))
        assert SMALL.collate()(samples).nodes is None  # type: ignore[attr-defined]
        split = torch.cat([model(collate_sets([sample])) for sample in samples])
        torch.testing.assert_close(model(collate_sets(samples)), split, atol=1e-5, rtol=1e-4)


class TestRows:
    def test_the_table_has_every_row_for_both_datasets(self):
        assert [recipe.dataset for recipe in RECIPES] == [d for d in SIZES for _ in MODELS]
        ours = {"Ours (D, learned phi)", "Ours (D, learned phi), exact"}
        assert {row for _, row, _ in TABLE.paper} == set(MODELS) - {"MLP", *ours}
        assert RECIPES[0].name == "delaunay/50/siam" and RECIPES[-1].name == "delaunay/20-80/ours-d-learned-phi-exact"

    @pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
    @pytest.mark.parametrize("scale", ["quick", "full"])
    def test_a_run_can_be_written_down_and_read_back(self, recipe, scale):
        run = recipe.make(scale)
        assert from_data(json.loads(json.dumps(to_data(run)))) == run

    @pytest.mark.parametrize("scale", ["quick", "full"])
    def test_all_rows_see_as_many_sets(self, scale):
        runs = [recipe.make(scale) for recipe in RECIPES]
        assert len({(run.task.train_sets, run.schedule.epochs) for run in runs}) == 1
        assert all(bool(run.reduced) == (scale == "quick") for run in runs)

    def test_the_protocol_at_full_scale(self):
        by_name = {recipe.name: recipe.make("full") for recipe in RECIPES}
        ours, baseline = by_name["delaunay/20-80/ours-d"], by_name["delaunay/50/gnn5"]
        assert ours.model == SetEncoder(5, 256, 4, 64, (256, 256), Softmax(), None, 0.1, own_diagonal=True)
        assert (ours.batch_size, ours.optimiser.learning_rate, ours.schedule.warmup_epochs) == (16, 1e-4, 0)
        assert by_name["delaunay/20-80/ours-d-phi"].schedule.warmup_epochs == 1
        assert ours.task == Delaunay(20, 80, with_f1=True) and ours.task.train_sets == 50_000 and not ours.task.standardise
        assert (baseline.batch_size, baseline.optimiser.learning_rate, baseline.schedule.epochs) == (64, 1e-4, 100)

    def test_the_medium_scale_has_ten_times_the_steps_and_128_channels(self):
        chosen = [recipe for recipe in RECIPES if "medium" in recipe.scales]
        assert len(chosen) == 14
        for recipe in chosen:
            run, quick = recipe.make("medium"), recipe.make("quick")
            steps, few = (r.task.train_sets * r.schedule.epochs // r.batch_size for r in (run, quick))
            assert steps == 10 * few == 30_000 and run.task.with_f1 and "30,000 steps" in run.reduced
            assert from_data(json.loads(json.dumps(to_data(run)))) == run
            if recipe.row.startswith("Ours"):
                assert (run.model.channels, run.model.own_diagonal) == (128, True)
        with pytest.raises(ValueError, match="delaunay/50/mlp has the scales quick, full, got 'medium'"):
            Job.of(next(r for r in RECIPES if r.row == "MLP"), scale="medium", seed=0)

    def test_own_sets_have_the_sharpest_kernel_of_linear_time(self):
        found = model_of(SetFit(model="ours-phi"), largest=9)
        assert (found.kernel, found.coupling) == (SHARP["kernel"], "exact")

    def test_loops_have_a_head_of_their_own(self):
        torch.manual_seed(0)
        batch = collate_sets(list(DelaunaySets(num_sets=2, min_points=4, max_points=6, seed=0)))
        model = replace(SMALL, own_diagonal=True).build(SetShapes(2)).eval()
        with torch.no_grad():
            before = model(batch)
            for weight in model.diagonal_head.parameters():
                weight.zero_()
            after = model(batch)
        assert after[batch.is_diagonal].eq(0).all() and not before[batch.is_diagonal].eq(0).any()
        assert torch.equal(after[~batch.is_diagonal], before[~batch.is_diagonal])

    @pytest.mark.parametrize("name", DELAUNAY_ROWS)
    def test_a_row_as_settings_builds_the_same_model(self, name):
        expected, built = DELAUNAY_ROWS[name].build(), as_settings(DELAUNAY_ROWS[name]).build(SetShapes(2))
        shapes = [{key: value.shape for key, value in model.state_dict().items()} for model in (expected, built)]
        assert shapes[0] == shapes[1] and type(expected) is type(built)

    def test_pooling_and_basis_survive(self):
        model = as_settings(JETS_ROWS["S2G+"]).build(SetShapes(10))
        assert (model.head.basis, model.head.pooling) == (JETS_ROWS["S2G+"].basis, JETS_ROWS["S2G+"].pooling)  # type: ignore

    @pytest.mark.numeric
    @pytest.mark.parametrize("row", MODELS)
    def test_every_row_learns_from_a_batch(self, row):
        model = MODELS[row]
        config = replace(SMALL, kernel=model.kernel) if isinstance(model, SetEncoder) else narrowed(model, 0.02)
        task = Delaunay(6, 9)
        batch = task.collate(config)(list(DelaunaySets(num_sets=8, min_points=6, max_points=9, seed=0)))
        built = []

        def make():
            built.append(config.build(SetShapes(2)))
            return built[-1], lambda: task.loss(built[-1], batch)

        # In nats, from about 0.70 to below 0.66; statistics of the batch are no noise.
        assert_learns(make, lambda first: first - 0.02, steps=30, rate=1e-2, training=True)
        model = built[-1]
        scores = task.metrics(task.evaluate(model.eval(), batch))
        assert set(scores) == {"Acc", "Prec", "Rec", "F1"} and all(0 <= value <= 1 for value in scores.values())

    def test_siam3_learns_from_triplets(self):
        model = narrowed(MODELS["SIAM-3"], 0.02).build(SetShapes(2))
        batch = collate_sets(ragged())
        assert isinstance(model, SiameseTriplet)
        torch.manual_seed(3)
        expected = model.triplet_loss(batch)
        torch.manual_seed(3)
        torch.testing.assert_close(Delaunay().loss(model, batch), expected)


class TestDelaunay:
    def test_parts_differ_and_are_kept(self, tmp_path):
        task = Delaunay(5, 8, train_sets=6, valid_sets=3, test_sets=4)
        splits = task.load(seed=1, data_dir=tmp_path)
        assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [6, 3, 4]  # type: ignore[arg-type]
        firsts = [part[0].points[:3].tolist() for part in (splits.train, splits.valid, splits.test)]  # type: ignore[index]
        assert firsts[0] != firsts[1] != firsts[2] != firsts[0]
        assert len(list((tmp_path / "delaunay").glob("*.npz"))) == 3

    def test_published_looks_at_the_test_set(self, tmp_path):
        splits = Delaunay(5, 5, 3, 3, 2, published=True).load(seed=0, data_dir=tmp_path)
        assert len(splits.valid) == 2  # type: ignore[arg-type]
        np.testing.assert_array_equal(splits.valid[0].points, splits.test[0].points)  # type: ignore[index]

    def test_standardised_points_have_mean_0_and_deviation_1(self, tmp_path):
        task = Delaunay(50, 50, 40, 1, 1, standardise=True)
        splits = task.load(seed=0, data_dir=tmp_path)
        points = np.concatenate([splits.train[n].points for n in range(40)])
        assert abs(points.mean()) < 0.05 and abs(points.std() - 1) < 0.05
        raw = task.sets(40, part=0, seed=0)[0]
        np.testing.assert_allclose(StandardisedSets([raw], splits.shapes)[0].points, splits.train[0].points)


def test_the_sum_of_soft_f1_goes_over_the_sets_of_all_processes(monkeypatch):
    batch, generator = collate_sets(ragged()), torch.Generator().manual_seed(0)
    logits = torch.randn(batch.num_pairs, generator=generator)
    torch.testing.assert_close(summed_partition_loss(logits, batch), partition_loss(logits, batch, sum_f1=True))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
    entropy = partition_loss(logits, batch, sum_f1=True) + soft_f1(logits, batch).sum()
    torch.testing.assert_close(summed_partition_loss(logits, batch), entropy - 3 * soft_f1(logits, batch).sum())


def high_pairs(rng: np.random.Generator, number: int) -> list[SetSample]:
    """Points on a line far from zero; two of them are joined where their middle is above its mean: a convex fit."""
    sets = []
    for _ in range(number):
        points = rng.normal(size=(int(rng.integers(3, 8)), 1)).astype(np.float32) * 5 + 40
        edges = [(i, j) for i in range(len(points)) for j in range(i) if points[i, 0] + points[j, 0] > 80]
        sets.append(SetSample.from_edges(points, np.array(edges).reshape(-1, 2)))
    return sets


def two_groups(rng: np.random.Generator, number: int) -> list[SetSample]:
    """Points above and below zero."""
    sets = []
    for _ in range(number):
        points = rng.normal(size=(int(rng.integers(2, 8)), 2)).astype(np.float32)
        sets.append(SetSample.from_partition(points, (points[:, 0] > 0).astype(int)))
    return sets


class TestOwnSets:
    @pytest.mark.parametrize(
        ("name", "kind", "make"),
        [("high.parquet", LabelKind.EDGES, high_pairs), ("groups.npz", LabelKind.PARTITION, two_groups)],
    )
    def test_from_a_file_to_predictions(self, tmp_path, capsys, name, kind, make):
        rng = np.random.default_rng(0)
        write_sets(tmp_path / name, make(rng, 90), kind)
        new = make(rng, 9)
        write_sets(tmp_path / f"new-{name}", new, LabelKind.NONE)
        out = tmp_path / "model"
        size = ["--channels", "16", "--layers", "1", "--epochs", "6", "--batch-size", "8", "--learning-rate", "5e-3"]
        arguments = ["train", "set-to-graph", "--data", str(tmp_path / name), "--out", str(out), "--quiet", *size]
        assert main([*arguments, "--accelerator", "cpu"]) == 0
        record = json.loads((out / "record.json").read_text())
        assert record["metrics"][""]["F1"] > 0.7
        assert main(["predict", str(out), "--input", str(tmp_path / f"new-{name}")]) == 0
        assert f"{kind.value} of 9 sets" in capsys.readouterr().out
        lines = (tmp_path / f"new-{Path(name).stem}.predicted.jsonl").read_text().splitlines()
        found = [json.loads(line)[kind.value] for line in lines]
        if kind is LabelKind.PARTITION:
            assert [len(clusters) for clusters in found] == [len(sample.points) for sample in new]
        else:
            true = sum(len(sample.edges) for sample in new)
            right = sum(len({*map(tuple, edges)} & {*map(tuple, s.edges.tolist())}) for edges, s in zip(found, new))
            assert right > 0.6 * true

    def test_a_model_is_never_overwritten(self, tmp_path, capsys):
        Record("own/x", "own", "x", "ours", "full", 0, "", (), {}, {}, [], 1.0, 1).write(tmp_path / "record.json")
        assert main(["train", "set-to-graph", "--data", __file__, "--out", str(tmp_path)]) == 1
        assert "holds a trained model already" in capsys.readouterr().err

    def test_labels_are_needed(self, tmp_path, capsys):
        write_sets(tmp_path / "bare.npz", ragged(), LabelKind.NONE)
        arguments = ["train", "set-to-graph", "--data", str(tmp_path / "bare.npz"), "--out", str(tmp_path / "m")]
        assert main(arguments) == 1
        assert "expected labels to learn from" in capsys.readouterr().err

    def test_other_features_are_refused(self, tmp_path):
        write_sets(tmp_path / "three.npz", [SetSample(np.zeros((2, 3), np.float32))], LabelKind.NONE)
        task = SetsFromFile("unused", "edges")
        with pytest.raises(ValueError, match="points of 2 features, got 3"):
            list(task.read_input(tmp_path / "three.npz", SetShapes(2)))

    def test_too_few_sets(self, tmp_path):
        write_sets(tmp_path / "two.npz", ragged((3, 4)), LabelKind.EDGES)
        with pytest.raises(ValueError, match="too few to train, validate and test"):
            SetsFromFile(str(tmp_path / "two.npz"), "edges").load(seed=0, data_dir=None)

    def test_shares_must_leave_something_to_train_on(self):
        with pytest.raises(ValueError, match="must leave some"):
            SetsFromFile("f.npz", "edges", valid=0.5, test=0.5)

    def test_predict_needs_an_input(self):
        with pytest.raises(ValueError, match="name the sets with --input"):
            SetsFromFile("f.npz", "edges").predict(nn.Identity(), {}, PredictRequest(Path()))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of two epochs, and one that was stopped after the first and went on."""
    folder = tmp_path_factory.mktemp("delaunay")
    task = Delaunay(6, 9, train_sets=24, valid_sets=4, test_sets=4, standardise=True)
    run = Run(task, SMALL, Optimiser(learning_rate=1e-2), Schedule(epochs=2, decay="linear"), batch_size=8)
    machine = replace(QUIET, data_dir=folder)
    job = Job("delaunay/small", "delaunay", "Delaunay (small)", "Ours (D)", run)
    return folder, carry_out(job, folder / "run", machine), job, machine


def test_an_interrupted_run_goes_on_to_the_same_result(trained, monkeypatch):
    folder, whole, job, machine = trained
    from anyorder.training import fit

    class Stop(fit.Keeper):
        def on_train_epoch_end(self, trainer, module):
            super().on_train_epoch_end(trainer, module)
            raise RuntimeError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(fit, "Keeper", Stop)
        with pytest.raises(RuntimeError, match="stopped"):
            carry_out(job, folder / "again", machine)
    assert resume(folder / "again", machine).metrics == whole.metrics


class TestPicture:
    def test_two_models_side_by_side(self, trained, tmp_path):
        folder = trained[0] / "run"
        rows = draw_models([folder, folder], tmp_path / "two.png", num_sets=2, seed=5)
        assert [len(row) for row in rows] == [2, 2] and rows[0][0].title == "Ours (D)"
        assert (tmp_path / "two.png").stat().st_size > 10_000
        run, model = load_model(folder)
        known = StandardisedSets(run.task.sets(2, part=2, seed=5), load_run(folder)[1])  # type: ignore[attr-defined]
        scores = run.task.evaluate(model, collate_sets([known[0], known[1]]))
        for row, guess in zip(rows, scores["F1"].tolist()):
            assert row[0].f1 == pytest.approx(guess, abs=0.35)  # the picture leaves loops out

    def test_every_edge_has_one_kind(self):
        true, predicted = np.array([[0, 1], [1, 2]]), np.array([[1, 2], [0, 2]])
        panel = Panel("", np.zeros((3, 2), np.float32), true, predicted)
        assert {kind: len(edges) for kind, edges in panel.edges().items()} == {"right": 1, "missed": 1, "wrong": 1}
        assert panel.f1 == 0.5

    def test_other_files_are_refused(self, tmp_path, capsys):
        assert main(["draw", "delaunay", "--output", str(tmp_path / "x.gif")]) == 1
        assert "expected a file ending in .png" in capsys.readouterr().err

    def test_other_tasks_are_refused(self, tmp_path):
        write_sets(tmp_path / "s.npz", ragged((3, 4, 5)), LabelKind.EDGES)
        run = Run(SetsFromFile(str(tmp_path / "s.npz"), "edges"), SMALL, schedule=Schedule(epochs=0))
        carry_out(Job("own/x", "own", "s", "ours", run), tmp_path / "own", QUIET)
        with pytest.raises(ValueError, match="expected one of Delaunay"):
            draw_models([tmp_path / "own"], tmp_path / "x.png")


@pytest.mark.parametrize("own_diagonal", [False, True])
@pytest.mark.parametrize("kernel", [Softmax(), RandomFeatures()])
def test_a_large_set_is_answered_in_blocks_as_it_is_at_once(kernel, own_diagonal, monkeypatch):
    torch.manual_seed(0)
    model = models.SetEncoder(2, 16, 2, 8, (16,), kernel, None, 0.0, own_diagonal).build(SetShapes(2)).eval()
    batch = SetBatch(torch.randn(23, 2), torch.tensor([23]))
    with torch.inference_mode():
        whole = model(batch)
        monkeypatch.setattr(models, "MOST_PAIRS", 25)
        sizes = []
        hook = model.head.register_forward_hook(lambda _, given, out: sizes.append(len(out)))
        blocks = model(batch)
        hook.remove()
    assert max(sizes) <= 2 * 25 + 2 * 5 < 23 * 23
    torch.testing.assert_close(blocks, whole)
