"""The networks of the literature against their equations, node by node."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from anyorder.experiments.hypergraphs.data import Hypergraph
from anyorder.experiments.hypergraphs.literature.allset import SetAttention
from anyorder.experiments.hypergraphs.literature.edhnn import EDHNNetwork, Messages
from anyorder.experiments.hypergraphs.literature.ehnn import grouped_softmax
from anyorder.experiments.hypergraphs.literature.settings import published
from anyorder.experiments.hypergraphs.literature.star import Star
from anyorder.experiments.hypergraphs.literature.unigcnii import UniGCNIINetwork
from anyorder.experiments.hypergraphs.models import MODELS
from anyorder.experiments.hypergraphs.shapes import HypergraphShapes
from anyorder.ops.sparse_matrix import SparseMatrix

EDGES = [[0, 1, 2], [2, 3], [4], [0, 3]]
LOOPED = [*EDGES, [0], [1], [2], [3], [5]]


def star(channels: int = 4) -> tuple[Star, torch.Tensor]:
    torch.manual_seed(0)
    features = torch.randn(6, channels)
    return Star.of(Hypergraph.of_edges(EDGES, num_nodes=6, node_features=features)), features


def test_every_node_gets_an_edge_of_its_own():
    x, features = star()
    assert x.sizes.tolist() == [len(edge) for edge in LOOPED]
    torch.testing.assert_close(x.to_edges(features), torch.stack([features[edge].mean(0) for edge in LOOPED]))


def test_set_attention_matches_the_definition():
    x, rows = star()
    layer = SetAttention(channels_in=4, channels=6, heads=2, layers=2)
    key, value = layer.key(rows).view(6, 2, 3), layer.value(rows).view(6, 2, 3)
    expected = []
    for edge in LOOPED:
        scores = functional.leaky_relu((key[edge] * layer.query).sum(2), 0.2).softmax(0)
        found = (scores.unsqueeze(2) * value[edge]).sum(0)
        row = layer.norms[0]((layer.query[0] + found).flatten())
        expected.append(layer.norms[1](row + layer.mlp(row).relu()))
    torch.testing.assert_close(layer(rows, x.to_edges), torch.stack(expected))


@pytest.mark.parametrize("layers", [1, 2])
def test_messages_match_an_mlp_of_each_incidence(layers):
    x, rows = star()
    layer, edges = Messages(channels=4, layers=layers, norm=True), torch.randn(len(LOOPED), 4)
    first = torch.cat([layer.of_node.weight, layer.of_edge.weight], 1)
    for v, got in enumerate(layer(rows, edges, x)):
        around = [number for number, edge in enumerate(LOOPED) if v in edge]
        messages = functional.linear(
            torch.cat([rows[v].expand(len(around), 4), edges[around]], 1), first, layer.of_node.bias
        )
        messages = messages if layers == 1 else layer.last(layer.norm(messages.relu()))
        torch.testing.assert_close(got, messages.mean(0))


def test_edhnn_without_mlps_is_two_means_between_linear_maps():
    x, rows = star()
    widths = {"channels_in": 4, "channels": 5, "channels_out": 3, "layers": 1, "dropout": 0.5}
    options = {"restart": 0.25, "classifier": 5, "classifier_layers": 1, "norm": True}
    model = EDHNNetwork(**widths, mlp_layers=(0, 0, 1), **options).eval()
    start = model.project(rows).relu()
    moved = x.to_nodes(x.to_edges(start))
    expected = model.classifier(model.psi(0.75 * moved + 0.25 * start).relu())
    torch.testing.assert_close(model(x), expected)


def test_unigcnii_matches_the_definition():
    x, rows = star()
    widths = {"channels_in": 4, "channels": 5, "channels_out": 3, "layers": 1, "dropout": 0.5}
    model = UniGCNIINetwork(**widths, alpha=0.1, lambda_=0.5, input_dropout=0.5).eval()
    start = model.project(rows).relu()
    degree = torch.tensor([sum(v in edge for edge in LOOPED) for v in range(6)], dtype=torch.float32)
    moved = []
    for v in range(6):
        sums = sum(start[edge].mean(0) * degree[edge].mean().rsqrt() for edge in LOOPED if v in edge)
        moved.append(degree[v].rsqrt() * sums)
    mixed = 0.9 * torch.stack(moved) + 0.1 * start
    beta = torch.tensor(1.5).log()
    torch.testing.assert_close(model(x), model.head(((1 - beta) * mixed + beta * model.layers[0](mixed)).relu()))


def test_softmax_is_over_groups():
    scores, groups = torch.tensor([[1.0], [200.0], [3.0], [100.0]]), torch.tensor([0, 2, 0, 2])
    weights = grouped_softmax(scores, groups, 3)
    torch.testing.assert_close(weights[[0, 2], 0], torch.tensor([1.0, 3.0]).softmax(0))
    torch.testing.assert_close(weights[[1, 3], 0], torch.tensor([200.0, 100.0]).softmax(0))


@pytest.mark.parametrize("row", ["AllDeepSets", "AllSetTransformer", "UniGCNII", "EHNN-Transformer", "ED-HNN"])
def test_words_are_multiplied_as_a_sparse_matrix_and_make_no_difference(row):
    torch.manual_seed(0)
    words = (torch.rand(6, 60) < 0.05).float()
    graph = Hypergraph.of_edges(EDGES, num_nodes=6, node_features=words)
    sparse = MODELS[row].prepare(graph)
    assert isinstance(sparse.features, SparseMatrix)
    network = MODELS[row].build(HypergraphShapes(channels_in=60, channels_out=3)).eval()
    x = Star(words, sparse.node, sparse.edge, sparse.to_edges, sparse.to_nodes, sparse.sizes, sparse.degrees)
    torch.testing.assert_close(network(sparse), network(x), atol=1e-5, rtol=1e-5)


def test_published_settings_narrow_for_the_quick_scale():
    known = published("AllSetTransformer", "citeseer")
    assert known.model.channels == 512
    narrow = known.narrowed(64)
    assert (narrow.model.channels, narrow.model.classifier, narrow.optimiser.learning_rate) == (64, 64, 3e-3)
    assert published("MLP", "cora") is None


@pytest.mark.parametrize("row", ["AllDeepSets", "AllSetTransformer"])
def test_narrow_networks_leave_the_majority_class(row):
    """40 steps at the quick scale's width on 200 nodes whose words and hyperedges follow their class, half of one class."""
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(200).remainder(8).sub(3).clamp(min=0)
    share = 0.02 + 0.1 * (torch.arange(100).remainder(5) == labels.unsqueeze(1))
    words = (torch.rand(200, 100, generator=random) < share).float()
    edges = [(labels == n % 5).nonzero().flatten()[torch.randperm(25, generator=random)[:4]].tolist() for n in range(150)]
    known = published(row, "cora").narrowed(64)
    x = known.model.prepare(Hypergraph.of_edges(edges, num_nodes=200, node_features=words))
    torch.manual_seed(0)
    network = known.model.build(HypergraphShapes(channels_in=100, channels_out=5))
    optimiser = torch.optim.Adam(network.parameters(), lr=known.optimiser.learning_rate)
    for _ in range(40):
        optimiser.zero_grad()
        functional.cross_entropy(network(x), labels).backward()
        optimiser.step()
    assert (network.eval()(x).argmax(1) == labels).double().mean() > 0.8
