"""Trained models: weights as safetensors with their configuration beside them; loading runs no code from files.

Weights carry a checksum of their names, shapes and numbers in the header of their file, so that both are written in one
step; files without one are read as they are.
"""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from anyorder.errors import InputError, reading
from anyorder.extras import require
from anyorder.files import read_json, write_bytes, write_json
from anyorder.training.config import from_data, to_data
from anyorder.training.run import Run
from anyorder.training.shapes import Shapes

CONFIG, WEIGHTS, LAST = "config.json", "model.safetensors", "last.ckpt"
CHECKSUM = "sha256"


def load(folder: str | Path) -> nn.Module:
    """The trained model of a folder, in evaluation mode."""
    return load_model(folder)[1]


def save_config(folder: Path, run: Run, shapes: Shapes) -> None:
    """Write what is needed to rebuild the model."""
    write_json(folder / CONFIG, {"run": to_data(run), "shapes": shapes.to_data()})


def save_weights(path: Path, model: nn.Module) -> None:
    """Write the weights of a model."""
    safetensors = require("safetensors.torch", "train")
    weights = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    write_bytes(path, safetensors.save(weights, metadata={CHECKSUM: digest(weights)}))


def save_model(folder: Path, run: Run, model: nn.Module, shapes: Shapes) -> None:
    """Write the weights and what is needed to rebuild the model."""
    save_config(folder, run, shapes)
    save_weights(folder / WEIGHTS, model)


def load_run(folder: Path) -> tuple[Run, Shapes]:
    """The run of a folder and the shapes of its data."""
    path = Path(folder) / CONFIG
    data = read_json(path)
    if not isinstance(data, dict) or "run" not in data or not isinstance(data.get("shapes"), dict):
        raise InputError(f"{path} is not the configuration of a run: expected 'run' and 'shapes'")
    with reading(path):
        run = from_data(data["run"])
    if not isinstance(run, Run):
        raise InputError(f"{path} describes a {type(run).__name__}, expected a Run")
    with reading(path):
        return run, run.task.shapes_type.from_data(data["shapes"])


def load_model(folder: str | Path) -> tuple[Run, nn.Module]:
    """A trained model in evaluation mode, rebuilt from its configuration, with its weights."""
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder of a trained model")
    run, shapes = load_run(folder)
    weights = read_weights(folder / WEIGHTS)
    with reading(folder / CONFIG, "a configuration of this model"):
        _check_size(folder / WEIGHTS, weights, run, shapes)
        model = run.model.build(shapes)
    check_weights(folder / WEIGHTS, weights, model)
    model.load_state_dict(weights)
    return run, model.eval()


def _check_size(path: Path, weights: dict[str, Tensor], run: Run, shapes: Shapes) -> None:
    """Refuse a configuration that does not fit the weights before memory is taken for what it describes."""
    layers = getattr(run.model, "layers", 0)
    if isinstance(layers, int) and layers > max(64, len(weights)):
        raise InputError(f"the model has {layers} layers, and {path} only {len(weights)} tensors")
    try:
        with torch.device("meta"), warnings.catch_warnings():  # shapes without numbers
            warnings.simplefilter("ignore", UserWarning)  # of layers without channels
            planned = run.model.build(shapes)
    except (RuntimeError, NotImplementedError):  # a model that works with numbers while it is built
        return
    check_weights(path, weights, planned)


def load_weights(path: Path, model: nn.Module) -> None:
    """Put the weights of a file into a model; both must have the same names and shapes."""
    weights = read_weights(path)
    check_weights(path, weights, model)
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
