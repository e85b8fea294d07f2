"""The task at its levels: batches, targets, links without a leak, models that do not depend on the order of nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from anyorder.experiments.graphs.batch import GraphArrays, GraphInputs
from anyorder.experiments.graphs.cheap import CheapBaseline, fit_cheap
from anyorder.experiments.graphs.columns import Columns
from anyorder.experiments.graphs.links import with_unlinked
from anyorder.experiments.graphs.models import GraphMessagePassing, PairTransformer
from anyorder.experiments.graphs.parts import codes, sample_unlinked
from anyorder.experiments.graphs.shapes import GraphShapes
from anyorder.experiments.graphs.splits import random_parts
from anyorder.experiments.graphs.task import GraphTask
from anyorder.experiments.graphs.values import GraphSet
from anyorder.training.outcome import collect
from anyorder.training.run import Run

MODELS = [
    PairTransformer(channels=8, heads=2, head_channels=4, positions=("degree", "walk")),
    PairTransformer(channels=8, heads=2, head_channels=4, through="pairs", layers=1),
    GraphMessagePassing(convolution="gin", channels=8, layers=2),
    GraphMessagePassing(convolution="gcn", channels=8, layers=2, dot=True),
    GraphMessagePassing(convolution="mlp", channels=8, layers=1),
]


def many(count: int = 24, seed: int = 0) -> GraphSet:
    """Rings and stars of 5 nodes with a node column, an edge column, and targets at all levels."""
    random = np.random.default_rng(seed)
    rings = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
    stars = np.array([[0, 1], [0, 2], [0, 3], [0, 4]])
    shapes = [rings if n % 2 else stars for n in range(count)]
    edges = np.concatenate([shape + 5 * n for n, shape in enumerate(shapes)])
    degree = np.bincount(edges.ravel(), minlength=5 * count)
    nodes = {"x": random.random(5 * count).tolist(), "label": (degree > 1).astype(int).tolist()}
    graphs = {"label": [n % 2 for n in range(count)], "y": [float(len(shape)) + 0.1 * n for n, shape in enumerate(shapes)]}
    links = {"kind": ["a" if n % 3 else "b" for n in range(len(edges))], "w": random.random(len(edges)).tolist()}
    return GraphSet.build(
        edges,
        num_nodes=5 * count,
        node_graph=np.repeat(np.arange(count), 5),
        node_columns=Columns.of(nodes, rows=5 * count),
        edge_columns=Columns.of(links, rows=len(edges)),
        graph_columns=Columns.of(graphs, rows=count),
    )


@dataclass(frozen=True)
class Given(GraphTask):
    """Graphs that are there already."""

    def read(self, data_dir: Path | None) -> GraphSet:
        return many()

    def split(self, graphs, rows, seed):
        return random_parts(rows, None, valid=0.2, test=0.2, seed=seed)


TASKS = [
    Given(level="graphs", targets=("label",)),
    Given(level="graphs", targets=("y",), goal="regression"),
    Given(level="nodes", targets=("label",)),
    Given(level="nodes", targets=("label", "x"), goal="regression"),
    Given(level="links", targets=("kind",)),
    Given(level="links"),
]
IDS = ["graphs", "graph numbers", "nodes", "several numbers", "edges", "links"]


@pytest.mark.parametrize("task", TASKS, ids=IDS)
@pytest.mark.parametrize("config", MODELS, ids=["nodes", "pairs", "gin", "gcn", "mlp"])
def test_every_model_learns_and_answers_at_every_level(task, config):
    torch.manual_seed(0)
    splits = task.load(seed=0, data_dir=None)
    model = config.build(splits.shapes)
    size = 1 if task.level == "links" else 8
    batch = task.collate(config)([splits.train[n] for n in range(min(size, len(splits.train)))])
    loss = task.loss(model, batch)
    loss.backward()
    assert torch.isfinite(loss) and any(weight.grad is not None and weight.grad.any() for weight in model.parameters())
    found = task.metrics(collect(Run(task, config, batch_size=1 if task.level == "links" else 64), model, splits.test))
    assert task.score_name in found and all(np.isfinite(value) for value in found.values())


@pytest.mark.parametrize("config", MODELS[:2], ids=["nodes", "pairs"])
def test_answers_do_not_depend_on_the_order_of_nodes_and_edges(config):
    task, graphs = TASKS[2], many(2)
    parts = random_parts(np.arange(10), None, valid=0.2, test=0.2, seed=0)
    shapes = task.shapes(graphs, parts)
    torch.manual_seed(0)
    model = config.build(shapes).eval()
    order = np.random.default_rng(1).permutation(5)
    order = np.concatenate([order, 5 + order])
    place = np.argsort(order)
    moved = replace(
        graphs,
        edges=place[graphs.edges][::-1].copy(),
        node_columns=graphs.node_columns.take(order),
        edge_columns=graphs.edge_columns.take(np.arange(len(graphs.edges))[::-1]),
    )
    rows = []
    for each in (graphs, moved):
        batch = GraphArrays(task.inputs(each), shapes).batch([0, 1], config.inputs)
        rows.append(model.network(replace(batch, rows=torch.arange(10))))
    torch.testing.assert_close(rows[0][torch.from_numpy(order)], rows[1], atol=1e-4, rtol=1e-3)


def test_a_graph_does_not_see_its_batch_neighbours():
    task, config = TASKS[0], MODELS[0]
    splits = task.load(seed=0, data_dir=None)
    torch.manual_seed(0)
    model = config.build(splits.shapes).eval()
    together = model(splits.train.batch([3, 0, 5], config.inputs))[0]
    alone = model(splits.train.batch([0], config.inputs))[0]
    torch.testing.assert_close(together[1:2], alone, atol=1e-5, rtol=1e-4)


def test_shuffled_batches_keep_their_targets():
    splits = TASKS[0].load(seed=0, data_dir=None)
    numbers = list(reversed(range(len(splits.train))))
    batch = splits.train.batch(numbers, GraphInputs())
    edges = torch.bincount(batch.graph[batch.pairs[0]], minlength=batch.num_graphs)
    assert torch.equal(edges == 10, batch.targets[:, 0] == 1)  # rings have five edges, and both directions


class TestLinks:
    def test_messages_never_pass_along_held_back_edges(self):
        task, graphs = TASKS[-1], many()
        parts = task.parts(graphs, 0)
        splits = task.load(seed=0, data_dir=None)
        held = set(codes(graphs, graphs.edges[np.concatenate([parts.valid, parts.test])]).tolist())
        for part in (splits.train, splits.valid, splits.test):
            for question in part.questions:
                seen = set(codes(graphs, question.arrays.pairs.numpy().T).tolist())
                asked = set(codes(graphs, question.pairs[question.targets[:, 0] == 1]).tolist())
                assert not seen & held and not seen & asked

    def test_sampled_pairs_are_no_training_edges_and_lie_within_a_graph(self):
        task, graphs = TASKS[-1], many()
        splits = task.load(seed=0, data_dir=None)
        batch = splits.train.batch([0], GraphInputs())
        torch.manual_seed(1)
        links, targets = with_unlinked(batch, directed=False)
        sampled = links[:, targets[:, 0] == 0].numpy().T
        train = set(codes(graphs, graphs.edges[task.parts(graphs, 0).train]).tolist())
        assert len(sampled) and not set(codes(graphs, sampled).tolist()) & train
        assert (graphs.node_graph[sampled[:, 0]] == graphs.node_graph[sampled[:, 1]]).all()

    def test_unlinked_pairs_are_distinct_and_unlinked(self):
        graphs = many()
        pairs = sample_unlinked(graphs, 50, seed=0)
        found = codes(graphs, pairs)
        assert len(set(found.tolist())) == 50 and not np.isin(found, codes(graphs, graphs.edges)).any()


class TestTargets:
    def test_numbers_are_standardised_by_the_training_part(self):
        task, graphs = TASKS[1], many()
        parts = task.parts(graphs, 0)
        shapes = task.shapes(graphs, parts)
        values = graphs.graph_columns.numbers[parts.train, graphs.graph_columns.number_names.index("y")]
        assert shapes.goal.mean[0] == pytest.approx(values.mean()) and shapes.goal.std[0] == pytest.approx(values.std())

    @pytest.mark.parametrize(
        ("labels", "goal", "message"),
        [
            (["a"] * 24, "classification", "fewer than two classes of 'z', got only 'a'"),
            ([2.0] * 24, "regression", "is 2 everywhere in the training part"),
            (["a", "b"] * 12, "regression", "holds text where numbers belong, such as 'a'"),
        ],
    )
    def test_refuses_what_cannot_be_learned(self, labels, goal, message):
        graphs = many()
        columns = Columns.of({"z": labels}, rows=24)
        task = Given(level="graphs", targets=("z",), goal=goal)
        with pytest.raises(ValueError, match=message):
            given = replace(graphs, graph_columns=columns)
            task.shapes(given, task.parts(given, 0))

    def test_refuses_a_class_that_only_the_test_part_has(self):
        graphs, task = many(), Given(level="graphs", targets=("z",))
        parts = task.parts(graphs := replace(graphs, graph_columns=Columns.of({"z": ["a", "b"] * 12}, rows=24)), 0)
        labels = ["a", "b"] * 12
        labels[parts.test[0]] = "new"
        given = replace(graphs, graph_columns=Columns.of({"z": labels}, rows=24))
        shapes = task.shapes(given, parts)
        with pytest.raises(ValueError, match="class 'new' of 'z' is in the test part only"):
            task.datasets(given, parts, shapes, 0)

    def test_shapes_come_back_from_plain_data(self):
        task, graphs = TASKS[2], many()
        shapes = task.shapes(graphs, task.parts(graphs, 0))
        assert GraphShapes.from_data(shapes.to_data()) == shapes


@pytest.mark.parametrize("task", [*TASKS[:3], *TASKS[4:]], ids=[*IDS[:3], *IDS[4:]])
def test_the_cheap_baseline_answers_as_the_models_do(task):
    splits = task.load(seed=0, data_dir=None)
    cheap = CheapBaseline().build(splits.shapes)
    fit_cheap(cheap, splits.train)
    found = task.metrics(
        collect(Run(task, CheapBaseline(), batch_size=1 if task.level == "links" else 64), cheap, splits.test)
    )
    assert np.isfinite(found[task.score_name])
    if task.level == "graphs" and task.goal == "classification":
        assert found["accuracy"] == 100.0  # rings and stars differ in their degrees
