"""Trained models: weights as safetensors with their configuration beside them; loading runs no code from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from anyorder.extras import require
from anyorder.files import read_json, write_bytes, write_json
from anyorder.training.config import from_data, to_data
from anyorder.training.run import Run

CONFIG, WEIGHTS, LAST = "config.json", "model.safetensors", "last.ckpt"


def load(folder: str | Path) -> nn.Module:
    """The trained model of a folder, in evaluation mode."""
    return load_model(folder)[1]


def save_config(folder: Path, run: Run, shapes: dict[str, Any]) -> None:
    """Write what is needed to rebuild the model."""
    write_json(folder / CONFIG, {"run": to_data(run), "shapes": shapes})


def save_weights(path: Path, model: nn.Module) -> None:
    """Write the weights of a model."""
    safetensors = require("safetensors.torch", "train")
    weights = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    write_bytes(path, safetensors.save(weights))


def save_model(folder: Path, run: Run, model: nn.Module, shapes: dict[str, Any]) -> None:
    """Write the weights and what is needed to rebuild the model."""
    save_config(folder, run, shapes)
    save_weights(folder / WEIGHTS, model)


def load_run(folder: Path) -> tuple[Run, dict[str, Any]]:
    """The run of a folder and the shapes of its data."""
    import anyorder.experiments  # registers the configurations of all tasks

    assert anyorder.experiments
    path = Path(folder) / CONFIG
    data = read_json(path)
    if not isinstance(data, dict) or "run" not in data or not isinstance(data.get("shapes"), dict):
        raise ValueError(f"{path} is not the configuration of a run: expected 'run' and 'shapes'")
    try:
        run = from_data(data["run"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(run, Run):
        raise ValueError(f"{path} describes a {type(run).__name__}, expected a Run")
    return run, data["shapes"]


def load_model(folder: str | Path) -> tuple[Run, nn.Module]:
    """A trained model in evaluation mode, rebuilt from its configuration, with its weights."""
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder of a trained model")
    run, shapes = load_run(folder)
    try:
        model = run.model.build(shapes)
    except KeyError as error:
        raise ValueError(f"{folder / CONFIG} does not fit the model: its shapes lack {error}") from error
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
    check_weights(path, weights, model)
    model.load_state_dict(weights)


def check_weights(path: Path, weights: dict[str, Any], model: nn.Module) -> None:
    """Refuse weights of another model."""
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    wrong = sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))
    if wrong:
        raise ValueError(
            f"{path} does not belong to this model: {wrong[0]!r} should be {expected.get(wrong[0], 'absent')}, "
            f"is {found.get(wrong[0], 'absent')} ({len(wrong)} differences)"
        )
