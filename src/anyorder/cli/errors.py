"""Errors of a command: what the user can do something about in one line, what nobody expected with its traceback."""

from __future__ import annotations

import dis
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from anyorder.errors import InputError, printable
from anyorder.training.processes import PeerLost
from anyorder.training.registry import homes, tables

_TRAIN_EXTRA = ("lightning", "safetensors", "sklearn", "tensorboard")
_EXPECTED = (ValueError, TypeError, FloatingPointError)


def report(error: Exception, *, with_traceback: bool = False) -> int:
    """Print an error and return the exit code; the traceback of an unexpected one goes to a file that is named."""
    if with_traceback:
        traceback.print_exception(error)
    elif is_expected(error):
        print(f"error: {printable(explained(error))}", file=sys.stderr)
    else:
        text = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        print(f"unexpected error: {printable(text)}\nThis is a bug. Traceback: {_write_crash(error)}", file=sys.stderr)
    return 1


def is_expected(error: Exception) -> bool:
    """Whether a check of ours, the system or a missing library refuses something; everything else is a bug."""
    if isinstance(error, ModuleNotFoundError):
        return (error.name or "").partition(".")[0] not in _packages()
    if isinstance(error, (InputError, OSError, PeerLost)):
        return True
    return isinstance(error, _EXPECTED) and _raised_on_purpose(error.__traceback__)


def explained(error: Exception) -> str:
    """The text of an error, for a user."""
    if isinstance(error, ModuleNotFoundError) and error.name in _TRAIN_EXTRA:
        return f"{error.name} is needed here and is not installed: pip install 'anyorder[train]'"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.strerror}: {error.filename}"
    return str(error) or type(error).__name__


def _raised_on_purpose(trace: TracebackType | None) -> bool:
    """Whether the error comes from a ``raise`` of this package or of a registered experiment."""
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    module = str(trace.tb_frame.f_globals.get("__name__", ""))
    last = next((step for step in dis.get_instructions(trace.tb_frame.f_code) if step.offset == trace.tb_lasti), None)
    return module.partition(".")[0] in _packages() and last is not None and last.opname == "RAISE_VARARGS"


def _packages() -> set[str]:
    """The top packages of all experiments."""
    return {"anyorder", *(module.partition(".")[0] for module in (*tables().values(), *homes().values()))}


def _write_crash(error: Exception) -> Path:
    name = f"anyorder-crash-{datetime.now(UTC):%Y%m%d-%H%M%S}-"
    command = " ".join(sys.argv)
    with tempfile.NamedTemporaryFile("w", prefix=name, suffix=".txt", delete=False, encoding="utf-8") as file:
        file.write(f"{command}\n\n{''.join(traceback.format_exception(error))}")
    return Path(file.name)
