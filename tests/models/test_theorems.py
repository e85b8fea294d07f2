"""What the paper proves, as constructions with explicit weights; and that seeded runs repeat."""

from __future__ import annotations

import pytest
import torch

from anyorder import (
    Elu,
    Encoder,
    EncoderLayer,
    EquivariantLinear,
    EquivariantMLP,
    Features,
    RandomFeatures,
    Softmax,
    SparseIndexSet,
)
from anyorder.algebra import SetPartition
from anyorder.testing import assert_equivariant, random_features, random_index_set

LOOP, EDGE = SetPartition((0, 0)), SetPartition((0, 1))


def silence(layer: EncoderLayer) -> None:
    """Constant queries and keys, and an MLP that gives its last bias whatever comes in."""
    with torch.no_grad():
        for maps in (layer.attention.query, layer.attention.key):
            for each in maps.values():
                each.weight.zero_()
                each.bias.zero_()
        layer.widen.weight.zero_()
        layer.narrow.weight.zero_()
        layer.widen.bias.zero_()


@pytest.mark.parametrize(("k", "l"), [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize(
    ("options", "reduce"),
    [
        ({"kernel": Softmax()}, "mean"),
        ({"kernel": RandomFeatures(num_features=4), "coupling": "exact"}, "mean"),
        ({"kernel": Elu(), "coupling": "exact", "normalize": False}, "sum"),
    ],
)
def test_an_encoder_layer_reproduces_the_linear_layer(k, l, options, reduce):
    """Theorem 1: mean form where attention is normalised, sum form where it is not."""
    torch.manual_seed(k * 10 + l)
    sizes = {"channels": 3, "heads": 2, "head_channels": 2, "norm": False, "residual": False}
    layer = EncoderLayer(order_in=k, order_out=l, **sizes, **options).double()
    linear = EquivariantLinear(order_in=k, order_out=l, channels_in=3, channels_out=3, reduce=reduce).double()
    silence(layer)
    scale = 1 if layer.attention.normalize else 2 * (1 + Elu().eps) ** 2  # phi(0).phi(0) of elu, for each channel
    with torch.no_grad():
        layer.narrow.bias.copy_(linear.bias)
        for n, cls in enumerate(linear.classes):
            weights = layer.attention.weights_of(cls)
            if cls.kind == "pointwise":
                linear.weight[n] = weights["pointwise"]
            else:
                linear.weight[n] = scale * torch.einsum("ihc,hco->io", weights["value"], weights["output"])
    x = random_features(k, generator=torch.Generator().manual_seed(1))
    target = random_index_set(l, like=x.index, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(layer(x, target).rows, linear(x, target).rows, rtol=1e-9, atol=1e-9)


def test_two_layers_reproduce_message_passing():
    """Theorem 2: sum over incoming edges of relu(A x_target + B x_source + C e), then an update, at the nodes.

    Channels: node input 2, edge input 2, message 3, two layers with constant kernel attention and without normalisation.
    The first layer makes messages on edges with its MLP (pointwise classes read both end nodes); the second sums them by the
    class {{i1},{i2,j1,j2}} and updates at the loops.
    """
    generator = torch.Generator().manual_seed(0)
    nodes, message, width = 6, 3, 8
    pairs = torch.tensor([(a, b) for a in range(nodes) for b in range(nodes) if a != b])
    pairs = pairs[torch.randperm(len(pairs), generator=generator)[:14]]
    index = SparseIndexSet(torch.cat([torch.arange(nodes).repeat(2, 1).T, pairs]), num_nodes=nodes)
    points = torch.randn(nodes, 2, generator=generator, dtype=torch.float64)
    edges = torch.randn(len(pairs), 2, generator=generator, dtype=torch.float64)
    to_target, to_source, to_edge = (torch.randn(2, message, generator=generator, dtype=torch.float64) for _ in range(3))
    update_node = torch.randn(2, message, generator=generator, dtype=torch.float64)
    update_message = torch.randn(message, message, generator=generator, dtype=torch.float64)

    expected = points @ update_node
    gelu = torch.nn.functional.gelu
    for (source, target), edge in zip(pairs.tolist(), edges):
        text = gelu(points[target] @ to_target + points[source] @ to_source + edge @ to_edge)
        expected[target] = expected[target] + text @ update_message

    def make() -> EncoderLayer:
        layer = EncoderLayer(
            order_in=2, order_out=2, channels=width, heads=1, head_channels=width, kernel=Elu(), normalize=False,
            norm=False, residual=False,
        ).double()  # fmt: skip
        silence(layer)
        with torch.no_grad():
            layer.narrow.bias.zero_()
            for cls in layer.attention.classes:
                for name, weight in layer.attention.weights_of(cls).items():
                    if name in ("pointwise", "value", "output"):
                        weight.zero_()
        return layer

    first, second = make(), make()
    with torch.no_grad():
        for cls in first.attention.classes:  # attention passes its input on
            if cls.name in ("(i,i) -> (i,i)", "(i,j) -> (i,j)"):
                first.attention.weights_of(cls)["pointwise"].copy_(torch.eye(width))
        for n, cls in enumerate(first.widen.classes):  # the MLP makes messages from both ends and the edge
            if cls.name == "(i,i) -> (i,j)":
                first.widen.weight[n, :2, :message] = to_source
            elif cls.name == "(j,j) -> (i,j)":
                first.widen.weight[n, :2, :message] = to_target
            elif cls.name == "(i,j) -> (i,j)":
                first.widen.weight[n, 2:4, :message] = to_edge
                identity = n
        first.narrow.weight[identity, :message, 4 : 4 + message] = torch.eye(message)
        for cls in second.attention.classes:
            weights = second.attention.weights_of(cls)
            if cls.name == "(i,i) -> (i,i)":
                weights["pointwise"][:2, :message] = update_node
            elif cls.name == "(j,i) -> (i,i)":  # sum over the edges that enter i
                weights["value"][4 : 4 + message, 0, :message] = torch.eye(message)
                weights["output"][0, :message, :message] = update_message / (
                    width * (1 + Elu().eps) ** 2
                )  # phi(0).phi(0), for each channel
    values = torch.zeros(index.num_entries, width, dtype=torch.float64)
    values[:nodes, :2], values[nodes:, 2:4] = points, edges
    out = second(first(Features(index, values)))
    torch.testing.assert_close(out.rows[:nodes, :message], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("layout", ["sparse", "dense"])
@pytest.mark.parametrize("kernel", [Softmax(), RandomFeatures(), RandomFeatures(kind="softmax"), Elu()])
def test_models_are_equivariant(layout, kernel):
    torch.manual_seed(0)
    x = random_features(2, num_nodes=7, layout=layout, generator=torch.Generator().manual_seed(0))
    sizes = {"channels_in": 3, "channels": 8, "channels_out": 2}
    model = Encoder(order_in=2, orders=(2, 1, 0), heads=2, head_channels=4, kernel=kernel, **sizes)
    assert_equivariant(model.double(), x)
    assert_equivariant(EquivariantMLP(order_in=2, orders=(2, 1, 0), **sizes).double(), x)


@pytest.mark.numeric
def test_seeded_training_repeats_bit_for_bit():
    def train() -> list[torch.Tensor]:
        torch.manual_seed(3)
        x = random_features(2, channels=3, dtype=torch.float32, generator=torch.Generator().manual_seed(0))
        model = Encoder(
            order_in=2, orders=(2, 0), channels_in=3, channels=8, channels_out=1, heads=2, head_channels=4,
            kernel=RandomFeatures(), dropout=0.1,
        )  # fmt: skip
        optimiser = torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(3):
            optimiser.zero_grad()
            model(x).rows.square().sum().backward()
            optimiser.step()
        return [weight.detach() for weight in model.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(train(), train()))


def test_a_hyperedge_head_uses_only_its_own_classes():
    """Property 4: into k-uniform hyperedges, only 1 + k classes have anything to do."""
    model = Encoder(order_in=1, orders=(1, 3), channels_in=2, channels=8, channels_out=1, heads=2, head_channels=4)
    nodes = SparseIndexSet(torch.arange(6)[:, None], num_nodes=6)
    triples = SparseIndexSet(torch.tensor([[0, 1, 2], [3, 4, 5], [0, 2, 4]]), num_nodes=6)
    out = model(Features(nodes, torch.randn(6, 2)), triples)
    assert out.rows.shape == (3, 1)
    busy = [cls for cls in model.layers[-1].attention.classes if len(triples.entries(cls.target))]
    assert len(busy) == 1 + 3
