"""Training states for resuming: written in one step, tensors and plain data only, read without running code.

A state is the zip file that torch writes, with a checksum of it as the comment of the zip file: both are there or none.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins.io import CheckpointIO
from torch import nn

from anyorder.errors import InputError, reading
from anyorder.files import check_members, write_bytes
from anyorder.weights import check_weights

MARK = "anyorder"
_PARTS = ("state_dict", "loops", "callbacks", MARK)
_SEAL = b"sha256:"


class AtomicCheckpointIO(CheckpointIO):
    """States as Lightning makes them, whole or not at all; one that was ``read`` and checked already is not read again."""

    def __init__(self, read: dict[str, Any] | None = None) -> None:
        self._read = read

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        buffer = io.BytesIO()  # torch.save into a full disk fails with an error that does not say so
        torch.save(checkpoint, buffer)
        write_bytes(Path(path), sealed(buffer.getvalue()))

    def load_checkpoint(
        self, path: Any, map_location: Any | None = None, weights_only: bool | None = None
    ) -> dict[str, Any]:
        read, self._read = self._read, None
        return read_state(Path(path)) if read is None else read

    def remove_checkpoint(self, path: Any) -> None:
        Path(path).unlink(missing_ok=True)


def read_state(path: Path) -> dict[str, Any]:
    """A training state; refuses files that are damaged or that hold anything but tensors and plain data."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: there is nothing to resume")
    with reading(path, "a whole training state of anyorder and was not read"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of damaged headers: what is wrong is said once
        raw = _opened(path.read_bytes())
        check_members(raw)
        try:
            state = torch.load(io.BytesIO(raw), map_location="cpu", weights_only=True)
        except AssertionError as error:  # torch's own word for a damaged pickle
            raise InputError(f"its pickle is damaged: {error}") from error
    known = isinstance(state, dict) and all(isinstance(state.get(key), dict) for key in _PARTS)
    if not known or not isinstance(state.get("global_step"), int):
        raise InputError(f"{path} is not a training state of anyorder: remove it to start the run anew")
    return state


def sealed(raw: bytes) -> bytes:
    """The bytes of a zip file without a comment, with their SHA-256 as its comment."""
    seal = _SEAL + hashlib.sha256(raw).hexdigest().encode()
    return raw[:-2] + len(seal).to_bytes(2, "little") + seal


def _opened(raw: bytes) -> bytes:
    """The bytes before they were sealed, if their checksum is right; states of earlier versions have none."""
    start = len(raw) - len(_SEAL) - 64
    if raw[max(0, start) :][: len(_SEAL)] != _SEAL:
        if _SEAL in raw[-4 * len(_SEAL) - 64 :]:
            raise InputError("its end is damaged")
        return raw
    inner = raw[: start - 2] + b"\0\0"
    if hashlib.sha256(inner).hexdigest().encode() != raw[start + len(_SEAL) :]:
        raise InputError("its bytes do not have the checksum that was written with them")
    return inner


def check_state(path: Path, state: dict[str, Any], model: nn.Module) -> None:
    """Refuse the state of another model before training begins."""
    prefix = "model."
    weights = {name.removeprefix(prefix): tensor for name, tensor in state["state_dict"].items()}
    check_weights(path, weights, model)
