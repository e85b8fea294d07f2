"""A cheap answer beside the models: sets whose nodes were seen together in pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from anyorder.experiments.hypergraphs.data import Hypergraph
from anyorder.experiments.hypergraphs.prediction.sets import Candidates
from anyorder.extras import require


class PairsSeen(nn.Module):
    """Scores a set by its pairs: the mean of log(1 + the number of observed hyperedges that hold both).

    >>> graph = Hypergraph.of_edges([[0, 1, 2], [0, 1]], num_nodes=4)
    >>> PairsSeen(graph)(None, Candidates.of([[0, 1], [0, 2], [2, 3]])).exp()
    tensor([3., 2., 1.])
    """

    def __init__(self, graph: Hypergraph) -> None:
        super().__init__()
        sparse = require("scipy.sparse", "train")
        place = (graph.members.numpy(), graph.edge_of.numpy())
        incidence = sparse.csr_array((np.ones(len(place[0])), place), shape=(graph.num_nodes, graph.num_edges))
        self.together = incidence @ incidence.T

    def forward(self, observed: Any, sets: Candidates) -> Tensor:
        found = []
        for nodes in sets.listed():
            first, second = np.triu_indices(len(nodes), 1)
            names = np.array(nodes, np.int64)
            seen = self.together[names[first], names[second]] if len(first) else np.zeros(1)
            found.append(float(np.log1p(seen).mean()))
        return torch.tensor(found)
