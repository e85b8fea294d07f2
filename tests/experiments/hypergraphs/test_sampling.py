"""Parts of a hypergraph give nodes what the whole gives them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from anyorder.experiments.hypergraphs.data import Hypergraph
from anyorder.experiments.hypergraphs.models import MODELS
from anyorder.experiments.hypergraphs.sampling import ReadLimits, sample_part
from anyorder.experiments.hypergraphs.shapes import HypergraphShapes
from anyorder.experiments.hypergraphs.task import CollateParts, NodesApart

SHAPES = HypergraphShapes(channels_in=5, channels_out=3)


def chain(num_nodes: int = 60, *, seed: int = 0) -> Hypergraph:
    """Hyperedges of 2 to 4 nodes along a line: a few steps reach a few nodes."""
    generator = torch.Generator().manual_seed(seed)
    edges = [[first + step for step in range(2 + first % 3)] for first in range(0, num_nodes - 4, 2)]
    features, labels = torch.randn(num_nodes, 5, generator=generator), torch.arange(num_nodes) % 3
    return Hypergraph.of_edges(edges, num_nodes=num_nodes, node_features=features, labels=labels)


@pytest.mark.parametrize("row", [row for row in MODELS if row not in ("HypergraphConv (neighbours)", "EHNN-Transformer")])
def test_outputs_and_gradients_are_those_of_the_whole(row):
    torch.manual_seed(0)
    graph, model = chain(), replace(MODELS[row], channels=16, dropout=0.0)  # type: ignore[call-arg]
    if getattr(model, "neighbours", 0):
        model = replace(model, neighbours=2)  # type: ignore[call-arg]
    network = model.build(SHAPES).eval()
    for weight in network.parameters():
        weight.data += 0.05 * torch.randn_like(weight)  # away from a start where all attention is equal
    asked = torch.tensor([30, 7, 58, 31])
    whole = network(model.prepare(graph))[asked]
    functional.cross_entropy(whole, graph.labels[asked]).backward()
    expected = [weight.grad.clone() for weight in network.parameters()]
    network.zero_grad()
    batch = CollateParts(model, ReadLimits())([NodesApart(graph, asked)[n] for n in range(4)])
    found = network(batch.inputs)[batch.nodes]
    torch.testing.assert_close(found, whole, atol=1e-5, rtol=1e-5)
    functional.cross_entropy(found, batch.labels).backward()
    for weight, grad in zip(network.parameters(), expected, strict=True):
        torch.testing.assert_close(weight.grad, grad, atol=1e-5, rtol=1e-4)


def test_a_part_is_smaller_than_the_whole_and_the_nodes_asked_for_come_first():
    graph, asked = chain(), torch.tensor([30, 7])
    part = sample_part(graph, asked, hops=2)
    assert part.nodes[:2].tolist() == [30, 7]
    assert len(part.nodes) < 30
    torch.testing.assert_close(part.graph.node_features, graph.node_features[part.nodes])
    known = {frozenset(graph.edge(e)) for e in range(graph.num_edges)}
    assert {frozenset(part.nodes[list(part.graph.edge(e))].tolist()) for e in range(part.graph.num_edges)} <= known


def test_limits_hold_and_samples_repeat():
    hub = Hypergraph.of_edges([[0, *range(1 + 9 * n, 10 + 9 * n)] for n in range(20)], num_nodes=181)
    limits = ReadLimits(edges_per_node=3, nodes_per_edge=4)
    parts = [
        sample_part(hub, torch.tensor([0]), hops=1, limits=limits, generator=torch.Generator().manual_seed(seed))
        for seed in (0, 0, 1)
    ]
    assert parts[0].graph.num_edges == 3
    assert int(parts[0].graph.sizes.max()) <= 5  # and the node that was asked for
    assert all(0 in parts[0].graph.edge(e) for e in range(3))
    assert torch.equal(parts[0].nodes, parts[1].nodes)
    assert not torch.equal(parts[0].nodes, parts[2].nodes)
    with pytest.raises(ValueError, match="at least 0"):
        ReadLimits(edges_per_node=-1)


def test_nodes_in_no_edge_stand_alone():
    graph = Hypergraph.of_edges([[0, 1]], num_nodes=4, node_features=torch.randn(4, 5))
    part = sample_part(graph, torch.tensor([3]), hops=2)
    assert (part.graph.num_nodes, part.graph.num_edges) == (1, 0)
    model = MODELS["Ours"]
    assert model.build(SHAPES)(model.prepare(part.graph)).isfinite().all()


def test_models_with_neighbours_that_have_no_parts_say_so():
    with pytest.raises(ValueError, match="HypergraphConvNet cannot be trained on parts"):
        MODELS["HypergraphConv (neighbours)"].links(chain())
