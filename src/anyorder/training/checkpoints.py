"""Checkpoints: written in one step, read without running code; weights as safetensors with their configuration beside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins.io import CheckpointIO
from torch import nn

from anyorder.extras import require
from anyorder.training.config import from_data, to_data
from anyorder.training.files import read_json, replacing, write_json
from anyorder.training.run import Run

CONFIG, WEIGHTS, LAST = "config.json", "model.safetensors", "last.ckpt"


class AtomicCheckpointIO(CheckpointIO):
    """Training states for resuming: tensors and plain data only."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        with replacing(Path(path)) as temporary:
            torch.save(checkpoint, temporary)

    def load_checkpoint(
        self, path: Any, map_location: Any | None = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        return read_state(Path(path))

    def remove_checkpoint(self, path: Any) -> None:
        Path(path).unlink(missing_ok=True)


def read_state(path: Path) -> dict[str, Any]:
    """A training state; refuses files that are damaged or that hold anything but tensors and plain data."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: there is nothing to resume")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(f"{path} is not a whole training checkpoint of anyorder: {error}") from error
    if not isinstance(state, dict) or "state_dict" not in state or "loops" not in state:
        raise ValueError(f"{path} is not a training checkpoint: expected a state with 'state_dict' and 'loops'")
    return state


def save_model(folder: Path, run: Run, model: nn.Module, shapes: dict[str, Any]) -> None:
    """Write the weights and what is needed to rebuild the model."""
    safetensors = require("safetensors.torch", "train")
    write_json(folder / CONFIG, {"run": to_data(run), "shapes": shapes})
    weights = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    with replacing(folder / WEIGHTS) as temporary:
        safetensors.save_file(weights, temporary)


def load_run(folder: Path) -> tuple[Run, dict[str, Any]]:
    """The run of a folder and the shapes of its data."""
    import anyorder.recipes  # registers the configurations of all tasks

    assert anyorder.recipes
    data = read_json(folder / CONFIG)
    if not isinstance(data, dict) or "run" not in data or "shapes" not in data:
        raise ValueError(f"{folder / CONFIG} is not the configuration of a run: expected 'run' and 'shapes'")
    run = from_data(data["run"])
    if not isinstance(run, Run):
        raise ValueError(f"{folder / CONFIG} describes a {type(run).__name__}, expected a Run")
    return run, data["shapes"]


def load_model(folder: str | Path) -> tuple[Run, nn.Module]:
    """A trained model in evaluation mode, rebuilt from its configuration, with its weights."""
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder of a trained model")
    run, shapes = load_run(folder)
    model = run.model.build(shapes)
    load_weights(folder / WEIGHTS, model)
    return run, model.eval()


def load_weights(path: Path, model: nn.Module) -> None:
    """Put the weights of a file into a model; both must have the same names and shapes."""
    safetensors = require("safetensors.torch", "train")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: the run has not written its weights yet")
    try:
        weights = safetensors.load_file(path)
    except Exception as error:
        raise ValueError(f"{path} is not a whole safetensors file: {error}") from error
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    if expected != found:
        wrong = sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))
        raise ValueError(
            f"{path} does not belong to this model: {wrong[0]!r} should be {expected.get(wrong[0], 'absent')}, "
            f"is {found.get(wrong[0], 'absent')} ({len(wrong)} differences)"
        )
    model.load_state_dict(weights)
