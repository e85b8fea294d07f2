"""Layers and models refuse what they were not made for, and say what they expected and what came."""

from __future__ import annotations

import pytest
import torch

from anyorder import (
    Elu,
    Encoder,
    EncoderLayer,
    EquivariantAttention,
    EquivariantLinear,
    EquivariantMLP,
    RandomFeatures,
    SparseIndexSet,
)
from anyorder.algebra import classes
from anyorder.testing import random_features, random_index_set


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def linear(**changes):
    options = {"order_in": 2, "order_out": 2, "channels_in": 3, "channels_out": 4}
    return EquivariantLinear(**{**options, **changes})


def attention(**changes):
    options = {"order_in": 2, "order_out": 2, "channels": 3, "heads": 2, "head_channels": 2}
    return EquivariantAttention(**{**options, **changes})


def block(**changes):
    options = {"order_in": 2, "order_out": 2, "channels": 3, "heads": 2, "head_channels": 2}
    return EncoderLayer(**{**options, **changes})


def encoder(**changes):
    options = {"order_in": 2, "orders": (2, 0), "channels_in": 3, "channels": 4, "channels_out": 1}
    return Encoder(**{**options, "heads": 2, "head_channels": 2, **changes})


def mlp(**changes):
    options = {"order_in": 2, "orders": (2, 0), "channels_in": 3, "channels": 4}
    return EquivariantMLP(**{**options, **changes})


MODULES = [linear, attention, block, encoder, mlp]
every = pytest.mark.parametrize("make", MODULES, ids=lambda make: make.__name__)


@every
class TestInputs:
    def test_what_is_accepted(self, make):
        assert make()(random_features(2, dtype=torch.float32)).rows.isfinite().all()

    def test_another_order(self, make):
        with pytest.raises(ValueError, match="takes features of order 2, got order 1"):
            make()(random_features(1, dtype=torch.float32))

    def test_another_width(self, make):
        with pytest.raises(ValueError, match="takes features of 3 channels, got 5"):
            make()(random_features(2, channels=5, dtype=torch.float32))

    def test_another_dtype(self, make):
        with pytest.raises(TypeError, match=r"has weights of torch\.float32, got features of torch\.float64"):
            make()(random_features(2, dtype=torch.float64))

    def test_another_device(self, make):
        with pytest.raises(ValueError, match="has its weights on cpu, got features on meta"):
            make()(random_features(2, dtype=torch.float32).to("meta"))

    def test_plain_tensors(self, make):
        with pytest.raises(TypeError, match="takes Features, got Tensor"):
            make()(torch.ones(4, 3))


@pytest.mark.parametrize("make", [linear, attention, block], ids=lambda make: make.__name__)
class TestTargets:
    def test_another_order(self, make):
        x = random_features(2, dtype=torch.float32)
        with pytest.raises(ValueError, match="target must be of the layer's output order: expected 2, got 1"):
            make()(x, x.index.project(1))

    def test_other_nodes(self, make):
        x = random_features(2, dtype=torch.float32)
        target = random_index_set(2, num_nodes=9)
        with pytest.raises(ValueError, match="expected 6 nodes and 2 graphs, got 9 and 2"):
            make()(x, target)

    def test_other_graphs(self, make):
        x = random_features(2, dtype=torch.float32)
        other = SparseIndexSet(torch.tensor([[0, 0]]), num_nodes=6, node_graph=1 - x.index.node_graph)
        with pytest.raises(ValueError, match="target must have each node in the same graph: node 0 is of graph"):
            make()(x, other)

    def test_another_device(self, make):
        x = random_features(2, dtype=torch.float32)
        with pytest.raises(ValueError, match="target must be on the same device: expected cpu, got meta"):
            make()(x, random_index_set(2, like=x.index).to("meta"))

    def test_no_index_set(self, make):
        with pytest.raises(TypeError, match="target must be an IndexSet, got Tensor"):
            make()(random_features(2, dtype=torch.float32), torch.zeros(2, 2))

    def test_none_where_none_follows(self, make):
        with pytest.raises(ValueError, match="target index set is needed: none of order 3 follows"):
            make(order_out=3)(random_features(2, dtype=torch.float32))


@pytest.mark.parametrize("make", [encoder, mlp], ids=lambda make: make.__name__)
class TestTargetsOfModels:
    def test_none_where_none_follows(self, make):
        with pytest.raises(ValueError, match="target index set is needed: none of order 3 follows"):
            make(orders=(2, 3))(random_features(2, dtype=torch.float32))

    def test_no_layer_writes_its_order(self, make):
        x = random_features(2, dtype=torch.float32)
        with pytest.raises(ValueError, match="target must be of an order that a layer writes"):
            make(orders=(2, 2))(x, random_index_set(3, like=x.index))


@pytest.mark.parametrize("value", [0, -1, 2.0, True, None, "4"])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        *((linear, name) for name in ("channels_in", "channels_out")),
        *((attention, name) for name in ("channels", "heads", "head_channels")),
        *((block, name) for name in ("channels", "heads", "head_channels", "channels_hidden")),
        *((encoder, name) for name in ("channels_in", "channels", "channels_hidden", "channels_out")),
        *((encoder, name) for name in ("heads", "head_channels")),
        *((mlp, name) for name in ("channels_in", "channels", "channels_out")),
    ],
)
def test_sizes_are_positive_integers(make, name, value):
    if value is None and name in ("channels_hidden", "channels_out") and make is not linear:
        assert make(**{name: None})  # None stands for a default
        return
    with pytest.raises(ValueError, match=rf"({name}|channels\w*) must be a positive integer, got {value!r}"):
        make(**{name: value})


@pytest.mark.parametrize("value", [-1, 1.0, True, None])
@every
def test_orders_are_integers_of_at_least_zero(make, value):
    with pytest.raises(ValueError, match=rf"order_in must be an integer of at least 0, got {value!r}"):
        make(order_in=value)
    change = {"orders": (2, value)} if make in (encoder, mlp) else {"order_out": value}
    with pytest.raises(ValueError, match=rf"order(_out|s\[1\]) must be an integer of at least 0, got {value!r}"):
        make(**change)


@every
class TestSelections:
    def test_unknown_names(self, make):
        with pytest.raises(
            ValueError,
            match=r"unknown class selection 'local': expected a predicate, or names with commas between, of \['all'",
        ):
            make(classes="local")

    def test_no_selection_at_all(self, make):
        with pytest.raises(TypeError, match="class selection must be a name, a predicate or classes, got int"):
            make(classes=3)

    def test_classes_of_other_orders(self, make):
        with pytest.raises(ValueError, match="classes must belong to order 2 -> 2, got"):
            make(classes=classes(1, 1))

    def test_nothing_left(self, make):
        with pytest.raises(ValueError, match="leaves no class of order 2 -> 2"):
            make(classes=lambda cls: False)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: linear(reduce="max"), ValueError, "reduce must be 'sum' or 'mean', got 'max'"),
        (lambda: mlp(reduce="max"), ValueError, "reduce must be 'sum' or 'mean', got 'max'"),
        (
            lambda: attention(kernel=torch.nn.Softmax()),
            TypeError,
            r"kernel must be Softmax\(\), .* or a FeatureKernel, got Softmax\(dim=None\)",
        ),
        (lambda: attention(kernel=Elu(), coupling="loose"), ValueError, "must be 'relaxed' or 'exact', got 'loose'"),
        (lambda: attention(coupling="relaxed"), ValueError, "softmax is exact and normalised: coupling='relaxed' and"),
        (lambda: attention(normalize=False), ValueError, "normalize=False need another kernel"),
        (lambda: encoder(orders=()), ValueError, "orders must name the order after each layer, got none"),
        (lambda: encoder(orders=2), TypeError, r"orders must be a tuple .* got 2; for one layer write orders=\(2,\)"),
        (lambda: mlp(orders="2"), TypeError, "orders must be a tuple with the order after each layer, got '2'"),
        (lambda: mlp(channels=0), ValueError, "^channels must be a positive integer, got 0"),
        (lambda: mlp(orders=()), ValueError, "orders must name the order after each layer, got none"),
        (lambda: RandomFeatures(kind="cosine"), ValueError, "kind must be 'relu' or 'softmax', got 'cosine'"),
        (lambda: RandomFeatures(num_features=0), ValueError, "num_features must be a positive integer, got 0"),
        (lambda: RandomFeatures(redraw=-2), ValueError, "redraw must be a positive integer, got -2"),
        (lambda: RandomFeatures(eps=0.0), ValueError, "eps must be positive"),
        (lambda: attention().weights_of(classes(1, 1)[0]), ValueError, "this layer does not use the class"),
    ],
)
def test_bad_settings(call, error, message):
    with pytest.raises(error, match=message):
        call()
