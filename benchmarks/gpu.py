"""Segment linear attention on this machine's GPU: the Triton kernels beside plain tensor operations.

    python benchmarks/gpu.py > gpu.json

Run it once on a machine with a GPU and send us what it prints: times, agreement with float64 and memory, as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import torch

from anyorder.layouts import Queries, Segments
from anyorder.ops.backends import use_backend
from anyorder.ops.features import FeatureMap
from anyorder.ops.segment import segment_attention


def problem(entries: int, width: int, features: int, dtype: torch.dtype) -> tuple[list[torch.Tensor], Any]:
    """Keys and queries of ``entries / 10`` groups and of one that holds all, four heads."""
    generator = torch.Generator().manual_seed(0)
    group = torch.randint(entries // 10, (entries,), generator=generator)
    keys = Segments.build(group, entries // 10)
    queries = Queries(keys.rows, keys.pointer[None])
    tensors = [torch.randn(entries, 1, 4, width, generator=generator).to("cuda", dtype).requires_grad_() for _ in range(3)]
    directions = torch.randn(features, width, generator=generator).to("cuda", dtype)
    moved = Segments(keys.rows.cuda(), keys.pointer.cuda()), Queries(queries.rows.cuda(), queries.pointer.cuda())
    return tensors, (*moved, FeatureMap("relu", directions, 1e-3), True)


def milliseconds(call: Callable[[], Any], rounds: int) -> float:
    """The median of some calls, on the clock of the device."""
    for _ in range(3):
        call()
    took = []
    for _ in range(rounds):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        took.append(begin.elapsed_time(end))
    return sorted(took)[rounds // 2]


def measured(entries: int, width: int, features: int, dtype: torch.dtype, rounds: int) -> dict[str, Any]:
    """Times and peak memory of both, and how far the kernels are from float64."""
    exact, rest = problem(entries, width, features, torch.float64)
    with use_backend("reference"):
        right = segment_attention(*exact, *rest)[0].detach()
    tensors, given = problem(entries, width, features, dtype)
    found: dict[str, Any] = {"entries": entries, "width": width, "features": features, "dtype": str(dtype)}
    for backend in ("triton", "reference"):
        with use_backend(backend):
            torch.cuda.reset_peak_memory_stats()
            out = segment_attention(*tensors, *given)[0]
            out.sum().backward()
            found[f"{backend} error"] = float((out.double() - right).abs().max() / right.abs().max())
            found[f"{backend} forward ms"] = milliseconds(lambda: segment_attention(*tensors, *given), rounds)
            found[f"{backend} step ms"] = milliseconds(
                lambda: segment_attention(*tensors, *given)[0].sum().backward(), rounds
            )
            found[f"{backend} GB"] = torch.cuda.max_memory_allocated() / 1e9
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--entries", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    options.add_argument("--rounds", type=int, default=20)
    chosen = options.parse_args()
    if not torch.cuda.is_available():
        sys.exit("there is no GPU that torch can use on this machine; benchmarks/gpu_kernels.py needs none")
    cases = [
        measured(entries, width, features, dtype, chosen.rounds)
        for entries in chosen.entries
        for width, features in ((8, 17), (16, 44), (32, 111), (64, 266))
        for dtype in (torch.float32, torch.bfloat16)
    ]
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
