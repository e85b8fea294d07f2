"""Partitions from logits, and their scores against scikit-learn and by hand."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from anyorder.experiments.set_to_graph.partitions import (
    adjusted_rand_index,
    connected_components,
    connected_components_ragged,
    pair_f1,
    partition_scores,
    rand_index,
)


def random_partitions(rng: np.random.Generator, num_sets: int, most: int = 14) -> tuple[NDArray[np.int64], ...]:
    sizes = rng.integers(1, most + 1, num_sets)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    clusters = np.repeat(rng.integers(1, most + 1, num_sets), sizes)
    truth, predicted = (rng.integers(0, clusters) for _ in range(2))
    copied = np.repeat(rng.random(num_sets) < 0.2, sizes)  # some predictions are right
    return truth, np.where(copied, truth + 100, predicted), offsets


def slow_components(logits: NDArray[np.float64]) -> list[int]:
    """By depth-first search, node by node."""
    labels = [-1] * len(logits)
    for start in range(len(logits)):
        if labels[start] >= 0:
            continue
        stack, label = [start], max(labels) + 1
        while stack:
            node = stack.pop()
            labels[node] = label
            stack += [
                other
                for other in range(len(logits))
                if labels[other] < 0 and (logits[node, other] + logits[other, node]) / 2 >= 0
            ]
    return labels


class TestScores:
    def test_agree_with_scikit_learn(self) -> None:
        metrics = pytest.importorskip("sklearn.metrics")
        truth, predicted, offsets = random_partitions(np.random.default_rng(0), 400)
        scores = partition_scores(truth, predicted, offsets)
        for jet in range(400):
            own = slice(offsets[jet], offsets[jet + 1])
            assert scores.rand_index[jet] == pytest.approx(metrics.rand_score(truth[own], predicted[own]), abs=1e-12)
            expected = metrics.adjusted_rand_score(truth[own], predicted[own])
            assert scores.adjusted_rand_index[jet] == pytest.approx(expected, abs=1e-12)

    def test_f1_counts_pairs(self) -> None:
        truth, predicted, offsets = random_partitions(np.random.default_rng(1), 100)
        scores = partition_scores(truth, predicted, offsets)
        for jet in range(100):
            own = range(offsets[jet], offsets[jet + 1])
            pairs = [(truth[i] == truth[j], predicted[i] == predicted[j]) for i in own for j in own if i < j]
            hit, wrong = sum(t and p for t, p in pairs), sum(t != p for t, p in pairs)
            expected = 2 * hit / (2 * hit + wrong) if hit + wrong else 0.0
            assert scores.f1[jet] == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize(
        ("truth", "predicted", "f1", "rand", "adjusted"),
        [
            # pairs of 4: truth {01}, {23}; prediction {012}, {3}: one pair in both, truth has 2, prediction 3, of 6
            pytest.param([0, 0, 1, 1], [0, 0, 0, 1], 2 / 5, 3 / 6, 0.0, id="one-track-moved"),
            pytest.param([0, 0, 1], [1, 1, 0], 1.0, 1.0, 1.0, id="equal-up-to-names"),
            pytest.param([0, 1, 2], [5, 6, 7], 0.0, 1.0, 1.0, id="singletons-found"),
            pytest.param([0, 1, 2], [0, 0, 0], 0.0, 0.0, 0.0, id="singletons-missed"),
            pytest.param([0, 0, 0], [0, 1, 2], 0.0, 0.0, 0.0, id="one-cluster-torn"),
            pytest.param([0, 0], [3, 3], 1.0, 1.0, 1.0, id="one-pair"),
            pytest.param([4], [9], 0.0, 1.0, 1.0, id="one-node"),
            pytest.param([0, 0, 1, 1], [0, 1, 0, 1], 0.0, 2 / 6, -0.5, id="worse-than-chance"),
        ],
    )
    def test_cases_by_hand(self, truth: list[int], predicted: list[int], f1: float, rand: float, adjusted: float) -> None:
        assert pair_f1(truth, predicted) == pytest.approx(f1)
        assert rand_index(truth, predicted) == pytest.approx(rand)
        assert adjusted_rand_index(truth, predicted) == pytest.approx(adjusted)

    def test_mean_over_a_mask(self) -> None:
        scores = partition_scores([0, 0, 0, 1, 0], [0, 0, 0, 0, 0], [0, 2, 4, 5])
        assert scores.mean([True, True, False]) == {"f1": 0.5, "rand_index": 0.5, "adjusted_rand_index": 0.5}
        assert scores.mean()["rand_index"] == pytest.approx(2 / 3)
        assert np.isnan(scores.mean([False, False, False])["f1"])

    def test_wrong_lengths_are_named(self) -> None:
        with pytest.raises(ValueError, match=r"as many labels.*\(3,\) and \(2,\)"):
            partition_scores([0, 0, 1], [0, 0], [0, 3])

    def test_twenty_thousand_jets_take_well_under_a_second(self) -> None:
        truth, predicted, offsets = random_partitions(np.random.default_rng(2), 20_000)
        start = time.process_time()
        partition_scores(truth, predicted, offsets)
        assert time.process_time() - start < 1.0


class TestComponents:
    def test_matches_a_search(self) -> None:
        rng = np.random.default_rng(3)
        for size in (1, 2, 5, 14, 40):
            logits = rng.normal(-1.5 * size / (size + 4), 1.0, (30, size, size))
            assert connected_components(logits).tolist() == [slow_components(one) for one in logits]

    def test_a_long_path_is_one_component(self) -> None:
        logits = np.full((100, 100), -1.0)
        logits[np.arange(99), np.arange(1, 100)] = 3.0
        assert connected_components(logits).tolist() == [0] * 100

    def test_symmetrises_before_the_threshold(self) -> None:
        assert connected_components([[0.0, 2.0], [-3.0, 0.0]]).tolist() == [0, 1]
        assert connected_components([[0.0, 3.0], [-3.0, 0.0]]).tolist() == [0, 0]

    def test_the_diagonal_does_not_matter(self) -> None:
        assert connected_components([[-9.0, -1.0], [-1.0, -9.0]]).tolist() == [0, 1]

    def test_padding_is_marked_and_joins_nothing(self) -> None:
        logits = torch.full((2, 3, 3), 5.0)
        logits[0, 0, 1] = logits[0, 1, 0] = -20.0
        valid = torch.tensor([[True, True, False], [True, True, True]])
        assert connected_components(logits, valid).tolist() == [[0, 1, -1], [0, 0, 0]]

    def test_ragged_equals_one_by_one(self) -> None:
        rng = np.random.default_rng(4)
        sizes = rng.integers(1, 15, 300)
        blocks = [rng.normal(-1.0, 1.0, (size, size)) for size in sizes]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        flat = np.concatenate([block.ravel() for block in blocks])
        expected = np.concatenate([connected_components(block) for block in blocks])
        assert np.array_equal(connected_components_ragged(flat, offsets), expected)

    def test_twenty_thousand_jets_take_about_a_second(self) -> None:
        rng = np.random.default_rng(5)
        sizes = rng.integers(2, 15, 20_000)
        logits = rng.normal(-1.0, 1.0, int(np.sum(sizes**2)))
        start = time.process_time()
        connected_components_ragged(logits, np.concatenate([[0], np.cumsum(sizes)]))
        assert time.process_time() - start < 3.0

    def test_wrong_shapes_are_named(self) -> None:
        with pytest.raises(ValueError, match=r"node, node\), got \(2, 3\)"):
            connected_components(np.zeros((2, 3)))
        with pytest.raises(ValueError, match="expected 8 logits"):
            connected_components_ragged(np.zeros(7), [0, 2, 4])
        with pytest.raises(ValueError, match="NaN"):
            connected_components([[0.0, np.nan], [0.0, 0.0]])
