"""The front door: ``anyorder train DATA`` says what it takes a file for; files that are not there are named at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from anyorder.errors import InputError, printable
from anyorder.experiments import experiments
from anyorder.peek import FileLook, look
from anyorder.suggest import closest
from anyorder.training.registry import Command, function

_OUTPUTS = ("out", "output", "data_dir", "into", "records")
_READERS = ("train", "predict", "explain")


def with_kind(arguments: Sequence[str]) -> list[str]:
    """The arguments of ``train DATA`` with the kind that the data are taken for; it is said, unless ``--quiet``."""
    given = list(arguments)
    if given[:1] != ["train"] or len(given) < 2 or given[1].startswith("-") or given[1] in _kinds():
        return given
    path = Path(given[1])
    if given[1] in _aliases() and not (path.exists() and _is_alone(given)):
        return given
    if not path.exists():
        close = closest(given[1], _kinds(), cutoff=0.7)
        hint = f"; did you mean {close!r}?" if close else f"; kinds are {', '.join(_kinds())}"
        raise InputError(f"{given[1]!r} is neither a kind of data nor a file or folder{hint}")
    kind, reason = taken_for(look(path), given[2:])
    if "--quiet" not in given:
        print(printable(f"{path} is taken for {kind}: {reason} (say otherwise with `anyorder train KIND {path}`)"))
    return ["train", kind, *given[1:]]


def taken_for(seen: FileLook, options: Sequence[str]) -> tuple[str, str]:
    """The one kind that a file looks like, and why."""
    found = {kind: function(command.sees)(seen, options) for kind, command in _kinds().items() if command.sees}
    reasons = {kind: reason for kind, reason in found.items() if reason}
    if len(reasons) == 1:
        return next(iter(reasons.items()))
    if not reasons:
        what = f"names {list(seen.names)[:12]}" if seen.names else "nothing that a kind of data is known by"
        raise InputError(
            f"{seen.path} has {what}: expected graphs, molecules, sets, tuples or a hypergraph; "
            f"say which with `anyorder train KIND {seen.path}`, KIND one of {', '.join(_kinds())}"
        )
    several = "; or ".join(f"{kind}: {reason}" for kind, reason in reasons.items())
    raise InputError(f"{seen.path} may be {several}: say which with `anyorder train KIND {seen.path}`")


def check_inputs(args: argparse.Namespace) -> None:
    """Refuse files that are not there before anything large is imported."""
    if getattr(args, "command", "") not in _READERS:
        return
    for name, value in vars(args).items():
        if isinstance(value, Path) and name not in _OUTPUTS and not value.exists() and not _is_shipped(name, value):
            raise FileNotFoundError(f"there is no {_what(args.command, name)} {value}")


def _what(command: str, name: str) -> str:
    return "folder of a trained model" if name == "folder" and command != "train" else "file or folder"


def _is_shipped(name: str, value: Path) -> bool:
    import anyorder

    folder = Path(anyorder.__file__).parent / "checkpoints"
    return name == "folder" and any(path.name.startswith(str(value)) for path in folder.iterdir())


def _kinds() -> dict[str, Command]:
    return {
        command.words.removeprefix("train "): command
        for experiment in experiments()
        for command in experiment.commands
        if command.words.startswith("train ")
    }


def _aliases() -> set[str]:
    return {alias for command in _kinds().values() for alias in command.aliases}


def _is_alone(given: Sequence[str]) -> bool:
    """Whether no data follow the second word, so that a folder named like a kind is the data."""
    return len(given) == 2 or given[2].startswith("-")


def said(error: Exception) -> int:
    """An error before there are arguments."""
    print(f"error: {printable(str(error))}", file=sys.stderr)
    return 1
