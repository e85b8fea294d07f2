"""Rows most like each row, against plain loops."""

from __future__ import annotations

import math

import pytest
import torch

from anyorder.layouts import neighbours
from anyorder.layouts.neighbours import Neighbours


def by_hand(features, count, sharpness):
    """Lists of (row, weight) for each row, from the definition."""
    x = features.tolist()
    number, width = len(x), len(x[0])
    seen = [sum(row[c] != 0 for row in x) for c in range(width)]
    if 2 * sum(seen) < number * width:
        x = [[row[c] * math.log(number / max(seen[c], 1)) for c in range(width)] for row in x]

    def cosine(a, b):
        lengths = math.hypot(*a) * math.hypot(*b)
        return sum(p * q for p, q in zip(a, b, strict=True)) / lengths if lengths else 0.0

    found = []
    for v in range(number):
        likeness = sorted(((cosine(x[u], x[v]), u) for u in range(number) if u != v), reverse=True)[:count]
        likeness = [(value, u) for value, u in likeness if value > 0]
        weights = [math.exp(sharpness * value) for value, _ in likeness]
        found.append({u: weight / sum(weights) for (_, u), weight in zip(likeness, weights, strict=True)})
    return found


@pytest.mark.parametrize("zeros", [0.0, 0.7])
@pytest.mark.parametrize("block", [1, 1 << 25])
def test_matches_the_definition(zeros, block, monkeypatch):
    monkeypatch.setattr(neighbours, "BLOCK_PAIRS", block)
    torch.manual_seed(0)
    features = torch.randn(9, 12, dtype=torch.float64).abs() * (torch.rand(9, 12) >= zeros)
    near = Neighbours.build(features, 3, sharpness=4.0)
    for v, expected in enumerate(by_hand(features, 3, 4.0)):
        got = {row: weight for row, weight in zip(near.rows[v].tolist(), near.weights[v].tolist(), strict=True) if weight}
        assert got == pytest.approx(expected)


def test_takes_means_and_passes_gradients_on():
    torch.manual_seed(0)
    near = Neighbours.build(torch.randn(6, 3, dtype=torch.float64), 2)
    dense = torch.zeros(6, 6, dtype=torch.float64).scatter(1, near.rows, near.weights)
    rows = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(near(rows), dense @ rows)
    assert torch.autograd.gradcheck(near, (rows,))


def test_there_may_be_fewer_rows_than_asked_for():
    assert Neighbours.build(torch.randn(4, 2), 20).rows.shape == (4, 3)
    assert Neighbours.build(torch.randn(1, 2), 20)(torch.ones(1, 3)).tolist() == [[0, 0, 0]]
    assert Neighbours.build(torch.empty(0, 2), 20)(torch.ones(0, 3)).shape == (0, 3)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match=r"features must be \(row, channel\), got \(3,\)"):
        Neighbours.build(torch.randn(3), 2)
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        Neighbours.build(torch.randn(3, 2), 0)


def test_too_many_rows_are_refused_before_they_take_hours(monkeypatch):
    monkeypatch.setattr(neighbours, "MOST_ROWS", 3)
    with pytest.raises(ValueError, match="at most 3 rows, got 4; a model does without them with neighbours=0"):
        Neighbours.build(torch.randn(4, 2), 2)
