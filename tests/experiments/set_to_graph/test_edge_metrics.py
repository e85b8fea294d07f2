"""Losses and scores over pairs, against loops over sets, scikit-learn and cases worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from anyorder.experiments.set_to_graph.edge_metrics import (
    EdgeScores,
    edge_loss,
    edge_scores,
    partition_loss,
    predicted_edges,
    soft_f1,
    symmetrise,
)
from anyorder.experiments.set_to_graph.sets import SetBatch

SIZES = (4, 1, 6, 2)


def make_batch(seed: int = 0) -> tuple[Tensor, SetBatch]:
    """Random logits and targets, the targets with 1 on the diagonal."""
    generator = torch.Generator().manual_seed(seed)
    pairs = sum(size**2 for size in SIZES)
    targets = (torch.rand(pairs, generator=generator) < 0.4).double()
    batch = SetBatch(torch.zeros(sum(SIZES), 1), torch.tensor(SIZES), targets)
    targets[batch.is_diagonal] = 1
    return torch.randn(pairs, generator=generator, dtype=torch.float64), batch


def squares(flat: Tensor) -> Iterator[Tensor]:
    parts = torch.split(flat, [size**2 for size in SIZES])
    return (part.view(size, size) for part, size in zip(parts, SIZES, strict=True))


def each_set(logits: Tensor, batch: SetBatch) -> Iterator[tuple[Tensor, Tensor]]:
    assert batch.targets is not None
    return zip(squares(logits), squares(batch.targets), strict=True)


def test_symmetrise_is_the_mean_with_the_transpose() -> None:
    logits, batch = make_batch()
    for old, new in zip(squares(logits), squares(symmetrise(logits, batch)), strict=True):
        torch.testing.assert_close(new, (old + old.T) / 2)


class TestScores:
    @pytest.mark.parametrize("symmetric", [True, False])
    def test_agree_with_scikit_learn_set_by_set(self, symmetric: bool) -> None:
        metrics = pytest.importorskip("sklearn.metrics")
        logits, batch = make_batch()
        scores = edge_scores(logits, batch, symmetric=symmetric)
        for index, (logit, target) in enumerate(each_set(logits, batch)):
            decided = ((logit + logit.T) / 2 if symmetric else logit) >= 0
            truth, guess = target.flatten().numpy(), decided.flatten().double().numpy()
            assert float(scores.accuracy[index]) == pytest.approx(metrics.accuracy_score(truth, guess))
            assert float(scores.precision[index]) == pytest.approx(metrics.precision_score(truth, guess, zero_division=0))
            assert float(scores.recall[index]) == pytest.approx(metrics.recall_score(truth, guess, zero_division=0))
            assert float(scores.f1[index]) == pytest.approx(metrics.f1_score(truth, guess, zero_division=0))

    def test_a_case_by_hand_averages_over_sets_not_pairs(self) -> None:
        targets = torch.tensor([0.0, 1, 1, 0, 0])
        batch = SetBatch(torch.zeros(3, 1), torch.tensor([2, 1]), targets)
        scores = edge_scores(torch.tensor([1.0, 1, 1, -1, -1]), batch)
        assert scores.accuracy.tolist() == [0.75, 1.0]
        assert scores.precision.tolist() == pytest.approx([2 / 3, 0])
        assert scores.f1.tolist() == pytest.approx([0.8, 0])
        assert scores.mean()["accuracy"] == 0.875
        assert scores.mean()["recall"] == 0.5

    def test_a_logit_of_zero_is_an_edge(self) -> None:
        batch = SetBatch(torch.zeros(1, 1), torch.tensor([1]), torch.ones(1))
        assert edge_scores(torch.zeros(1), batch).f1.tolist() == [1.0]

    def test_cat_joins_batches(self) -> None:
        (first, batch), (second, other) = make_batch(0), make_batch(1)
        joined = EdgeScores.cat([edge_scores(first, batch), edge_scores(second, other)])
        assert len(joined.f1) == 8
        assert torch.equal(joined.recall[4:], edge_scores(second, other).recall)


class TestPredictedEdges:
    def test_are_the_upper_triangle_of_each_set(self) -> None:
        logits, batch = make_batch()
        found = predicted_edges(logits, batch)
        for edges, logit in zip(found, squares(logits), strict=True):
            expected = np.argwhere(np.triu((logit + logit.T).numpy() >= 0, 1))
            np.testing.assert_array_equal(edges, expected)
        assert found[1].shape == (0, 2)


class TestEdgeLoss:
    def test_is_the_mean_over_sets_of_the_mean_over_pairs(self) -> None:
        logits, batch = make_batch()
        each = [
            F.binary_cross_entropy_with_logits((logit + logit.T) / 2, target) for logit, target in each_set(logits, batch)
        ]
        torch.testing.assert_close(edge_loss(logits, batch), torch.stack(each).mean())

    def test_with_f1_takes_off_the_mean_soft_f1_of_the_same_logits(self) -> None:
        logits, batch = make_batch()
        overlap = []
        for logit, target in each_set(logits, batch):
            chance = ((logit + logit.T) / 2).sigmoid()
            overlap.append(2 * (chance * target).sum() / (chance.sum() + target.sum()))
        expected = edge_loss(logits, batch) - torch.stack(overlap).mean()
        torch.testing.assert_close(edge_loss(logits, batch, with_f1=True), expected)

    def test_the_gradient_is_symmetric_and_reaches_the_diagonal(self) -> None:
        logits, batch = make_batch()
        assert batch.targets is not None
        upper = batch.pair_index[0] < batch.pair_index[1]
        batch.targets[upper] = batch.targets[batch.reverse][upper]
        logits.requires_grad_()
        edge_loss(logits, batch).backward()
        assert logits.grad is not None
        torch.testing.assert_close(logits.grad, logits.grad[batch.reverse])
        assert logits.grad[batch.diagonal].all()


class TestPartitionLoss:
    @pytest.mark.parametrize("sum_f1", [True, False])
    def test_is_its_formula_with_the_diagonal_known(self, sum_f1: bool) -> None:
        logits, batch = make_batch()
        entropies, overlaps = [], []
        for logit, target in each_set(logits, batch):
            known = logit.masked_fill(torch.eye(len(logit), dtype=torch.bool), 1e3)
            entropies.append(F.binary_cross_entropy_with_logits(known, target))
            guess = known.sigmoid()
            right, wrong, missed = (guess * target).sum(), (guess * (1 - target)).sum(), ((1 - guess) * target).sum()
            overlaps.append(2 * right / (2 * right + wrong + missed))
        overlap = torch.stack(overlaps)
        torch.testing.assert_close(soft_f1(logits, batch), overlap)
        expected = torch.stack(entropies).mean() - (overlap.sum() if sum_f1 else overlap.mean())
        torch.testing.assert_close(partition_loss(logits, batch, sum_f1=sum_f1), expected)

    def test_the_diagonal_gets_no_gradient_and_all_others_do(self) -> None:
        logits, batch = make_batch()
        logits.requires_grad_()
        partition_loss(logits, batch).backward()
        assert logits.grad is not None
        assert torch.equal(logits.grad == 0, batch.is_diagonal)

    def test_the_mean_does_not_depend_on_the_number_of_sets_and_the_sum_does(self) -> None:
        logits, batch = make_batch()
        assert batch.targets is not None
        twice = SetBatch(batch.points.repeat(2, 1), batch.sizes.repeat(2), batch.targets.repeat(2))
        mean = [partition_loss(x, b, sum_f1=False) for x, b in ((logits, batch), (logits.repeat(2), twice))]
        torch.testing.assert_close(mean[0], mean[1])
        gap = partition_loss(logits, batch) - partition_loss(logits.repeat(2), twice)
        torch.testing.assert_close(gap, soft_f1(logits, batch).sum())

    def test_extreme_logits_stay_finite(self) -> None:
        logits, batch = make_batch()
        logits = (logits.sign() * 1e4).requires_grad_()
        partition_loss(logits, batch).backward()
        assert logits.grad is not None and logits.grad.isfinite().all()


def test_a_set_without_edges_scores_zero_not_nan() -> None:
    batch = SetBatch(torch.zeros(2, 1), torch.tensor([2]), torch.zeros(4))
    logits = torch.full((4,), -200.0, requires_grad=True)
    assert edge_scores(logits.detach(), batch).mean() == {"accuracy": 1.0, "precision": 0.0, "recall": 0.0, "f1": 0.0}
    overlap = soft_f1(logits, batch)
    overlap.sum().backward()
    assert overlap.tolist() == [0.0]
    assert logits.grad is not None and logits.grad.isfinite().all()


@pytest.mark.parametrize("function", [edge_loss, partition_loss, edge_scores, soft_f1, symmetrise])
def test_wrong_shapes_and_missing_targets_are_named(function: object) -> None:
    logits, batch = make_batch()
    assert callable(function)
    with pytest.raises(ValueError, match=r"flat over the 57 pairs, got shape \(56,\)"):
        function(logits[1:], batch)
    if function is not symmetrise:
        with pytest.raises(ValueError, match="no targets"):
            function(logits, SetBatch(batch.points, batch.sizes))


@pytest.mark.parametrize("loss", [edge_loss, partial(edge_loss, with_f1=True), partition_loss])
def test_losses_of_half_precision_do_not_lose_pairs_of_large_sets(loss) -> None:
    generator = torch.Generator().manual_seed(0)
    targets = (torch.rand(60**2, generator=generator) < 0.2).float()
    batch = SetBatch(torch.zeros(60, 1), torch.tensor([60]), targets)
    logits = torch.randn(60**2, generator=generator).bfloat16()
    half = logits.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        found = loss(half, batch)
    found.backward()
    torch.testing.assert_close(found.detach(), loss(logits.float(), batch))
    assert half.grad is not None and bool(half.grad.isfinite().all())
