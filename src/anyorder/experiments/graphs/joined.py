"""Sets of graphs one behind the other, with the columns of the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from anyorder.experiments.graphs.columns import MISSING, Columns
from anyorder.experiments.graphs.values import GraphSet

PART = "part of the files"
"""The column of graphs that says which file a graph came from."""


def joined(sets: Mapping[str, GraphSet]) -> GraphSet:
    """All graphs of several files, each marked with the name of its part."""
    named = list(sets.items())
    if len({graphs.directed for _, graphs in named}) > 1:
        raise ValueError("some files hold directed graphs and some do not")
    nodes = np.cumsum([0, *(graphs.num_nodes for _, graphs in named)])
    first = np.cumsum([0, *(graphs.num_graphs for _, graphs in named)])
    graphs_of = stacked([graphs.graph_columns for _, graphs in named], "graphs")
    parts = [name for name, graphs in named for _ in range(graphs.num_graphs)]
    return GraphSet(
        np.concatenate([graphs.edges + start for start, (_, graphs) in zip(nodes, named, strict=False)]),
        np.concatenate([graphs.node_graph + start for start, (_, graphs) in zip(first, named, strict=False)]),
        int(first[-1]),
        named[0][1].directed,
        stacked([graphs.node_columns for _, graphs in named], "nodes"),
        stacked([graphs.edge_columns for _, graphs in named], "edges"),
        graphs_of.with_categories(PART, parts),
        tuple(graphs.node_name(n) for _, graphs in named for n in range(graphs.num_nodes)),
        tuple(graphs.graph_name(n) for _, graphs in named for n in range(graphs.num_graphs)),
        tuple(note for _, graphs in named for note in graphs.notes),
    )


def stacked(tables: Sequence[Columns], what: str) -> Columns:
    """Tables with the same columns, one below the other."""
    head = tables[0]
    for table in tables[1:]:
        different = {*head.number_names} ^ {*table.number_names} | {*head.category_names} ^ {*table.category_names}
        if different:
            raise ValueError(f"the files differ in the column {min(different)!r} of {what}: expected it in all, of one kind")
    values = tuple(
        tuple(dict.fromkeys(value for table in tables for value in table.values[table.category_names.index(name)]))
        for name in head.category_names
    )
    numbers = [table.numbers[:, [table.number_names.index(name) for name in head.number_names]] for table in tables]
    codes = []
    for table in tables:
        columns = np.full((len(table), len(values)), MISSING, np.int64)
        for n, name in enumerate(head.category_names):
            own = table.category_names.index(name)
            place = np.array([*(values[n].index(value) for value in table.values[own]), MISSING], np.int64)
            columns[:, n] = place[table.categories[:, own]]
        codes.append(columns)
    return replace(head, numbers=np.concatenate(numbers), categories=np.concatenate(codes), values=values)
