"""Positions of nodes: exact in small graphs, estimated in large ones, the same whatever the batch."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

from anyorder import positions
from anyorder.positions import laplacian_positions, random_walk_positions


def edges(graph: nx.Graph) -> torch.Tensor:
    return torch.tensor([*graph.edges]).T


def one_graph(graph: nx.Graph) -> tuple[torch.Tensor, torch.Tensor, int]:
    return edges(graph), torch.zeros(len(graph), dtype=torch.int64), 1


def test_directions_repeated_edges_and_loops_make_no_difference():
    index, graph, count = one_graph(nx.cycle_graph(6))
    messy = torch.cat([index, index.flip(0), index[:, :2], torch.tensor([[3], [3]])], 1)
    for function in (random_walk_positions, laplacian_positions):
        assert torch.equal(function(messy, graph, count, 4), function(index, graph, count, 4))


def test_a_batch_has_the_positions_of_its_graphs():
    graphs = [nx.path_graph(5), nx.complete_graph(3), nx.cycle_graph(5), nx.empty_graph(1)]
    starts = [0, 5, 8, 13]
    index = torch.cat([edges(graph) + start for graph, start in zip(graphs, starts) if graph.number_of_edges()], 1)
    of_node = torch.repeat_interleave(torch.arange(4), torch.tensor([5, 3, 5, 1]))
    found = random_walk_positions(index, of_node, 4, 3)
    alone = [random_walk_positions(*one_graph(graph), 3) for graph in graphs[:3]]
    torch.testing.assert_close(found, torch.cat([*alone, torch.zeros(1, 3)]))


def test_large_graphs_are_estimated(monkeypatch):
    graph = nx.connected_watts_strogatz_graph(300, 6, 0.1, seed=0)
    graph.add_edge(300, 301)  # a component of its own
    given = one_graph(graph)
    walks, vectors = random_walk_positions(*given, 3), laplacian_positions(*given, 2)
    monkeypatch.setattr(positions, "EXACT", 100)
    torch.testing.assert_close(random_walk_positions(*given, 3).mean(0), walks.mean(0), rtol=0.1, atol=0.0)
    largest = laplacian_positions(*given, 2)
    assert torch.equal(largest[300:], torch.zeros(2, 2))
    overlap = (largest[:300].T @ vectors[:300]).abs()
    torch.testing.assert_close(overlap, torch.eye(2), atol=0.05, rtol=0)


def test_bad_input():
    with pytest.raises(ValueError, match=r"expected channels >= 1 and edge_index \(2, edge\), got 0"):
        random_walk_positions(*one_graph(nx.path_graph(3)), 0)
    with pytest.raises(ValueError, match="graph must not decrease"):
        laplacian_positions(edges(nx.path_graph(3)), torch.tensor([0, 1, 0]), 2, 1)
