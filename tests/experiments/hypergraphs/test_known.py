from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from anyorder.cli import main
from anyorder.experiments.hypergraphs.data import UNKNOWN, Hypergraph
from anyorder.experiments.hypergraphs.known import hide, neighbour_vote, with_known
from anyorder.experiments.hypergraphs.models import MODELS, HypergraphTransformer
from anyorder.experiments.hypergraphs.own import OwnNodes
from anyorder.experiments.hypergraphs.structure import spectral_features
from anyorder.experiments.hypergraphs.task import HypergraphBatch
from anyorder.training.checkpoints import load_model, load_run
from anyorder.training.run import PredictRequest

NARROW = HypergraphTransformer(channels=8, neighbours=0)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two groups that meet within their group, and now and then across: only who met whom and some labels tell them."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{g}{n} {g}{(n + k) % 12}" for g in "ab" for n in range(12) for k in (1, 2, 3)] + ["a0 b0", "a5 b5"]
    (tmp_path / "edges.txt").write_text("\n".join([*lines, *lines[:30]]))
    labels = [f"{g}{n},{g}" for g in "ab" for n in range(12)]
    (tmp_path / "labels.csv").write_text("\n".join(["node,label", *labels, "c1,a"]))
    return tmp_path


def own(folder, **settings) -> OwnNodes:
    paths = {"edges": str(folder / "edges.txt"), "labels": str(folder / "labels.csv")}
    return OwnNodes(**paths, normalise="columns", spectrum=4, label_inputs=0.5, **settings)


def batches(task: OwnNodes, model=NARROW) -> list[HypergraphBatch]:
    splits = task.load(seed=0, data_dir=None)
    assert splits.valid is not None
    return [task.collate(model)([part[n] for n in range(len(part))]) for part in (splits.train, splits.valid, splits.test)]


class Spy(torch.nn.Module):
    """Keeps what a model is given."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.classes, self.seen = classes, torch.empty(0)

    def forward(self, inputs) -> torch.Tensor:
        self.seen = inputs.features[:, -self.classes :]
        return torch.zeros(len(self.seen), self.classes)


@pytest.mark.parametrize("sampled", [False, True])
def test_no_label_that_is_asked_for_or_held_out_reaches_a_model(files, sampled):
    task = own(files, sampled=sampled)
    data = task.read(None)
    split, truth = task.split(data, 0), data.hypergraph.labels
    train, *held_out = batches(task)
    spy = Spy(2)
    for step in range(20):
        torch.manual_seed(step)
        known, asked = hide(train.known, train.nodes, task.label_inputs)
        torch.manual_seed(step)
        task.loss(spy, train)
        assert spy.seen[train.nodes[asked]].sum() == 0 and asked.any()
        assert spy.seen.sum() == (known != UNKNOWN).sum() <= len(split.train) - int(asked.sum())
    for batch in held_out:
        task.evaluate(spy, batch)
        assert spy.seen[batch.nodes].sum() == 0 and spy.seen.sum() <= len(split.train)
    if not sampled:
        told = spy.seen.sum(1).nonzero().flatten()
        assert told.tolist() == split.train.tolist() and spy.seen[told].argmax(1).tolist() == truth[told].tolist()


def test_other_labels_of_held_out_nodes_change_no_input_and_no_loss(files):
    """Write other classes for all validation and test nodes: a model must not notice."""
    task = own(files)
    data = task.read(None)
    split, model = task.split(data, 0), NARROW.build(task.load(seed=0, data_dir=None).shapes)

    def outcome(graph: Hypergraph) -> tuple[torch.Tensor, torch.Tensor]:
        class Changed(OwnNodes):
            def read(self, data_dir):
                return replace(data, hypergraph=graph)

            def split(self, data, seed):
                return split

        changed = Changed(**{name: getattr(task, name) for name in ("normalise", "spectrum", "label_inputs")})
        train, _, test = batches(changed)
        model.train()
        torch.manual_seed(0)
        inputs = with_known(test.inputs, test.known, test.classes)
        return changed.loss(model, train), model.eval()(inputs)

    wrong = data.hypergraph.labels.clone()
    for part in (split.valid, split.test):
        wrong[part] = 1 - wrong[part]
    for before, after in zip(outcome(data.hypergraph), outcome(replace(data.hypergraph, labels=wrong)), strict=True):
        assert torch.equal(before, after)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_can_be_told_classes(files, name):
    task = own(files)
    model = MODELS[name]
    train = batches(task, model)[0]
    network = model.build(task.load(seed=0, data_dir=None).shapes).eval()
    told, none = (
        network(with_known(train.inputs, known, train.classes))
        for known in (train.known, torch.full_like(train.known, UNKNOWN))
    )
    assert told.shape == none.shape == (25, 2) and not torch.allclose(told, none)


def test_a_weight_counts_as_so_many_hyperedges():
    edges = [[0, 1], [1, 2, 3], [0, 3]]
    once = Hypergraph.of_edges(edges, num_nodes=5, edge_weights=torch.tensor([2.0, 1.0, 3.0]))
    often = Hypergraph.of_edges([edges[0]] * 2 + [edges[1]] + [edges[2]] * 3, num_nodes=5)
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    from anyorder.experiments.hypergraphs.shapes import HypergraphShapes

    network = HypergraphTransformer(channels=8, neighbours=0, gate=1.0).build(HypergraphShapes(4, 2)).eval()
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    first, second = (
        network(HypergraphTransformer(neighbours=0).prepare(replace(graph, node_features=x))) for graph in (once, often)
    )
    torch.testing.assert_close(first, second)
    torch.testing.assert_close(spectral_features(once, 2).abs(), spectral_features(often, 2).abs())
    known = torch.tensor([0, -1, 1, -1, 1])
    for one, two in zip(neighbour_vote(once, known, 2), neighbour_vote(often, known, 2), strict=True):
        assert one.tolist() == two.tolist()


def test_the_vote_is_of_the_most_met_and_else_of_the_most_frequent():
    graph = Hypergraph.of_edges([[0, 1], [1, 2], [1, 2, 3]], num_nodes=5)
    vote, most = neighbour_vote(graph, torch.tensor([0, -1, 1, -1, 0]), 2)
    assert vote.tolist()[1] == 1 and vote.tolist()[3] == 1 and vote.tolist()[4] == 0 and most.tolist() == [0] * 5


def test_the_default_without_features_says_what_it_does_and_beats_degrees(files, capsys):
    command = "train hypergraph edges.txt --labels labels.csv --epochs 60 --set model.channels=16"
    assert main([*command.split(), "--out", "model"]) == 0
    said = capsys.readouterr().out
    for part in (
        "104 lines have 74 distinct hyperedges",
        "columns of the spectrum",
        "the classes of training nodes, hidden where they are asked for",
        "1 labelled nodes are in no hyperedge and are judged by their features alone: 'c1'",
        "neighbour vote",
        "most frequent class",
        "95 % interval",
    ):
        assert part in said
    run, network = load_model(files / "model")
    shapes = load_run(files / "model")[1]
    run.task.predict(network, shapes, PredictRequest(files / "model"))
    rows = [line.split(",") for line in (files / "model" / "predictions.csv").read_text().splitlines()[1:]]
    assert sum(row[1] == row[2] for row in rows) >= 22
    assert main(["predict", "model", "--input", "edges.txt"]) == 1
    assert "cannot answer for edges.txt: train with --inputs none" in capsys.readouterr().err


def test_one_class_is_refused(files, capsys):
    (files / "labels.csv").write_text("node,label\na0,a\na1,a\na2,a\n")
    assert main(["train", "hypergraph", "edges.txt", "--labels", "labels.csv", "--out", "model", "--quiet"]) == 1
    assert "all 3 labelled nodes have the class 'a': there is nothing to learn" in capsys.readouterr().err
