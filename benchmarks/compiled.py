"""What ``torch.compile`` gains and costs for whole models: the first steps, cold and warm, and those after.

    OMP_NUM_THREADS=1 python benchmarks/compiled.py

Enc_2->2(32) x 4 and Enc_2->0 with heads of 8 channels, ReLU features, on one graph of 23 nodes, on batches of 32 of
them and on 10,000 edges. Compiled as a whole (``fullgraph=True``), for one batch (fixed) or for batches that differ in
all sizes (changing). *cold* is the first step with an empty cache of PyTorch's compiler, *warm* with one that another
process filled; of changing sizes the first three steps, for each may make a graph. Each line is a process of its own,
in which compiled and plain steps take turns afterwards. Index sets are prepared beforehand, as a data loader does. CPU
seconds, with those of the compiler's processes.

What a program of ``torch.export`` takes, as it is and compiled ahead of time, beside the model in Python, on sets of points:

    OMP_NUM_THREADS=1 python benchmarks/compiled.py --programs
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import anyorder
from anyorder import INTO_NODES, Encoder, Features, RandomFeatures, SparseIndexSet, collate
from anyorder.bench import alternate, barabasi_albert
from anyorder.bench.fits import aligned
from anyorder.ops.backends import wait_for_loops
from small_graphs import graph

INPUTS = ("1 graph", "32 graphs", "10,000 edges")
MODELS: dict[str, dict[str, Any]] = {"full": {}, "into nodes": INTO_NODES}
SIZES = ("fixed", "changing")
CHANNELS, STEPS = 32, 3


def batches(what: str, sizes: str) -> list[SparseIndexSet]:
    """Index sets of the steps; those of changing sizes have other numbers of nodes and tuples, and of graphs if several."""
    drawn = torch.Generator().manual_seed(0)
    if what == "10,000 edges":
        return [barabasi_albert(10_000 + (30 * n if sizes == "changing" else 0), seed=n) for n in range(8)]
    count = 1 if what == "1 graph" else 32
    made = []
    for n in range(8):
        more = n if sizes == "changing" else 0
        indices = [graph(drawn) for _ in range(count + more)]
        made.append(collate([Features(index, torch.ones(index.num_entries, 1)) for index in indices]).index)
    return made if sizes == "changing" else made[:1] * 8


def cpu() -> float:
    """CPU seconds of this process and of those it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def measure(what: str, name: str, sizes: str) -> list[float]:
    """Seconds of the first steps, then the medians of a compiled and a plain forward pass and step."""
    torch.manual_seed(0)
    wait_for_loops()
    shape = {"channels_in": CHANNELS, "channels": CHANNELS, "channels_out": 1, "heads": 4, "head_channels": 8}
    model = Encoder(order_in=2, orders=(2,) * 4 + (0,), kernel=RandomFeatures(), **shape, **MODELS[name])
    given = [Features(index, torch.randn(index.num_entries, CHANNELS)) for index in batches(what, sizes)]
    for x in given:
        model.prepare(x.index)
        step(model, x)  # loops are there, so that only PyTorch's compiler is waited for
    fast = torch.compile(model, fullgraph=True)
    first = []
    for x in given[:STEPS]:
        start = cpu()
        step(fast, x)
        first.append(cpu() - start)
    for x in given:
        step(fast, x)
        forward(fast, x)
    found = alternate([lambda f=f, m=m: [f(m, x) for x in given] for f in (forward, step) for m in (fast, model)], rounds=5)
    return [*first, *(part.cpu / len(given) for part in found)]


def forward(model: nn.Module, x: Features) -> None:
    with torch.no_grad():
        model(x)


def step(model: nn.Module, x: Features) -> None:
    model(x).values.sum().backward()


def in_a_process(*line: str) -> list[float]:
    """What a new process measures, with an empty cache of PyTorch's compiler where the folder of it is new."""
    ended = subprocess.run([sys.executable, __file__, "--one", *line], check=True, stdout=subprocess.PIPE, text=True)
    return [float(number) for number in ended.stdout.split("\n")[-2].split()]


def programs(points: int, rounds: int) -> None:
    """Print the milliseconds of an answer for one set."""
    from anyorder.training.checkpoints import load_model, load_run, shipped
    from anyorder.training.program import export_program

    rows: dict[str, Callable[[], Any]] = {}
    with tempfile.TemporaryDirectory() as place:
        given = torch.rand(points, 2, generator=torch.Generator().manual_seed(0))
        for name, title in (("delaunay-1", "ours"), ("delaunay-2", "S2G")):
            folder = shipped(name)
            assert folder is not None
            for kind in ("pt2", "aoti"):
                path = Path(place) / f"{name}-{kind}.pt2"
                export_program(folder, path, compiled=kind == "aoti")
                program = (
                    torch._inductor.aoti_load_package(str(path)) if kind == "aoti" else torch.export.load(path).module()
                )
                rows[f"{title}, {kind}"] = lambda program=program: program(points=given)  # type: ignore[misc]
            run, model = load_model(folder)
            module, _ = run.task.program(model.eval(), load_run(folder)[1])
            rows[f"{title}, Python"] = lambda module=module: module(points=given)  # type: ignore[misc]
        with torch.inference_mode():
            times = alternate([*rows.values()], rounds=rounds)
    print(aligned([(f"{points} points", "ms"), *((row, f"{1000 * t.cpu:.1f}") for row, t in zip(rows, times, strict=True))]))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", nargs="+", choices=INPUTS, default=INPUTS)
    parser.add_argument("--models", nargs="+", choices=[*MODELS], default=[*MODELS])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--programs", action="store_true", help="programs of the shipped models instead")
    parser.add_argument("--points", type=int, default=50, help="of a set, with --programs (default: 50)")
    parser.add_argument("--rounds", type=int, default=10, help="with --programs (default: 10)")
    parser.add_argument("--one", nargs=3, metavar=("INPUT", "MODEL", "SIZES"), help="measure in this process")
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    if options.one:
        print(*measure(*options.one))
        return
    print(f"CPU time, {torch.get_num_threads()} threads, torch {torch.__version__}, anyorder {anyorder.__version__}\n")
    if options.programs:
        programs(options.points, options.rounds)
        return
    lines = [("input", "model", "sizes", "cold s", "warm s", "forward ms", "compiled", "step ms", "compiled")]
    for what in options.inputs:
        for name in options.models:
            for sizes in options.sizes:
                with tempfile.TemporaryDirectory() as cache:
                    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cache
                    cold, warm = (in_a_process(what, name, sizes) for _ in range(2))
                count = 1 if sizes == "fixed" else STEPS
                first = [f"{sum(found[:count]):.1f}" for found in (cold, warm)]
                fast_forward, plain_forward, fast_step, plain_step = (f"{1000 * t:.1f}" for t in warm[STEPS:])
                lines.append((what, name, sizes, *first, plain_forward, fast_forward, plain_step, fast_step))
                print(aligned([lines[0], lines[-1]]), flush=True)
    print(f"\n{aligned(lines)}")


if __name__ == "__main__":
    main()
