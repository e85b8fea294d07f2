"""New random directions during training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from anyorder.layers.attention import EquivariantAttention
from anyorder.layers.kernels import RandomFeatures


def redraw_features(module: nn.Module, step: int) -> None:
    """Draw new random directions where the kernel asks for it at this training step; a step always draws the same.

    >>> from anyorder.layers import EquivariantAttention, RandomFeatures
    >>> sizes = {"order_in": 1, "order_out": 1, "channels": 4, "heads": 1, "head_channels": 4}
    >>> layer = EquivariantAttention(**sizes, kernel=RandomFeatures(redraw=2))
    >>> before = layer.directions.clone()
    >>> redraw_features(layer, step=2)
    >>> bool((layer.directions == before).all())
    False

    Args:
        module: a layer or a model.
        step: the number of the training step, from 0 on.
    """
    layers = [layer for layer in module.modules() if isinstance(getattr(layer, "directions", None), Tensor)]
    for number, layer in enumerate(layers):
        drawing = layer.drawing() if isinstance(layer, EquivariantAttention) else {"directions": layer.kernel}
        for name, kernel in drawing.items():
            if isinstance(kernel, RandomFeatures) and kernel.redraw and step > 0 and step % kernel.redraw == 0:
                generator = torch.Generator().manual_seed(step * 65537 + number)
                directions: Any = getattr(layer, name)
                directions.copy_(kernel.draw(directions.shape[1], generator))
