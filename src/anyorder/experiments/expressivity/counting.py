"""Counting patterns as a task: random graphs, in how many of eight patterns each node is, normalised mean errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

from anyorder.errors import InputError
from anyorder.experiments.expressivity.counts import COUNTS
from anyorder.experiments.expressivity.graphs import Graph
from anyorder.experiments.expressivity.models import OrderModel, WholeGraphModel, Width
from anyorder.extras import require
from anyorder.layouts.transfer import Transferable
from anyorder.training.config import configurable
from anyorder.training.run import ModelConfig, Selection, Splits, Task, check_least
from anyorder.training.shapes import Shapes


@dataclass(frozen=True, eq=False)
class CountBatch(Transferable):
    """Graphs as a model reads them, and the normalised counts of all their nodes (node, pattern)."""

    inputs: Any
    counts: Tensor

    def __len__(self) -> int:
        return len(self.counts)


class CountedGraphs(Dataset[tuple[Graph, Tensor]]):
    """Graphs with the counts of their nodes (node, pattern)."""

    def __init__(self, graphs: Sequence[Graph], counts: Sequence[Tensor]) -> None:
        self.graphs, self.counts = graphs, counts

    def __len__(self) -> int:
        return len(self.graphs)

    def __getitem__(self, number: int) -> tuple[Graph, Tensor]:
        return self.graphs[number], self.counts[number]


@configurable
@dataclass(frozen=True)
class Counting(Task):
    """Half random graphs, half regular ones without a few edges; 30 % to train on, 20 % to select, 50 % to test.

    For each node, how many patterns it is in. Errors are divided by the deviation of the counts in the training part. All
    patterns are learned at once.
    """

    shapes_type: ClassVar[type[Shapes]] = Width
    patterns: tuple[str, ...] = tuple(COUNTS)
    graphs: int = 5000
    least_nodes: int = 10
    most_nodes: int = 20
    below: bool = False
    """Allow models of an order that cannot count a pattern, to see how far they come."""

    def __post_init__(self) -> None:
        check_least(self, {"graphs": 10, "least_nodes": 6, "most_nodes": self.least_nodes})
        unknown = [name for name in self.patterns if name not in COUNTS]
        if unknown or not self.patterns:
            raise InputError(f"patterns must be some of {[*COUNTS]}, got {list(self.patterns)}")

    @property
    def selection(self) -> Selection:
        return Selection("MAE", "min")

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        graphs = random_graphs(self.graphs, self.least_nodes, self.most_nodes, seed)
        counts = [
            torch.stack([torch.from_numpy(COUNTS[name][0](graph)) for name in self.patterns], 1).float() for graph in graphs
        ]
        train, valid = round(0.3 * len(graphs)), round(0.5 * len(graphs))
        known = torch.cat(counts[:train])
        mean, deviation = known.mean(0), known.std(0).clamp(min=1e-6)
        normal = [(each - mean) / deviation for each in counts]
        bounds = ((0, train), (train, valid), (valid, len(graphs)))
        first, second, third = (CountedGraphs(graphs[a:b], normal[a:b]) for a, b in bounds)
        return Splits(first, second, third, Width(len(self.patterns), per_node=True))

    def collate(self, model: ModelConfig) -> Callable[[Sequence[Any]], Any]:
        assert isinstance(model, WholeGraphModel)
        self.check_order(model)

        def together(items: Sequence[tuple[Graph, Tensor]]) -> CountBatch:
            inputs = model.inputs([graph for graph, _ in items], torch.get_default_dtype())
            return CountBatch(inputs, torch.cat([counts for _, counts in items]))

        return together

    def check_order(self, model: WholeGraphModel) -> None:
        """Refuse an order that cannot count a pattern, whatever its weights."""
        if self.below or not isinstance(model, OrderModel):
            return
        for name in self.patterns:
            needed = COUNTS[name][1]
            if model.order < needed:
                raise InputError(
                    f"counting {name} needs order {needed}, got order {model.order}: "
                    "raise model.order, or set task.below=true to see how far it comes"
                )

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        return functional.l1_loss(model(batch.inputs), batch.counts)

    def evaluate(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        return {"error": (model(batch.inputs) - batch.counts).abs()}

    def metrics(self, collected: dict[str, Tensor]) -> dict[str, float]:
        errors = collected["error"].mean(0).tolist()
        by_pattern = {f"{name}/MAE": error for name, error in zip(self.patterns, errors, strict=True)}
        return {"MAE": sum(errors) / len(errors), **by_pattern}


def random_graphs(count: int, least: int, most: int, seed: int) -> list[Graph]:
    """Random graphs in turn with regular ones that lost up to three edges."""
    nx = require("networkx", "pyg")
    random = np.random.default_rng(seed)
    made = []
    for number in range(count):
        size, draw = int(random.integers(least, most + 1)), int(random.integers(2**31))
        if number % 2:
            graph = nx.gnp_random_graph(size, float(random.uniform(0.15, 0.4)), seed=draw)
        else:
            graph = nx.random_regular_graph(4 + 2 * (number % 4 == 0) * (size > 6), size, seed=draw)
            lost = random.permutation(graph.number_of_edges())[: int(random.integers(4))]
            every = list(graph.edges)
            graph.remove_edges_from([every[n] for n in lost])
        made.append(Graph(nx.to_numpy_array(graph).astype(np.bool_)))
    return made
