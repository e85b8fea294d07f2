"""Time and memory of layers of order k on all tuples of distinct nodes, forward and backward, for a pair of graphs.

    python benchmarks/orders.py 4 16 25 29 35

Each size runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import torch

from anyorder.experiments.expressivity.models import OrderMLP, Width
from anyorder.experiments.expressivity.pairs import skip_links


def measure(order: int, size: int) -> str:
    config = OrderMLP(order=order, layers=2, channels=4)
    torch.manual_seed(0)
    model = config.build(Width(16)).double()
    model(config.inputs([skip_links(8, 3)], torch.float64)).sum().backward()  # kernels are compiled or loaded now
    began = time.process_time()
    tuples = 0
    for skip in (2, 3):
        x = config.inputs([skip_links(size, skip)], torch.float64)
        model(x).square().sum().backward()
        tuples = x.index.num_entries
    seconds, peak = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    per_million = 1e6 * seconds / (2 * tuples)
    return f"{order:>5} {size:>6} {tuples:>12,} {seconds:>8.1f} s {per_million:>10.1f} s {peak:>6.2f} GB"


def main(order: int, sizes: list[int]) -> None:
    print("order  nodes       tuples   a pair   per million    peak")
    for size in sizes:
        command = [sys.executable, __file__, "--one", str(order), str(size)]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip("\n"), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(measure(int(sys.argv[2]), int(sys.argv[3])))
    else:
        main(int(sys.argv[1]), [int(size) for size in sys.argv[2:]])
