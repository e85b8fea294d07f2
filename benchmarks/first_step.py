"""How long the first step of a new head width takes, in a new process: forward and backward pass of the README's model.

    OMP_NUM_THREADS=1 NUMBA_CACHE_DIR=$(mktemp -d) python benchmarks/first_step.py

Each line is a process of its own. Times are CPU time after ``import torch`` and ``import anyorder``, in milliseconds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

KERNELS = ("Softmax()", "RandomFeatures('relu')", "RandomFeatures('softmax')", "Elu()")


def measure(width: int, kernel: str) -> str:
    """The first two steps and the median of twenty more."""
    import torch

    import anyorder

    torch.manual_seed(0)
    edges = torch.tensor([[0, 0], [1, 1], [2, 2], [0, 1], [1, 0], [1, 2], [2, 1]])
    x = anyorder.Features(anyorder.SparseIndexSet(edges, num_nodes=3), torch.randn(7, 5))
    chosen = eval(kernel, vars(anyorder) | {name: getattr(anyorder, name) for name in anyorder.__all__})
    sizes = {"channels_in": 5, "channels": 32, "channels_out": 1, "heads": 4, "head_channels": width}
    model = anyorder.Encoder(order_in=2, orders=(2, 2, 0), kernel=chosen, **sizes)
    times = []
    for _ in range(22):
        start = time.process_time()
        model(x).values.sum().backward()
        times.append(1000 * (time.process_time() - start))
    return f"{width:>5}  {kernel:<26}{times[0]:>9.1f}{times[1]:>9.1f}{sorted(times[2:])[10]:>9.1f}"


def main() -> None:
    """Print a line per width and kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", type=int, nargs="+", default=[5, 8, 13, 16, 64], help="channels of a head")
    parser.add_argument("--one", nargs=2, metavar=("WIDTH", "KERNEL"), help="measure in this process")
    args = parser.parse_args()
    if args.one:
        print(measure(int(args.one[0]), args.one[1]))
        return
    print(f"{'width':>5}  {'kernel':<26}{'first':>9}{'second':>9}{'later':>9}")
    for width in args.widths:
        for kernel in KERNELS:
            subprocess.run([sys.executable, __file__, "--one", str(width), kernel], check=True)


if __name__ == "__main__":
    main()
