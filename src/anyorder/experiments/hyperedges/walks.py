"""node2vec on the clique expansion of hyperedges: biased walks for all nodes at once, then skip-gram."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anyorder.experiments.hyperedges.cooccurrence import clique_counts
from anyorder.experiments.hyperedges.data import TypedHyperedges
from anyorder.experiments.hyperedges.tuples import Ints
from anyorder.extras import require

_remembered: dict[str, Any] = {}


@dataclass(frozen=True, eq=False)
class WeightedGraph:
    """Neighbours ``targets[starts[v]:starts[v + 1]]`` of node v, sorted, with positive weights."""

    starts: Ints
    targets: Ints
    weights: NDArray[np.float64]

    @property
    def num_nodes(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def clique_expansion(cls, data: TypedHyperedges) -> WeightedGraph:
        """Two nodes are joined by the (weighted) number of training tuples that hold both.

        >>> data = TypedHyperedges(sizes=(1, 2), train=np.array([[0, 1], [0, 1], [0, 2]]), test=np.zeros((0, 2)))
        >>> WeightedGraph.clique_expansion(data).weights.tolist()
        [2.0, 1.0, 2.0, 1.0]
        """
        parts = [clique_counts(data, position) for position in range(data.order)]
        sources = np.concatenate([rows + shift for (rows, _, _), shift in zip(parts, data.offsets, strict=True)])
        targets, weights = (np.concatenate([part[place] for part in parts]) for place in (1, 2))
        return cls(np.searchsorted(sources, np.arange(data.num_nodes + 1)), targets, weights)

    @cached_property
    def _edge_codes(self) -> Ints:
        owner = np.repeat(np.arange(self.num_nodes), np.diff(self.starts))
        return owner * self.num_nodes + self.targets

    @cached_property
    def _heights(self) -> NDArray[np.float64]:
        return np.concatenate([[0.0], np.cumsum(self.weights)])

    def has_edges(self, sources: Ints, targets: Ints) -> NDArray[np.bool_]:
        """For each pair whether it is joined."""
        codes = sources * self.num_nodes + targets
        place = np.minimum(np.searchsorted(self._edge_codes, codes), len(self._edge_codes) - 1)
        found: NDArray[np.bool_] = self._edge_codes[place] == codes
        return found

    def neighbours(self, nodes: Ints, generator: np.random.Generator) -> Ints:
        """One random neighbour of each node, in proportion to the weights; every node must have one."""
        low, high = self.starts[nodes], self.starts[nodes + 1]
        height = self._heights[low] + generator.random(len(nodes)) * (self._heights[high] - self._heights[low])
        place = np.searchsorted(self._heights, height, side="right") - 1
        return self.targets[np.clip(place, low, high - 1)]


@dataclass(frozen=True)
class Node2Vec:
    """Skip-gram embeddings of second-order random walks.

    A walk that came from u to v continues to w with a probability in proportion to weight(v, w) times 1/p when w = u, 1
    when w is joined to u, and 1/q otherwise (``return_parameter`` p, ``in_out_parameter`` q).
    """

    channels: int = 64
    return_parameter: float = 2.0
    in_out_parameter: float = 0.25
    walks_per_node: int = 10
    walk_length: int = 40
    window: int = 10
    epochs: int = 5

    def walks(self, graph: WeightedGraph, generator: np.random.Generator, *, progress: bool = False) -> Ints:
        """Walks (nodes * walks_per_node, walk_length) from every node in random order; -1 where there is no way on."""
        walks = np.full((graph.num_nodes * self.walks_per_node, self.walk_length), -1, dtype=np.int64)
        walks[:, 0] = generator.permutation(np.repeat(np.arange(graph.num_nodes), self.walks_per_node))
        moving = np.flatnonzero(np.diff(graph.starts)[walks[:, 0]] > 0)
        steps: Iterable[int] = range(1, self.walk_length)
        if progress:
            steps = require("rich.progress", "train").track(steps, description="Walking")
        for step in steps:
            if not len(moving):
                break
            previous = walks[moving, step - 2] if step > 1 else None
            walks[moving, step] = self._step(graph, walks[moving, step - 1], previous, generator)
        return walks

    def _step(self, graph: WeightedGraph, current: Ints, previous: Ints | None, generator: np.random.Generator) -> Ints:
        """The next node of every walk: first-order proposals, kept in proportion to the second-order bias."""
        chosen = graph.neighbours(current, generator)
        if previous is None:
            return chosen
        largest = max(1.0, 1 / self.return_parameter, 1 / self.in_out_parameter)
        pending = np.arange(len(current))
        while len(pending):
            proposed, before = graph.neighbours(current[pending], generator), previous[pending]
            near = np.where(graph.has_edges(before, proposed), 1.0, 1 / self.in_out_parameter)
            bias = np.where(proposed == before, 1 / self.return_parameter, near)
            kept = generator.random(len(pending)) * largest < bias
            chosen[pending[kept]] = proposed[kept]
            pending = pending[~kept]
        return chosen

    def embed(self, data: TypedHyperedges, *, seed: int = 0, progress: bool = False) -> NDArray[np.float32]:
        """Embeddings (nodes, channels) of the clique expansion of the training tuples; the last ones are remembered."""
        key = (self, seed, data.sizes, hashlib.sha256(data.train.tobytes() + data.train_weights.tobytes()).digest())
        if _remembered.get("key") != key:  # several rows of a table ask for the same
            _remembered.update(key=key, embeddings=self._embed(data, seed=seed, progress=progress))
        embeddings: NDArray[np.float32] = _remembered["embeddings"].copy()
        return embeddings

    def _embed(self, data: TypedHyperedges, *, seed: int, progress: bool) -> NDArray[np.float32]:
        word2vec = require("gensim.models", "hypergraphs").Word2Vec
        graph = WeightedGraph.clique_expansion(data)
        walks = self.walks(graph, np.random.default_rng(seed), progress=progress)
        model = word2vec(
            _Sentences(walks, graph.num_nodes),
            vector_size=self.channels,
            window=self.window,
            min_count=0,
            sg=1,
            workers=1,  # the only number that gives the same result again
            seed=seed,
            epochs=self.epochs,
        )
        order = [model.wv.key_to_index[str(node)] for node in range(graph.num_nodes)]
        embeddings: NDArray[np.float32] = model.wv.vectors[order]
        return embeddings


@dataclass(frozen=True, eq=False)
class _Sentences:
    """Walks as lists of words, as often as they are asked for."""

    walks: Ints
    num_nodes: int

    def __iter__(self) -> Iterator[list[str]]:
        words = [str(node) for node in range(self.num_nodes)]
        for walk in self.walks:
            yield [words[node] for node in walk.tolist() if node >= 0]


def standardised(embeddings: NDArray[np.float32]) -> torch.Tensor:
    """Every channel with mean 0 and deviation 1 over the nodes.

    >>> standardised(np.array([[1.0], [3.0]], dtype=np.float32)).tolist()
    [[-1.0], [1.0]]
    """
    centred = embeddings - embeddings.mean(axis=0)
    return torch.from_numpy(centred / np.maximum(centred.std(axis=0), 1e-12)).to(torch.get_default_dtype())
