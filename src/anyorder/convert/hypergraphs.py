"""Hypergraphs as plain values, between the formats that hold them and features."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import torch
from torch import Tensor

from anyorder.convert.attributes import Attributes, Names, read_attributes, write_attributes
from anyorder.convert.entries import Duplicates, Parts, join, one_graph, split
from anyorder.convert.networkx import check_labels
from anyorder.layouts import Features, TupleIndex
from anyorder.layouts.symmetric import check_orderings

Orderings = Literal["all", "one"]
Agreement = Literal["refuse", "mean"]


@dataclass(frozen=True)
class AttributedHypergraph:
    """Nodes by name, and hyperedges as tuples of node numbers; where directed, tails first and then heads.

    Attributes:
        tails: the number of tails of each hyperedge; None where there are no directions.
    """

    nodes: tuple[Hashable, ...]
    node_attributes: tuple[Attributes, ...]
    edge_names: tuple[Hashable, ...]
    edges: tuple[tuple[int, ...], ...]
    edge_attributes: tuple[Attributes, ...]
    tails: tuple[int, ...] | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of hyperedges that occur."""
        return tuple(sorted({len(edge) for edge in self.edges}))


@dataclass(frozen=True)
class Reading:
    """How hyperedges become entries: the options of ``from_xgi`` and ``from_hif``."""

    node: Names | None = None
    edge: Names = ()
    orderings: Orderings | None = None
    share: bool = False
    duplicates: Duplicates = "refuse"
    dtype: torch.dtype | None = None


def features_of(hypergraph: AttributedHypergraph, order: int | None, reading: Reading) -> Features:
    """The features of a hypergraph whose hyperedges all have one size."""
    if order is not None and order < 1:
        raise ValueError(f"order must be the size of hyperedges, at least 1, got {order}")
    sizes = hypergraph.sizes
    if order is None and len(sizes) != 1:
        found = f"sizes {[*sizes]}: features by size hold them all" if sizes else "none: order says what size they have"
        raise ValueError(f"hyperedges must have one size, got {found}")
    for name, edge in zip(hypergraph.edge_names, hypergraph.edges, strict=True):
        if order is not None and len(edge) != order:
            raise ValueError(f"hyperedges must have {order} nodes: {name!r} has {len(edge)}")
    return _features(hypergraph, sizes[0] if order is None else order, reading)


def features_by_size(hypergraph: AttributedHypergraph, reading: Reading) -> dict[int, Features]:
    """Features of each size of hyperedge that occurs, all on the same nodes."""
    return {size: _features(hypergraph, size, reading) for size in hypergraph.sizes}


def _features(hypergraph: AttributedHypergraph, order: int, reading: Reading) -> Features:
    if reading.orderings not in (None, "all", "one"):
        raise ValueError(f"orderings must be 'all' or 'one', got {reading.orderings!r}")
    if order == 0:
        empty = next(name for name, edge in zip(hypergraph.edge_names, hypergraph.edges, strict=True) if not edge)
        raise ValueError(f"hyperedges must have at least one node: {empty!r} has none")
    some = [n for n, edge in enumerate(hypergraph.edges) if len(edge) == order]
    rows = torch.tensor([hypergraph.edges[n] for n in some], dtype=torch.int64).reshape(-1, order)
    names = [hypergraph.edge_names[n] for n in some]
    values = read_attributes(
        [hypergraph.edge_attributes[n] for n in some], reading.edge, kind="edge", labels=names, dtype=reading.dtype
    )
    if hypergraph.tails is not None:
        _check_directions({hypergraph.tails[n] for n in some}, order, reading.orderings)
    elif reading.orderings != "one":
        check_orderings(len(some), order)
        axes = torch.tensor([*permutations(range(order))])
        rows = rows[:, axes].flatten(0, 1)
        values = values.repeat_interleave(len(axes), 0)
    nodes = None
    if reading.node is not None:
        labels, held = hypergraph.nodes, hypergraph.node_attributes
        nodes = read_attributes(held, reading.node, kind="node", labels=labels, dtype=reading.dtype)
    return join(
        Parts(nodes, rows, values), num_nodes=len(hypergraph.nodes), share=reading.share, duplicates=reading.duplicates
    )


def _check_directions(tails: set[int], order: int, orderings: Orderings | None) -> None:
    if orderings == "all":
        raise ValueError("directed hyperedges have one ordering, tails before heads: expected orderings='one', got 'all'")
    if len(tails) > 1:
        raise ValueError(
            f"directed hyperedges of one size must have equally many tails: those of {order} nodes have {sorted(tails)}"
        )


@dataclass(frozen=True)
class Writing:
    """How entries become hyperedges: the options of ``to_xgi`` and ``to_hif``."""

    node: Names = ()
    edge: Names = ()
    node_channels: int | None = 0
    labels: Sequence[Hashable] | None = None
    num_tails: int | None = None
    orderings: Agreement = "refuse"


def hypergraph_of(features: Features | Mapping[int, Features], writing: Writing) -> AttributedHypergraph:
    """The hypergraph whose hyperedges are the entries of features of one order or several; orderings of a set are one."""
    every = list(features.values()) if isinstance(features, Mapping) else [features]
    if not every:
        raise ValueError("features must be given for at least one size, got none")
    if writing.orderings not in ("refuse", "mean"):
        raise ValueError(f"orderings must be 'refuse' or 'mean', got {writing.orderings!r}")
    for one in every:
        one_graph(one, "a hypergraph")
    if len({one.num_nodes for one in every}) > 1:
        raise ValueError(f"features must be on the same nodes, got {[one.num_nodes for one in every]} nodes")
    labels = check_labels(writing.labels, every[0].num_nodes)
    parts = [split(one, writing.node_channels) for one in every]
    edges: list[tuple[int, ...]] = []
    attributes: list[Attributes] = []
    for part in parts:
        tuples, values = part.tuples, part.edges
        if writing.num_tails is None:
            tuples, values = _sets(part, len(labels), writing.orderings)
        elif not 0 <= writing.num_tails <= tuples.shape[1]:
            raise ValueError(f"num_tails must lie in 0..{tuples.shape[1]}, the order, got {writing.num_tails}")
        edges += [tuple(row) for row in tuples.tolist()]
        attributes += write_attributes(values, writing.edge, kind="edge")
    return AttributedHypergraph(
        tuple(labels),
        tuple(_node_attributes(parts, len(labels), writing.node)),
        tuple(range(len(edges))),
        tuple(edges),
        tuple(attributes),
        None if writing.num_tails is None else (writing.num_tails,) * len(edges),
    )


def _sets(part: Parts, num_nodes: int, orderings: Agreement) -> tuple[Tensor, Tensor]:
    """Entries on the same nodes as one hyperedge, in the order in which they first occur."""
    rows = part.tuples.sort(1).values
    repeated = (rows[:, 1:] == rows[:, :-1]).any(1)
    if bool(repeated.any()):
        raise ValueError(f"a hyperedge has distinct nodes: entry {part.tuples[repeated][0].tolist()} repeats one")
    first = TupleIndex.build(rows, num_nodes).find(rows)
    new = first == torch.arange(len(rows), device=rows.device)
    differ = (part.edges != part.edges[first]).any(1)
    if orderings == "refuse" and bool(differ.any()):
        a, b = part.tuples[first[differ][0]].tolist(), part.tuples[differ][0].tolist()
        raise ValueError(f"orderings of one hyperedge must agree: {a} and {b} differ; orderings='mean' averages them")
    group = (new.cumsum(0) - 1)[first]
    if not bool(differ.any()):
        return part.tuples[new], part.edges[new]
    count = torch.bincount(group).unsqueeze(1)
    total = part.edges.new_zeros(len(count), part.edges.shape[1]).index_add(0, group, part.edges)
    return part.tuples[new], total / count


def _node_attributes(parts: Sequence[Parts], num_nodes: int, names: Names) -> list[Attributes]:
    values = [part.nodes for part in parts if part.nodes is not None]
    if not values:
        if names:
            raise ValueError(f"features have no node channels for {names!r}: node_channels says how many there are")
        return [{}] * num_nodes
    if any(not torch.equal(values[0], other) for other in values[1:]):
        raise ValueError("features of all sizes must have the same values at nodes, and they differ")
    return list(write_attributes(values[0], names, kind="node"))
