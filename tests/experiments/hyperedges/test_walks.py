from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder.experiments.hyperedges.data import TypedHyperedges
from anyorder.experiments.hyperedges.walks import Node2Vec, WeightedGraph, standardised


def graph_of(edges: dict[tuple[int, int], float], nodes: int) -> WeightedGraph:
    both = sorted((*pair, weight) for (a, b), weight in edges.items() for pair in ((a, b), (b, a)))
    sources = np.array([a for a, _, _ in both])
    return WeightedGraph(
        np.searchsorted(sources, np.arange(nodes + 1)),
        np.array([b for _, b, _ in both]),
        np.array([w for *_, w in both]),
    )


def test_clique_expansion_counts_shared_tuples():
    train = np.array([[0, 2, 5], [0, 2, 5], [1, 2, 6]])
    graph = WeightedGraph.clique_expansion(TypedHyperedges(sizes=(2, 3, 2), train=train, test=train[:0]))
    dense = np.zeros((7, 7))
    dense[np.repeat(np.arange(7), np.diff(graph.starts)), graph.targets] = graph.weights
    expected = np.zeros((7, 7))
    for row in train:
        expected[np.ix_(row, row)] += 1
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(dense, expected)
    pairs = np.array([(a, b) for a in range(7) for b in range(7)])
    np.testing.assert_array_equal(graph.has_edges(*pairs.T), (expected > 0).reshape(-1))


def test_first_steps_follow_the_weights():
    graph = graph_of({(0, 1): 1.0, (0, 2): 3.0, (0, 3): 6.0}, nodes=4)
    drawn = graph.neighbours(np.zeros(50_000, dtype=np.int64), np.random.default_rng(0))
    assert np.bincount(drawn, minlength=4) / len(drawn) == pytest.approx([0, 0.1, 0.3, 0.6], abs=0.01)


def test_later_steps_follow_the_second_order_bias():
    # From 0 to 1: back to 0 (weight 2, over p), on to 2 (joined to 0), or on to 3 (not joined to 0, over q).
    graph = graph_of({(0, 1): 2.0, (1, 2): 1.0, (0, 2): 5.0, (1, 3): 1.0}, nodes=4)
    count = 50_000
    drawn = Node2Vec()._step(
        graph, np.ones(count, dtype=np.int64), np.zeros(count, dtype=np.int64), np.random.default_rng(0)
    )
    wanted = np.array([2.0 / 2, 0, 1.0, 1 / 0.25])
    assert np.bincount(drawn, minlength=4) / count == pytest.approx(wanted / wanted.sum(), abs=0.01)


def test_walks_start_everywhere_and_follow_edges():
    graph = graph_of({(0, 1): 1.0, (1, 2): 1.0, (2, 3): 2.0}, nodes=5)
    walks = Node2Vec(walks_per_node=3, walk_length=7).walks(graph, np.random.default_rng(0))
    assert walks.shape == (15, 7)
    assert np.bincount(walks[:, 0]).tolist() == [3] * 5
    lonely = walks[:, 0] == 4
    assert (walks[lonely, 1:] == -1).all()
    moving = walks[~lonely]
    assert graph.has_edges(moving[:, :-1].reshape(-1), moving[:, 1:].reshape(-1)).all()


def test_embeddings_repeat_and_bring_cliques_together():
    pytest.importorskip("gensim")
    cells = np.array([[a, b] for group in (0, 4) for a in range(group, group + 4) for b in range(group, group + 4)])
    data = TypedHyperedges(sizes=(8, 9), train=cells + np.array([0, 8]), test=np.zeros((0, 2)))
    settings = Node2Vec(channels=16, epochs=20, walk_length=20)
    embeddings = settings.embed(data, seed=1)
    assert embeddings.shape == (17, 16)
    np.testing.assert_array_equal(embeddings, settings.embed(data, seed=1))  # remembered
    assert not np.array_equal(embeddings, settings.embed(data, seed=2))
    np.testing.assert_array_equal(embeddings, settings.embed(data, seed=1))  # made again
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    same = np.array([[a // 4 == b // 4 for b in range(8)] for a in range(8)])
    cosines = unit[:8] @ unit[8:16].T
    assert cosines[same].mean() > cosines[~same].mean() + 0.2
    values = standardised(embeddings)
    torch.testing.assert_close(values.mean(0), torch.zeros(16), atol=1e-5, rtol=0)
