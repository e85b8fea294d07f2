"""Compiled loops that add up the signed terms of exact attention, against the reference in double precision."""

from __future__ import annotations

import copy

import pytest
import torch

from anyorder import EquivariantAttention, Features
from anyorder.ops.backends import use_backend
from anyorder.testing import random_features

pytest.importorskip("numba")


def outputs(layer, given, backend, dtype):
    """The answers of a layer and all gradients."""
    rows, layer = given.rows.to(dtype).requires_grad_(), copy.deepcopy(layer).to(dtype)
    with use_backend(backend):
        answers = layer(Features.of_rows(given.index, rows)).rows
        return [answers.detach(), *torch.autograd.grad(answers.square().sum(), [rows, *layer.parameters()])]


@pytest.mark.parametrize(
    ("kernel", "normalize", "dtype", "tolerance"),
    [("relu", True, torch.float32, 2e-5), ("elu", False, torch.float64, 1e-11)],
)
def test_equals_the_reference(kernel, normalize, dtype, tolerance, monkeypatch):
    monkeypatch.setattr("anyorder.ops.segment_cpu.PIECE", 16)  # so that groups are cut, too
    torch.manual_seed(0)
    sizes = {"order_in": 2, "order_out": 2, "channels": 6, "heads": 2, "head_channels": 4}
    layer = EquivariantAttention(**sizes, kernel=kernel, coupling="exact", normalize=normalize)
    given = random_features(order=2, channels=6, num_nodes=9, num_graphs=2)
    for got, right in zip(outputs(layer, given, "numba", dtype), outputs(layer, given, "reference", torch.float64)):
        scale = right.abs().max().clamp(min=1)
        torch.testing.assert_close(got.double() / scale, right / scale, rtol=tolerance, atol=tolerance)


@pytest.mark.numeric
def test_inputs_in_half_precision_are_read_as_singles():
    torch.manual_seed(0)
    sizes = {"order_in": 2, "order_out": 2, "channels": 6, "heads": 2, "head_channels": 4}
    layer = EquivariantAttention(**sizes, kernel="relu", coupling="exact")
    given = random_features(order=2, channels=6, num_nodes=9, num_graphs=2).to(torch.float32)
    right = layer(given).rows.detach()
    with use_backend("numba"), torch.autocast("cpu", torch.bfloat16):
        found = layer(given).rows
    found.float().sum().backward()
    assert float((found.detach().float() - right).abs().max()) < 0.05 * float(right.abs().max())
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in layer.parameters())
