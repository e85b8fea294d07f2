from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from anyorder.experiments.hypergraphs.baselines import (
    CliqueConvolution,
    HypergraphConvolution,
    clique_expansion,
    with_loops,
)
from anyorder.experiments.hypergraphs.data import Hypergraph
from anyorder.experiments.hypergraphs.models import MODELS, CliqueGCN, HypergraphConvNet, HypergraphMLP
from anyorder.experiments.hypergraphs.shapes import EdgeShapes, HypergraphShapes

pytest.importorskip("torch_geometric")
from torch_geometric.nn import GCNConv, HypergraphConv

EDGES = [[0, 1, 2, 3], [2, 3], [4], [5, 0, 2], [0, 1, 2, 3]]
SHAPES = HypergraphShapes(channels_in=3, channels_out=4)


def example(seed: int = 0, *, num_nodes: int = 8, edges: list[list[int]] = EDGES, weights: bool = False) -> Hypergraph:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(num_nodes, 3, generator=generator)
    sizes = torch.rand(len(edges), generator=generator) + 0.5 if weights else None
    return Hypergraph.of_edges(edges, num_nodes=num_nodes, node_features=features, edge_weights=sizes)


def written_out(graph: Hypergraph, pairs: str) -> torch.Tensor:
    """The weights of the clique expansion, pair by pair."""
    links = torch.zeros(graph.num_nodes, graph.num_nodes)
    for number in range(graph.num_edges):
        members = graph.edge(number)
        weight = 1.0 if graph.edge_weights is None else float(graph.edge_weights[number])
        for a in members:
            for b in members:
                if a != b:
                    links[a, b] += weight if pairs == "count" else weight / (len(members) - 1)
    return links


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("pairs", ["count", "mean"])
def test_the_clique_convolution_equals_gcn_on_the_expansion_written_out(pairs, weights):
    graph = example(weights=weights)
    layer, reference = CliqueConvolution(3, 5), GCNConv(3, 5)
    with torch.no_grad():
        reference.lin.weight.copy_(layer.weight.T)
        reference.bias.copy_(layer.bias.normal_())
    links = written_out(graph, pairs)
    index = links.nonzero().T
    expected = reference(graph.node_features, index, links[index[0], index[1]])
    torch.testing.assert_close(layer(graph.node_features, clique_expansion(graph, pairs)), expected)


def test_the_clique_convolution_costs_incidences_not_pairs():
    size = 20_000  # 400 million pairs
    graph = example(num_nodes=size, edges=[list(range(size))])
    inputs = clique_expansion(graph)
    assert len(inputs.nodes) == size
    rows = CliqueConvolution(3, 2)(graph.node_features, inputs)
    torch.testing.assert_close(rows, rows[:1].expand_as(rows), atol=1e-4, rtol=0)  # each sees the mean of all


def looped(graph: Hypergraph) -> tuple[torch.Tensor, list[list[int]]]:
    edges = [list(graph.edge(number)) for number in range(graph.num_edges)]
    edges += [[node] for node in range(graph.num_nodes) if [node] not in edges]
    index = [(node, number) for number, edge in enumerate(edges) for node in edge]
    return torch.tensor(index).T, edges


@pytest.mark.parametrize("heads", [0, 1, 2])
def test_the_hypergraph_convolution_equals_the_operator_of_pyg(heads):
    graph = example()
    layer = HypergraphConvolution(3, 5, heads=heads, concat=True, dropout=0.0)
    options = {"use_attention": True, "heads": heads} if heads else {}
    reference = HypergraphConv(3, 5, **options)
    with torch.no_grad():
        reference.lin.weight.copy_(layer.linear.weight)
        if heads:
            reference.att.copy_(layer.convolution.att)
    index, edges = looped(graph)
    means = torch.stack([graph.node_features[edge].mean(0) for edge in edges]) if heads else None
    expected = reference(graph.node_features, index, hyperedge_attr=means)
    torch.testing.assert_close(layer(graph.node_features, with_loops(graph)), expected)


@pytest.mark.parametrize("row", MODELS)
def test_networks_are_equivariant(row):
    torch.manual_seed(0)
    model, graph = MODELS[row], example()
    if getattr(model, "neighbours", 0):
        model = replace(model, neighbours=2)  # type: ignore[call-arg]  # of seven, so that the nearest are chosen
    network = model.build(SHAPES).eval()
    order = torch.randperm(graph.num_nodes)
    place = order.argsort()
    edges = [[int(place[node]) for node in graph.edge(number)] for number in torch.randperm(graph.num_edges).tolist()]
    moved = Hypergraph.of_edges(edges, num_nodes=graph.num_nodes, node_features=graph.node_features[order])
    torch.testing.assert_close(network(model.prepare(moved)), network(model.prepare(graph))[order], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("row", MODELS)
def test_only_the_mlp_ignores_the_edges(row):
    torch.manual_seed(0)
    model = MODELS[row]
    network = model.build(SHAPES).eval()
    here, there = (network(model.prepare(example(edges=edges))) for edges in (EDGES, [[0, 4], [1, 2, 7]]))
    assert torch.allclose(here, there) == isinstance(model, HypergraphMLP)


@pytest.mark.parametrize("row", MODELS)
def test_networks_have_finite_gradients_at_nodes_in_no_edge(row):
    model, graph = MODELS[row], example(edges=[[0, 1]])
    network = model.build(SHAPES)
    network(model.prepare(graph)).square().sum().backward()
    assert all(weight.grad is not None and bool(weight.grad.isfinite().all()) for weight in network.parameters())


def test_dropout_of_features_drops_its_share_and_scales_the_rest():
    features = torch.zeros(400, 50)
    features[:, ::5] = 3.0
    graph = Hypergraph.of_edges([[0, 1]], num_nodes=400, node_features=features)
    torch.manual_seed(0)
    dropped = with_loops(graph).dropped(0.25)
    assert set(dropped.unique().tolist()) == {0.0, 4.0}
    assert float(dropped[:, ::5].eq(0).float().mean()) == pytest.approx(0.25, abs=0.03)
    assert torch.equal(features, with_loops(graph).features)


def test_inputs_move_as_a_whole():
    moved = clique_expansion(example()).to("meta")
    assert {value.device.type for value in vars(moved).values()} == {"meta"}


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="no features"):
        with_loops(Hypergraph.of_edges([[0, 1]], num_nodes=2))
    with pytest.raises(ValueError, match="'count' or 'mean', got 'sum'"):
        clique_expansion(example(), "sum")
    with pytest.raises(ValueError, match="multiple of the heads, got 6 channels and 4 heads"):
        HypergraphConvNet(channels=6, heads=4).build(SHAPES)
    with pytest.raises(ValueError, match="at least one layer"):
        CliqueGCN(layers=0).build(SHAPES)


def test_layers_and_channels_are_as_asked():
    network = HypergraphConvNet(layers=3, channels=16, heads=4).build(SHAPES)
    assert [tuple(layer.linear.weight.shape) for layer in network.layers] == [(16, 3), (16, 16), (4, 16)]


def test_ours_reads_features_of_edges_and_is_equivariant_in_them():
    torch.manual_seed(0)
    model, graph = MODELS["Ours"], example()
    graph = replace(graph, edge_features=torch.randn(graph.num_edges, 2))
    network = model.build(replace(SHAPES, edges=EdgeShapes(("a", "b"), (0.0, 0.0), (1.0, 1.0)))).eval()
    found = network(model.prepare(graph))
    order, edges = torch.randperm(graph.num_nodes), torch.randperm(graph.num_edges)
    place = order.argsort()
    moved = Hypergraph.of_edges(
        [[int(place[node]) for node in graph.edge(number)] for number in edges.tolist()],
        num_nodes=graph.num_nodes,
        node_features=graph.node_features[order],
        edge_features=graph.edge_features[edges],
    )
    torch.testing.assert_close(network(model.prepare(moved)), found[order], atol=1e-5, rtol=1e-5)
    other = replace(graph, edge_features=graph.edge_features + 1)
    assert not torch.allclose(network(model.prepare(other)), found)
    with pytest.raises(ValueError, match="takes features of edges with 2 channels, got none"):
        network(model.prepare(replace(graph, edge_features=None)))
