"""Dropout with a mask that is drawn again: rate, scale, gradients, and the same bits whatever the threads."""

from __future__ import annotations

import pytest
import torch

from anyorder.ops.backends import use_backend
from anyorder.ops.dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_drops_at_its_rate_and_keeps_the_mean(p):
    torch.manual_seed(0)
    out = Dropout(p)(torch.ones(2000, 64))
    kept = out != 0
    assert torch.equal(out[kept], torch.full_like(out[kept], 1 / (1 - p)))
    spread = (p * (1 - p)) ** 0.5
    assert abs(float((~kept).float().mean()) - p) < 5 * spread / (2000 * 64) ** 0.5
    for axis, count in ((0, 2000), (1, 64)):  # no row and no column is dropped more than another
        assert float((kept.float().mean(axis) - (1 - p)).abs().max()) < 5.5 * spread / count**0.5


def test_masks_are_independent():
    torch.manual_seed(0)
    dropout, x = Dropout(0.5), torch.ones(4000, 32)
    first, second = (dropout(x) / 2 - 0.5 for _ in range(2))
    for a, b in ((first, second), (first[1:], first[:-1]), (first[:, 1:], first[:, :-1])):
        assert abs(float((a * b).mean())) < 0.25 * 5 / (a.numel() ** 0.5)


@pytest.mark.parametrize("rows", [50, 20_000])
def test_the_gradient_has_the_same_mask(rows):
    x = torch.randn(rows, 7, dtype=torch.float64, requires_grad=True)
    out = Dropout(0.3)(x)
    (grad,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(out, x * grad) and set(grad.unique().tolist()) == {0.0, 1 / 0.7}


@pytest.mark.numeric
def test_follows_the_seed_and_not_the_threads():
    x, found, threads = torch.randn(999, 128), [], torch.get_num_threads()
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            torch.manual_seed(4)
            found.append(Dropout(0.5)(x))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
    assert not torch.equal(found[0], Dropout(0.5)(x))


@pytest.mark.parametrize("few", [0, 100])
@pytest.mark.parametrize("shape", [(0, 3), (5,), (2, 3, 4), ()])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
def test_any_shape_and_type(shape, kind, few, monkeypatch):
    monkeypatch.setattr("anyorder.ops.gather.FEW", few)
    out = Dropout(0.5)(torch.ones(shape, dtype=kind))
    assert out.shape == shape and out.dtype == kind


def test_leaves_alone_what_it_should():
    x = torch.randn(3, 4)
    assert torch.equal(Dropout(0.5).eval()(x), x) and torch.equal(Dropout(0.0)(x), x)
    assert Dropout(1.0)(x).eq(0).all()
    with use_backend("reference"):
        assert Dropout(0.5)(x).shape == x.shape


def test_opcheck():
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(torch.ops.anyorder.dropout, (x, torch.tensor(2**61 + 5), 0.25))
