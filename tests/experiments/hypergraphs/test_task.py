from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from anyorder.experiments.chains.models import GraphMLP
from anyorder.experiments.hypergraphs.data import Hypergraph, NamedHypergraph
from anyorder.experiments.hypergraphs.models import MODELS, CliqueGCN, HypergraphConvNet, HypergraphMLP
from anyorder.experiments.hypergraphs.own import OwnNodes
from anyorder.experiments.hypergraphs.recipes import RECIPES, SETTINGS, TABLE
from anyorder.experiments.hypergraphs.shapes import HypergraphShapes, normalised, shapes_of
from anyorder.experiments.hypergraphs.task import PublishedNodes
from anyorder.training.checkpoints import load_model, load_run
from anyorder.training.fit import Job, Machine, carry_out, resume
from anyorder.training.run import Optimiser, PredictRequest, Run, Schedule
from data_folder import DATA

needs_data = pytest.mark.skipif(not (DATA / "hypergraph_nodeclass").is_dir(), reason="zoo is not on this machine")
QUIET = Machine(progress=False, accelerator="cpu")


def write_files(folder: Path, *, seed: int = 0, num_nodes: int = 90, labelled: float = 0.8) -> dict[str, str]:
    """Three groups of nodes; edges stay within a group, features are noise: only the edges and some labels tell them."""
    generator = torch.Generator().manual_seed(seed)
    group = torch.arange(num_nodes) % 3
    lines = []
    for number in range(150):
        pool = (group == number % 3).nonzero().flatten()
        size = 2 + number % 4
        chosen = pool[torch.randperm(len(pool), generator=generator)[:size]]
        lines.append(",".join(f"n{node}" for node in chosen.tolist()))
    names = ("red", "green", "blue")
    known = torch.rand(num_nodes, generator=generator) < labelled
    labels = [f"n{node},{names[int(group[node])]}" for node in range(num_nodes) if known[node]]
    weak = torch.randn(num_nodes, 3, generator=generator) + torch.nn.functional.one_hot(group, 3)
    rows = [f"n{node}," + ",".join(f"{value:.6f}" for value in weak[node].tolist()) for node in range(num_nodes)]
    texts = {"edges": lines, "labels": ["node,label", *labels], "features": ["node,x,y,z", *rows]}
    for name, text in texts.items():
        (folder / name).write_text("\n".join(text) + "\n")
    return {name: str(folder / name) for name in texts}


def own_job(files: dict[str, str], model=None, epochs: int = 40) -> Job:
    task = OwnNodes(normalise="columns", **files)
    model = model or HypergraphConvNet(channels=16)
    run = Run(task, model, Optimiser(learning_rate=1e-2), Schedule(epochs=epochs), batch_size=1)
    return Job("own/hypergraph", "own", "groups", "row", run)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    files = write_files(folder)
    record = carry_out(own_job(files), folder / "model", QUIET)
    return folder, files, record


@pytest.mark.numeric
def test_training_finds_the_groups(trained):
    assert trained[2].metrics[""]["accuracy"] > 80.0


@pytest.mark.numeric
def test_the_edges_help(trained, tmp_path):
    alone = carry_out(own_job(trained[1], HypergraphMLP(channels=16)), tmp_path / "mlp", QUIET)
    assert alone.metrics[""]["accuracy"] + 10.0 < trained[2].metrics[""]["accuracy"]


def test_a_stopped_run_goes_on_to_the_same_result(trained, tmp_path):
    job = own_job(trained[1], epochs=6)
    whole = carry_out(job, tmp_path / "whole", QUIET)
    broken = replace(job, run=replace(job.run, schedule=Schedule(epochs=3)))
    carry_out(broken, tmp_path / "part", QUIET)
    (tmp_path / "part" / "record.json").unlink()
    config = json.loads((tmp_path / "part" / "config.json").read_text())
    config["run"]["schedule"]["epochs"] = 6
    del config["sha256"]
    (tmp_path / "part" / "config.json").write_text(json.dumps(config))
    again = resume(tmp_path / "part", QUIET)
    losses = [[entry["loss"] for entry in record.history] for record in (whole, again)]
    assert len(losses[0]) == 6 and losses[0] == losses[1]
    assert whole.metrics == again.metrics


def test_labels_of_valid_and_test_nodes_do_not_reach_the_training(tmp_path):
    files = write_files(tmp_path)
    task = OwnNodes(normalise="columns", **files)
    split = task.split(task.read(None), 0)
    batch = task.collate(CliqueGCN())([task.load(seed=0, data_dir=None).train[0]])
    assert batch.nodes.tolist() == split.train.tolist() and len(batch) == len(split.train)
    labels = task.read(None).hypergraph.labels
    assert labels is not None and batch.labels.tolist() == labels[split.train].tolist()
    assert not [value for value in vars(batch.inputs).values() if value.shape == labels.shape and torch.equal(value, labels)]


def test_the_input_of_a_model_is_made_once_for_all_splits(tmp_path):
    task = OwnNodes(**write_files(tmp_path))
    splits = task.load(seed=0, data_dir=None)
    first = task.collate(CliqueGCN())([splits.train[0]])
    assert task.collate(CliqueGCN())([splits.test[0]]).inputs is first.inputs
    assert task.collate(CliqueGCN(pairs="mean"))([splits.test[0]]).inputs is not first.inputs


def test_predictions_name_every_node(trained):
    folder, _, _ = trained
    run, model = load_model(folder / "model")
    said = run.task.predict(model, load_run(folder / "model")[1], PredictRequest(folder / "model"))
    assert said == f"90 nodes in {folder / 'model' / 'predictions.csv'}"
    with (folder / "model" / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = ("red", "green", "blue")
    right = [row["predicted"] == names[int(row["node"][1:]) % 3] for row in rows]
    assert len(rows) == 90 and sum(right) > 72
    assert {row["label"] for row in rows} == {"", *names}
    assert all(abs(sum(float(row[f"p({name})"]) for name in names) - 1) < 1e-4 for row in rows)
    assert all(float(row[f"p({row['predicted']})"]) == max(float(row[f"p({n})"]) for n in names) for row in rows)


def test_another_hypergraph_can_be_predicted_with_its_columns_in_any_order(trained, tmp_path):
    folder, _, _ = trained
    files = write_files(tmp_path, seed=5, num_nodes=60)
    table = [line.split(",") for line in Path(files["features"]).read_text().split()]
    (tmp_path / "turned").write_text("\n".join(",".join([a, z, y, x]) for a, x, y, z in table))
    run, model = load_model(folder / "model")
    shapes = load_run(folder / "model")[1]
    for name in ("features", "turned"):
        request = PredictRequest(folder, Path(files["edges"]), tmp_path / f"{name}.csv", {"features": str(tmp_path / name)})
        run.task.predict(model, shapes, replace(request, folder=folder / "model"))
    assert (tmp_path / "features.csv").read_text() == (tmp_path / "turned.csv").read_text()
    request = PredictRequest(folder / "model", Path(files["edges"]))
    with pytest.raises(ValueError, match="feature 'x' of the training is missing"):
        run.task.predict(model, shapes, request)


def test_features_are_normalised_as_in_training():
    features = torch.tensor([[1.0, 3.0], [0.0, 0.0], [2.0, 3.0]])
    graph = Hypergraph.of_edges([[0, 1]], num_nodes=3, node_features=features, labels=torch.tensor([0, 1, 1]))
    rows = normalised(graph, shapes_of(NamedHypergraph(graph), "rows")).node_features
    assert rows is not None and rows.tolist() == [[0.25, 0.75], [0.0, 0.0], pytest.approx([0.4, 0.6])]
    shapes = HypergraphShapes.from_data(json.loads(json.dumps(shapes_of(NamedHypergraph(graph), "columns").to_data())))
    columns = normalised(graph, shapes).node_features
    assert columns is not None
    torch.testing.assert_close(columns.mean(0), torch.zeros(2), atol=1e-6, rtol=0)
    torch.testing.assert_close(columns.std(0, unbiased=False), torch.ones(2))
    constant = replace(graph, node_features=torch.full((3, 1), 0.1))
    shapes = shapes_of(NamedHypergraph(constant), "columns")
    flat = normalised(constant, shapes).node_features
    assert flat is not None and flat.tolist() == [[pytest.approx(0.0, abs=1e-6)]] * 3
    other = normalised(replace(constant, node_features=torch.full((3, 1), 0.2)), shapes).node_features
    assert other is not None and other.tolist() == [[pytest.approx(0.1)]] * 3


def test_what_cannot_be_trained_is_refused(tmp_path):
    files = write_files(tmp_path)
    with pytest.raises(ValueError, match="no node has a known class"):
        OwnNodes(edges=files["edges"]).load(seed=0, data_dir=None)
    with pytest.raises(ValueError, match="either a HIF file or a list"):
        OwnNodes(edges="a", hif="b").load(seed=0, data_dir=None)
    with pytest.raises(TypeError, match="GraphMLP is no model of hypergraphs"):
        OwnNodes(**files).collate(GraphMLP())
    train = OwnNodes(**files).load(seed=0, data_dir=None).train
    with pytest.raises(ValueError, match="expected batch_size=1, got 2"):
        OwnNodes(**files).collate(CliqueGCN())([train[0], train[0]])


def test_the_table_has_a_recipe_for_each_dataset_and_row():
    assert len({recipe.name for recipe in RECIPES}) == len(RECIPES) == len(SETTINGS) * len(MODELS)
    assert {(recipe.dataset, recipe.row) for recipe in RECIPES} == {(d, r) for d in TABLE.datasets for r in TABLE.rows}
    for recipe in RECIPES:
        quick, full = recipe.make("quick"), recipe.make("full")
        assert quick.reduced and not full.reduced and quick.schedule.epochs < full.schedule.epochs
        assert quick.batch_size == full.batch_size == 1


@needs_data
@pytest.mark.parametrize("recipe", [recipe for recipe in RECIPES if recipe.dataset == "zoo"], ids=lambda recipe: recipe.row)
def test_every_row_trains(recipe, tmp_path):
    job = Job.of(recipe, scale="quick", seed=1, overrides=("schedule.epochs=15", "model.channels=16"))
    record = carry_out(job, tmp_path, replace(QUIET, data_dir=DATA))
    assert record.metrics[""]["accuracy"] > 40.6  # more than the share of the largest class
    assert record.history[-1]["loss"] < record.history[0]["loss"]


@needs_data
def test_published_splits_are_chosen_by_the_seed():
    task = PublishedNodes(dataset="cora")
    data = task.read(DATA)
    splits = [task.split(data, seed) for seed in range(10)]
    for seed, split in enumerate(splits):
        assert (len(split.train), len(split.valid), len(split.test)) == (140, 500, 2068)
        assert set(split.train.tolist()) == set(data.train_nodes[seed].tolist())  # type: ignore[attr-defined]
    assert len({tuple(split.train.tolist()) for split in splits}) == 10
    with pytest.raises(ValueError, match="published splits for the seeds 0 to 9, got 10"):
        task.split(data, 10)
    assert len(replace(task, published_split=False).split(data, 10).train) == 1354
