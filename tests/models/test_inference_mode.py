"""Index sets that were used in inference mode first are trained with later."""

from __future__ import annotations

import pytest
import torch

from anyorder import Elu, Encoder, RandomFeatures, Softmax
from anyorder.testing import random_features

KERNELS = {
    "softmax": {"kernel": Softmax()},
    "relaxed": {"kernel": RandomFeatures()},
    "exact": {"kernel": Elu(), "coupling": "exact"},
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("order", [1, 2])
def test_plans_of_a_prediction_serve_a_training(order, kernel):
    x = random_features(order, channels=3, num_nodes=5, num_graphs=2, density=0.6)
    sizes = {"channels_in": 3, "channels": 8, "channels_out": 1, "heads": 2, "head_channels": 4}
    model = Encoder(order_in=order, orders=(order, 1), **sizes, **KERNELS[kernel]).double()
    with torch.inference_mode():
        before = model(x).values
    after = model(x).values
    after.sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())
    torch.testing.assert_close(after.detach(), before.clone())
