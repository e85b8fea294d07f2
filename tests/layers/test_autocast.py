"""Layers under autocast: every kernel, forward, backward and without gradients, near what single precision gives."""

from __future__ import annotations

import pytest
import torch

from anyorder import EncoderLayer, Features, LearnedFeatures, RandomFeatures, Softmax, SparseIndexSet
from anyorder.layers import Elu, EquivariantLinear
from anyorder.layouts import CompleteIndexSet

KERNELS = [Softmax(), Elu(), RandomFeatures(), RandomFeatures(kind="softmax"), LearnedFeatures(num_features=16, factors=2)]
ORDERS = [(1, 1), (2, 2), (2, 0), (1, 2), (2, 1)]


def features(order: int) -> Features:
    """Enough nodes for the operator to work with products of matrices."""
    generator = torch.Generator().manual_seed(order)
    if order == 1:
        index = CompleteIndexSet(1, torch.tensor([60, 3]))
    else:
        nodes = torch.arange(60)
        edges = torch.stack([nodes, (nodes + 1) % 60], 1)
        index = SparseIndexSet(torch.cat([edges, nodes[:, None].expand(-1, 2)]), num_nodes=60)
    return Features.of_rows(index, torch.randn(index.num_entries, 64, generator=generator))


@pytest.mark.numeric
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{type(kernel).__name__}-{getattr(kernel, 'kind', '')}")
@pytest.mark.parametrize(("order_in", "order_out"), ORDERS)
def test_near_single_precision(kernel, order_in, order_out):
    torch.manual_seed(0)
    layer = EncoderLayer(order_in=order_in, order_out=order_out, channels=64, heads=4, head_channels=32, kernel=kernel)
    check(layer, features(order_in))


@pytest.mark.numeric
@pytest.mark.parametrize("few", [0, 10**9], ids=["by sums", "pair by pair"])
@pytest.mark.parametrize("kernel", [RandomFeatures(), LearnedFeatures(num_features=16, factors=2)], ids=str)
@pytest.mark.parametrize(("order_in", "order_out"), [(1, 1), (2, 2), (1, 2)])
def test_exact_coupling_near_single_precision(kernel, order_in, order_out, few, monkeypatch):
    monkeypatch.setattr("anyorder.layouts.plan.FEW_KEYS", few)
    torch.manual_seed(0)
    sizes = {"order_in": order_in, "order_out": order_out, "channels": 64, "heads": 4, "head_channels": 32}
    check(EncoderLayer(**sizes, kernel=kernel, coupling="exact"), features(order_in))


@pytest.mark.numeric
@pytest.mark.parametrize(("order_in", "order_out"), ORDERS)
def test_linear_layers(order_in, order_out):
    torch.manual_seed(0)
    check(EquivariantLinear(order_in=order_in, order_out=order_out, channels_in=64, channels_out=32), features(order_in))


def check(layer: torch.nn.Module, x: Features) -> None:
    with torch.no_grad():
        expected = layer(x).rows
    largest = float(expected.abs().max())
    for enabled in (True, False):
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.set_grad_enabled(enabled):
            found = layer(x).rows.float()
        assert float((found.detach() - expected).abs().max()) < 0.05 * largest
        if enabled:
            found.square().sum().backward()
            grads = [weight.grad for weight in layer.parameters() if weight.grad is not None]
            assert grads and all(grad.isfinite().all() for grad in grads)
