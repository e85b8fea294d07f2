"""The GPU kernels, compiled for machines that are not here: registers, spills and shared memory of every kernel.

    python benchmarks/gpu_kernels.py --targets 80 90

Widths are those of the recipes. Nothing is run: a GPU is not needed. `benchmarks/gpu.py` measures on one.
"""

from __future__ import annotations

import argparse

from anyorder.bench.gpu_kernels import Shape, report
from shared import show

# heads of molecules, chains, sets and tuples with their features, and of hypergraphs and graphs
SHAPES = [
    *(Shape("relu", width, width, features) for width, features in ((8, 17), (16, 44), (16, 128), (25, 80), (32, 111))),
    Shape("relu", 64, 64, 266),
    *(Shape("elu", width, value, width) for width, value in ((4, 16), (8, 8))),
]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--targets", type=int, nargs="+", default=[80, 90], metavar="CC", help="compute capabilities")
    lines = [("features", "head", "kernel", "target", "registers", "spilled bytes", "shared bytes", "warps")]
    for shape, target, found in report(SHAPES, options.parse_args().targets):
        widths = f"{shape.width}, {shape.width_value}"
        numbers = map(str, (found.registers, found.spilled, found.shared, found.warps))
        lines.append((f"{shape.kind} {shape.features}", widths, found.kernel, f"sm_{target}", *numbers))
    show(lines)


if __name__ == "__main__":
    main()
