"""The task: score held-out hyperedges above sets that are none, after training on observed hyperedges alone."""

from __future__ import annotations

import csv
import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from anyorder.experiments.hypergraphs.data import Hypergraph, NamedHypergraph, without_repeats
from anyorder.experiments.hypergraphs.files import read_edge_list, read_hif_hypergraph, read_sets
from anyorder.experiments.hypergraphs.prediction.measures import mean_metrics, set_metrics
from anyorder.experiments.hypergraphs.prediction.models import EdgeSetShapes, Observed, SetModel
from anyorder.experiments.hypergraphs.prediction.negatives import KINDS, SetNegatives
from anyorder.experiments.hypergraphs.prediction.pairs import PairsSeen
from anyorder.experiments.hypergraphs.prediction.sets import (
    Candidates,
    EdgeSplit,
    NodeSet,
    SplitBy,
    check_no_leak,
    distinct_sets,
    split_edges,
)
from anyorder.experiments.hypergraphs.published import read_published
from anyorder.experiments.hypergraphs.shapes import Normalisation, normalised, shapes_of
from anyorder.experiments.hypergraphs.structure import is_bare, structural_features
from anyorder.files import replacing
from anyorder.layouts.transfer import Transferable
from anyorder.training.answers import finite_answers
from anyorder.training.config import configurable
from anyorder.training.parts import fold_parts
from anyorder.training.run import Answers, ChoosesThenTrainsOnAll, ModelConfig, PredictRequest, Run, Selection, Splits, Task

MOST_CHANNELS, DIRECTIONS = 4096, 256
MADE_OF_FEATURES = ("zoo", "mushroom", "20newsw100")


@dataclass(frozen=True, eq=False)
class EdgeSetBatch(Transferable):
    """What is observed, hyperedges to tell, and for each as many negatives of each kind."""

    observed: Observed
    positives: Candidates
    negatives: Candidates
    kinds: Tensor
    """Of the negatives."""

    def __len__(self) -> int:
        return len(self.positives)


@dataclass(frozen=True, eq=False)
class SetItem:
    """The sets of a part of a split, before a model has prepared what is observed."""

    graph: Hypergraph
    positives: Candidates
    negatives: Candidates
    kinds: Tensor


class OneItem(Dataset[SetItem]):
    """One item, ``repeats`` times per epoch."""

    def __init__(self, item: SetItem, repeats: int = 1) -> None:
        self.item, self.repeats = item, repeats

    def __len__(self) -> int:
        return self.repeats

    def __getitem__(self, number: int) -> SetItem:
        return self.item


class CollateSets:
    """Makes the input of a model once for each observed hypergraph."""

    def __init__(self, model: SetModel) -> None:
        self.model = model

    def __call__(self, items: Sequence[SetItem]) -> EdgeSetBatch:
        [item] = items
        observed = item.graph.once(self.model, self.model.prepare)
        return EdgeSetBatch(observed, item.positives, item.negatives, item.kinds)


@dataclass(frozen=True)
class HyperedgePrediction(Task):
    """Train on observed hyperedges; the best AUROC on validation counts.

    In a step, a share of the observed hyperedges is told apart from negatives by messages along the others alone: none is
    seen where it is asked for. Evaluations pass messages along all observed hyperedges and none that is held out. Nodes
    without features have those of the observed hypergraph, and a channel of their own.
    """

    shapes_type = EdgeSetShapes
    predict_options: ClassVar[tuple[str, ...]] = ("candidates",)

    split_by: SplitBy = "edges"
    valid_share: float = 0.1
    test_share: float = 0.2
    told: float = 0.1
    """The share of the observed hyperedges that a step asks for: few, because evaluations see all of them."""
    pool: int = 10
    """Negatives of each kind that are drawn for each observed hyperedge; a step takes one of all."""
    updates: int = 5
    """Steps in an epoch, between two evaluations."""

    @abstractmethod
    def read(self, data_dir: Path | None) -> NamedHypergraph:
        """The hypergraph with all hyperedges."""

    @property
    def selection(self) -> Selection | None:
        return Selection("AUROC", "max")

    def split(self, data: NamedHypergraph, seed: int) -> EdgeSplit:
        sets = distinct_sets(data.hypergraph)
        return split_edges(sets, seed=seed, by=self.split_by, valid=self.valid_share, test=self.test_share)

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        data = self.read(data_dir)
        split = self.split(data, seed)
        graph = observed_hypergraph(data, split.train)
        parts = {
            name: self._item(graph, sets, split, seed=seed, pool=self.pool if name == "train" else 1)
            for name, sets in (("train", split.train), ("valid", split.valid), ("test", split.test))
        }
        told = [frozenset(nodes) for part in (parts["train"].positives, parts["train"].negatives) for nodes in part.listed()]
        check_no_leak(graph, told, (*split.valid, *split.test))
        assert graph.node_features is not None
        shapes = EdgeSetShapes(graph.node_features.shape[1], _digest(split))
        train = OneItem(parts["train"], self.updates)
        return Splits(train, OneItem(parts["valid"]), OneItem(parts["test"]), shapes, digest=shapes.digest)

    def _item(self, graph: Hypergraph, sets: Sequence[NodeSet], split: EdgeSplit, *, seed: int, pool: int) -> SetItem:
        """Hyperedges, and ``pool`` negatives of each kind for each, one after the other."""
        sampler = SetNegatives(split.train, num_nodes=graph.num_nodes, known=split.every, seed=seed)
        drawn = [
            (sampler.draw(nodes, kind), number) for nodes in sets for number, kind in enumerate(KINDS) for _ in range(pool)
        ]
        negatives = Candidates.of(nodes for nodes, _ in drawn)
        return SetItem(graph, Candidates.of(sets), negatives, torch.tensor([number for _, number in drawn]))

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        if not isinstance(model, SetModel):
            raise TypeError(f"{type(model).__name__} scores no sets of nodes: expected a SetModel")
        return CollateSets(model)

    def loss(self, model: nn.Module, batch: EdgeSetBatch) -> Tensor:
        count = len(batch.positives)
        told = torch.rand(count) < self.told
        told[torch.randint(count, ())] = True
        told = told.to(batch.kinds.device)
        which = told.nonzero().flatten()
        each = len(batch.negatives) // count
        taken = which * each + torch.randint(each, which.shape).to(which.device)
        sets = batch.positives.chosen(which).joined(batch.negatives.chosen(taken))
        scores = model(batch.observed.without(told), sets)
        labels = torch.cat([torch.ones(len(which)), torch.zeros(len(which))]).to(scores.device)
        return functional.binary_cross_entropy_with_logits(scores, labels)

    def evaluate(self, model: nn.Module, batch: EdgeSetBatch) -> dict[str, Tensor]:
        sets = batch.positives.joined(batch.negatives)
        kinds = torch.cat([torch.full((len(batch.positives),), -1, device=batch.kinds.device), batch.kinds])
        return {"score": model(batch.observed, sets), "kind": kinds, "size": sets.sizes}

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        return set_metrics(collected["score"], collected["kind"], collected["size"])

    def whole_metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        return mean_metrics(collected["score"], collected["kind"])

    def predict(self, model: nn.Module, shapes: EdgeSetShapes, request: PredictRequest) -> str:
        """Score the sets of nodes of a file, one per line, after the observed hyperedges of the training."""
        from anyorder.training.checkpoints import load_run

        given = request.options.get("candidates") or (None if request.input is None else str(request.input))
        if given is None:
            raise ValueError("--candidates is needed: a file with the names of the nodes of a set per line")
        run = load_run(request.folder)[0]
        data = self.read(request.data_dir)
        names = {data.node_name(node): node for node in range(data.hypergraph.num_nodes)}
        sets = without_repeats(read_sets(Path(given)))
        unknown = next((name for nodes in sets for name in nodes if name not in names), None)
        if unknown is not None:
            raise ValueError(f"{given}: no node of the training is called {unknown!r}")
        assert isinstance(run.model, SetModel)
        observed = run.model.prepare(observed_hypergraph(data, self.split(data, run.seed).train))
        with torch.inference_mode():
            logits = model(observed, Candidates.of([names[name] for name in nodes] for nodes in sets))
            scores = finite_answers(logits, "sets of nodes").sigmoid()
        output = request.output or Path(given).with_name(f"{Path(given).stem}-scores.csv")
        with replacing(output) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["nodes", "score"])
            writer.writerows([" ".join(nodes), f"{score:.6g}"] for nodes, score in zip(sets, scores.tolist(), strict=True))
        return f"{len(sets)} sets in {output}"


@configurable
@dataclass(frozen=True)
class PublishedSets(HyperedgePrediction):
    """A published hypergraph. Features that the literature makes of classes are left out."""

    dataset: str = "cora"
    normalise: Normalisation = "none"

    def read(self, data_dir: Path | None) -> NamedHypergraph:
        if self.dataset in MADE_OF_FEATURES:
            raise ValueError(
                f"a hyperedge of {self.dataset} is the nodes with one value of a feature, so that features tell the held-out"
                f" hyperedges: expected another than {', '.join(MADE_OF_FEATURES)}"
            )
        data = read_published(self.dataset, data_dir=data_dir, synthetic=False)
        if is_bare(data):
            return data
        return replace(data, hypergraph=normalised(data.hypergraph, shapes_of(data, self.normalise)))


@configurable
@dataclass(frozen=True)
class OwnEdgeSets(ChoosesThenTrainsOnAll, HyperedgePrediction):
    """A user's hypergraph: a list of hyperedges, perhaps with a CSV file of features, or a HIF file."""

    edges: str = ""
    features: str = ""
    hif: str = ""
    everything: bool = False
    """Train on all hyperedges and choose nothing: what follows where there is no test part (``test_share=0``)."""
    folds: int = 0
    """In place of shares: so many parts, of which number ``fold`` tests and the next one chooses the epoch."""
    fold: int = 0

    @property
    def without_test(self) -> bool:
        return self.test_share == 0 and not self.everything

    def split(self, data: NamedHypergraph, seed: int) -> EdgeSplit:
        if self.folds:
            sets = distinct_sets(data.hypergraph)
            found = fold_parts(np.arange(len(sets)), None, folds=self.folds, fold=self.fold, seed=seed)
            return EdgeSplit(*(tuple(sets[n] for n in part) for part in (found.train, found.valid, found.test)))
        split = super().split(data, seed)
        return EdgeSplit((*split.train, *split.valid), (), ()) if self.everything else split

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        splits = super().load(seed=seed, data_dir=data_dir)
        held = splits.train if self.everything else splits.valid
        return splits if self.test_share or held is None else replace(splits, test=held)

    def conclude(self, run: Run, model: nn.Module, splits: Splits, folder: Path) -> list[Answers]:
        """The model, and how often the pairs of a set were seen together."""
        from anyorder.training.outcome import collect

        parts: Any = splits
        counts = PairsSeen(parts.test[0].graph)
        return [
            Answers("model", collect(run, model, splits.test)),
            Answers("baseline: pair counts", collect(run, counts, splits.test)),
        ]

    def describe(self, splits: Splits) -> list[str]:
        parts: list[Any] = [splits.train, splits.valid, splits.test]
        items: list[SetItem] = [part[0] for part in parts]
        sizes = [len(item.positives) for item in items[:2]] + [len(items[2].positives) if self.test_share else 0]
        what = f"hyperedges of {items[0].graph.num_nodes:,} nodes"
        return [f"{what}: {sizes[0]:,} to train on, {sizes[1]:,} to validate, {sizes[2]:,} to test"]

    def read(self, data_dir: Path | None) -> NamedHypergraph:
        if bool(self.hif) == bool(self.edges):
            raise ValueError(f"expected either a HIF file or a list of hyperedges, got {self.hif!r} and {self.edges!r}")
        data = read_hif_hypergraph(self.hif) if self.hif else read_edge_list(self.edges, features=self.features or None)
        graph = normalised(data.hypergraph, shapes_of(data, "columns"))
        return replace(data, hypergraph=graph)


def observed_hypergraph(data: NamedHypergraph, sets: Sequence[NodeSet]) -> Hypergraph:
    """The nodes with the observed hyperedges alone, in their order; features made of hyperedges are made of these."""
    graph = Hypergraph.of_edges([sorted(nodes) for nodes in sets], num_nodes=data.hypergraph.num_nodes)
    if not is_bare(data):
        return replace(graph, node_features=data.hypergraph.node_features)
    return replace(graph, node_features=torch.cat([structural_features(graph), _own_channels(graph.num_nodes)], 1))


def _own_channels(count: int) -> Tensor:
    """What tells nodes without features apart: a channel each, or random directions where they are many."""
    if count <= MOST_CHANNELS:
        return torch.eye(count)
    return torch.randn(count, DIRECTIONS, generator=torch.Generator().manual_seed(0)) / DIRECTIONS**0.5


def _digest(split: EdgeSplit) -> str:
    """Tells a split from any other."""
    text = repr([[sorted(nodes) for nodes in part] for part in (split.train, split.valid, split.test)])
    return hashlib.sha256(text.encode()).hexdigest()
