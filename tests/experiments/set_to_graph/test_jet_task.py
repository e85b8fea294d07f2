"""Jets as a task: parts, rows without learning, batches of equal size, predictions from ROOT files."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

pytest.importorskip("uproot")

from anyorder.cli import main
from anyorder.datasets.registry import folder
from anyorder.experiments.set_to_graph.baselines.vertexing import VertexFinder, measured_resolution
from anyorder.experiments.set_to_graph.jet_recipes import MATCHED, MODELS, OURS, RECIPES, SAMPLES, TABLE
from anyorder.experiments.set_to_graph.jet_statistics import statistics
from anyorder.experiments.set_to_graph.jet_task import (
    EqualSizeBatches,
    Jets,
    JetSets,
    OneCluster,
    VertexReconstruction,
    expanded,
)
from anyorder.experiments.set_to_graph.jets import (
    FEATURES,
    JET_FEATURES,
    SPLITS,
    TRACK_FEATURES,
    JetSample,
    normalisation,
    read_jets,
    write_jets,
)
from anyorder.experiments.set_to_graph.partitions import partition_scores
from anyorder.experiments.set_to_graph.sets import SetShapes, collate_sets
from anyorder.experiments.set_to_graph.tracks import Resolution, perigee
from anyorder.training.config import from_data, to_data
from anyorder.training.fit import Job, Machine, carry_out
from anyorder.training.run import Run, Schedule
from data_folder import DATA
from learning import assert_learns

needs_data = pytest.mark.skipif(not (DATA / "jets_alice").is_dir(), reason="jets_alice is not on this machine")


def make_sample(num_jets: int, seed: int) -> JetSample:
    """Tracks from the origin, and in bottom and charm jets from a second vertex some millimetres away."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, 9, num_jets)
    owner = np.repeat(np.arange(num_jets), counts)
    flavour = rng.choice(np.array([0, 4, 5], dtype=np.int32), num_jets)
    direction = rng.uniform(-np.pi, np.pi, num_jets)[owner] + rng.normal(0, 0.15, len(owner))
    vertex = ((rng.random(len(owner)) < 0.5) & (flavour[owner] > 0)).astype(np.int32)
    flight = rng.uniform(2, 6, num_jets)[owner] * vertex
    birth = np.stack([flight * np.cos(direction), flight * np.sin(direction), 0 * flight], axis=1)
    pt = rng.uniform(1, 10, len(owner))
    aim = direction + rng.normal(0, 0.3, len(owner))
    momentum = np.stack([pt * np.cos(aim), pt * np.sin(aim), rng.normal(0, 2, len(owner))], axis=1)
    track = Resolution().smear(perigee(birth, momentum, rng.choice([-1.0, 1.0], len(owner)), 2.0), rng)
    jet = np.stack([np.full(num_jets, 50.0), np.zeros(num_jets), np.zeros(num_jets), np.full(num_jets, 9.0)], axis=1)
    columns = [track.d0, track.z0, track.phi, track.ctgtheta, track.pt, track.charge]
    features = np.concatenate([np.stack(columns, axis=1), jet[owner]], axis=1)
    return JetSample(features, vertex, np.concatenate([[0], np.cumsum(counts)]), flavour)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A small sample under the name of the simulated one."""
    place = tmp_path_factory.mktemp("data")
    for seed, (part, number) in enumerate({"train": 900, "valid": 60, "test": 90}.items()):
        write_jets(folder("jets_simulated", data_dir=place) / SPLITS[part], make_sample(number, seed))
    return place


@pytest.fixture(scope="module")
def splits(data):
    return Jets("simulated").load(seed=0, data_dir=data)


def replace_model(run: Run, model: OneCluster) -> Job:
    return Job("jets/other", "jets", "Jets (simulated)", "other", replace(run, model=model))


class TestTask:
    def test_features_are_normalised_by_the_training_part(self, data, splits):
        raw = read_jets(folder("jets_simulated", data_dir=data) / SPLITS["train"])
        assert tuple(splits.shapes.mean) == normalisation(raw).mean
        assert splits.shapes.channels == len(FEATURES)
        assert abs(splits.train.sample.features.mean(axis=0)).max() < 0.1

    def test_jets_are_cliques_with_loops(self, splits):
        sample, jet = splits.test[3], splits.test.sample.jet(3)
        np.testing.assert_array_equal(sample.adjacency, jet.vertex[:, None] == jet.vertex[None])
        assert sample.label == jet.flavour

    def test_compressed_features_can_be_expanded(self, data, splits):
        small = Jets("simulated", compress=True).load(seed=0, data_dir=data)
        raw = splits.test.sample.features * splits.shapes.deviation + splits.shapes.mean
        again = expanded(small.test.sample.features * small.shapes.deviation + small.shapes.mean)
        np.testing.assert_allclose(again, raw, rtol=1e-3, atol=1e-4)
        assert small.shapes.mean != splits.shapes.mean
        batch = collate_sets([small.test[n] for n in range(20)])
        plain = collate_sets([splits.test[n] for n in range(20)])
        same = VertexReconstruction().build(small.shapes)(batch) == VertexReconstruction().build(splits.shapes)(plain)
        assert same.float().mean() > 0.99

    def test_limit_keeps_the_first_jets(self, data):
        assert len(Jets("simulated", limit=10).load(seed=0, data_dir=data).train) == 10

    def test_missing_files_say_what_to_run(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="anyorder data simulate jets"):
            Jets("simulated").load(seed=0, data_dir=tmp_path)

    def test_scores_are_those_of_the_partition(self, splits):
        task, config = Jets("simulated"), OneCluster()
        batch = task.collate(config)([splits.test[n] for n in range(len(splits.test))])
        found = task.metrics(task.evaluate(config.build(splits.shapes), batch))
        sample = splits.test.sample
        expected = partition_scores(sample.vertex, np.zeros(len(sample.vertex), int), sample.offsets)
        for part, flavour in {"B": 5, "C": 4, "L": 0}.items():
            means = expected.mean(sample.flavour == flavour)
            assert found[f"{part}/F1"] == pytest.approx(means["f1"])
            assert found[f"{part}/RI"] == pytest.approx(means["rand_index"])
            assert found[f"{part}/ARI"] == pytest.approx(means["adjusted_rand_index"])
        assert found["F1"] == pytest.approx(expected.mean()["f1"]) and found["L/F1"] == 1.0

    def test_published_batches_hold_one_size(self, splits):
        task = Jets("simulated", published=True)
        place = {"batch_size": 16, "seed": 0, "rank": 0, "world": 1}
        batches = task.batches(splits.train, shuffle=True, **place)
        drawn = list(batches)
        sizes = splits.train.sample.num_tracks
        assert isinstance(batches, EqualSizeBatches) and len(drawn) == len(batches)
        assert all(len({sizes[n] for n in batch}) == 1 and len(batch) <= 16 for batch in drawn)
        assert sorted(n for batch in drawn for n in batch) == list(range(len(sizes)))
        batches.set_epoch(1)
        assert list(batches) != drawn
        assert not isinstance(task.batches(splits.test, shuffle=False, **place), EqualSizeBatches)

    def test_processes_share_published_batches(self, splits):
        sizes = splits.train.sample.num_tracks
        parts = [list(EqualSizeBatches(sizes, batch_size=16, seed=0, rank=r, world=2)) for r in (0, 1)]
        assert len(parts[0]) == len(parts[1])
        assert sorted(n for part in parts for batch in part for n in batch) == list(range(len(sizes)))


class TestRows:
    @pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
    def test_a_run_can_be_written_down_and_read_back(self, recipe):
        for scale in recipe.scales:
            run = recipe.make(scale)
            assert from_data(json.loads(json.dumps(to_data(run)))) == run

    def test_every_sample_has_every_row(self):
        named = [(sample, row) for rows in (MODELS, MATCHED) for sample in SAMPLES for row in rows]
        assert [(r.dataset, r.row) for r in RECIPES] == named
        assert len(TABLE.datasets) == 9 and ("Jets (official) (B)", "AVR", "F1") in TABLE.paper

    @pytest.mark.parametrize("row", MATCHED)
    def test_matched_rows_have_the_size_in_their_name(self, row):
        made = next(recipe for recipe in RECIPES if recipe.row == row).make("quick")
        count = sum(weight.numel() for weight in made.model.build(SetShapes(10)).parameters())
        assert abs(count / 1000 / int(row.split(", ")[-1].removesuffix("k")) - 1) < 0.01

    @pytest.mark.parametrize(
        ("row", "published"),
        {"MLP": 456, "SIAM": 453, "SIAM-3": 455, "GNN": 475, "S2G": 457, "S2G+": 461}.items(),
    )
    def test_sizes_are_the_published_ones(self, row, published):
        model = MODELS[row].build(SetShapes(10, 15))
        count = sum(weight.numel() for weight in model.parameters())
        assert abs(count / 1000 - published) < 0.02 * published

    @pytest.mark.numeric
    @pytest.mark.parametrize("row", [row for row in MODELS if row not in ("AVR", "One cluster")])
    def test_every_row_learns_from_a_batch(self, splits, row):
        """In nats and points of F1: joining all tracks of a jet or none of them is worth about 0.05."""
        small = {"layers": 1, "channels": 8, "heads": 2, "head_channels": 4, "head": (8,)}
        config = replace(OURS[row], **small) if row in OURS else MODELS[row]
        task = Jets("simulated", f1_over_sets="mean")
        batch = task.collate(config)([splits.train[n] for n in range(12)])

        def make():
            model = config.build(splits.shapes)
            return model, lambda: task.loss(model, batch)

        assert_learns(make, lambda first: first - 0.05, steps=20, rate=1e-2 if row in OURS else 3e-3)

    def test_vertex_reconstruction_sees_the_raw_tracks(self, data, splits):
        place = folder("jets_simulated", data_dir=data)
        test, train = (read_jets(place / SPLITS[part]) for part in ("test", "train"))
        model = VertexReconstruction().build(splits.shapes)
        batch = Jets("simulated").collate(VertexReconstruction())([splits.test[n] for n in range(len(splits.test))])
        labels = VertexFinder(resolution=measured_resolution(train))(test)
        first, second = batch.pair_index.numpy()
        assert np.mean((model(batch).detach().numpy() > 0) == (labels[first] == labels[second])) > 0.999

    @pytest.mark.parametrize("row", ["AVR", "One cluster"])
    def test_training_a_row_without_learning_does_nothing(self, splits, row):
        task, model = Jets("simulated"), MODELS[row].build(splits.shapes)
        batch = task.collate(MODELS[row])([splits.train[n] for n in range(4)])
        before = model(batch).detach()
        task.loss(model, batch).backward()
        torch.optim.Adam(model.parameters()).step()
        assert torch.equal(model(batch), before)

    def test_vertex_reconstruction_needs_light_jets(self, splits):
        with pytest.raises(ValueError, match="light jets of the training part"):
            VertexReconstruction().build(replace(splits.shapes, resolution=None))

    def test_rows_without_learning_are_tested_at_once(self, data, tmp_path):
        machine = Machine(progress=False, accelerator="cpu", data_dir=data)
        run = Run(Jets("simulated"), VertexReconstruction(), schedule=Schedule(epochs=0), batch_size=32)
        record = carry_out(Job("jets/avr", "jets", "Jets (simulated)", "AVR", run), tmp_path, machine)
        assert record.parameters == 0 and record.history == []
        trivial = carry_out(replace_model(run, OneCluster()), tmp_path / "one", machine)
        assert set(record.metrics) == set(trivial.metrics) == {"", "B", "C", "L"}
        assert record.metrics["B"]["RI"] > trivial.metrics["B"]["RI"] + 0.1
        place = folder("jets_simulated", data_dir=data)
        output = tmp_path / "vertices.jsonl"
        arguments = ["predict", str(tmp_path), "--input", str(place / SPLITS["test"]), "--output", str(output)]
        assert main(arguments) == 0
        rows = [json.loads(line)["partition"] for line in output.read_text().splitlines()]
        assert [len(row) for row in rows] == read_jets(place / SPLITS["test"]).num_tracks.tolist()

    def test_new_jets_need_no_truth_and_keep_their_places(self, data, tmp_path):
        machine = Machine(progress=False, accelerator="cpu", data_dir=data)
        run = Run(Jets("simulated"), OneCluster(), schedule=Schedule(epochs=0), batch_size=32)
        carry_out(Job("jets/one", "jets", "Jets (simulated)", "one", run), tmp_path / "model", machine)
        uproot, ak = pytest.importorskip("uproot"), pytest.importorskip("awkward")
        counts = [2, 0, 1, 3]
        tracks = {name.removeprefix("trk_"): np.linspace(1, 2, 6, dtype=np.float32) for name in TRACK_FEATURES}
        with uproot.recreate(tmp_path / "new.root") as file:
            inner = ", ".join(f"{name}: float32" for name in tracks)
            types = dict.fromkeys(JET_FEATURES, "float32") | {"trk": f"var * {{{inner}}}"}
            tree = file.mktree("tree", types, counter_name=lambda counted: "n_trks")
            jets = dict.fromkeys(JET_FEATURES, np.ones(4, dtype=np.float32))
            tree.extend({**jets, "trk": ak.unflatten(ak.zip(tracks), counts)})
        output = tmp_path / "vertices.jsonl"
        arguments = ["predict", tmp_path / "model", "--input", tmp_path / "new.root", "--output", output]
        assert main([str(argument) for argument in arguments]) == 0
        assert [json.loads(line)["partition"] for line in output.read_text().splitlines()] == [[0, 0], [], [0], [0, 0, 0]]
        with pytest.raises(ValueError, match=r"lacks the branches \['trk_vtx_index', 'jet_flav'\]"):
            read_jets(tmp_path / "new.root")


class TestCommands:
    def test_statistics_beside_the_official_ones(self, data, tmp_path, capsys):
        output = tmp_path / "statistics.md"
        arguments = ["data", "statistics", "jets_simulated", "--data-dir", str(data), "--output", str(output)]
        assert main(arguments) == 0
        text = output.read_text()
        assert "| | official | jets_simulated |" in text and "| jets | 900,000 | 1,050 |" in text
        place = folder("jets_simulated", data_dir=data)
        assert main([*arguments[:-2]]) == 0
        assert "| same-vertex entries per jet | 35.9 |" in capsys.readouterr().out
        assert statistics(read_jets(place / SPLITS["test"])).jets == 90

    def test_statistics_of_other_data(self, capsys):
        assert main(["data", "statistics", "qm9"]) == 1
        assert "statistics are those of jets" in capsys.readouterr().err

    @pytest.mark.slow
    def test_simulate(self, tmp_path, capsys):
        pytest.importorskip("pythia8mc")
        arguments = ["data", "simulate", "jets", "--jets", "30", "--seed", "3", "--data-dir", str(tmp_path), "--quiet"]
        assert main(arguments) == 0
        place = folder("jets_simulated", data_dir=tmp_path)
        assert sum(len(read_jets(place / name)) for name in SPLITS.values()) == 30


@needs_data
def test_vertex_reconstruction_on_real_files_beats_one_cluster(tmp_path):
    splits = Jets("alice").load(seed=0, data_dir=DATA)
    task = Jets("alice")
    assert isinstance(splits.test, JetSets)
    scores = {}
    for config in (OneCluster(), VertexReconstruction(magnetic_field=0.5)):
        batch = task.collate(config)([splits.test[n] for n in range(600)])
        scores[type(config)] = task.metrics(task.evaluate(config.build(splits.shapes), batch))
    assert scores[VertexReconstruction]["ARI"] > scores[OneCluster]["ARI"] + 0.1
