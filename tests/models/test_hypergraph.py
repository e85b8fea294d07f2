"""Attention between nodes and hyperedges of many sizes."""

from __future__ import annotations

import pytest
import torch

from anyorder.layers.kernels import Elu, RandomFeatures
from anyorder.models.hypergraph import HypergraphEncoder, IncidenceAttention
from incidences import EDGE, NODE, incidence, positive


def test_matches_the_definition():
    torch.manual_seed(0)
    layer = IncidenceAttention(channels=4, heads=2, head_channels=3, kernel=Elu(), global_=True).double()
    nodes, edges = torch.randn(7, 4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
    i = incidence()
    got = layer(edges, nodes, i.node, i.by_edge, i.each_edge)
    query = layer.query(edges).view(4, 2, 2, 3)
    shared, every = layer.shared(nodes).view(7, 2, 2, 3), layer.all(edges).view(4, 2, 2, 3)
    expected = torch.zeros(4, 2, 2, 3, dtype=torch.float64)
    for e in range(4):
        for h in range(2):
            inside = NODE[e == EDGE]
            for part, (keys, values) in enumerate(((shared[inside, 0], shared[inside, 1]), (every[:, 0], every[:, 1]))):
                if len(keys):
                    weights = positive(keys[:, h]) @ positive(query[e, part, h])
                    expected[e, part, h] = (weights / weights.sum()) @ values[:, h]
    torch.testing.assert_close(got, layer.output(expected.flatten(1)))


@pytest.mark.parametrize("kernel", [Elu(), RandomFeatures()])
def test_renaming_nodes_and_edges_renames_the_output(kernel):
    torch.manual_seed(0)
    model = HypergraphEncoder(channels_in=3, channels=8, channels_out=2, layers=2, heads=2, head_channels=4, kernel=kernel)
    model = model.double()
    features = torch.randn(7, 3, dtype=torch.float64)
    nodes, edges, order = torch.randperm(7), torch.randperm(4), torch.randperm(len(NODE))
    moved = torch.empty_like(features)
    moved[nodes] = features
    out = model(moved, incidence(nodes[NODE][order], edges[EDGE][order]))
    torch.testing.assert_close(out[nodes], model(features, incidence()))
    assert out.isfinite().all()


def test_bad_incidences_are_refused():
    with pytest.raises(ValueError, match=r"node must lie in 0\.\.6, got 0 to 9"):
        incidence(torch.tensor([0, 9]), torch.tensor([0, 0]))
    with pytest.raises(ValueError, match="two lists of one length"):
        incidence(torch.tensor([0, 1]), torch.tensor([0]))
