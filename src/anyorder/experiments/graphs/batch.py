"""Encoded graphs and batches of them: one value for every model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from anyorder.experiments.graphs.columns import Ints
from anyorder.experiments.graphs.encoding import Encoding
from anyorder.experiments.graphs.positions import positions
from anyorder.experiments.graphs.shapes import GraphShapes
from anyorder.experiments.graphs.values import GraphSet
from anyorder.layouts import SparseIndexSet
from anyorder.layouts.transfer import Transferable


@dataclass(frozen=True)
class GraphInputs:
    """What a model reads of graphs: an index set of ``order`` 2, or none (0), and positions of the nodes."""

    order: Literal[0, 2] = 0
    positions: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class GraphBatch(Transferable):
    """Graphs side by side, and what is asked about them.

    ``pairs (2, pair)`` has both directions of an undirected edge and no loops. ``rows`` are the graphs or nodes that are
    asked about; for links, ``links (2, link)`` are. ``targets (row, target)`` has NaN where one is missing.
    """

    x: Tensor
    pairs: Tensor
    pair_x: Tensor
    graph: Tensor
    num_graphs: int
    rows: Tensor
    targets: Tensor
    links: Tensor | None = None
    known: Tensor | None = None
    """Codes of linked pairs, sorted: negatives are sampled among the others; None where none are sampled."""
    positions: Tensor | None = None
    index: SparseIndexSet | None = None
    nodes: SparseIndexSet | None = None

    def __len__(self) -> int:
        return len(self.targets)


class GraphArrays:
    """Encoded graphs: what training reads, made once."""

    def __init__(self, graphs: GraphSet, shapes: GraphShapes, *, x: Tensor | None = None) -> None:
        nodes, edges = shapes.nodes, shapes.edges
        loops = graphs.edges[:, 0] == graphs.edges[:, 1]
        self.x = torch.from_numpy(_node_rows(graphs, nodes, shapes)) if x is None else x
        plain, rows = graphs.edges[~loops], edges(graphs.edge_columns.take(~loops))
        if not graphs.directed:
            plain, rows = np.concatenate([plain, plain[:, ::-1]]), np.concatenate([rows, rows])
        order = np.argsort(graphs.node_graph[plain[:, 0]], kind="stable")
        self.pairs = torch.from_numpy(np.ascontiguousarray(plain[order].T))
        self.pair_x = torch.from_numpy(rows[order])
        self.graph = torch.from_numpy(graphs.node_graph)
        self.num_graphs = graphs.num_graphs
        self.node_starts = _starts(graphs.node_graph, graphs.num_graphs)
        self.pair_starts = _starts(graphs.node_graph[plain[order][:, 0]], graphs.num_graphs)
        self._positions: dict[tuple[str, ...], Tensor] = {}

    def positions(self, kinds: tuple[str, ...]) -> Tensor:
        """(node, channel), worked out at first use."""
        if kinds not in self._positions:
            parts = []
            for graph in range(self.num_graphs):
                start, end = self.node_starts[graph : graph + 2]
                pairs = self.pairs[:, self.pair_starts[graph] : self.pair_starts[graph + 1]].numpy().T - start
                parts.append(positions(pairs, int(end - start), kinds))
            self._positions[kinds] = torch.from_numpy(np.concatenate(parts))
        return self._positions[kinds]

    def batch(self, graphs: Sequence[int], inputs: GraphInputs) -> GraphBatch:
        """Some graphs side by side, nothing asked about them yet."""
        chosen = np.asarray(graphs, np.int64)
        whole = np.array_equal(chosen, np.arange(self.num_graphs))
        nodes = None if whole else _rows(self.node_starts, chosen)
        x, place = self._nodes(nodes)
        picked = slice(None) if whole else torch.from_numpy(_rows(self.pair_starts, chosen))
        pairs = self.pairs[:, picked] if whole else place[self.pairs[:, picked]]
        sizes = np.diff(self.node_starts)[np.arange(self.num_graphs) if whole else chosen]
        graph = torch.from_numpy(np.repeat(np.arange(len(graphs)), sizes))
        found = None
        if inputs.positions:
            found = self.positions(inputs.positions)
            found = found if nodes is None else found[torch.from_numpy(nodes)]
        index, each = _index(pairs, graph, len(graphs)) if inputs.order == 2 else (None, None)
        none = torch.zeros(0, dtype=torch.int64)
        return GraphBatch(
            x,
            pairs,
            self.pair_x[picked],
            graph,
            len(graphs),
            none,
            torch.zeros(0, 1),
            positions=found,
            index=index,
            nodes=each,
        )

    def _nodes(self, nodes: Ints | None) -> tuple[Tensor, Tensor]:
        """The rows of some nodes and where each node of the set stands among them."""
        if nodes is None:
            return self.x, torch.arange(len(self.x))
        chosen = torch.from_numpy(nodes)
        place = torch.full((len(self.x),), -1, dtype=torch.int64)
        place[chosen] = torch.arange(len(chosen))
        return self.x[chosen], place


def _node_rows(graphs: GraphSet, encoding: Encoding, shapes: GraphShapes) -> Any:
    """Encoded nodes; one more channel where graphs have loops, and a one where there is nothing else."""
    rows = encoding(graphs.node_columns)
    if shapes.loops:
        loops = graphs.edges[graphs.edges[:, 0] == graphs.edges[:, 1], 0]
        mark = np.zeros((graphs.num_nodes, 1), np.float32)
        mark[loops] = 1.0
        rows = np.hstack([rows, mark])
    return rows if rows.shape[1] else np.ones((graphs.num_nodes, 1), np.float32)


def _index(pairs: Tensor, graph: Tensor, num_graphs: int) -> tuple[SparseIndexSet, SparseIndexSet]:
    """The pairs of a batch, first every node with itself; and its nodes."""
    nodes = torch.arange(len(graph))
    tuples = torch.cat([nodes.expand(2, -1), pairs], 1).T.contiguous()
    each = SparseIndexSet(nodes[:, None], num_nodes=len(nodes), node_graph=graph, num_graphs=num_graphs)
    return SparseIndexSet(tuples, num_nodes=len(nodes), node_graph=graph, num_graphs=num_graphs), each


def _starts(graph: Ints, num_graphs: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(graph, minlength=num_graphs))]).astype(np.int64)


def _rows(starts: Ints, chosen: Ints) -> Ints:
    """The rows of some graphs, one graph after the other.

    >>> _rows(np.array([0, 2, 3, 6]), np.array([2, 0])).tolist()
    [3, 4, 5, 0, 1]
    """
    sizes = starts[chosen + 1] - starts[chosen]
    first = np.repeat(starts[chosen] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return np.arange(sizes.sum()) + first
