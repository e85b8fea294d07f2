"""Training states for resuming: written in one step, tensors and plain data only, read without running code."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins.io import CheckpointIO
from torch import nn

from anyorder.files import write_bytes
from anyorder.training.checkpoints import check_weights

MARK = "anyorder"


class AtomicCheckpointIO(CheckpointIO):
    """States as Lightning makes them, whole or not at all."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        buffer = io.BytesIO()  # torch.save into a full disk fails with an error that does not say so
        torch.save(checkpoint, buffer)
        write_bytes(Path(path), buffer.getvalue())

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
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ValueError(f"{path} is not a whole training state of anyorder and was not read: {reason}") from error
    if not isinstance(state, dict) or any(key not in state for key in ("state_dict", "loops", "callbacks", MARK)):
        raise ValueError(f"{path} is not a training state of anyorder: remove it to start the run anew")
    return state


def check_state(path: Path, state: dict[str, Any], model: nn.Module) -> None:
    """Refuse the state of another model before training begins."""
    prefix = "model."
    weights = {name.removeprefix(prefix): tensor for name, tensor in state["state_dict"].items()}
    check_weights(path, weights, model)
