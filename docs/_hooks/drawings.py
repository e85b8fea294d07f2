"""Drawings that the package makes of itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

from anyorder.algebra import select
from anyorder.algebra.draw import draw_classes
from anyorder.algebra.draw_attention import draw_attention


def attention(order_in: int, order_out: int) -> bytes:
    """The queries and keys of a layer as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        return draw_attention(select(order_in, order_out), Path(folder) / "attention.svg").read_bytes()


def classes(order_in: int, order_out: int) -> bytes:
    """The classes of a layer as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        return draw_classes(select(order_in, order_out), Path(folder) / "classes.svg").read_bytes()
