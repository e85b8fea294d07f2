"""What nodes without features are known by: degrees, sizes of their edges, and their place in the hypergraph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from anyorder.experiments.hypergraphs.data import Hypergraph, NamedHypergraph
from anyorder.extras import require

STRUCTURE = ("log degree", "mean log edge size")
"""The features of nodes that have no others."""
SPECTRUM = 32
"""Most columns of the spectrum."""
LABEL_SHARE = 0.5
"""The share of the training labels that a step tells, where labels are an input."""
DENSE = 2_000
"""Nodes up to which the spectrum is that of a dense matrix."""


def structural_features(graph: Hypergraph) -> Tensor:
    """(nodes, 2): log(1 + degree), and the mean of log(size) over the edges of a node, 0 for a node in no edge."""
    degree = graph.degrees.to(torch.float32)
    logs = graph.sizes.to(torch.float32).log()[graph.edge_of]
    total = torch.zeros(graph.num_nodes).index_add(0, graph.members, logs)
    return torch.stack([degree.log1p(), total / degree.clamp(min=1)], 1)


def spectral_features(graph: Hypergraph, count: int = SPECTRUM) -> Tensor:
    r"""(nodes, at most ``count``): the leading singular vectors of the incidences, one row of length 1 per node.

    .. math:: B = D_v^{-1/2} H W^{1/2} D_e^{-1/2}

    :math:`1 - B B^T` is the Laplacian of a hypergraph (Zhou et al., 2006). Nodes that meet the same others have rows
    alike; a node in no edge has zeros. Signs are fixed, and mean nothing: another hypergraph has other columns.
    """
    weights = graph.edge_weights if graph.edge_weights is not None else torch.ones(graph.num_edges)
    share = (weights / graph.sizes).double().numpy()[graph.edge_of.numpy()]
    degree = torch.zeros(graph.num_nodes).index_add(0, graph.members, weights[graph.edge_of]).double().numpy()
    node, edge = graph.members.numpy(), graph.edge_of.numpy()
    values = np.sqrt(share / degree[node])
    sparse = require("scipy.sparse", "train")
    matrix = sparse.csr_array((values, (node, edge)), shape=(graph.num_nodes, graph.num_edges))
    vectors = _leading_vectors(matrix, min(count, graph.num_nodes, graph.num_edges))
    largest = np.abs(vectors).argmax(0)
    vectors = vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 1e-9)
    return torch.from_numpy(rows).float()


def _leading_vectors(matrix: Any, count: int) -> Any:
    """The left singular vectors of the largest singular values."""
    if matrix.shape[0] <= DENSE or count >= min(matrix.shape) - 1:
        return np.linalg.eigh((matrix @ matrix.T).toarray())[1][:, ::-1][:, :count]
    start = np.random.default_rng(0).standard_normal(min(matrix.shape))
    return require("scipy.sparse.linalg", "train").svds(matrix, k=count, v0=start)[0][:, ::-1]


def is_bare(data: NamedHypergraph) -> bool:
    """Whether nodes have no features but those of the structure."""
    return data.hypergraph.node_features is None or tuple(data.feature_names) == STRUCTURE


def with_spectrum(data: NamedHypergraph, count: int = SPECTRUM) -> NamedHypergraph:
    """The hypergraph with columns of the spectrum beside the features of its nodes."""
    graph, columns = data.hypergraph, spectral_features(data.hypergraph, count)
    assert graph.node_features is not None
    names = (*data.feature_names, *(f"spectrum {number}" for number in range(columns.shape[1])))
    return replace(
        data, hypergraph=replace(graph, node_features=torch.cat([graph.node_features, columns], 1)), feature_names=names
    )
