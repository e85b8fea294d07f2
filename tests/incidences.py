"""A small hypergraph for tests of layers on incidences."""

from __future__ import annotations

import torch

from anyorder.layers import Elu
from anyorder.layouts.incidence import IncidenceSet

NODE = torch.tensor([0, 1, 2, 2, 3, 0, 4, 5, 1])
EDGE = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 2])


def incidence(node=NODE, edge=EDGE):
    return IncidenceSet.build(node, edge, num_nodes=7, num_edges=4)  # node 6 and edge 3 are alone


def positive(x):
    """elu(x) + 1 + eps, the default kernel of hypergraphs"""
    return torch.where(x > 0, x + 1, x.exp()) + Elu().eps
