"""Checks that layers make on their settings and inputs, once, with errors that say what to change."""

from __future__ import annotations

import torch
from torch import Tensor

from anyorder.layouts import Features


def check_positive(**settings: int) -> None:
    """Refuse settings that are not positive integers."""
    for name, value in settings.items():
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise ValueError(f"{name} must be a positive integer, got {value!r}")


def check_orders(**orders: int) -> None:
    """Refuse orders that are not integers of at least 0."""
    for name, value in orders.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f"{name} must be an integer of at least 0, got {value!r}")


def check_input(layer: object, x: Features, order: int, channels: int, weight: Tensor) -> None:
    """Refuse features that a layer was not made for."""
    name = type(layer).__name__
    if not isinstance(x, Features):
        raise TypeError(f"{name} takes Features, got {type(x).__name__}")
    rows = x.rows
    if x.index.order != order:
        raise ValueError(f"{name} takes features of order {order}, got order {x.order}")
    if rows.shape[-1] != channels:
        raise ValueError(f"{name} takes features of {channels} channels, got {x.channels}")
    if rows.device != weight.device:
        raise ValueError(f"{name} has its weights on {weight.device}, got features on {x.device}")
    if rows.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(f"{name} has weights of {weight.dtype}, got features of {x.dtype}")
