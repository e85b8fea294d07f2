"""The weights of the playground: the shipped models, and an encoder of order 2 with random weights."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

import anyorder
from anyorder import Encoder
from anyorder.training.web import export_web, web_script

SHIPPED = Path(anyorder.__file__).parent / "checkpoints"
MODELS = ("delaunay-1-ours", "delaunay-2-s2g")


def scripts() -> dict[str, str]:
    """Path below playground/weights/ to a script."""
    made = {"graph.js": web_script("graph", graph_model())}
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            export_web(SHIPPED / name, Path(folder) / "model.js", name)
            made[f"{name}.js"] = (Path(folder) / "model.js").read_text(encoding="utf-8")
    return made


def graph_model() -> Encoder:
    """An encoder from graphs to numbers of nodes, always the same."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Encoder(
            order_in=2, orders=(2, 2, 1), channels_in=2, channels=8, channels_out=1, heads=2, head_channels=4
        ).eval()
