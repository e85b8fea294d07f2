"""Which pairs are linked: parts of edges without a leak, and pairs that are not linked beside them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from anyorder.experiments.graphs.batch import GraphArrays, GraphBatch
from anyorder.experiments.graphs.columns import Floats, Ints
from anyorder.experiments.graphs.parts import LinkQuestion, Links, codes, sample_unlinked
from anyorder.experiments.graphs.shapes import GraphShapes
from anyorder.experiments.graphs.values import GraphSet
from anyorder.training.parts import RowParts

LINKED = "linked"
GROUPS = 5
"""Training edges are asked about in so many groups, each on the graph of the other groups."""


def link_parts(graphs: GraphSet, parts: RowParts, shapes: GraphShapes, *, seed: int) -> tuple[Links, Links, Links]:
    """Questions about training, validation and test edges; all are asked on graphs of training edges alone.

    A training question hides its own group of edges. Unlinked pairs of validation and test are fixed, as many as there are
    edges; those of training are sampled at each step among the pairs that are no training edge.
    """
    seen = GraphArrays(graphs.with_edges(parts.train), shapes)
    known = torch.from_numpy(np.unique(codes(graphs, graphs.edges[parts.train])))
    order = np.random.default_rng(seed).permutation(parts.train)
    train = []
    for group in np.array_split(order, min(GROUPS, len(order))):
        others = GraphArrays(graphs.with_edges(np.setdiff1d(parts.train, group)), shapes, x=seen.x)
        train.append(LinkQuestion(others, graphs.edges[group], _ones(len(group)), known))
    unlinked = sample_unlinked(graphs, len(parts.valid) + len(parts.test), seed=seed + 1)
    if len(unlinked) < 2:
        raise ValueError("almost all pairs are linked: there are no others to tell them from")
    share = len(unlinked) * len(parts.valid) // (len(parts.valid) + len(parts.test))
    valid, test = (
        Links([_fixed(seen, graphs.edges[edges], others)])
        for edges, others in ((parts.valid, unlinked[: max(1, share)]), (parts.test, unlinked[max(1, share) :]))
    )
    return Links(train), valid, test


def _fixed(arrays: GraphArrays, linked: Ints, unlinked: Ints) -> LinkQuestion:
    targets = np.concatenate([_ones(len(linked)), 0 * _ones(len(unlinked))])
    return LinkQuestion(arrays, np.concatenate([linked, unlinked]), targets)


def _ones(count: int) -> Floats:
    return np.ones((count, 1), np.float32)


def with_unlinked(batch: GraphBatch, directed: bool) -> tuple[Tensor, Tensor]:
    """The pairs to judge and their targets; in training, as many random pairs that are not linked stand beside."""
    assert batch.links is not None
    if batch.known is None:
        return batch.links, batch.targets
    count, nodes = batch.links.shape[1], len(batch.x)
    first = torch.randint(nodes, (2 * count,), device=batch.links.device)
    sizes = torch.bincount(batch.graph, minlength=batch.num_graphs)
    starts = sizes.cumsum(0) - sizes
    graph = batch.graph[first]
    second = starts[graph] + (torch.rand(2 * count, device=first.device) * sizes[graph]).long().clamp(max=nodes - 1)
    low, high = (first, second) if directed else (torch.minimum(first, second), torch.maximum(first, second))
    unknown = (first != second) & ~torch.isin(low * nodes + high, batch.known)
    pairs = torch.stack([first, second])[:, unknown][:, :count]
    targets = torch.cat([batch.targets, batch.targets.new_zeros(pairs.shape[1], 1)])
    return torch.cat([batch.links, pairs], 1), targets
