"""Where a node stands in its graph: degrees, return probabilities of random walks, vectors of the Laplacian."""

from __future__ import annotations

import numpy as np
import torch

from anyorder.experiments.graphs.columns import Floats, Ints
from anyorder.positions import laplacian_positions, random_walk_positions

KINDS = ("degree", "walk", "laplacian")
STEPS = VECTORS = 8


def position_channels(kinds: tuple[str, ...]) -> int:
    """How many channels these positions have.

    >>> position_channels(("degree", "walk"))
    10
    """
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise ValueError(f"unknown positions {unknown[0]!r}: expected some of {list(KINDS)}")
    return sum({"degree": 2, "walk": STEPS, "laplacian": VECTORS}[kind] for kind in kinds)


def positions(edges: Ints, num_nodes: int, kinds: tuple[str, ...], *, seed: int = 0) -> Floats:
    """(node, channel) for one graph, whose edges count in both directions."""
    made = [np.zeros((num_nodes, 0), np.float32)]
    ends, graph = torch.from_numpy(edges.T.copy()), torch.zeros(num_nodes, dtype=torch.int64)
    if "degree" in kinds:
        made.append(_degrees(edges, num_nodes))
    if "walk" in kinds:
        made.append(random_walk_positions(ends, graph, 1, STEPS, seed=seed).numpy())
    if "laplacian" in kinds:  # entries of size 1, whatever the size of the graph
        made.append(laplacian_positions(ends, graph, 1, VECTORS, seed=seed).numpy() * np.float32(np.sqrt(num_nodes)))
    return np.hstack(made)


def _degrees(edges: Ints, num_nodes: int) -> Floats:
    plain = edges[edges[:, 0] != edges[:, 1]]
    both = np.unique(np.concatenate([plain, plain[:, ::-1]]), axis=0)
    degree = np.bincount(both[:, 0], minlength=num_nodes)
    return np.stack([np.log1p(degree), degree > 0], 1).astype(np.float32)
