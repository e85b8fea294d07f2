"""Graphs as values: columns of mixed kinds, merged edges, encodings, parts, positions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from anyorder.experiments.graphs.columns import MISSING, Columns
from anyorder.experiments.graphs.encoding import Encoding
from anyorder.experiments.graphs.positions import STEPS, VECTORS, position_channels, positions
from anyorder.experiments.graphs.splits import column_parts, random_parts
from anyorder.experiments.graphs.values import GraphSet
from anyorder.positions import flip_signs
from anyorder.training.parts import fold_parts

TRIANGLE = np.array([[0, 1], [1, 2], [2, 0]])


def weighted(edges: list[tuple[int, int]], weights: list[float], **options: object) -> GraphSet:
    columns = Columns.of({"weight": weights}, rows=len(weights))
    return GraphSet.build(np.array(edges), num_nodes=4, edge_columns=columns, **options)  # type: ignore[arg-type]


class TestGraphSet:
    def test_repeated_edges_are_refused_summed_or_the_first_is_kept(self):
        edges, weights = [(2, 3), (0, 1), (1, 0), (0, 1)], [5.0, 1.0, 2.0, 4.0]
        with pytest.raises(ValueError, match="2 of 4 edges are repeated, such as 1 - 0"):
            weighted(edges, weights)
        summed = weighted(edges, weights, duplicates="sum")
        assert summed.edges.tolist() == [[2, 3], [0, 1]]
        assert summed.edge_columns.numbers.tolist() == [[5.0, 1.0], [7.0, 3.0]]
        first = weighted(edges, weights, duplicates="first")
        assert first.edge_columns.numbers.tolist() == [[5.0], [1.0]]

    def test_directions_differ_where_edges_have_one(self):
        assert len(weighted([(0, 1), (1, 0)], [1.0, 2.0], directed=True).edges) == 2

    @pytest.mark.parametrize(
        ("edges", "nodes", "message"),
        [([[0, 3]], 3, "leads to a missing node"), ([[-1, 0]], 2, "missing node"), (np.zeros((0, 2)), 0, "empty")],
    )
    def test_refuses_what_is_no_graph(self, edges, nodes, message):
        with pytest.raises(ValueError, match=message):
            GraphSet.build(np.array(edges), num_nodes=nodes)

    def test_refuses_an_edge_between_two_graphs(self):
        with pytest.raises(ValueError, match="joins two graphs"):
            GraphSet.build(np.array([[0, 1]]), num_nodes=2, node_graph=np.array([0, 1]))

    def test_nodes_are_put_in_the_order_of_their_graphs(self):
        columns = Columns.of({"x": [0, 1, 2, 3]}, rows=4)
        made = GraphSet.build(
            np.array([[0, 2], [1, 3]]), num_nodes=4, node_graph=np.array([1, 0, 1, 0]), node_columns=columns
        )
        assert made.node_graph.tolist() == [0, 0, 1, 1]
        assert made.node_columns.numbers.ravel().tolist() == [1, 3, 0, 2]
        assert made.edges.tolist() == [[2, 3], [0, 1]]


class TestColumns:
    def test_numbers_in_text_are_numbers_and_words_are_categories(self):
        made = Columns.of({"a": ["1", "2.5", ""], "b": ["x", "NA", "y"]}, rows=3)
        assert made.number_names == ("a",) and np.isnan(made.numbers[2, 0])
        assert made.categories.ravel().tolist() == [0, MISSING, 1]

    def test_an_infinite_number_is_refused(self):
        with pytest.raises(ValueError, match="column 'age' is infinite in row 1: expected a number"):
            Columns.of({"age": [31, "-inf", 7]}, rows=3)

    def test_categories_that_are_numbers_stand_in_their_order(self):
        made = Columns.empty(3).with_categories("k", [10, 9, 10])
        assert made.values == (("9", "10"),) and made.texts("k") == ["10", "9", "10"]


class TestEncoding:
    def test_new_rows_are_encoded_as_training_rows_were(self):
        train = Columns.of({"x": [0.0, 10.0], "k": ["a", "b"]}, rows=2)
        encoding = Encoding.fit(train)
        new = Columns.of({"k": ["c", "b"], "x": [5.0, 20.0]}, rows=2)
        assert encoding(new).tolist() == [[0.0, 0.0, 0.0], [3.0, 0.0, 1.0]]

    def test_zeros_and_ones_stay(self):
        binary = Columns.of({"x": [0, 1, 1]}, rows=3)
        assert Encoding.fit(binary)(binary).ravel().tolist() == [0, 1, 1]

    def test_refuses_what_it_does_not_know(self):
        encoding = Encoding.fit(Columns.of({"x": [0.0, 10.0]}, rows=2))
        with pytest.raises(ValueError, match="'x' of the training is missing"):
            encoding(Columns.of({"y": [1.0]}, rows=1))
        with pytest.raises(ValueError, match="held numbers in training and holds text now: 'much'"):
            encoding(Columns.of({"x": ["much"]}, rows=1))


class TestParts:
    def test_random_parts_share_no_row_and_have_every_class(self):
        labels = np.array([0] * 60 + [1] * 30 + [2] * 2)
        parts = random_parts(np.arange(92), labels, valid=0.1, test=0.2, seed=3)
        everything = np.concatenate([parts.train, parts.valid, parts.test])
        assert sorted(everything.tolist()) == list(range(92))
        assert set(labels[parts.train]) == {0, 1, 2}
        assert abs(len(parts.test) - 18) <= 2 and abs(len(parts.valid) - 9) <= 2

    def test_each_row_is_tested_in_one_fold(self):
        labels = np.arange(50) % 2
        folds = [fold_parts(np.arange(50), labels, folds=5, fold=fold) for fold in range(5)]
        assert sorted(np.concatenate([part.test for part in folds]).tolist()) == list(range(50))
        assert all(not set(part.train) & {*part.test, *part.valid} for part in folds)

    def test_a_column_says_the_parts(self):
        columns = Columns.of({"split": ["train", "val", "Test", ""]}, rows=4)
        parts = column_parts(columns, "split", np.arange(4))
        assert (parts.train.tolist(), parts.valid.tolist(), parts.test.tolist()) == ([0], [1], [2])
        with pytest.raises(ValueError, match="must hold train, valid or test, got 'no'"):
            column_parts(Columns.of({"split": ["no"]}, rows=1), "split", np.arange(1))


class TestPositions:
    def test_return_probabilities_of_a_triangle(self):
        found = positions(TRIANGLE, 3, ("walk",))
        assert found.shape == (3, STEPS)
        np.testing.assert_allclose(found[:, :3], [[0.5, 0.25, 0.375]] * 3, atol=1e-6)

    def test_laplacian_vectors_are_those_of_the_normalised_adjacency(self):
        path = np.array([[n, n + 1] for n in range(9)])
        vectors = positions(path, 10, ("laplacian",))
        adjacency = np.zeros((10, 10))
        adjacency[path[:, 0], path[:, 1]] = adjacency[path[:, 1], path[:, 0]] = 1
        scale = 1 / np.sqrt(adjacency.sum(1))
        moved = scale[:, None] * adjacency * scale @ vectors[:, 0]
        ratio = moved / vectors[:, 0]
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)

    def test_signs_flip_by_graph_and_vector(self):
        vectors = torch.ones(4, VECTORS)
        flipped = flip_signs(vectors, torch.tensor([0, 0, 1, 1]), 2)
        assert torch.equal(flipped.abs(), vectors) and torch.equal(flipped[0], flipped[1])

    def test_nodes_without_edges_have_positions(self):
        found = positions(np.zeros((0, 2), np.int64), 2, ("degree", "walk", "laplacian"))
        assert found.shape == (2, position_channels(("degree", "walk", "laplacian"))) and np.isfinite(found).all()
