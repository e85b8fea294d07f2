"""Parts of a large hypergraph: what some nodes read in a few layers, all of it or a sample."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from anyorder.experiments.hypergraphs.data import Hypergraph, offsets_of
from anyorder.layouts.segments import Segments
from anyorder.ops.sparse_matrix import SparseMatrix
from anyorder.training.config import configurable


@dataclass(frozen=True, eq=False)
class Part:
    """A hypergraph of some nodes of another one; the nodes that were asked for come first."""

    graph: Hypergraph
    nodes: Tensor
    """Their numbers in the whole."""


@configurable
@dataclass(frozen=True)
class ReadLimits:
    """How much is read: hyperedges of a node and nodes of a hyperedge in a layer, at most; 0 for all."""

    edges_per_node: int = 0
    nodes_per_edge: int = 0

    def __post_init__(self) -> None:
        if self.edges_per_node < 0 or self.nodes_per_edge < 0:
            raise ValueError(f"limits must be at least 0, which is none, got {self}")


@dataclass(frozen=True, eq=False)
class _Lists:
    """Lists one after the other: list n is ``values[pointer[n]:pointer[n + 1]]``."""

    pointer: Tensor
    values: Tensor

    def of(self, which: Tensor, limit: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Which list and which value, for all values of some lists, or for ``limit`` of each at random."""
        sizes = self.pointer.diff()[which]
        owner = torch.arange(len(which)).repeat_interleave(sizes)
        place = torch.arange(int(sizes.sum())) - offsets_of(sizes)[:-1][owner]
        values = self.values[self.pointer[which][owner] + place]
        if limit and len(values) and int(sizes.max()) > limit:
            order = torch.rand(len(values), generator=generator).argsort()
            order = order[owner[order].argsort(stable=True)]  # shuffled within each list
            chosen = order[place < limit]
            owner, values = owner[chosen], values[chosen]
        return which[owner], values


def sample_part(
    graph: Hypergraph,
    asked: Tensor,
    *,
    hops: int,
    limits: ReadLimits | None = None,
    links: SparseMatrix | None = None,
    generator: torch.Generator | None = None,
) -> Part:
    """What ``hops`` layers read for the nodes asked for: their hyperedges, the nodes of these, and so on.

    ``links`` are further nodes that a node reads. Without limits, layers that read hyperedges and their nodes alone give the
    nodes asked for what they give on the whole hypergraph.
    """
    limits, generator = limits or ReadLimits(), generator or torch.Generator().manual_seed(0)
    by_node = graph.once("edges of nodes", _edges_of_nodes)
    by_edge = _Lists(graph.offsets, graph.members)
    seen = torch.zeros(graph.num_nodes, dtype=torch.bool)
    seen[asked] = True
    frontier, found = asked, [torch.empty(0, dtype=torch.int64)]
    for _ in range(hops):
        nodes, edges = by_node.of(frontier, limits.edges_per_node, generator)
        found.append(edges * graph.num_nodes + nodes)
        edges, nodes = by_edge.of(edges.unique(), limits.nodes_per_edge, generator)
        found.append(edges * graph.num_nodes + nodes)
        if links is not None:
            reads = _Lists(links.row_pointer, links.columns).of(frontier, 0, generator)[1]
            nodes = torch.cat([nodes, reads])
        nodes = nodes.unique()
        frontier = nodes[~seen[nodes]]
        seen[frontier] = True
    others = seen.index_fill(0, asked, False).nonzero().flatten()
    return _part(graph, torch.cat([asked, others]), torch.cat(found).unique())


def _edges_of_nodes(graph: Hypergraph) -> _Lists:
    sorted_ = Segments.build(graph.members, graph.num_nodes)
    return _Lists(sorted_.pointer, graph.edge_of[sorted_.rows])


def _part(graph: Hypergraph, nodes: Tensor, codes: Tensor) -> Part:
    """The hypergraph of these nodes and incidences, which are sorted by hyperedge."""
    place = torch.full((graph.num_nodes,), -1)
    place[nodes] = torch.arange(len(nodes))
    edges, sizes = torch.div(codes, graph.num_nodes, rounding_mode="floor").unique_consecutive(return_counts=True)

    def rows(values: Tensor | None, which: Tensor) -> Tensor | None:
        return None if values is None else values[which]

    part = Hypergraph(
        len(nodes),
        place[codes % graph.num_nodes],
        offsets_of(sizes),
        rows(graph.node_features, nodes),
        rows(graph.labels, nodes),
        rows(graph.edge_weights, edges),
        rows(graph.edge_features, edges),
        rows(graph.known, nodes),
    )
    return Part(part, nodes)


def restricted(links: SparseMatrix, nodes: Tensor) -> SparseMatrix:
    """The links between some nodes, numbered as these."""
    place = torch.full((links.shape[0],), -1)
    place[nodes] = torch.arange(len(nodes))
    rows, columns = place[links.rows], place[links.columns]
    inside = (rows >= 0) & (columns >= 0)
    return SparseMatrix.build(rows[inside], columns[inside], links.values[inside], (len(nodes), len(nodes)))
