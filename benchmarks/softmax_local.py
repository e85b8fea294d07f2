"""Softmax on large graphs of bounded degree: time and memory of a step against the number of edges.

    OMP_NUM_THREADS=1 python benchmarks/softmax_local.py --edges 1000 10000 100000

The runtime model, Enc_2->2(32, 8, 4) x 4 and Enc_2->0, on a ring in which each node is linked to five on either side, under
random names. Softmax on the classes that share nodes with their output costs as much as there are pairs within a degree.
Global classes are left out, or have a kernel of linear time.
"""

from __future__ import annotations

import torch

from anyorder import Encoder, Features, KernelsByKind, RandomFeatures, Softmax, SparseIndexSet
from anyorder.bench.fits import exponent
from anyorder.bench.models import Workload
from shared import parser, show, start, step_memory, times

SIDE = 5
ROWS = {
    "local classes": {"kernel": Softmax(), "classes": "without global"},
    "local, kernel globally": {"kernel": KernelsByKind(Softmax(), RandomFeatures())},
}


def ring(edges: int) -> SparseIndexSet:
    """Each node is linked to its five next on either side; loops first."""
    nodes = edges // (2 * SIDE)
    if nodes <= 2 * SIDE:
        raise SystemExit(f"error: a ring has at least {2 * SIDE * (2 * SIDE + 1)} edges, got {edges}")
    place = torch.arange(nodes).repeat_interleave(SIDE)
    other = (place + torch.arange(1, SIDE + 1).repeat(nodes)) % nodes
    names = torch.randperm(nodes, generator=torch.Generator().manual_seed(0))
    forward = names[torch.stack([place, other], 1)]
    loops = torch.arange(nodes).repeat(2, 1).T
    return SparseIndexSet(torch.cat([loops, forward, forward.flip(1)]), num_nodes=nodes)


def make(given: tuple[str, int]) -> Workload:
    """A row of the table on a ring of this many edges."""
    name, edges = given
    torch.manual_seed(0)
    widths = {"channels_in": 32, "channels": 32, "channels_out": 32, "heads": 4, "head_channels": 8}
    model = Encoder(order_in=2, orders=(2, 2, 2, 2, 0), **widths, **ROWS[name])  # type: ignore[arg-type]
    index = ring(edges)
    x = Features(index, torch.randn(index.num_entries, 32))
    return Workload(model, lambda: model(x).rows)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--edges", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    chosen = options.parse_args()
    start(chosen, "Softmax on graphs of bounded degree")
    lines = [("", "edges", "forward s", "step s", "step GB")]
    for name in ROWS:
        found = []
        for edges in chosen.edges:
            work = make((name, edges))
            work.step()
            (seconds,) = times([work], chosen)
            found.append(seconds)
            forward, step = (f"{value:.3f}" for value in seconds)
            lines.append((name, f"{edges:,}", forward, step, step_memory(make, (name, edges), (name, 1_000))))
        if len(found) > 1:
            exponents = [exponent(chosen.edges, values) for values in zip(*found, strict=True)]
            lines.append((name, "exponent", *(f"{value:.2f}" for value in exponents), ""))
    show(lines)


if __name__ == "__main__":
    main()
