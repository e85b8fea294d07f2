"""Hyperedges of many sizes: nothing that is held out reaches the training."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch

from anyorder.cli import main
from anyorder.experiments.hypergraphs.data import Hypergraph, NamedHypergraph
from anyorder.experiments.hypergraphs.prediction.measures import set_metrics
from anyorder.experiments.hypergraphs.prediction.models import SET_MODELS, EdgeSetShapes, SetModel
from anyorder.experiments.hypergraphs.prediction.negatives import KINDS, SetNegatives
from anyorder.experiments.hypergraphs.prediction.scorers import PairScore, pairs_of, set_mean, set_range
from anyorder.experiments.hypergraphs.prediction.sets import Candidates, check_no_leak, distinct_sets, split_edges
from anyorder.experiments.hypergraphs.prediction.task import OwnEdgeSets, PublishedSets, observed_hypergraph
from anyorder.experiments.hypergraphs.structure import STRUCTURE, structural_features
from anyorder.training.checkpoints import load_model
from anyorder.weights import save_weights
from data_folder import DATA


def groups(count: int = 60, *, seed: int = 0) -> Hypergraph:
    """Hyperedges of 2 to 5 nodes, each within one of three groups of ten nodes."""
    generator = torch.Generator().manual_seed(seed)
    edges = []
    for number in range(count):
        chosen = torch.randperm(10, generator=generator)[: 2 + number % 4]
        edges.append((chosen + 10 * (number % 3)).tolist())
    return Hypergraph.of_edges(edges, num_nodes=30)


def write_edges(path: Path) -> Path:
    graph = groups(120)
    path.write_text("\n".join(" ".join(f"n{node}" for node in graph.edge(e)) for e in range(graph.num_edges)) + "\n")
    return path


@pytest.mark.parametrize("by", ["edges", "nodes"])
def test_splits_are_of_distinct_sets_without_overlap(by):
    sets = distinct_sets(groups())
    split = split_edges(sets, seed=3, by=by)
    assert len(split.train) + len(split.valid) + len(split.test) == len(sets) == len(split.every)
    assert split == split_edges(sets, seed=3, by=by)
    assert split != split_edges(sets, seed=4, by=by)
    if by == "nodes":
        seen = set().union(*split.train, *split.valid)
        assert all(not nodes <= seen for nodes in split.test)


def test_one_set_twice_is_one_hyperedge():
    graph = Hypergraph.of_edges([[0, 1], [1, 0], [2], [0, 1, 2]], num_nodes=3)
    assert distinct_sets(graph) == [frozenset({0, 1}), frozenset({0, 1, 2})]


def test_a_held_out_hyperedge_that_leaks_is_found():
    observed = Hypergraph.of_edges([[0, 1], [2, 3]], num_nodes=5)
    check_no_leak(observed, [frozenset({0, 1})], [frozenset({3, 4})])
    with pytest.raises(ValueError, match=r"in the observed hypergraph: \[2, 3\]"):
        check_no_leak(observed, [], [frozenset({3, 2})])
    with pytest.raises(ValueError, match=r"in the sets of the training: \[1, 4\]"):
        check_no_leak(observed, [frozenset({4, 1})], [frozenset({1, 4})])


def test_loading_refuses_a_split_that_leaks(tmp_path, monkeypatch):
    task = OwnEdgeSets(edges=str(write_edges(tmp_path / "edges.txt")))
    task.load(seed=0, data_dir=None)
    honest = observed_hypergraph
    place = "anyorder.experiments.hypergraphs.prediction.task.observed_hypergraph"
    monkeypatch.setattr(place, lambda data, sets: honest(data, distinct_sets(data.hypergraph)))
    with pytest.raises(ValueError, match="held-out hyperedge is in the observed hypergraph"):
        task.load(seed=0, data_dir=None)


def test_what_is_held_out_changes_nothing_that_training_sees(tmp_path):
    """Messages, features, positives and negatives of the training are those of the observed hyperedges."""
    task = OwnEdgeSets(edges=str(write_edges(tmp_path / "edges.txt")))
    data = task.read(None)
    split = task.split(data, 0)
    item = task.load(seed=0, data_dir=None).train[0]
    assert sorted(map(sorted, distinct_sets(item.graph))) == sorted(map(sorted, split.train))
    assert [frozenset(nodes) for nodes in item.positives.listed()] == list(split.train)
    assert not split.every & {frozenset(nodes) for nodes in item.negatives.listed()}
    assert tuple(data.feature_names) == STRUCTURE
    alone = Hypergraph.of_edges([sorted(nodes) for nodes in split.train], num_nodes=data.hypergraph.num_nodes)
    torch.testing.assert_close(item.graph.node_features[:, :2], structural_features(alone))
    assert not torch.allclose(structural_features(alone), structural_features(data.hypergraph))


def test_hyperedges_that_a_step_asks_for_pass_no_messages():
    model, graph = SetModel(neighbours=0), groups()
    observed = model.prepare(featured(graph))
    told = torch.arange(graph.num_edges) % 4 == 0
    left = observed.without(told).incidence
    assert not told[left.edge].any()
    assert len(left.edge) == int(graph.sizes[~told].sum())
    assert left.sizes[told].eq(0).all()


def featured(graph: Hypergraph) -> Hypergraph:
    return observed_hypergraph(NamedHypergraph(graph), distinct_sets(graph))


@pytest.mark.parametrize("kind", KINDS)
def test_negatives_have_the_size_and_are_no_hyperedges(kind):
    sets = distinct_sets(groups())
    sampler = SetNegatives(sets, num_nodes=30, known=sets, seed=0)
    drawn = [sampler.draw(nodes, kind) for nodes in sets]
    assert [len(nodes) for nodes in drawn] == [len(nodes) for nodes in sets]
    assert not set(drawn) & set(sets)
    if kind == "clique":
        assert all(len(new & old) == len(old) - 1 for new, old in zip(drawn, sets, strict=True))
    within = sum(len({node // 10 for node in nodes}) == 1 for nodes in drawn) / len(drawn)
    assert within < 0.5 if kind == "size" else within > 0.7  # connected ones stay within a group


def test_a_hypergraph_of_all_pairs_has_no_negatives():
    every = [frozenset({0, 1}), frozenset({0, 2}), frozenset({1, 2})]
    with pytest.raises(ValueError, match="no set of 2 nodes"):
        SetNegatives(every, num_nodes=3, known=every, seed=0).draw(every[0], "size")


def test_pools_over_sets_match_the_definition():
    rows, sets = torch.randn(5, 3), Candidates.of([{0, 2, 4}, {1, 3}])
    gathered = rows[sets.members]
    torch.testing.assert_close(set_mean(gathered, sets), torch.stack([rows[[0, 2, 4]].mean(0), rows[[1, 3]].mean(0)]))
    ranges = [rows[nodes].amax(0) - rows[nodes].amin(0) for nodes in ([0, 2, 4], [1, 3])]
    torch.testing.assert_close(set_range(gathered, sets), torch.stack(ranges))
    first, second = pairs_of(sets)
    assert {*zip(first.tolist(), second.tolist(), strict=True)} == {
        (a, b) for group in ((0, 1, 2), (3, 4)) for a in group for b in group if a != b
    }
    chosen = sets.chosen(torch.tensor([1, 0])).joined(Candidates.of([{4}]))
    assert chosen.listed() == [[1, 3], [0, 2, 4], [4]]


@pytest.mark.parametrize("piece", [3, 10**6])
def test_hyperedges_that_pairs_share_match_the_definition(monkeypatch, piece):
    monkeypatch.setattr("anyorder.layouts.incidence.PIECE", piece)
    graph = groups()
    incidence = SetModel(neighbours=0).prepare(featured(graph)).incidence
    first, second = torch.cartesian_prod(torch.arange(graph.num_nodes), torch.arange(graph.num_nodes)).T
    pair, edge = incidence.shared(first, second)
    found = sorted(zip(first[pair].tolist(), second[pair].tolist(), edge.tolist(), strict=True))
    members = [graph.edge(number) for number in range(graph.num_edges)]
    assert found == sorted((a, b, number) for number, nodes in enumerate(members) for a in nodes for b in nodes)
    nothing = torch.zeros(0, dtype=torch.int64)
    assert all(len(part) == 0 for part in incidence.shared(nothing, nothing))


def test_what_a_pair_has_is_what_the_hyperedges_say():
    graph = Hypergraph.of_edges([[0, 1, 2, 3], [0, 1], [3, 4]], num_nodes=6)
    incidence = SetModel(neighbours=0).prepare(featured(graph)).incidence
    score = PairScore(4)
    first, second = torch.tensor([0, 2, 0, 4]), torch.tensor([1, 3, 4, 5])
    found = score.features(incidence, first, second)
    torch.testing.assert_close(found, score.features(incidence, second, first))
    torch.testing.assert_close(found[:, 0].expm1(), torch.tensor([2.0, 1, 0, 0]))
    assert found[:, 1].tolist() == [1, 1, 0, 0]
    torch.testing.assert_close(found[:, 2], torch.tensor([0.5 + 2**-0.5, 0.5, 0, 0]))
    torch.testing.assert_close(found[:, 3:].expm1(), torch.tensor([[2.0, 2], [1, 2], [1, 2], [0, 1]]))
    alone = score(incidence, Candidates.of([{0}, {5}]))
    assert alone.isfinite().all()  # a set without pairs


@pytest.mark.parametrize("row", SET_MODELS)
def test_scores_do_not_depend_on_the_names_of_nodes(row):
    torch.manual_seed(0)
    graph = Hypergraph.of_edges([[0, 1, 2], [2, 3], [1, 4, 5, 3]], num_nodes=6, node_features=torch.randn(6, 4))
    model = SET_MODELS[row]
    network = model.build(EdgeSetShapes(4)).eval()
    order = torch.randperm(6)
    place = order.argsort()
    moved = Hypergraph.of_edges(
        [[int(place[node]) for node in graph.edge(e)] for e in (2, 0, 1)],
        num_nodes=6,
        node_features=graph.node_features[order],
    )
    sets = [{0, 1}, {1, 2, 3}, {0, 4, 5, 2}]
    here = network(model.prepare(graph), Candidates.of(sets))
    there = network(model.prepare(moved), Candidates.of([{int(place[node]) for node in nodes} for nodes in sets]))
    torch.testing.assert_close(there, here, atol=1e-5, rtol=1e-5)


def test_metrics_are_by_kind_and_by_size():
    kinds = torch.tensor([-1, -1, 0, 0, 1, 1, 2, 2])
    scores = torch.tensor([3.0, 2.0, 1.0, 0.0, 4.0, 5.0, 2.5, 0.0])
    found = set_metrics(scores, kinds, torch.tensor([2, 3, 2, 3, 2, 3, 2, 3]))
    assert found["negatives of the size/AUROC"] == 1.0
    assert found["negatives by motif/AUROC"] == 0.0
    assert found["negatives by clique/AUROC"] == 0.75
    assert found["AUROC"] == pytest.approx(1.75 / 3)
    assert found["2 nodes/AUROC"] == pytest.approx(2 / 3)
    assert "7 nodes and more/AP" not in found


def test_own_hyperedges_are_trained_on_and_scored(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    windows = [[(start + step) % 40 for step in range(size)] for start in range(40) for size in (2, 3, 4)]  # on a ring
    (tmp_path / "edges.txt").write_text("\n".join(" ".join(f"n{node}" for node in nodes) for nodes in windows) + "\n")
    options = ["--epochs", "15", "--learning-rate", "0.01", "--out", "model", "--quiet"]
    assert main(["train", "hyperedges", "--edges", "edges.txt", *options]) == 0
    (tmp_path / "sets.txt").write_text("n0 n1 n2\nn0 n13 n26\n")
    assert main(["predict", "model", "--candidates", "sets.txt", "--output", "scores.csv"]) == 0
    with (tmp_path / "scores.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert [row["nodes"] for row in rows] == ["n0 n1 n2", "n0 n13 n26"]
    assert float(rows[0]["score"]) > float(rows[1]["score"])
    (tmp_path / "sets.txt").write_text("n0 nobody\n")
    assert main(["predict", "model", "--candidates", "sets.txt"]) == 1
    assert "no node of the training is called 'nobody'" in capsys.readouterr().err
    assert main(["train", "hyperedges", "--edges", "edges.txt", "--columns", "a,b", "--out", "other", "--quiet"]) == 1
    assert "--columns and --weight belong to a table" in capsys.readouterr().err


def test_scores_that_are_no_numbers_are_not_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_edges(tmp_path / "edges.txt")
    train = ["train", "hyperedges", "--edges", "edges.txt", "--epochs", "1", "--quiet", "--out", "model"]
    assert main(train) == 0
    _, model = load_model("model")
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1e30)
    save_weights(tmp_path / "model" / "model.safetensors", model)
    (tmp_path / "sets.txt").write_text("n0 n1\nn2 n3 n4\n")
    assert main(["predict", "model", "--candidates", "sets.txt", "--output", "scores.csv"]) == 1
    assert "the model has no answer for 2 of 2 sets of nodes" in capsys.readouterr().err
    assert not (tmp_path / "scores.csv").exists()


@pytest.mark.parametrize("dataset", ["zoo", "mushroom", "20newsw100"])
def test_hyperedges_that_are_values_of_a_feature_are_refused(dataset):
    with pytest.raises(ValueError, match="features tell the held-out hyperedges"):
        PublishedSets(dataset=dataset).read(None)


@pytest.mark.skipif(not (DATA / "hypergraph_nodeclass").is_dir(), reason="house-committees is not on this machine")
def test_features_that_are_made_of_classes_are_left_out():
    data = PublishedSets(dataset="house-committees").read(DATA)
    assert data.hypergraph.node_features is None
