"""What looks into layers from outside: second derivatives, torch.func, hooks, parameters that a batch does not touch."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad, gradgradcheck
from torch.func import functional_call, grad, jacrev, jvp, stack_module_state, vmap

from anyorder import (
    Elu,
    Encoder,
    EquivariantAttention,
    EquivariantLinear,
    Features,
    LearnedFeatures,
    RandomFeatures,
    Softmax,
    SparseIndexSet,
)
from anyorder.layers.module import FeatureModule
from anyorder.ops import segment
from anyorder.ops.backends import use_backend

KERNELS = {
    "softmax": {"kernel": Softmax()},
    "relu": {"kernel": RandomFeatures(num_features=4)},
    "relu exact": {"kernel": RandomFeatures(num_features=4), "coupling": "exact"},
    "favor": {"kernel": RandomFeatures(kind="softmax", num_features=4)},
    "elu": {"kernel": Elu()},
    "elu sums": {"kernel": Elu(), "normalize": False},
    "learned": {"kernel": LearnedFeatures(num_features=4)},
    "learned products": {"kernel": LearnedFeatures(num_features=4, factors=2)},
    "mixed": {"kernel": {"local": Softmax(), "global": Elu()}},
}


def graph(nodes=3, *, loops=True):
    line = torch.arange(nodes - 1)
    pairs = torch.cat([torch.stack([line, line + 1], 1), torch.stack([line + 1, line], 1)])
    if loops:
        pairs = torch.cat([torch.arange(nodes)[:, None].expand(-1, 2), pairs])
    return SparseIndexSet(pairs, num_nodes=nodes)


def attention(order_out=2, **options):
    torch.manual_seed(0)
    return EquivariantAttention(order_in=2, order_out=order_out, channels=2, heads=1, head_channels=2, **options).double()


def rows_of(index, channels=2):
    return torch.randn(index.num_entries, channels, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("order_out", [0, 1, 2])
def test_attention_has_second_derivatives(kernel, order_out):
    layer, index = attention(order_out, **KERNELS[kernel]), graph()
    given = rows_of(index).requires_grad_()
    assert gradgradcheck(lambda x: layer(Features(index, x)).rows.tanh(), (given,), atol=1e-4, fast_mode=True)


@pytest.mark.parametrize("normalize", [True, False])
def test_the_compiled_operator_has_second_derivatives(normalize, monkeypatch):
    monkeypatch.setattr(segment, "PAYS", -1)  # as for large inputs
    monkeypatch.setattr(segment, "SMALL", -1)
    layer, index = attention(kernel=RandomFeatures(num_features=4), normalize=normalize), graph()
    given = rows_of(index).requires_grad_()
    with use_backend("products"):
        assert torch.autograd.gradgradcheck(
            lambda x: layer(Features(index, x)).rows.tanh(), (given,), atol=1e-4, fast_mode=True
        )


@pytest.mark.parametrize("kernel", KERNELS)
def test_torch_func_sees_through_a_layer(kernel):
    layer, index = attention(**KERNELS[kernel]), graph()
    x = rows_of(index)
    weights = dict(layer.named_parameters())

    def loss(weights, rows):
        return functional_call(layer, weights, (Features.of_rows(index, rows),)).rows.square().sum()

    leaves = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
    expected = torch.autograd.grad(loss(leaves, x), list(leaves.values()))
    for got, right in zip(grad(loss)(weights, x).values(), expected, strict=True):
        torch.testing.assert_close(got, right)
    jacobian = jacrev(lambda rows: layer(Features.of_rows(index, rows)).rows)(x)
    again = torch.autograd.functional.jacobian(lambda rows: layer(Features.of_rows(index, rows)).rows, x)
    torch.testing.assert_close(jacobian, again)


@pytest.mark.parametrize("kernel", KERNELS)
def test_torch_func_and_tangents_see_through_rows_in_any_order(kernel):
    layer, pairs = attention(**KERNELS[kernel]), graph().tuples
    index = SparseIndexSet(pairs[torch.randperm(len(pairs), generator=torch.Generator().manual_seed(0))], num_nodes=3)
    x = rows_of(index)
    tangent = torch.linspace(-1, 1, x.numel(), dtype=x.dtype).view_as(x)

    def run(rows):
        return layer(Features.of_rows(index, rows)).rows

    expected = torch.autograd.functional.jvp(run, x, tangent)[1]
    torch.testing.assert_close(jvp(run, (x,), (tangent,))[1], expected)
    with forward_ad.dual_level():
        torch.testing.assert_close(forward_ad.unpack_dual(run(forward_ad.make_dual(x, tangent))).tangent, expected)


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_ensemble_is_one_call(kernel):
    layers = [attention(**KERNELS[kernel]) for _ in range(3)]
    for layer in layers[1:]:
        for weight in layer.parameters():
            weight.data += 0.1
    weights, buffers = stack_module_state(layers)
    index, x = graph(), rows_of(graph())

    def call(weights, buffers):
        return functional_call(layers[0], (weights, buffers), (Features.of_rows(index, x),)).rows

    together = vmap(call)(weights, buffers)
    torch.testing.assert_close(together, torch.stack([layer(Features.of_rows(index, x)).rows for layer in layers]))


@pytest.mark.parametrize("kernel", ["softmax", "relu", "relu exact"])
@pytest.mark.parametrize("orders", [(2, 0), (2, 1), (2, 2)])
def test_every_parameter_has_a_gradient_whatever_the_batch(orders, kernel):
    options = {"channels_in": 2, "channels": 4, "channels_out": 1, "heads": 2, "head_channels": 2, **KERNELS[kernel]}
    model = Encoder(order_in=2, orders=orders, **options).double()
    assert all(weight.numel() for weight in model.parameters())
    for index in (graph(loops=False), SparseIndexSet(torch.tensor([[0, 0]]), num_nodes=2)):
        model.zero_grad()
        model(Features(index, rows_of(index))).rows.sum().backward()
        assert [name for name, weight in model.named_parameters() if weight.grad is None] == []
        assert all(weight.grad.isfinite().all() for weight in model.parameters())


def test_linear_layers_touch_all_their_weights():
    layer = EquivariantLinear(order_in=2, order_out=2, channels_in=2, channels_out=2, reduce="mean").double()
    index = graph(loops=False)
    layer(Features(index, rows_of(index))).rows.sum().backward()
    assert layer.weight.grad is not None and layer.weight.grad.isfinite().all()


@pytest.mark.parametrize("scale", [300.0, 1e4])
def test_gradients_of_elu_stay_finite(scale):
    torch.manual_seed(0)
    layer = EquivariantAttention(order_in=1, order_out=1, channels=4, heads=1, head_channels=4, kernel=Elu())
    index = SparseIndexSet(torch.arange(5)[:, None], num_nodes=5)
    given = (scale * torch.randn(5, 4)).requires_grad_()
    layer(Features(index, given)).rows.sum().backward()
    assert given.grad.isfinite().all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_nan_in_one_graph_stays_there(kernel):
    pairs = torch.tensor([[0, 0], [1, 1], [0, 1], [2, 2], [3, 3], [4, 4], [2, 3], [3, 4], [3, 2]])
    index = SparseIndexSet(pairs, num_nodes=5, node_graph=torch.tensor([0, 0, 1, 1, 1]))
    layer = attention(**KERNELS[kernel])
    given = rows_of(index)
    given[0] = torch.nan
    given.requires_grad_()
    out = layer(Features.of_rows(index, given)).rows
    out[3:].sum().backward()
    assert out[3:].isfinite().all() and given.grad[3:].isfinite().all()


def test_backward_hooks_fire():
    index, seen = graph(), {}
    model = Encoder(order_in=2, orders=(2, 0), channels_in=2, channels=4, channels_out=1, heads=1, head_channels=2).double()
    handles = []
    for name, module in model.named_modules():
        if isinstance(module, FeatureModule):
            handles.append(
                module.register_full_backward_hook(lambda _, given, got, name=name: seen.update({name: (given, got)}))
            )
    x = rows_of(index).requires_grad_()
    model(Features(index, x)).rows.sum().backward()
    assert {"", "project", "layers.0", "layers.0.attention", "layers.1"} <= seen.keys()
    torch.testing.assert_close(seen[""][0][0], x.grad)
    assert torch.equal(seen[""][1][0], torch.ones(1, 1, dtype=torch.float64))
    for handle in handles:
        handle.remove()
    seen.clear()
    model(Features(index, x)).rows.sum().backward()
    assert not seen
