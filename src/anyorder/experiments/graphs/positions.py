"""Where a node stands in its graph: degrees, return probabilities of random walks, vectors of the Laplacian."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyorder.experiments.graphs.columns import Floats, Ints
from anyorder.extras import require

KINDS = ("degree", "walk", "laplacian")
STEPS = VECTORS = 8
EXACT = 1_000
"""Nodes up to which a graph is treated as a dense matrix; return probabilities of larger ones are estimated."""
_PROBES = 64


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
    adjacency = _adjacency(edges, num_nodes)
    degree = np.asarray(adjacency.sum(1)).ravel()
    if "degree" in kinds:
        made.append(np.stack([np.log1p(degree), degree > 0], 1).astype(np.float32))
    if "walk" in kinds:
        made.append(_returns(adjacency, degree, seed))
    if "laplacian" in kinds:
        made.append(_vectors(adjacency, degree, seed))
    return np.hstack(made)


def flip_signs(vectors: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
    """Laplacian vectors with a random sign for each vector of each graph: a sign means nothing."""
    signs = torch.randint(0, 2, (num_graphs, vectors.shape[1]), device=vectors.device).to(vectors.dtype) * 2 - 1
    return vectors * signs[graph]


def _adjacency(edges: Ints, num_nodes: int) -> Any:
    sparse = require("scipy.sparse", "train")
    plain = edges[edges[:, 0] != edges[:, 1]]
    both = np.unique(np.concatenate([plain, plain[:, ::-1]]), axis=0)
    return sparse.csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(num_nodes, num_nodes))


def _returns(adjacency: Any, degree: Any, seed: int) -> Floats:
    r"""The diagonals of (D^-1 A)^2 to (D^-1 A)^(STEPS + 1); large graphs: Hutchinson's estimate with random signs."""
    scale = np.where(degree > 0, 1.0 / np.maximum(degree, 1), 0.0)
    made = np.zeros((len(degree), STEPS), np.float32)
    if len(degree) <= EXACT:
        walk = adjacency.toarray() * scale[:, None]
        power = walk
        for step in range(STEPS):
            power = power @ walk
            made[:, step] = np.diagonal(power)
        return made
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (len(degree), _PROBES))
    moved = scale[:, None] * (adjacency @ signs)
    for step in range(STEPS):
        moved = scale[:, None] * (adjacency @ moved)
        made[:, step] = (signs * moved).mean(1)
    return made.clip(0.0, 1.0)


def _vectors(adjacency: Any, degree: Any, seed: int) -> Floats:
    """Eigenvectors of the normalised Laplacian with the least eigenvalues above that of the constant one."""
    nodes = len(degree)
    made = np.zeros((nodes, VECTORS), np.float32)
    root = np.where(degree > 0, 1.0 / np.sqrt(np.maximum(degree, 1)), 0.0)
    if nodes <= EXACT:
        normal = adjacency.toarray() * root[:, None] * root[None, :]
        found = np.linalg.eigh(normal)[1][:, ::-1][:, 1 : VECTORS + 1]
    else:
        sparse, linear = require("scipy.sparse", "train"), require("scipy.sparse.linalg", "train")
        scale = sparse.diags_array(root)
        start = np.random.default_rng(seed).standard_normal(nodes)
        values, vectors = linear.eigsh(scale @ adjacency @ scale, k=VECTORS + 1, which="LA", v0=start, tol=1e-3)
        found = vectors[:, np.argsort(-values)][:, 1:]
    made[:, : found.shape[1]] = found * np.sqrt(nodes)  # entries of size 1, whatever the size of the graph
    return made
