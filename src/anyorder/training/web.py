"""Trained models for web pages: one script that holds settings, classes and weights, which a page loads without a server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from anyorder.algebra import EquivalenceClass, SetPartition, set_partitions
from anyorder.errors import InputError
from anyorder.files import write_bytes
from anyorder.layers import EncoderLayer, EquivariantAttention, EquivariantLinear, Softmax
from anyorder.models import Encoder
from anyorder.training.checkpoints import load_model, load_run
from anyorder.training.config import to_data

KINDS = {"PairEncoder": "PairEncoder", "SetToGraphNetwork": "SetToGraph", "Encoder": "Encoder"}
"""Classes of models that the runtime in JavaScript knows, and what it calls them."""


def export_web(folder: Path, output: Path, name: str | None = None) -> int:
    """Write the model of a folder as a script; returns its size in bytes."""
    run, model = load_model(folder)
    shapes = load_run(folder)[1].to_data()
    settings = {"model": to_data(run.model), "shapes": shapes}
    text = web_script(name or Path(folder).resolve().name, model, settings)
    write_bytes(output, text.encode())
    return len(text)


def web_script(name: str, model: nn.Module, settings: Mapping[str, Any] | None = None) -> str:
    """The script of a model: it assigns ``anyorderModels[name]``.

    >>> tiny = Encoder(order_in=1, orders=(1,), channels_in=1, channels=2, channels_out=None, heads=1, head_channels=2)
    >>> web_script("tiny", tiny).splitlines()[0]
    '// anyorder-web 1: Encoder'
    """
    found_class = type(model).__name__
    if found_class not in KINDS:
        raise InputError(
            f"models of class {found_class} cannot be exported to a web page, expected one of {', '.join(KINDS)}"
        )
    kind = KINDS[found_class]
    given = dict(settings or {})
    _check_settings(kind, given.get("model", {}))
    tensors, data = _pack(model)
    found = {
        "format": "anyorder-web",
        "version": 1,
        "kind": kind,
        "settings": given,
        "encoders": {path: _encoder(part) for path, part in model.named_modules() if isinstance(part, Encoder)},
        "tensors": tensors,
        "data": data,
    }
    head = f"// anyorder-web 1: {kind}\nglobalThis.anyorderModels = globalThis.anyorderModels || {{}};\n"
    return f"{head}anyorderModels[{json.dumps(name)}] = {json.dumps(found, separators=(',', ':'))};\n"


def _check_settings(kind: str, model: Mapping[str, Any]) -> None:
    """Refuse variants of a model that the runtime does not have."""
    if kind == "SetToGraph" and (model.get("attention") or model.get("basis", "both_ends") != "both_ends"):
        raise InputError(f"only S2G can be exported, got basis {model.get('basis')!r}, attention {model.get('attention')}")


def _pack(model: nn.Module) -> tuple[dict[str, dict[str, Any]], str]:
    """Shapes and offsets by name, and all numbers end to end as base64 of little-endian float32."""
    tensors: dict[str, dict[str, Any]] = {}
    parts, offset = [], 0
    for name, tensor in model.state_dict().items():
        numbers = tensor.detach().cpu().numpy().astype("<f4")
        tensors[name] = {"shape": list(numbers.shape), "offset": offset}
        parts.append(numbers.reshape(-1))
        offset += numbers.size
    joined = np.concatenate(parts) if parts else np.zeros(0, "<f4")
    return tensors, base64.b64encode(joined.tobytes()).decode()


def _encoder(encoder: Encoder) -> dict[str, Any]:
    layers = [_layer(layer) for layer in encoder.layers if isinstance(layer, EncoderLayer)]
    return {"order": encoder.order_in, "project": _linear(encoder.project), "layers": layers}


def _layer(layer: EncoderLayer) -> dict[str, Any]:
    return {
        "orders": [layer.order_in, layer.order_out],
        "residual": layer.residual,
        "norm": isinstance(layer.norm_attention, nn.LayerNorm),
        "attention": _attention(layer.attention),
        "widen": _linear(layer.widen),
        "narrow": _linear(layer.narrow),
    }


def _attention(layer: EquivariantAttention) -> dict[str, Any]:
    for kernel in layer.kernels:
        if not isinstance(kernel, Softmax):
            raise InputError(f"only softmax attention can be exported to a web page, got {kernel}")
    if layer.sharing != "none" or layer.output_rank is not None:
        raise InputError("only attention without shared weights and of whole output matrices can be exported to a web page")
    maps: dict[str, Any] = {"query": layer.query, "key": layer.key, "pointwise": layer.pointwise}
    return {
        "heads": layer.heads,
        "width": layer.head_channels,
        **{role: {name: _classes(part.classes) for name, part in some.items()} for role, some in maps.items()},
        "pooled": [
            {
                **_class(cls),
                "read": layer.reading[cls.source].index(cls),
                "write": layer.writing[cls.target].index(cls),
            }
            for cls in layer.pooled
        ],
    }


def _linear(layer: EquivariantLinear) -> dict[str, Any]:
    return {"classes": _classes(layer.classes), "patterns": [_name(p) for p in set_partitions(layer.order_out)]}


def _classes(some: Iterable[EquivalenceClass]) -> list[dict[str, Any]]:
    return [_class(cls) for cls in some]


def _class(cls: EquivalenceClass) -> dict[str, Any]:
    return {"source": _name(cls.source), "target": _name(cls.target), "matching": [list(pair) for pair in cls.matching]}


def _name(pattern: SetPartition) -> str:
    """As the layers name their weights: the block of each axis."""
    return "p" + "_".join(map(str, pattern.labels))
