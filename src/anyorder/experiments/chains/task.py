"""Synthetic chains (Table 1): a label at one end, to be told at every node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from anyorder.arrays import digest, write_arrays
from anyorder.convert.npz import read_npz
from anyorder.experiments.chains.models import ChainShapes
from anyorder.extras import require
from anyorder.layouts import Features, SparseIndexSet, collate
from anyorder.layouts.transfer import Transferable
from anyorder.training.answers import finite_answers
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig, PredictRequest, Splits, Task, check_least


@dataclass(frozen=True, eq=False)
class ChainBatch(Transferable):
    """Graphs with a label for each node: features of order 2, nodes on the diagonal."""

    features: Features
    labels: Tensor

    def __len__(self) -> int:
        return self.features.num_graphs


class ChainSet(Dataset[ChainBatch]):
    """Chains of equal length: the label one-hot in the loop of one end, a one in the third channel for each link."""

    def __init__(self, num_chains: int, length: int, *, seed: int) -> None:
        if length < 2:
            raise ValueError(f"a chain needs at least 2 nodes, got {length}")
        generator = torch.Generator().manual_seed(seed)
        self.classes = torch.randint(2, (num_chains,), generator=generator)
        nodes = torch.arange(length)
        links = torch.stack([nodes[:-1], nodes[1:]], 1)
        tuples = torch.cat([torch.stack([nodes, nodes], 1), links, links.flip(1)])
        self.index = SparseIndexSet(tuples, num_nodes=length)

    def __len__(self) -> int:
        return len(self.classes)

    def __getitem__(self, number: int) -> ChainBatch:
        label = int(self.classes[number])
        values = torch.zeros(self.index.num_entries, 3)
        values[0, label] = 1.0
        values[self.index.num_nodes :, 2] = 1.0
        return ChainBatch(Features.of_rows(self.index, values), torch.full((self.index.num_nodes,), label))


def collate_nodes(items: Sequence[ChainBatch]) -> ChainBatch:
    """One batch from several graphs."""
    return ChainBatch(collate([item.features for item in items]), torch.cat([item.labels for item in items]))


@configurable
@dataclass(frozen=True)
class Chains(Task):
    """40 chains of 20 nodes to train on, 20 chains of 200 nodes to test on; the last epoch counts.

    Chains of the training length are there to watch.
    """

    shapes_type = ChainShapes

    train_chains: int = 40
    train_length: int = 20
    test_chains: int = 20
    test_length: int = 200
    valid_chains: int = 20

    def __post_init__(self) -> None:
        check_least(self, {"train_chains": 1, "test_chains": 1, "valid_chains": 1, "train_length": 2, "test_length": 2})

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        train = ChainSet(self.train_chains, self.train_length, seed=2 * seed)
        test = ChainSet(self.test_chains, self.test_length, seed=2 * seed + 1)
        valid = ChainSet(self.valid_chains, self.train_length, seed=-seed - 1)
        known_by = digest(*(part.classes.numpy() for part in (train, valid, test)))
        return Splits(train, valid, test, ChainShapes(channels_in=3, channels_out=2), digest=known_by)

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        return collate_nodes

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        wanted = functional.one_hot(batch.labels, 2).float()
        return functional.binary_cross_entropy_with_logits(model(batch.features), wanted)

    def evaluate(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        return {"predicted": model(batch.features).argmax(1), "label": batch.labels}

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        scores = require("sklearn.metrics", "train")
        label, predicted = collected["label"].numpy(), collected["predicted"].numpy()
        kinds = {"micro-F1": "micro", "macro-F1": "macro"}
        f1 = {name: scores.f1_score(label, predicted, average=kind, zero_division=0.0) for name, kind in kinds.items()}
        return {name: 100.0 * float(value) for name, value in f1.items()}

    def predict(self, model: nn.Module, shapes: ChainShapes, request: PredictRequest) -> str:
        """Write the probability of the second class for every node in an NPZ file of graphs."""
        if request.input is None:
            raise ValueError("--input is needed: graphs in an NPZ file, see anyorder.convert.npz")
        features = read_npz(request.input)
        wanted, found = (2, shapes.channels_in), (features.order, features.channels)
        if wanted != found:
            raise ValueError(f"{request.input}: expected features of (order, channels) {wanted}, got {found}")
        with torch.no_grad():
            logits = finite_answers(model(features), "nodes")
        probability = (logits[:, 1] - logits[:, 0]).sigmoid()
        node = features.index.target(1).tuples[:, 0]
        answer = {"node": node, "graph": features.index.node_graph[node], "probability": probability}
        output = request.output or request.input.with_name(f"{request.input.stem}-predictions.npz")
        write_arrays(output, {name: tensor.numpy() for name, tensor in answer.items()})
        return f"{len(node)} nodes of {features.num_graphs} graphs in {output}: node, graph, probability"
