"""Node classification on one hypergraph: all of it is seen, the classes of some nodes are known."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from anyorder.experiments.hypergraphs.base import HypergraphModel
from anyorder.experiments.hypergraphs.data import (
    UNKNOWN,
    Hypergraph,
    NamedHypergraph,
    NodeSplit,
    random_split,
    split_around,
)
from anyorder.experiments.hypergraphs.known import hide, neighbour_vote, told, with_known
from anyorder.experiments.hypergraphs.predictions import default_output, read_request, write_predictions
from anyorder.experiments.hypergraphs.published import read_published
from anyorder.experiments.hypergraphs.sampling import ReadLimits, sample_part
from anyorder.experiments.hypergraphs.shapes import HypergraphShapes, Normalisation, normalised, shapes_of
from anyorder.layouts.transfer import Transferable
from anyorder.training.answers import finite_answers
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig, PredictRequest, Selection, Splits, Task


@dataclass(frozen=True, eq=False)
class HypergraphBatch(Transferable):
    """The whole hypergraph as a model takes it, and the nodes of a split with their classes."""

    inputs: Transferable
    nodes: Tensor
    labels: Tensor
    known: Tensor
    """(rows,): the classes that training may tell a model, -1 for all others."""
    guesses: Tensor
    """(nodes, 2): what neighbours vote for, and the most frequent class."""
    classes: int

    def __len__(self) -> int:
        return len(self.nodes)


class WholeHypergraph(Dataset[tuple[Hypergraph, Tensor]]):
    """One item, the whole hypergraph with the nodes of a split, ``repeats`` times an epoch."""

    def __init__(self, hypergraph: Hypergraph, nodes: Tensor, repeats: int = 1) -> None:
        self.hypergraph, self.nodes, self.repeats = hypergraph, nodes, repeats

    def __len__(self) -> int:
        return self.repeats

    def __getitem__(self, number: int) -> tuple[Hypergraph, Tensor]:
        return self.hypergraph, self.nodes


class Collate:
    """Makes the input of a model once for each hypergraph."""

    def __init__(self, model: HypergraphModel) -> None:
        self.model = model

    def __call__(self, items: Sequence[tuple[Hypergraph, Tensor]]) -> HypergraphBatch:
        if len(items) != 1:
            raise ValueError(f"a batch is the whole hypergraph: expected batch_size=1, got {len(items)}")
        graph, nodes = items[0]
        assert graph.labels is not None
        inputs = graph.once(self.model, self.model.prepare)
        guesses = graph.once("guesses", _guesses)[nodes]
        return HypergraphBatch(inputs, nodes, graph.labels[nodes], _known(graph), guesses, graph.num_classes)


class NodesApart(Dataset[tuple[Hypergraph, int]]):
    """An item for each node of a split."""

    def __init__(self, hypergraph: Hypergraph, nodes: Tensor) -> None:
        self.hypergraph, self.nodes = hypergraph, nodes

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, number: int) -> tuple[Hypergraph, int]:
        return self.hypergraph, int(self.nodes[number])


class CollateParts:
    """Some nodes and what a model reads for them; what is sampled depends on the nodes alone, so that runs repeat."""

    def __init__(self, model: HypergraphModel, limits: ReadLimits) -> None:
        self.model, self.limits = model, limits

    def __call__(self, items: Sequence[tuple[Hypergraph, int]]) -> HypergraphBatch:
        graph, nodes = items[0][0], torch.tensor([node for _, node in items])
        assert graph.labels is not None
        seed = int.from_bytes(hashlib.sha256(nodes.numpy().tobytes()).digest()[:7], "big")
        part = sample_part(
            graph,
            nodes,
            hops=self.model.hops,
            limits=self.limits,
            links=self.model.links(graph),
            generator=torch.Generator().manual_seed(seed),
        )
        inputs, guesses = self.model.prepare_part(graph, part), graph.once("guesses", _guesses)[nodes]
        labels, known = graph.labels[nodes], _known(part.graph)
        return HypergraphBatch(inputs, torch.arange(len(nodes)), labels, known, guesses, graph.num_classes)


def _guesses(graph: Hypergraph) -> Tensor:
    return torch.stack(neighbour_vote(graph, _known(graph), max(1, graph.num_classes)), 1)


def _known(graph: Hypergraph) -> Tensor:
    return torch.full((graph.num_nodes,), UNKNOWN) if graph.known is None else graph.known


@dataclass(frozen=True)
class NodeClassification(Task):
    """Full-batch training on the classes of the training nodes; the best validation accuracy counts."""

    shapes_type = HypergraphShapes
    predict_options: ClassVar[tuple[str, ...]] = ("features",)

    normalise: Normalisation = "none"
    """Features as they are, divided by the sum of their row, or with mean 0 and deviation 1 in each column."""
    updates: int = 1
    """Steps in an epoch, between two evaluations."""
    sampled: bool = False
    """Batches of ``batch_size`` nodes with what they read, for hypergraphs that are too large for one step."""
    limits: ReadLimits = field(default_factory=ReadLimits)
    """How much of it is read where batches are sampled."""
    label_inputs: float = 0.0
    """Tell a model the classes of the training nodes, in training of so large a share, the loss being on the others."""

    def __post_init__(self) -> None:
        if not 0 <= self.label_inputs < 1:
            raise ValueError(f"label_inputs is a share of the training nodes below 1, got {self.label_inputs}")

    @abstractmethod
    def read(self, data_dir: Path | None) -> NamedHypergraph:
        """The hypergraph with the classes that are known."""

    @abstractmethod
    def split(self, data: NamedHypergraph, seed: int) -> NodeSplit:
        """The nodes to train on, choose by and test on."""

    @property
    def selection(self) -> Selection | None:
        return Selection("accuracy", "max")

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        data = self.read(data_dir)
        split = self.split(data, seed)
        shapes = shapes_of(data, self.normalise, label_inputs=self.label_inputs > 0)
        graph = _telling(normalised(data.hypergraph, shapes), split)
        shapes = replace(shapes, digest=_digest(data.hypergraph, split))
        if self.sampled:
            apart = [NodesApart(graph, nodes) for nodes in (split.train, split.valid, split.test)]
            return Splits(apart[0], apart[1], apart[2], shapes, digest=shapes.digest or "")
        valid, test = WholeHypergraph(graph, split.valid), WholeHypergraph(graph, split.test)
        return Splits(WholeHypergraph(graph, split.train, self.updates), valid, test, shapes, digest=shapes.digest or "")

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        if not isinstance(model, HypergraphModel):
            raise TypeError(f"{type(model).__name__} is no model of hypergraphs: expected one that can prepare them")
        return CollateParts(model, self.limits) if self.sampled else Collate(model)

    def loss(self, model: nn.Module, batch: HypergraphBatch) -> Tensor:
        if not self.label_inputs:
            return functional.cross_entropy(model(batch.inputs)[batch.nodes], batch.labels)
        known, asked = hide(batch.known, batch.nodes, self.label_inputs)
        scores = model(with_known(batch.inputs, known, batch.classes))
        return functional.cross_entropy(scores[batch.nodes[asked]], batch.labels[asked])

    def evaluate(self, model: nn.Module, batch: HypergraphBatch) -> dict[str, Tensor]:
        inputs = with_known(batch.inputs, batch.known, batch.classes) if self.label_inputs else batch.inputs
        scores = model(inputs)[batch.nodes]
        losses = functional.cross_entropy(scores, batch.labels, reduction="none")
        return {"predicted": scores.argmax(1), "label": batch.labels, "loss": losses, "guesses": batch.guesses}

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        return {"accuracy": accuracy(collected["predicted"], collected["label"])}

    def predict(self, model: nn.Module, shapes: HypergraphShapes, request: PredictRequest) -> str:
        """Write a class for every node: of the hypergraph of the training, or of another one with the same features."""
        from anyorder.training.checkpoints import load_run

        run = load_run(request.folder)[0]
        assert isinstance(run.model, HypergraphModel)
        data = self._asked_for(shapes, request, run.seed)
        inputs = run.model.prepare(graph := normalised(data.hypergraph, shapes))
        if graph.known is not None:
            inputs = with_known(inputs, graph.known, shapes.label_channels)
        with torch.inference_mode():
            scores = finite_answers(model(inputs), "nodes").softmax(1)
        output = request.output or default_output(request)
        write_predictions(output, data, scores, shapes.label_names)
        return f"{len(scores)} nodes in {output}"

    def _asked_for(self, shapes: HypergraphShapes, request: PredictRequest, seed: int) -> NamedHypergraph:
        """The hypergraph of a request; of the training, with the classes that a model is told."""
        if request.input is not None:
            if shapes.label_channels:
                raise ValueError(
                    f"this model was told classes of nodes of its own hypergraph and cannot answer for {request.input}: "
                    "train with --inputs none for others"
                )
            return read_request(request, shapes, self.label_attribute)
        data = self.read(request.data_dir)
        if not shapes.label_channels:
            return data
        return replace(data, hypergraph=_telling(data.hypergraph, self.split(data, seed)))

    @property
    def label_attribute(self) -> str:
        """The node attribute of a HIF file that is no feature."""
        return "label"


@configurable
@dataclass(frozen=True)
class PublishedNodes(NodeClassification):
    """A published hypergraph, on the published training nodes where there are some, else on random splits of 50/25/25 %.

    The seed of a run chooses the split. Beside published training nodes, ``num_valid`` of the others choose the epoch
    and the rest are the test nodes.
    """

    dataset: str = "cora"
    num_valid: int = 500
    published_split: bool = True
    noise: float = 1.0
    """Deviation of the noise in synthetic features, where a dataset has no others."""

    def read(self, data_dir: Path | None) -> NamedHypergraph:
        return read_published(self.dataset, data_dir=data_dir, noise=self.noise)

    def split(self, data: NamedHypergraph, seed: int) -> NodeSplit:
        nodes = torch.arange(data.hypergraph.num_nodes)
        published: tuple[Tensor, ...] = getattr(data, "train_nodes", ())
        if not published or not self.published_split:
            return random_split(nodes, seed=seed)
        if not 0 <= seed < len(published):
            raise ValueError(f"{self.dataset} has published splits for the seeds 0 to {len(published) - 1}, got {seed}")
        return split_around(published[seed], nodes, num_valid=self.num_valid, seed=seed)


def accuracy(predicted: Tensor, labels: Tensor) -> float:
    """In percent."""
    return 100.0 * float((predicted == labels).double().mean())


def _telling(graph: Hypergraph, split: NodeSplit) -> Hypergraph:
    """The hypergraph with the classes of the training nodes as known."""
    assert graph.labels is not None
    return replace(graph, known=told(graph.labels, split.train))


def _digest(graph: Hypergraph, split: NodeSplit) -> str:
    """Tells a hypergraph with its parts from any other: a training is not resumed with another one."""
    known = hashlib.sha256()
    held = (graph.members, graph.offsets, graph.node_features, graph.edge_features, graph.edge_weights, graph.labels)
    for part in (*held, split.train, split.valid, split.test):
        known.update(b"" if part is None else part.contiguous().numpy().tobytes())
    return known.hexdigest()
