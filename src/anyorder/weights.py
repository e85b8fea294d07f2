"""Weights of modules as safetensors, with a checksum of their names, shapes and numbers in the header of the file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from anyorder.errors import InputError, reading
from anyorder.extras import require
from anyorder.files import write_bytes

WEIGHTS = "model.safetensors"
CHECKSUM = "sha256"


def save_weights(path: Path, model: nn.Module) -> None:
    """Write the weights of a model."""
    safetensors = require("safetensors.torch", "train")
    weights = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    write_bytes(path, safetensors.save(weights, metadata={CHECKSUM: digest(weights)}))


def load_weights(path: Path, model: nn.Module, *, cast: bool = False) -> None:
    """Put the weights of a file into a model; both must have the same names and shapes.

    With ``cast`` the model takes the dtypes of the file; without, its own stay.
    """
    put_weights(path, read_weights(path), model, cast=cast)


def put_weights(path: Path, weights: dict[str, Tensor], model: nn.Module, *, cast: bool = False) -> None:
    """Put weights that were read from a file into a model, as ``load_weights`` does."""
    check_weights(path, weights, model)
    if cast:
        for name, tensor in model.state_dict(keep_vars=True).items():
            tensor.data = tensor.data.to(weights[name].dtype)
    model.load_state_dict(weights)


def read_weights(path: Path) -> dict[str, Tensor]:
    """The weights of a file, compared with the checksum that was written with them."""
    safetensors = require("safetensors", "train")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: the run has not written its weights yet")
    with reading(path, "a whole safetensors file"), safetensors.safe_open(path, framework="pt") as file:
        expected = (file.metadata() or {}).get(CHECKSUM)
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
        if expected is not None and expected != digest(weights):
            raise InputError(f"{path} is damaged: its numbers do not have the checksum that was written with them")
        broken = [
            name for name, tensor in weights.items() if tensor.is_floating_point() and not bool(tensor.isfinite().all())
        ]
        if broken:
            raise InputError(f"{path} is damaged or of a failed training: {broken[0]!r} holds numbers that are not finite")
    return weights


def digest(weights: dict[str, Tensor]) -> str:
    """SHA-256 over names, kinds, shapes and numbers, whatever the order of the file."""
    known = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name]
        known.update(f"{name}\n{tensor.dtype}\n{tuple(tensor.shape)}\n".encode())
        known.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return known.hexdigest()


def check_weights(path: Path, weights: dict[str, Any], model: nn.Module) -> None:
    """Refuse weights of another model."""
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    wrong = sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))
    if wrong:
        raise InputError(
            f"{path} does not belong to this model: {wrong[0]!r} should be {expected.get(wrong[0], 'absent')}, "
            f"is {found.get(wrong[0], 'absent')} ({len(wrong)} differences)"
        )
