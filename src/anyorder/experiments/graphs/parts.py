"""The parts of a set that training, validation and test read: graphs, nodes or links of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from anyorder.experiments.graphs.batch import GraphArrays, GraphBatch, GraphInputs
from anyorder.experiments.graphs.columns import Floats, Ints
from anyorder.experiments.graphs.values import GraphSet

_KEPT = 300_000  # nodes and pairs of batches that are kept for the next evaluation


@dataclass(frozen=True, eq=False)
class GraphItem:
    """One item of a part, by its number."""

    part: GraphPart
    number: int


class GraphPart(Dataset[GraphItem]):
    """Items that make batches together; a batch that comes again is made once."""

    fixed: bool

    def __init__(self, *, fixed: bool) -> None:
        self.fixed = fixed
        self._made: dict[Any, GraphBatch] = {}

    @abstractmethod
    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> GraphItem:
        if not 0 <= number < len(self):
            raise IndexError(number)
        return GraphItem(self, number)

    def batch(self, numbers: Sequence[int], inputs: GraphInputs) -> GraphBatch:
        """The batch of some items."""
        key = (inputs, tuple(numbers))
        if key in self._made:
            return self._made[key]
        made = self.make(numbers, inputs)
        held = sum(len(each.x) + each.pairs.shape[1] for each in (*self._made.values(), made))
        if (self.fixed or len(self) == 1) and held <= max(_KEPT, len(made.x) + made.pairs.shape[1]):
            self._made[key] = made
        return made

    @abstractmethod
    def make(self, numbers: Sequence[int], inputs: GraphInputs) -> GraphBatch:
        """The batch of some items, made anew."""


class WholeGraphs(GraphPart):
    """Some graphs of a set, each with its targets."""

    def __init__(self, arrays: GraphArrays, graphs: Ints, targets: Floats, *, fixed: bool) -> None:
        super().__init__(fixed=fixed)
        self.arrays, self.graphs, self.targets = arrays, graphs, torch.from_numpy(targets)

    def __len__(self) -> int:
        return len(self.graphs)

    def make(self, numbers: Sequence[int], inputs: GraphInputs) -> GraphBatch:
        chosen = self.graphs[list(numbers)]
        made = self.arrays.batch(chosen.tolist(), inputs)
        return replace(made, rows=torch.arange(len(chosen)), targets=self.targets[torch.from_numpy(chosen)])


class SomeNodes(GraphPart):
    """Some nodes of a set; an item is a graph that has some of them."""

    def __init__(self, arrays: GraphArrays, nodes: Ints, targets: Floats, *, fixed: bool) -> None:
        super().__init__(fixed=fixed)
        self.arrays, self.targets = arrays, torch.from_numpy(targets)
        self.asked = np.zeros(len(arrays.x), np.bool_)
        self.asked[nodes] = True
        self.graphs = np.unique(arrays.graph.numpy()[nodes])

    def __len__(self) -> int:
        return len(self.graphs)

    def make(self, numbers: Sequence[int], inputs: GraphInputs) -> GraphBatch:
        chosen = self.graphs[list(numbers)]
        made = self.arrays.batch(chosen.tolist(), inputs)
        starts = self.arrays.node_starts
        nodes = np.concatenate([np.arange(starts[graph], starts[graph + 1]) for graph in chosen])
        rows = torch.from_numpy(np.flatnonzero(self.asked[nodes]))
        return replace(made, rows=rows, targets=self.targets[torch.from_numpy(nodes)[rows]])


@dataclass(frozen=True, eq=False)
class LinkQuestion:
    """Pairs to judge on graphs that do not have them as edges, or that do where edges have targets."""

    arrays: GraphArrays
    pairs: Ints
    targets: Floats
    known: Tensor | None = None
    """Codes of linked pairs: pairs that are not linked are sampled beside these at each step."""


class Links(GraphPart):
    """Pairs of nodes; an item is a question about all graphs."""

    def __init__(self, questions: Sequence[LinkQuestion]) -> None:
        super().__init__(fixed=True)
        self.questions = tuple(questions)

    def __len__(self) -> int:
        return len(self.questions)

    def make(self, numbers: Sequence[int], inputs: GraphInputs) -> GraphBatch:
        if len(numbers) != 1:
            raise ValueError(f"links are judged on all graphs at once: expected batch_size=1, got {len(numbers)}")
        asked = self.questions[numbers[0]]
        made = asked.arrays.batch(range(asked.arrays.num_graphs), inputs)
        links = torch.from_numpy(np.ascontiguousarray(asked.pairs.T))
        rows = torch.arange(links.shape[1])
        return replace(made, rows=rows, links=links, targets=torch.from_numpy(asked.targets), known=asked.known)


def codes(graphs: GraphSet, pairs: Ints) -> Ints:
    """A number for each pair, the same in both directions where edges have none."""
    ends = pairs if graphs.directed else np.sort(pairs, 1)
    return ends[:, 0] * graphs.num_nodes + ends[:, 1]


def sample_unlinked(graphs: GraphSet, count: int, *, seed: int) -> Ints:
    """Random distinct pairs within a graph that are no edge and no loop, at most ``count``."""
    random = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(np.bincount(graphs.node_graph, minlength=graphs.num_graphs))])
    linked = np.unique(codes(graphs, graphs.edges))
    found = np.zeros((0, 2), np.int64)
    for _ in range(20):
        first = random.integers(0, graphs.num_nodes, 2 * count + 100)
        graph = graphs.node_graph[first]
        second = starts[graph] + (random.random(len(first)) * (starts[graph + 1] - starts[graph])).astype(np.int64)
        pairs = np.stack([first, second], 1)
        pairs = pairs if graphs.directed else np.sort(pairs, 1)
        found = np.concatenate([found, pairs[(first != second) & ~np.isin(codes(graphs, pairs), linked)]])
        found = found[np.sort(np.unique(codes(graphs, found), return_index=True)[1])]
        if len(found) >= count:
            break
    return found[:count]
