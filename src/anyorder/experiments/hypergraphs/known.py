"""Known classes: as an input that hides what is asked for, and as the vote of those who meet a node."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from anyorder.experiments.hypergraphs.data import UNKNOWN, Hypergraph
from anyorder.layouts.transfer import Transferable
from anyorder.ops.sparse_matrix import SparseMatrix


def told(labels: Tensor, nodes: Tensor) -> Tensor:
    """The classes of some nodes, and of no other.

    >>> told(torch.tensor([2, 0, 1]), torch.tensor([0, 2])).tolist()
    [2, -1, 1]
    """
    return torch.full_like(labels, UNKNOWN).index_copy(0, nodes, labels[nodes])


def hide(known: Tensor, nodes: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Hide the classes of ``nodes`` but for a random ``share``: what is still told, and which of the nodes are asked for."""
    asked = torch.rand(len(nodes)) >= share
    asked[torch.randint(len(nodes), ())] = True
    asked = asked.to(nodes.device)
    return known.index_fill(0, nodes[asked], UNKNOWN), asked


def with_known(inputs: Any, known: Tensor, classes: int) -> Transferable:
    """The input of a model with the known classes in its last ``classes`` channels, which are zero without."""
    rows = functional.one_hot(known.clamp(min=0), classes) * (known != UNKNOWN).unsqueeze(1)
    features = inputs.features
    if isinstance(features, SparseMatrix):
        row, label = rows.nonzero().unbind(1)
        place = features.shape[1] - classes + label
        places = torch.cat([features.rows, row]), torch.cat([features.columns, place])
        values = torch.cat([features.values, torch.ones_like(row, dtype=features.values.dtype)])
        return replace(inputs, features=SparseMatrix.build(*places, values, features.shape))
    filled = torch.cat([features[:, :-classes], rows.to(features.dtype)], 1)
    return replace(inputs, features=filled)


def neighbour_votes(graph: Hypergraph, known: Tensor, classes: int) -> Tensor:
    """(nodes, classes): how often a node is in a hyperedge with others of each known class, by the weights of hyperedges.

    >>> graph = Hypergraph.of_edges([[0, 1, 2], [1, 2]], num_nodes=3)
    >>> neighbour_votes(graph, torch.tensor([0, -1, 1]), 2).tolist()
    [[0.0, 1.0], [1.0, 2.0], [1.0, 0.0]]
    """
    own = functional.one_hot(known.clamp(min=0), classes) * (known != UNKNOWN).unsqueeze(1)
    weights = torch.ones(graph.num_edges) if graph.edge_weights is None else graph.edge_weights
    scaled = weights[graph.edge_of].unsqueeze(1)
    of_edges = torch.zeros(graph.num_edges, classes).index_add(0, graph.edge_of, own[graph.members].float())
    others = of_edges[graph.edge_of] - own[graph.members]
    return torch.zeros(graph.num_nodes, classes).index_add(0, graph.members, scaled * others)


def neighbour_vote(graph: Hypergraph, known: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """The class that most neighbours of each node have, the most frequent one where none is known, and that one alone."""
    counts = torch.bincount(known[known != UNKNOWN], minlength=classes).float()
    votes = neighbour_votes(graph, known, classes) + counts / (1 + 2 * counts.sum())  # ties go to the more frequent class
    return votes.argmax(1), counts.argmax().expand(graph.num_nodes)
