"""Graphs as they come: nodes and edges of one or many graphs with columns of mixed kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from anyorder.experiments.graphs.columns import Columns, Floats, Ints

Level = Literal["graphs", "nodes", "links"]
LEVELS: tuple[Level, ...] = ("graphs", "nodes", "links")
Duplicates = Literal["sum", "first", "refuse"]


@dataclass(frozen=True, eq=False, repr=False)
class GraphSet:
    """One or many graphs side by side: nodes are numbered through, an undirected edge stands once.

    >>> graphs = GraphSet.build(np.array([[0, 1], [1, 2]]), num_nodes=4)
    >>> graphs, graphs.degrees.tolist()
    (GraphSet(graphs=1, nodes=4, edges=2, undirected), [1, 2, 1, 0])
    """

    edges: Ints
    """(edge, 2)."""
    node_graph: Ints
    """(node,), not decreasing."""
    num_graphs: int
    directed: bool
    node_columns: Columns
    edge_columns: Columns
    graph_columns: Columns
    node_names: tuple[str, ...] = ()
    graph_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was guessed or left out in reading, a line each."""

    @classmethod
    def build(
        cls,
        edges: Ints,
        *,
        num_nodes: int,
        node_graph: Ints | None = None,
        num_graphs: int | None = None,
        directed: bool = False,
        node_columns: Columns | None = None,
        edge_columns: Columns | None = None,
        graph_columns: Columns | None = None,
        node_names: Sequence[str] = (),
        graph_names: Sequence[str] = (),
        duplicates: Duplicates = "refuse",
        notes: Sequence[str] = (),
    ) -> GraphSet:
        """A checked set of graphs; nodes are put in the order of their graphs and repeated edges are merged as asked."""
        edges = np.asarray(edges, np.int64).reshape(-1, 2)
        graph = np.zeros(num_nodes, np.int64) if node_graph is None else np.asarray(node_graph, np.int64)
        count = int(graph.max(initial=-1)) + 1 if num_graphs is None else num_graphs
        made = cls(
            edges,
            graph,
            max(count, 1) if node_graph is None else count,
            directed,
            node_columns or Columns.empty(num_nodes),
            edge_columns or Columns.empty(len(edges)),
            graph_columns or Columns.empty(max(count, 1) if node_graph is None else count),
            tuple(node_names),
            tuple(graph_names),
            tuple(notes),
        )
        made._check()
        return made._sorted()._merged(duplicates)

    def arrays(self) -> list[Ints | Floats]:
        """All numbers and categories, to tell these graphs from others."""
        tables = (self.node_columns, self.edge_columns, self.graph_columns)
        return [self.edges, self.node_graph, *(part for table in tables for part in (table.numbers, table.categories))]

    def _check(self) -> None:
        nodes, edges = len(self.node_graph), len(self.edges)
        if nodes == 0:
            raise ValueError("the graph is empty: expected at least one node")
        if edges and not 0 <= self.edges.min() <= self.edges.max() < nodes:
            wrong = int(((self.edges < 0) | (self.edges >= nodes)).any(1).argmax())
            raise ValueError(f"edge {wrong} leads to a missing node: {self.edges[wrong].tolist()}, there are {nodes} nodes")
        if nodes and not 0 <= self.node_graph.min() <= self.node_graph.max() < self.num_graphs:
            raise ValueError(f"graph numbers must lie in 0..{self.num_graphs - 1}, got up to {self.node_graph.max()}")
        lengths = (("node", self.node_columns, nodes), ("edge", self.edge_columns, edges))
        for name, columns, expected in (*lengths, ("graph", self.graph_columns, self.num_graphs)):
            if len(columns) != expected:
                raise ValueError(f"{name} columns have {len(columns)} rows, expected {expected}")
        across = self.node_graph[self.edges[:, 0]] != self.node_graph[self.edges[:, 1]]
        if across.any():
            raise ValueError(f"edge {self._edge_name(int(across.argmax()))} joins two graphs")

    def _sorted(self) -> GraphSet:
        if (np.diff(self.node_graph) >= 0).all():
            return self
        order = np.argsort(self.node_graph, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        names = tuple(self.node_names[n] for n in order) if self.node_names else ()
        columns = self.node_columns.take(order)
        return replace(
            self, edges=place[self.edges], node_graph=self.node_graph[order], node_columns=columns, node_names=names
        )

    def _merged(self, duplicates: Duplicates) -> GraphSet:
        """Each edge once: repeated ones are summed, the first is kept, or they are refused."""
        keys = self.edges if self.directed else np.sort(self.edges, 1)
        code = keys[:, 0] * len(self.node_graph) + keys[:, 1]
        _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
        if len(first) == len(code):
            return self
        again = np.setdiff1d(np.arange(len(code)), first)
        said = f"{len(again)} of {len(code)} edges are repeated"
        if duplicates == "refuse":
            raise ValueError(
                f"{said}, such as {self._edge_name(int(again[0]))}: expected each once, or --duplicates sum | first"
            )
        order = np.sort(first)
        columns = self.edge_columns.take(order)
        if duplicates == "sum":
            sums = np.zeros((len(first), self.edge_columns.numbers.shape[1]), np.float64)
            np.add.at(sums, inverse.reshape(-1), self.edge_columns.numbers)
            counts = np.bincount(inverse.reshape(-1), minlength=len(first))
            groups = np.argsort(first, kind="stable")  # in the order of their first edges
            columns = replace(columns, numbers=sums[groups].astype(np.float32)).with_numbers(("repeats",), counts[groups])
        merged = "numbers summed, counted in the column repeats" if duplicates == "sum" else "the first of each kept"
        return replace(self, edges=self.edges[order], edge_columns=columns, notes=(*self.notes, f"{said}: {merged}"))

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        return f"GraphSet(graphs={self.num_graphs}, nodes={self.num_nodes}, edges={len(self.edges)}, {kind})"

    @property
    def num_nodes(self) -> int:
        return len(self.node_graph)

    @cached_property
    def edge_graph(self) -> Ints:
        """The graph of each edge."""
        return self.node_graph[self.edges[:, 0]]

    @cached_property
    def degrees(self) -> Ints:
        """The number of edges at each node, in either direction; a loop counts once."""
        loops = self.edges[:, 0] == self.edges[:, 1]
        ends = np.concatenate([self.edges[:, 0], self.edges[~loops, 1]])
        return np.bincount(ends, minlength=self.num_nodes).astype(np.int64)

    def columns(self, level: Level) -> Columns:
        """The columns of what a level asks about."""
        return {"graphs": self.graph_columns, "nodes": self.node_columns, "links": self.edge_columns}[level]

    def node_name(self, node: int) -> str:
        return self.node_names[node] if self.node_names else str(node)

    def graph_name(self, graph: int) -> str:
        return self.graph_names[graph] if self.graph_names else str(graph)

    def _edge_name(self, edge: int) -> str:
        first, second = self.edges[edge].tolist()
        return f"{self.node_name(first)} - {self.node_name(second)}"

    def with_edges(self, rows: Ints) -> GraphSet:
        """The same nodes with some of the edges."""
        return replace(self, edges=self.edges[rows], edge_columns=self.edge_columns.take(rows))

    def without(self, level: Level, names: Sequence[str]) -> GraphSet:
        """The set without some columns of a level: what is asked is no input."""
        field = {"graphs": "graph_columns", "nodes": "node_columns", "links": "edge_columns"}[level]
        return replace(self, **{field: self.columns(level).drop(names)})  # type: ignore[arg-type]
