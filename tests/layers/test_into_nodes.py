"""Attention into nodes alone: the classes whose outputs name one node, and what edges learn of them."""

from __future__ import annotations

import pytest
import torch

from anyorder import (
    INTO_NODES,
    Elu,
    Encoder,
    EncoderLayer,
    EquivariantAttention,
    Features,
    RandomFeatures,
    Softmax,
    SparseIndexSet,
)
from anyorder.testing import assert_equivariant, random_features

SIZES = {"channels": 4, "heads": 2, "head_channels": 2}
KERNELS = {
    "softmax": {"kernel": Softmax()},
    "relaxed": {"kernel": RandomFeatures(num_features=4)},
    "exact": {"kernel": Elu(), "coupling": "exact"},
}


def _x(order: int) -> Features:
    generator = torch.Generator().manual_seed(5)
    return random_features(order, channels=4, num_nodes=5, num_graphs=2, density=0.6, generator=generator)


@pytest.mark.parametrize("sharing", ["none", "keys and queries"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("order", [2, 3])
def test_nodes_receive_what_they_do_in_the_full_layer_and_others_nothing(order, kernel, sharing):
    torch.manual_seed(0)
    x, options = _x(order), {"order_in": order, "order_out": order, "sharing": sharing, **SIZES, **KERNELS[kernel]}
    full = EquivariantAttention(**options).double()
    part = EquivariantAttention(**options, classes="into nodes").double()
    assert len(part.classes) < len(full.classes)
    with torch.no_grad():
        for cls in part.classes:
            given = full.weights_of(cls)
            for name, weight in part.weights_of(cls).items():
                weight.copy_(given[name])
        for name, buffer in part.named_buffers():
            buffer.copy_(full.get_buffer(name))
    nodes = (x.index.tuples == x.index.tuples[:, :1]).all(1)
    assert 0 < int(nodes.sum()) < len(nodes)
    made = part(x).rows
    torch.testing.assert_close(made[nodes], full(x).rows[nodes], atol=1e-12, rtol=1e-10)
    assert not made[~nodes].any()


@pytest.mark.parametrize("order", [2, 3])
def test_is_equivariant(order):
    layer = EncoderLayer(order_in=order, order_out=order, **SIZES, kernel=Elu(), **INTO_NODES).double()
    assert_equivariant(layer, _x(order))


def test_an_edge_learns_of_distant_nodes_through_its_own():
    torch.manual_seed(0)
    model = Encoder(order_in=2, orders=(2,), channels_in=1, channels_out=2, kernel=Elu(), **SIZES, **INTO_NODES).double()
    pairs = torch.tensor([[0, 0], [1, 1], [2, 2], [3, 3], [0, 1], [2, 3]])
    x = Features(SparseIndexSet(pairs, num_nodes=4), torch.arange(6.0, dtype=torch.float64).view(-1, 1))
    changed = x.rows.clone()
    changed[3] += 1  # a node in which the first edge does not end
    assert (model(x.with_rows(changed)).rows[4] - model(x).rows[4]).abs().max() > 1e-6
