"""Attention that moves rows along the incidences of a hypergraph and between nodes alike."""

from __future__ import annotations

import pytest
import torch

from anyorder.layers.kernels import Elu, RandomFeatures
from anyorder.layouts.neighbours import Neighbours
from anyorder.models.propagation import Gathering, Propagation, PropagationEncoder, both_ways
from anyorder.ops.sparse_matrix import SparseMatrix
from incidences import EDGE, NODE, incidence, positive


def stirred(module):
    """The module in float64 with all weights away from their start."""
    for weight in module.parameters():
        weight.data += 0.3 * torch.randn_like(weight)
    return module.double()


def test_gathering_matches_the_definition():
    torch.manual_seed(0)
    layer = stirred(Gathering(channels=6, heads=2, query_channels=3, kernel=Elu()))
    asks, rows = torch.randn(4, 6, dtype=torch.float64), torch.randn(7, 6, dtype=torch.float64)
    query, key = layer.query(layer.norm(asks)).view(4, 2, 3), layer.gate * layer.key(layer.norm(rows)).view(7, 2, 3)
    expected = torch.zeros(4, 2, 3, dtype=torch.float64)
    for e in range(3):
        inside = NODE[e == EDGE]
        for h in range(2):
            weights = positive(key[inside, h]) @ positive(query[e, h])
            expected[e, h] = (weights / weights.sum()) @ rows[inside].view(-1, 2, 3)[:, h]
    torch.testing.assert_close(layer(asks, rows, both_ways(incidence())[0]), expected.flatten(1))


def test_incidences_are_matrices_both_ways():
    of_edge, of_node = both_ways(incidence())
    dense = torch.zeros(4, 7)
    dense[EDGE, NODE] = 1
    torch.testing.assert_close(of_edge(torch.eye(7)), dense)
    torch.testing.assert_close(of_node(torch.eye(4)), dense.T)
    for matrix in (of_edge, of_node):
        rows = torch.randn(matrix.shape[1], 2, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(matrix, (rows,))


def test_starts_as_shares_of_means():
    torch.manual_seed(0)
    layer = Propagation(channels=4, heads=2, kernel=Elu(), keep=0.2).double()
    rows = torch.randn(7, 4, dtype=torch.float64)
    near = Neighbours.build(torch.randn(7, 3, dtype=torch.float64), 2)
    edges = [rows[NODE[e == EDGE]].mean(0) for e in range(3)]
    got = layer(rows, incidence(), near)
    for v in range(7):
        around = [edges[e] for e in EDGE[v == NODE].tolist()]
        own, alike = rows[v], near(rows)[v]
        expected = 0.2 * own + 0.6 * torch.stack(around).mean(0) + 0.2 * alike if around else 0.5 * own + 0.5 * alike
        torch.testing.assert_close(got[v], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("kernel", [Elu(), RandomFeatures()])
def test_renaming_nodes_and_edges_renames_the_output(kernel, alike, update):
    torch.manual_seed(0)
    sizes = {"channels_in": 3, "channels": 8, "channels_out": 2, "layers": 2, "heads": 2}
    model = stirred(PropagationEncoder(**sizes, kernel=kernel, update=update))
    features = torch.randn(7, 3, dtype=torch.float64)
    nodes, edges, order = torch.randperm(7), torch.randperm(4), torch.randperm(len(NODE))
    moved = torch.empty_like(features)
    moved[nodes] = features
    near = [Neighbours.build(x, 2) if alike else None for x in (features, moved)]
    out = model(moved, incidence(nodes[NODE][order], edges[EDGE][order]), near[1])
    torch.testing.assert_close(out[nodes], model(features, incidence(), near[0]))
    assert out.isfinite().all()


def test_every_weight_learns():
    torch.manual_seed(0)
    model = stirred(PropagationEncoder(channels_in=3, channels=8, channels_out=2, layers=2, heads=2, update=True))
    features = torch.randn(7, 3, dtype=torch.float64)
    model(features, incidence(), Neighbours.build(features, 2)).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in model.parameters())


def test_updates_start_as_if_there_were_none():
    torch.manual_seed(0)
    with_updates = Propagation(channels=4, heads=2, kernel=Elu(), keep=0.2, update=True)
    without = Propagation(channels=4, heads=2, kernel=Elu(), keep=0.2)
    without.load_state_dict(with_updates.state_dict(), strict=False)
    rows = torch.randn(7, 4)
    torch.testing.assert_close(with_updates(rows, incidence()), without(rows, incidence()))


def test_sparse_features_give_what_dense_ones_do():
    torch.manual_seed(0)
    model = PropagationEncoder(channels_in=3, channels=8, channels_out=2, layers=2, heads=2, dropout=0.5).eval()
    features = torch.randn(7, 3).relu()
    torch.testing.assert_close(model(SparseMatrix.of_dense(features), incidence()), model(features, incidence()))


def test_a_small_gate_slows_attention_and_nothing_else():
    i, rows, target = incidence(), torch.randn(7, 8, generator=torch.Generator().manual_seed(0)), torch.randn(7, 8)
    moved = {}
    for gate in (1.0, 0.01):
        torch.manual_seed(0)
        layer = Propagation(channels=8, heads=2, kernel=Elu(), keep=0.2, gate=gate)
        start = layer(rows, i)
        optimiser = torch.optim.Adam([layer.to_edges.key.weight], lr=0.01)
        for _ in range(5):
            optimiser.zero_grad()
            (layer(rows, i) - target).square().sum().backward()
            optimiser.step()
        moved[gate] = float((layer(rows, i) - start).detach().abs().max())
    assert 0 < moved[0.01] < 0.1 * moved[1.0]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="8 channels and 3 heads"):
        PropagationEncoder(channels_in=3, channels=8, channels_out=2, layers=2, heads=3)
    with pytest.raises(ValueError, match=r"keep must lie between 0 and 1, got 1\.0"):
        PropagationEncoder(channels_in=3, channels=8, channels_out=2, layers=2, heads=2, keep=1.0)
