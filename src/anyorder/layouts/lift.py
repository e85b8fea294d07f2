"""Features of tuples from those of a graph: what each knows of its nodes and of all its pairs."""

from __future__ import annotations

from itertools import combinations, permutations

import torch
from torch import Tensor

from anyorder.layouts.features import Features
from anyorder.layouts.from_graph import DistinctTuples, Tuples
from anyorder.layouts.hops import Distances
from anyorder.layouts.index_set import IndexSet
from anyorder.layouts.lookup import TupleIndex
from anyorder.layouts.memory import with_zeros


def lift(
    graph: Features,
    order: int,
    tuples: Tuples | IndexSet | None = None,
    *,
    node_channels: int | None = None,
    directed: bool = False,
    distance: int = 0,
    limit: int | None = None,
) -> Features:
    """A graph at a higher order: the way from ``from_pyg``, ``from_networkx`` or ``from_edges`` to order k.

    The channels of a tuple are those of its nodes, axis by axis, then for each pair of axes whether its nodes are joined,
    the channels of that edge, and how far apart they are, where asked. With all pairs of a tuple known, a layer of order k
    starts where k-WL does.

    >>> from anyorder.layouts import SparseIndexSet
    >>> path = SparseIndexSet(torch.tensor([[0, 0], [1, 1], [2, 2], [0, 1], [1, 0], [1, 2], [2, 1]]), num_nodes=3)
    >>> graph = Features(path, torch.ones(7, 1))
    >>> lift(graph, 3).index.num_entries, lift(graph, 3).channels, lift(graph, 3, node_channels=1).channels
    (6, 9, 6)

    Args:
        graph: features of order 2, of one graph or a batch: nodes on the diagonal, edges off it.
        order: k, at least 2.
        tuples: which tuples there are, as a rule or as an index set; all of distinct nodes unless told.
        node_channels: how many of the graph's channels are of nodes, the others being of edges, as converters lay them out;
            None if both have all channels.
        directed: read both directions of each pair; otherwise the graph must be symmetric, and a pair is read once.
        distance: up to how many hops a pair says how far apart its nodes are, one channel each and one for farther.
        limit: the largest number of tuples; as many as memory holds unless told.
    """
    if not isinstance(graph, Features) or graph.order != 2:
        got = f"order {graph.order}" if isinstance(graph, Features) else type(graph).__name__
        raise ValueError(f"lift takes features of order 2: nodes on the diagonal, edges off it; got {got}")
    if not directed:
        _check_symmetric(graph)
    index = _index(graph, order, tuples, limit)
    of_nodes = graph.rows if node_channels is None else graph.rows[:, :node_channels]
    of_edges = graph.rows if node_channels is None else graph.rows[:, node_channels:]
    parts = [_read(of_nodes, graph.index, index, (axis, axis)) for axis in range(order)] if of_nodes.shape[1] else []
    far = Distances.of(graph.index, distance) if distance else None
    there = torch.cat([graph.rows.new_ones(len(graph.rows), 1), of_edges], 1)
    for pair in (permutations if directed else combinations)(range(order), 2):
        parts.append(_read(there, graph.index, index, pair))
        if far is not None:
            hops = far.find(index.tuples[:, list(pair)]).clamp(min=1)
            parts.append(torch.nn.functional.one_hot(hops - 1, distance + 1).to(graph.dtype))
    return Features.of_rows(index, torch.cat(parts, 1) if parts else graph.rows.new_zeros(index.num_entries, 0))


def _index(graph: Features, order: int, tuples: Tuples | IndexSet | None, limit: int | None) -> IndexSet:
    if not isinstance(tuples, IndexSet):
        rule = DistinctTuples() if tuples is None else tuples
        if not isinstance(rule, Tuples):
            raise TypeError(f"tuples must be a rule, such as ConnectedTuples(), or an index set, got {type(rule).__name__}")
        return rule.index_set(graph.index, order, limit=limit)
    if tuples.order != order:
        raise ValueError(f"the index set must be of the order asked for: expected {order}, got {tuples.order}")
    graph.index.check_target(tuples)
    return tuples


def _read(values: Tensor, graph: IndexSet, index: IndexSet, pair: tuple[int, int]) -> Tensor:
    """The graph's values at two axes of each tuple, zero where it has none."""
    rows = graph.find(index.tuples[:, list(pair)], index.entry_graph)
    return with_zeros(values)[rows]


def _check_symmetric(graph: Features) -> None:
    tuples = graph.index.tuples
    reverse = TupleIndex.build(tuples, graph.num_nodes).find(tuples.flip(1))
    wrong = (reverse < 0) | (graph.rows != graph.rows[reverse.clamp(min=0)]).any(1)
    if bool(wrong.any()):
        u, v = tuples[wrong][0].tolist()
        raise ValueError(
            f"the graph is not symmetric: ({u}, {v}) and ({v}, {u}) differ; directed=True reads both directions"
        )
