"""Trained models as files that PyTorch runs without this library: programs of ``torch.export``, compiled ones too."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from anyorder.errors import InputError
from anyorder.files import replacing
from anyorder.training.checkpoints import load_model, load_run


def export_program(folder: Path, output: Path, *, compiled: bool = False) -> int:
    """Write the model of a folder as a ``.pt2`` file, compiled for this CPU where asked; returns its size in bytes."""
    if output.suffix != ".pt2":
        raise InputError(f"a program is a .pt2 file, got {output}")
    run, model = load_model(folder)
    module, example = run.task.program(model, load_run(folder)[1])
    program = make_program(module, example)
    with replacing(output) as temporary:
        if compiled:
            _compile(program, temporary)
        else:
            torch.export.save(program, temporary)
    return output.stat().st_size


def make_program(module: nn.Module, example: dict[str, torch.Tensor]) -> ExportedProgram:
    """The program of a module in evaluation mode, for inputs of any length along their first axis."""
    shapes = {name: {0: Dim.DYNAMIC} for name in example}
    with torch.no_grad():
        return torch.export.export(module.eval(), (), example, dynamic_shapes=shapes)


def _compile(program: ExportedProgram, path: Path) -> None:
    from torch._inductor import aoti_compile_and_package
    from torch._inductor.exc import InductorError

    try:
        aoti_compile_and_package(program, package_path=str(path))
    except InductorError as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"PyTorch's compiler cannot compile this model ({reason}): export it with --format pt2") from error
