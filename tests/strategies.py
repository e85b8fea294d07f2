"""Random index sets for property tests: repeated nodes in tuples, isolated nodes, empty graphs, any order of entries."""

from __future__ import annotations

from itertools import product

import torch
from hypothesis import settings
from hypothesis import strategies as st

from anyorder import Features, SparseIndexSet

few = settings(max_examples=25, deadline=None)


def within_graphs(order, node_graph):
    """All tuples whose nodes are of one graph, in plain Python."""
    return [t for t in product(range(len(node_graph)), repeat=order) if len({node_graph[v] for v in t}) == 1]


@st.composite
def nodes(draw, max_nodes=6, max_graphs=3, together=False):
    """(node_graph, num_graphs): nodes in any order of graphs unless ``together``, and graphs without nodes."""
    num_graphs = draw(st.integers(1, max_graphs))
    node_graph = draw(st.lists(st.integers(0, num_graphs - 1), max_size=max_nodes))
    return sorted(node_graph) if together else node_graph, num_graphs


@st.composite
def index_sets(draw, order, on=None, **options):
    """A sparse index set, on its own nodes or on those of another."""
    if on is None:
        node_graph, num_graphs = draw(nodes(**options))
    else:
        node_graph, num_graphs = on.node_graph.tolist(), on.num_graphs
    if order == 0:
        tuples = [()] * num_graphs
    else:
        every = within_graphs(order, node_graph)
        tuples = draw(st.lists(st.sampled_from(every), unique=True, max_size=12)) if every else []
    return SparseIndexSet(
        torch.tensor(tuples, dtype=torch.int64).reshape(len(tuples), order),
        num_nodes=len(node_graph),
        node_graph=torch.tensor(node_graph, dtype=torch.int64),
        num_graphs=num_graphs,
    )


@st.composite
def features(draw, order, channels=2, **options):
    """Distinct values on a random index set."""
    index = draw(index_sets(order, **options))
    values = torch.arange(1, index.num_entries * channels + 1, dtype=torch.float32).reshape(-1, channels)
    return Features(index, values.reshape(index.num_entries, channels))


def as_dict(x):
    """The values of features by tuple and graph, whatever the order of entries."""
    keys = zip(map(tuple, x.index.tuples.tolist()), x.index.entry_graph.tolist())
    return dict(zip(keys, x.rows.tolist()))
