"""Node classification on a user's own hypergraph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from anyorder.experiments.hypergraphs.data import UNKNOWN, NamedHypergraph, NodeSplit, stratified_parts, stratified_split
from anyorder.experiments.hypergraphs.files import read_edge_list, read_hif_hypergraph
from anyorder.experiments.hypergraphs.structure import is_bare, with_spectrum
from anyorder.experiments.hypergraphs.task import NodeClassification
from anyorder.training.config import configurable
from anyorder.training.outcome import collect
from anyorder.training.parts import fold_parts
from anyorder.training.run import Answers, ChoosesThenTrainsOnAll, Run, Selection, Splits

BASELINES = ("neighbour vote", "most frequent class")
"""What stands beside a model, by the classes of the training nodes alone."""


@configurable
@dataclass(frozen=True)
class OwnNodes(ChoosesThenTrainsOnAll, NodeClassification):
    """A user's hypergraph: a list of hyperedges with CSV files of features and labels, or one HIF file.

    The least validation loss chooses the epoch: on few nodes, many epochs have the same accuracy.
    """

    edges: str = ""
    features: str = ""
    labels: str = ""
    hif: str = ""
    label: str = "label"
    """The node attribute of the HIF file with the class."""
    train_share: float = 0.5
    valid_share: float = 0.25
    """The rest is the test part; without a rest validation stands for it."""
    spectrum: int = 0
    """Columns of the spectrum of the hypergraph as further features."""
    everything: bool = False
    """Train on all labelled nodes and choose nothing: what follows where there is no test part."""
    folds: int = 0
    """In place of shares: so many parts, of which number ``fold`` tests and the next one chooses the epoch."""
    fold: int = 0

    @property
    def score_name(self) -> str:
        """The metric that counts."""
        return "accuracy"

    @property
    def selection(self) -> Selection | None:
        return None if self.everything else Selection("cross-entropy", "min")

    @property
    def _has_test(self) -> bool:
        return self.train_share + self.valid_share < 1 - 1e-9

    @property
    def without_test(self) -> bool:
        return not self._has_test and not self.everything

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        found = super().metrics(collected)
        return {**found, "cross-entropy": float(collected["loss"].mean())} if "loss" in collected else found

    def conclude(self, run: Run, model: nn.Module, splits: Splits, folder: Path) -> list[Answers]:
        """The model beside a vote of neighbours and the most frequent class."""
        collected = collect(run, model, splits.test)
        guesses = collected.pop("guesses").unbind(1)
        label = collected["label"]
        beside = [
            Answers(name, {"predicted": guess, "label": label}) for name, guess in zip(BASELINES, guesses, strict=True)
        ]
        return [Answers("model", collected), *beside]

    @property
    def label_attribute(self) -> str:
        return self.label

    def read(self, data_dir: Path | None) -> NamedHypergraph:
        if bool(self.hif) == bool(self.edges):
            raise ValueError(f"expected either a HIF file or a list of hyperedges, got {self.hif!r} and {self.edges!r}")
        if self.hif:
            data = read_hif_hypergraph(self.hif, label=self.label)
        else:
            data = read_edge_list(self.edges, features=self.features or None, labels=self.labels or None)
        return with_spectrum(data, self.spectrum) if self.spectrum else data

    def split(self, data: NamedHypergraph, seed: int) -> NodeSplit:
        labels = data.hypergraph.labels
        known = torch.empty(0) if labels is None else (labels != UNKNOWN).nonzero().flatten()
        if labels is None or not len(known):
            where = f"attribute {self.label!r} of the nodes" if self.hif else "a CSV file with the columns node, label"
            raise ValueError(f"no node has a known class: expected them in {where}")
        if len(labels[known].unique()) < 2:
            only = data.label_name(int(labels[known[0]]))
            raise ValueError(f"all {len(known)} labelled nodes have the class {only!r}: there is nothing to learn")
        if self.folds:
            found = fold_parts(known.numpy(), labels[known].numpy(), folds=self.folds, fold=self.fold, seed=seed)
            return NodeSplit(*(torch.from_numpy(part).sort().values for part in (found.train, found.valid, found.test)))
        if self._has_test:
            return stratified_split(known, labels, seed=seed, train=self.train_share, valid=self.valid_share)
        train, held = stratified_parts(known, labels, seed=seed, until=(self.train_share,))
        return NodeSplit(known.sort().values if self.everything else train, held, held, overlap=True)

    def describe(self, splits: Splits) -> list[str]:
        """What is in the data and what nodes are known by, a line each."""
        data = replace(self, spectrum=0).read(None)
        parts = (_nodes(part) for part in (splits.train, splits.valid, splits.test))
        split = NodeSplit(*parts, overlap=not self._has_test)
        graph = data.hypergraph
        sizes = f"{int(graph.sizes.min())} to {int(graph.sizes.max())} nodes"
        lines = [*data.notes, f"{graph.num_nodes:,} nodes, {graph.num_edges:,} hyperedges of {sizes}"]
        bare = "degrees and sizes of hyperedges, as there are no features"
        known = [bare if is_bare(data) else f"{len(data.feature_names)} features"]
        known += ["columns of the spectrum"] if self.spectrum else []
        known += ["the classes of training nodes, hidden where they are asked for"] if self.label_inputs else []
        lines.append(f"nodes are known by: {', '.join(known)} (--inputs)")
        tested = len(split.test) if self._has_test else 0
        sizes = f"{len(split.train):,} to train on, {len(split.valid):,} to validate, {tested:,} to test"
        lines.append(f"{graph.num_classes} classes, {sizes}")
        return [*lines, *_alone(data), *_unlearned(data, split)]


def _nodes(part: Any) -> Tensor:
    nodes: Tensor = part.nodes
    return nodes


def _alone(data: NamedHypergraph) -> list[str]:
    """Labelled nodes in no hyperedge are judged by their features alone."""
    graph = data.hypergraph
    assert graph.labels is not None
    alone = ((graph.degrees == 0) & (graph.labels != UNKNOWN)).nonzero().flatten().tolist()
    if not alone:
        return []
    some = ", ".join(repr(data.node_name(node)) for node in alone[:5]) + (", ..." if len(alone) > 5 else "")
    return [f"{len(alone)} labelled nodes are in no hyperedge and are judged by their features alone: {some}"]


def _unlearned(data: NamedHypergraph, split: NodeSplit) -> list[str]:
    """Classes that no training node has."""
    labels = data.hypergraph.labels
    assert labels is not None
    absent = sorted({*labels[torch.cat([split.valid, split.test])].tolist()} - {*labels[split.train].tolist()})
    if not absent:
        return []
    return [f"no training node has the class {', '.join(repr(data.label_name(label)) for label in absent[:5])}"]
