"""Random graphs to measure on."""

from __future__ import annotations

import random

import torch

from anyorder.layouts import SparseIndexSet


def barabasi_albert(edges: int, *, links: int = 5, seed: int = 0) -> SparseIndexSet:
    """A graph grown by preferential attachment: loops first, then both directions of each edge.

    Growth starts from a star; each new node is linked to ``links`` distinct nodes, drawn by their degree. ``edges`` counts
    directed edges, without loops; the graph has the next possible number.

    >>> graph = barabasi_albert(1_000)
    >>> graph.num_nodes, graph.num_entries - graph.num_nodes
    (105, 1000)
    """
    if links < 1 or edges < 2 * links:
        least = max(2 * links, 2)
        raise ValueError(f"a graph with {links} links per new node has at least {least} directed edges, got {edges}")
    nodes = links - (-edges // (2 * links))
    draw = random.Random(seed)
    pairs = [(0, node) for node in range(1, links + 1)]
    ends = [node for pair in pairs for node in pair]  # each node as often as its degree
    for node in range(links + 1, nodes):
        chosen: dict[int, None] = {}  # a set would be in no defined order
        while len(chosen) < links:
            chosen[ends[int(draw.random() * len(ends))]] = None
        for other in chosen:
            pairs.append((other, node))
            ends += (other, node)
    forward = torch.tensor(pairs)
    loops = torch.arange(nodes).repeat(2, 1).T
    return SparseIndexSet(torch.cat([loops, forward, forward.flip(1)]), num_nodes=nodes)
