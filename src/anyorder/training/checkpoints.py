"""Trained models: weights as safetensors with their configuration beside them; loading runs no code from files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import anyorder
from anyorder.errors import InputError, reading
from anyorder.files import read_sealed_json, write_sealed_json
from anyorder.saving import CONFIG, is_saved_module, load_module
from anyorder.training.config import from_data, to_data
from anyorder.training.run import Run
from anyorder.training.shapes import Shapes
from anyorder.weights import WEIGHTS, check_weights, read_weights, save_weights

LAST = "last.ckpt"
_LARGE = 2**24  # a setting above it needs as many weights
SHIPPED = Path(anyorder.__file__).parent / "checkpoints"


def load(source: str | Path) -> nn.Module:
    """The model of a folder, in evaluation mode: of a training, of ``model.save``, or one that comes with the package.

    >>> type(load("delaunay")).__name__
    'PairEncoder'

    The name of a shipped model may be cut: ``load("delaunay")`` is the first whose name begins so.

    Args:
        source: a folder, or the name of a model that comes with the package.
    """
    folder = shipped(str(source)) or Path(source)
    if is_saved_module(folder):
        return load_module(folder)
    return load_model(folder)[1]


def shipped(name: str) -> Path | None:
    """The folder of a model that comes with the package; None where there is none, or the name is a folder of the user."""
    if Path(name).exists() or not name:
        return None
    found = sorted(path for path in SHIPPED.iterdir() if path.name == name or path.name.startswith(f"{name}-"))
    return found[0] if found else None


def save_config(folder: Path, run: Run, shapes: Shapes) -> None:
    """Write what is needed to rebuild the model.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> save_config(folder, *load_run(shipped("delaunay")))
    >>> load_run(folder) == load_run(shipped("delaunay"))
    True

    Args:
        folder: where to write.
        run: everything that determines a result.
        shapes: what the model must know of the data.
    """
    write_sealed_json(folder / CONFIG, {"run": to_data(run), "shapes": shapes.to_data()})


def save_model(folder: Path, run: Run, model: nn.Module, shapes: Shapes) -> None:
    """Write the weights and what is needed to rebuild the model.

    >>> import tempfile
    >>> folder, source = Path(tempfile.mkdtemp()), shipped("delaunay")
    >>> run, model = load_model(source)
    >>> save_model(folder, run, model, load_run(source)[1])
    >>> sorted(path.name for path in folder.iterdir())
    ['config.json', 'model.safetensors']

    Args:
        folder: where to write.
        run: everything that determines a result.
        model: whose weights.
        shapes: what the model must know of the data.
    """
    save_config(folder, run, shapes)
    save_weights(folder / WEIGHTS, model)


def load_run(folder: Path) -> tuple[Run, Shapes]:
    """The run of a folder and the shapes of its data.

    >>> load_run(shipped("delaunay"))[0].optimiser.name
    'adam'

    Args:
        folder: of a trained model.
    """
    path = Path(folder) / CONFIG
    data = read_sealed_json(path, ("run", "shapes"))
    if "run" not in data or not isinstance(data.get("shapes"), dict):
        raise InputError(f"{path} is not the configuration of a run: expected 'run' and 'shapes'")
    with reading(path):
        run = from_data(data["run"])
    if not isinstance(run, Run):
        raise InputError(f"{path} describes a {type(run).__name__}, expected a Run")
    with reading(path):
        return run, run.task.shapes_type.from_data(data["shapes"])


def load_model(folder: str | Path) -> tuple[Run, nn.Module]:
    """A trained model in evaluation mode, rebuilt from its configuration, with its weights.

    >>> run, model = load_model(shipped("delaunay"))
    >>> model.training
    False

    Args:
        folder: of a trained model: of a run, or one that comes with the package.
    """
    folder = Path(folder)
    if not folder.is_dir():
        names = ", ".join(sorted(path.name for path in SHIPPED.iterdir()))
        raise FileNotFoundError(
            f"{folder} is neither a folder of a trained model nor one that comes with the package: {names}"
        )
    run, shapes = load_run(folder)
    weights = read_weights(folder / WEIGHTS)
    with reading(folder / CONFIG, "a configuration of this model"):
        _check_size(folder / WEIGHTS, weights, run, shapes)
        model = run.model.build(shapes)
    check_weights(folder / WEIGHTS, weights, model)
    model.load_state_dict(weights)
    return run, model.eval()


class _Undrawn(TorchFunctionMode):
    """No numbers are drawn: torch would import its compiler to do so where there are only shapes."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0] if func in (Tensor.normal_, Tensor.uniform_) else func(*args, **kwargs or {})


def _check_size(path: Path, weights: dict[str, Tensor], run: Run, shapes: Shapes) -> None:
    """Refuse a configuration that does not fit the weights before memory is taken for what it describes."""
    layers = getattr(run.model, "layers", 0)
    if isinstance(layers, int) and layers > max(64, len(weights)):
        raise InputError(f"the model has {layers} layers, and {path} only {len(weights)} tensors")
    try:
        with torch.device("meta"), _Undrawn(), warnings.catch_warnings():  # shapes without numbers
            warnings.simplefilter("ignore", UserWarning)  # of layers without channels
            planned = run.model.build(shapes)
    except (RuntimeError, NotImplementedError):  # a model that works with numbers while it is built, or one beyond all sizes
        largest = max(_largest(to_data(run.model)), _largest(shapes.to_data()))
        held = sum(each.numel() for each in weights.values())
        if largest > max(_LARGE, held):
            raise InputError(f"the model has a size of {largest}, and {path} only {held} weights") from None
        return
    check_weights(path, weights, planned)


def _largest(value: Any) -> int:
    """The largest whole number in a configuration."""
    if isinstance(value, dict):
        return max(map(_largest, value.values()), default=0)
    if isinstance(value, list):
        return max(map(_largest, value), default=0)
    return value if isinstance(value, int) else 0
