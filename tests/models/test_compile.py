"""``torch.compile`` takes whole models: one graph, the same results and gradients, for batches of any size."""

from __future__ import annotations

import pytest
import torch

from anyorder.layers import Elu, RandomFeatures, Softmax
from anyorder.layouts.memory import Memory
from anyorder.models import Encoder, EquivariantMLP
from anyorder.ops.backends import use_backend
from anyorder.testing import random_features

KERNEL = RandomFeatures()


def encoder(order_in, orders, kernel, coupling=None, dtype=torch.float64):
    torch.manual_seed(0)
    sizes = {"channels_in": 3, "channels": 8, "channels_out": 2, "heads": 2, "head_channels": 4}
    return Encoder(order_in=order_in, orders=orders, kernel=kernel, coupling=coupling, **sizes).to(dtype)


def features(order, layout, seed=0, num_nodes=7, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return random_features(order, layout=layout, num_nodes=num_nodes, density=0.6, dtype=dtype, generator=generator)


def compiled(model, backend):
    """A compiled model and the number of its graphs so far."""
    torch._dynamo.reset()
    graphs = []
    chosen = torch._dynamo.lookup_backend(backend)

    def count(graph, inputs):
        graphs.append(graph)
        return chosen(graph, inputs)

    return torch.compile(model, fullgraph=True, backend=count), graphs


def results(model, weights, x):
    """Output and gradients of the input and of all weights."""
    x = x.with_rows(x.rows.detach().requires_grad_())
    out = model(x).rows
    scale = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)
    return out.detach(), *torch.autograd.grad((out * scale).sum(), [x.rows, *weights], allow_unused=True)


def assert_same(model, fast, x, tolerance=1e-10):
    weights = [*model.parameters()]
    for got, right in zip(results(fast, weights, x), results(model, weights, x), strict=True):
        assert (got is None) == (right is None)
        if right is not None:
            torch.testing.assert_close(got, right, rtol=tolerance, atol=tolerance)


CASES = [
    pytest.param((1, (1, 2), KERNEL, None), "dense", id="1-1-2 dense"),
    pytest.param((1, (1, 2), KERNEL, None), "complete", id="1-1-2 complete", marks=pytest.mark.slow),
    pytest.param((2, (2, 2, 0), KERNEL, None), "sparse", id="2-2-0 sparse", marks=pytest.mark.slow),
    pytest.param((2, (2, 2, 0), KERNEL, "exact"), "sparse", id="2-2-0 exact", marks=pytest.mark.slow),
    pytest.param((2, (2, 0), RandomFeatures("softmax"), None), "sparse", id="2-0 exponentials", marks=pytest.mark.slow),
    pytest.param((2, (2, 1), Elu(), None), "sparse", id="2-1 elu", marks=pytest.mark.slow),
    pytest.param((2, (2, 0), Softmax(), None), "sparse", id="2-0 softmax", marks=pytest.mark.slow),
    pytest.param((1, (1, 2), Softmax(), None), "dense", id="1-1-2 softmax", marks=pytest.mark.slow),
    pytest.param((3, (2, 0), KERNEL, None), "sparse", id="3-2-0 sparse", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("settings", "layout"), CASES)
def test_a_compiled_encoder_equals_eager(settings, layout):
    model, x = encoder(*settings), features(settings[0], layout)
    model.prepare(x.index)
    fast, graphs = compiled(model, "aot_eager")
    assert_same(model, fast, x)
    assert len(graphs) == 1


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numba", "reference"])
@pytest.mark.parametrize(
    ("settings", "layout"),
    [
        pytest.param((2, (2, 2, 0), KERNEL, None), "sparse", id="2-2-0 sparse"),
        pytest.param((1, (1, 2), KERNEL, None), "dense", id="1-1-2 dense"),
        pytest.param((1, (1, 2), KERNEL, None), "complete", id="1-1-2 complete"),
    ],
)
def test_generated_code_equals_eager(settings, layout, backend):
    model, x = encoder(*settings), features(settings[0], layout)
    model.prepare(x.index)
    with use_backend(backend):
        fast, graphs = compiled(model, "inductor")
        assert_same(model, fast, x)
    assert len(graphs) == 1


@pytest.mark.slow
def test_generated_code_in_single_precision():
    model, x = encoder(2, (2, 2, 0), KERNEL, dtype=torch.float32), features(2, "sparse", dtype=torch.float32)
    model.prepare(x.index)
    assert_same(model, compiled(model, "inductor")[0], x, tolerance=1e-4)


@pytest.mark.slow
def test_a_compiled_mlp_equals_eager():
    torch.manual_seed(0)
    for reduce in ("sum", "mean"):
        model = EquivariantMLP(order_in=2, orders=(2, 0), channels_in=3, channels=4, reduce=reduce).double()
        x = features(2, "sparse")
        model.prepare(x.index)
        assert_same(model, compiled(model, "aot_eager")[0], x)


@pytest.mark.parametrize("orders", [(1, 1, 0), pytest.param((2, 2, 0), marks=pytest.mark.slow)])
def test_few_graphs_serve_batches_of_any_size(orders):
    model = encoder(orders[0], orders[1:], KERNEL)
    fast, graphs = compiled(model, "eager")
    for number in range(8):
        x = features(orders[0], "sparse", seed=number, num_nodes=9 + 2 * number)
        model.prepare(x.index)
        torch.testing.assert_close(fast(x).rows, model(x).rows)
    assert len(graphs) <= 3  # the first batch, one with other sizes, and one more where some sizes were equal by chance


@pytest.mark.parametrize(
    ("orders", "options"),
    [((2, 0), {}), ((1, 0), {"dynamic": True}), ((1, 0), {"fullgraph": True})],
    ids=["default", "dynamic", "fullgraph"],
)
def test_a_model_prepares_by_itself_outside_of_its_graph(orders, options):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    model = encoder(orders[0], orders, KERNEL)
    whole = torch.compile(model, backend="eager", **options)
    for seed in range(4):
        x = random_features(orders[0], num_nodes=6 + 5 * seed, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(whole(x).rows, model(x).rows, rtol=1e-4, atol=1e-4)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 3


def test_a_model_that_is_compiled_in_place_prepares_by_itself():
    torch._dynamo.reset()
    model, fast = (encoder(1, (1,), KERNEL) for _ in range(2))
    fast.compile(fullgraph=True, backend="eager")
    for seed in range(2):
        x = features(1, "sparse", seed=seed, num_nodes=6 + 5 * seed)
        target = x.index.complete(1)
        torch.testing.assert_close(fast(x, target=target).rows, model(x, target).rows)
        torch.testing.assert_close(fast(x=x).rows, model(x).rows)


class Inside(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)


def test_a_part_of_a_whole_graph_needs_a_prepared_index_set():
    model, x = encoder(1, (1,), KERNEL), features(1, "sparse")
    whole = compiled(Inside(model), "eager")[0]
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"call model.prepare\(x.index\) before"):
        whole(x)
    model.prepare(x.index)
    torch.testing.assert_close(whole(x).rows, model(x).rows)


PREPARED = [
    (2, (2, 2, 0), KERNEL, "relaxed"),
    (2, (2, 1), KERNEL, "exact"),
    (2, (2, 1, 0), Softmax(), None),
    (1, (1, 2), Elu(), None),
    (3, (2, 3), KERNEL, "exact"),
]


@pytest.mark.parametrize("settings", PREPARED)
@pytest.mark.parametrize("layout", ["sparse", "complete"])
def test_nothing_is_left_to_work_out_after_prepare(settings, layout, monkeypatch):
    model = encoder(*settings)

    def given():
        x = features(settings[0], layout)
        return x, x.index.complete(model.order_out)

    expected = model(*given()).rows
    x, target = given()
    model.prepare(x.index, target)

    def late(self, key, build):
        assert key in self._cache, f"{key} is worked out after prepare"
        return self._cache[key]

    monkeypatch.setattr(Memory, "_once", late)
    torch.testing.assert_close(model(x, target).rows, expected)
    with pytest.raises(AssertionError, match="worked out after prepare"):
        model(features(settings[0], layout), target)
