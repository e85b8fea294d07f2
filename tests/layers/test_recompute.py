"""Attention part by part, whose backward pass recomputes most of what it needs."""

from __future__ import annotations

import pytest
import torch

from anyorder import (
    Elu,
    EncoderLayer,
    EquivariantAttention,
    Features,
    KernelsByKind,
    LearnedFeatures,
    RandomFeatures,
    Softmax,
    SparseIndexSet,
)
from anyorder.algebra import SHARINGS
from anyorder.layers import attention
from anyorder.ops import segment
from anyorder.testing import random_features, random_index_set

KERNELS = [RandomFeatures(), LearnedFeatures(), Softmax(), KernelsByKind(Elu(), Softmax())]


def _with_kept(work):
    """What a function returns, and how many numbers are kept for its backward pass."""
    held = []

    def keep(part):
        held.append(part.numel())
        return part

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda part: part):
        return work(), sum(held)


@pytest.mark.parametrize("coupling", ["relaxed", "exact"])
def test_recomputing_changes_no_gradient(coupling):
    generator = torch.Generator().manual_seed(0)
    index = SparseIndexSet(torch.unique(torch.randint(12, (60, 2), generator=generator), dim=0), num_nodes=12)
    values = torch.randn(index.num_entries, 8, generator=generator)
    sizes = {"order_in": 2, "order_out": 2, "channels": 8, "heads": 2, "head_channels": 4}
    results = []
    for recompute in (False, True):
        torch.manual_seed(1)
        layer = EncoderLayer(**sizes, kernel=RandomFeatures(), coupling=coupling, recompute=recompute)
        given = values.clone().requires_grad_()
        out, held = _with_kept(lambda: layer(Features(index, given)).values)  # noqa: B023
        out.square().sum().backward()
        results.append((out, given.grad, *[weight.grad for weight in layer.parameters()], held))
    *plain, kept = results[0]
    *again, held_now = results[1]
    for here, there in zip(plain, again, strict=True):
        torch.testing.assert_close(here, there, rtol=1e-4, atol=1e-4)
    assert held_now < kept / 5


@pytest.mark.parametrize("output_rank", [None, 3])
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize(("order_in", "order_out"), [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (2, 0)])
@pytest.mark.parametrize(
    "kernel", [RandomFeatures(), LearnedFeatures(), Softmax(), KernelsByKind(Elu(), Softmax())], ids=str
)
def test_attention_in_parts_is_the_same(kernel, order_in, order_out, sharing, output_rank):
    """Results and all gradients, from and to other index sets too."""
    x = random_features(order=order_in, channels=4)
    target = random_index_set(order_out, like=x.index) if order_out > order_in else None
    sizes = {"order_in": order_in, "order_out": order_out, "channels": 4, "heads": 2, "head_channels": 2}
    layer = EquivariantAttention(**sizes, kernel=kernel, sharing=sharing, output_rank=output_rank).double()
    results = []
    for recompute in (False, True):
        layer.recompute = recompute
        rows = x.rows.clone().requires_grad_()
        out = layer(x.with_rows(rows), target).rows
        grads = torch.autograd.grad(out.sin().sum(), [rows, *layer.parameters()], allow_unused=True)
        with torch.no_grad():
            torch.testing.assert_close(layer(x, target).rows, out)
        results.append((out, *[torch.zeros(()) if grad is None else grad for grad in grads]))
    for here, there in zip(*results, strict=True):
        torch.testing.assert_close(here, there, rtol=1e-9, atol=1e-9)


def test_dropout_in_parts_drops_the_same_when_recomputed():
    x = random_features(order=2, channels=4)
    sizes = {"order_in": 2, "order_out": 2, "channels": 4, "heads": 2, "head_channels": 2}
    layer = EquivariantAttention(**sizes, kernel=RandomFeatures(), dropout=0.5, recompute=True).double()
    torch.manual_seed(0)
    first = layer(x).rows.square().sum()
    (grad,) = torch.autograd.grad(first, [layer.output["p0_1"]])
    step = 1e-6 * grad / grad.norm()
    with torch.no_grad():
        layer.output["p0_1"] += step
    torch.manual_seed(0)
    second = layer(x).rows.square().sum()
    torch.testing.assert_close(second - first, (grad * step).sum(), rtol=1e-4, atol=1e-12)


def test_recomputing_does_not_attend_again(monkeypatch):
    index = SparseIndexSet(torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]), num_nodes=2)
    sizes = {"order_in": 2, "order_out": 2, "channels": 4, "heads": 1, "head_channels": 4}
    calls, choose = [], segment.choose  # asked once in a forward and once in a backward pass
    monkeypatch.setattr(segment, "PAYS", -1)  # as for large inputs
    monkeypatch.setattr(segment, "SMALL", -1)
    monkeypatch.setattr(segment, "choose", lambda *given: calls.append(recompute) or choose(*given))
    for recompute in (False, True):
        layer = EncoderLayer(**sizes, kernel=RandomFeatures(), recompute=recompute)
        layer(Features(index, torch.randn(4, 4))).values.sum().backward()
    assert calls.count(True) == calls.count(False) > 0


@pytest.mark.parametrize("coupling", ["relaxed", "exact"])
def test_a_recomputing_layer_goes_back_as_often_as_asked(coupling):
    index = SparseIndexSet(torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]]), num_nodes=2)
    sizes = {"order_in": 2, "order_out": 2, "channels": 4, "heads": 1, "head_channels": 4}
    layer = EncoderLayer(**sizes, kernel=RandomFeatures(), coupling=coupling, recompute=True)
    given = torch.randn(4, 4, requires_grad=True)
    out = layer(Features(index, given)).values.square().sum()
    first, second = (torch.autograd.grad(out, given, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second) and bool(first.any())


def test_large_answers_are_recomputed_too(monkeypatch):
    x = random_features(order=2, channels=4)
    sizes = {"order_in": 2, "order_out": 2, "channels": 4, "heads": 2, "head_channels": 2}
    layer = EquivariantAttention(**sizes, kernel=RandomFeatures(), recompute=True).double()
    found = []
    for limit in (attention.RECOMPUTED, 0):
        monkeypatch.setattr(attention, "RECOMPUTED", limit)
        rows = x.rows.clone().requires_grad_()
        out = layer(x.with_rows(rows)).rows
        found.append(torch.autograd.grad(out.sin().sum(), rows)[0])
    torch.testing.assert_close(*found)


def test_the_default_goes_part_by_part_where_much_would_be_kept(monkeypatch):
    x = random_features(order=2, channels=4)
    sizes = {"order_in": 2, "order_out": 2, "channels": 4, "heads": 2, "head_channels": 2}
    layers = [EquivariantAttention(**sizes, kernel=kernel).double() for kernel in (RandomFeatures(), Softmax())]
    assert [layer.recomputes(x, x.index) for layer in layers] == [False, False]
    monkeypatch.setattr(attention, "RECOMPUTED", 0)
    assert [layer.recomputes(x, x.index) for layer in layers] == [True, False]


def test_tiles_of_softmax_are_recomputed_where_they_hold_many_pairs(monkeypatch):
    monkeypatch.setattr("anyorder.layouts.tiles.TILE_PAIRS", 2**10)  # several tiles a class
    x = random_features(2, channels=8, num_graphs=2, num_nodes=24)
    layer = EquivariantAttention(order_in=2, order_out=2, channels=8, heads=2, head_channels=4, kernel=Softmax()).double()
    results = []
    for kept in (0, 2**20):
        monkeypatch.setattr("anyorder.ops.over_tiles.KEPT", kept)
        given = x.rows.double().detach().requires_grad_()
        out, held = _with_kept(lambda: layer(x.with_rows(given)).rows)  # noqa: B023
        results.append((out.detach(), *torch.autograd.grad(out.square().sum(), [given, *layer.parameters()]), held))
    *few, least = results[0]
    *many, most = results[1]
    assert least < most
    for got, right in zip(few, many, strict=True):
        assert torch.equal(got, right)
