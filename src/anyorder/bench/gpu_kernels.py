"""The GPU kernels compiled ahead of time, on a machine without a GPU: registers, spills and shared memory.

The operators are called as they are, on a small problem on the CPU, and what they would launch is written down and compiled
for a named target; nothing is run.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from anyorder.extras import require
from anyorder.layouts import Queries, Segments
from anyorder.ops.features import FeatureMap, Problem

KERNELS = (
    "forward_groups",
    "backward_groups",
    "absorb_pieces",
    "add_states",
    "answer_pieces",
    "ask_pieces",
    "give_pieces",
)
_OPTIONS = ("num_warps", "maxnreg")
_TYPES = {torch.float32: "fp32", torch.float64: "fp64", torch.bfloat16: "bf16", torch.int64: "i64"}


@dataclass(frozen=True)
class Shape:
    """What kernels are compiled for: a feature map, and the widths of a head."""

    kind: str
    width: int
    width_value: int
    features: int
    dtype: torch.dtype = torch.float32


@dataclass(frozen=True, eq=False)
class Launch:
    """A kernel with the arguments of one call."""

    kernel: str
    function: Any
    arguments: dict[str, Any]
    options: dict[str, Any]


@dataclass(frozen=True)
class Resources:
    """What a compiled kernel takes: registers of a thread, bytes that it spills, bytes of shared memory of a program."""

    kernel: str
    registers: int
    spilled: int
    shared: int
    warps: int


def launches(shape: Shape) -> list[Launch]:
    """What the forward and backward pass of an operator launch, one of each kernel."""
    triton, blocks = _modules()
    found: dict[str, Launch] = {}

    def record(name: str, function: Any) -> Any:
        def launch(*arguments: Any, **named: Any) -> None:
            options: dict[str, Any] = {key: named.pop(key) for key in _OPTIONS if key in named}
            given = {**dict(zip(function.arg_names, arguments, strict=False)), **named}
            found.setdefault(name, Launch(name, function, given, options))

        return _Indexed(launch)

    problem, made = _problem(shape)
    with ExitStack() as patches:
        for name in KERNELS:
            patches.enter_context(patch.object(blocks, name, record(name, getattr(blocks, name))))
        patches.enter_context(patch.object(triton, "PIECE", 16))  # so that groups are cut, too
        triton.forward(problem, *made[:2])
        triton.backward(problem, *made[:2], *map(torch.ones_like, made[:2]), made[2:])
    return [found[name] for name in KERNELS]


def compiled(launch: Launch, capability: int) -> Resources:
    """Compile for a GPU of a compute capability, such as 80 or 90."""
    compiler = require("triton.compiler", "dev")
    target = require("triton.backends.compiler", "dev").GPUTarget("cuda", capability, 32)
    constants, signature = {}, {}
    for name, parameter in zip(launch.function.arg_names, launch.function.params, strict=True):
        value = launch.arguments[name]
        if parameter.is_constexpr or (isinstance(value, int) and value == 1):
            constants[name], signature[name] = value, "constexpr"
        else:
            signature[name] = f"*{_TYPES[value.dtype]}" if isinstance(value, torch.Tensor) else "i32"
    source = compiler.ASTSource(launch.function, signature, constants)
    with warnings.catch_warnings():  # of Triton, about its defaults
        warnings.simplefilter("ignore")
        made = compiler.compile(source, target=target, options=launch.options)
    registers, spilled = _assembled(made.asm["ptx"], capability)
    return Resources(launch.kernel, registers, spilled, made.metadata.shared, made.metadata.num_warps)


def _assembled(text: str, capability: int) -> tuple[int, int]:
    """Registers and spilled bytes, as the assembler that comes with Triton says."""
    assembler = require("triton.backends.nvidia.compiler", "dev").get_ptxas(capability).path
    target = re.search(r"^\.target (\w+)", text, re.MULTILINE)
    assert target is not None, "PTX names its target"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(text)
        command = [str(assembler), "-v", f"--gpu-name={target[1]}", str(source), "-o", str(source.with_suffix(".cubin"))]
        said = subprocess.run(command, capture_output=True, text=True).stderr
    registers = re.search(r"Used (\d+) registers", said)
    stored = re.search(r"(\d+) bytes spill stores", said)
    if registers is None or stored is None:
        raise RuntimeError(f"the assembler did not say what a kernel takes: {said[:200]!r}")
    return int(registers[1]), int(stored[1])


class _Indexed:
    """A kernel that is launched on a grid."""

    def __init__(self, launch: Any) -> None:
        self.launch = launch

    def __getitem__(self, grid: Any) -> Any:
        return self.launch


def _modules() -> tuple[Any, Any]:
    require("triton", "dev")
    from anyorder.ops import segment_blocks, segment_triton

    return segment_triton, segment_blocks


def _problem(shape: Shape) -> tuple[Problem, tuple[torch.Tensor, ...]]:
    """Three groups, one of them long, two classes and heads; and room for what is computed."""
    group = torch.tensor([0, 0, 1, *[2] * 40])
    asked = Segments.build(group, 3)
    queries = Queries(asked.rows.repeat(2), torch.stack([asked.pointer, asked.pointer + len(group)]))
    draw: Any = {"dtype": shape.dtype}
    query, key = torch.ones(len(group), 2, 2, shape.width, **draw), torch.ones(len(group), 2, 2, shape.width, **draw)
    value = torch.ones(len(group), 2, 2, shape.width_value, **draw)
    directions = torch.ones(shape.features, shape.width, **draw) if shape.features != shape.width else None
    features = FeatureMap(shape.kind, directions, 1e-3)
    problem = Problem(query, key, value, asked, queries, features, True)
    sums, norms = torch.ones_like(value), torch.ones(len(group), 2, 2, **draw)
    return problem, (sums, norms, *map(torch.zeros_like, (query, key, value)))


def report(shapes: list[Shape], capabilities: list[int]) -> Iterator[tuple[Shape, int, Resources]]:
    """Every kernel of every shape, compiled for every target."""
    for shape in shapes:
        for launch in launches(shape):
            for capability in capabilities:
                yield shape, capability, compiled(launch, capability)
