"""The runtime model of the paper beside GPS (Performer) x 4, forward pass and training step, in one run.

    OMP_NUM_THREADS=1 python benchmarks/runtime.py --edges 10000 100000

Enc_2->2(32, 8, 4) x 4 and Enc_2->0 on a Barabasi-Albert graph: relaxed, exact, and the lean settings of
``anyorder.bench.models``. Beside the times: what building the plan takes, and peak memory of a step, each in a
process of its own.
"""

from __future__ import annotations

import argparse

import torch

from anyorder import INTO_NODES, RandomFeatures
from anyorder.bench import barabasi_albert, planning
from anyorder.bench.models import CHANNELS, LEAN, MODELS, READ_ONCE, HigherOrder, Workload
from shared import parser, show, start, step_memory, times

GPS = "GPS (Performer)"
ROWS = {
    "relaxed": HigherOrder("sparse", RandomFeatures(), "relaxed"),
    "exact": HigherOrder("sparse", RandomFeatures(), "exact"),
    "shared": HigherOrder("sparse", RandomFeatures(), "relaxed", "keys and queries"),
    "lean": HigherOrder("sparse", RandomFeatures(), "relaxed", **LEAN),
    "read once": HigherOrder("sparse", RandomFeatures(), "relaxed", channels_hidden=CHANNELS // 2, **READ_ONCE),
    "into nodes": HigherOrder("sparse", RandomFeatures(), "relaxed", **INTO_NODES),
    "lean, exact": HigherOrder("sparse", RandomFeatures(), "exact", **LEAN),
    GPS: MODELS[GPS],
}


def make(given: tuple[str, int]) -> Workload:
    """A row of the table on a graph of this many edges."""
    name, edges = given
    torch.manual_seed(0)
    return ROWS[name].on(barabasi_albert(edges))


def compare(edges: int, options: argparse.Namespace) -> None:
    """Print the table of one size."""
    graph = barabasi_albert(edges)
    lines = [("", "forward s", "x GPS", "step s", "x GPS", "plan/forward", "step GB")]
    names = tuple(dict.fromkeys((GPS, *options.rows)))
    works, plans = {name: make((name, edges)) for name in names}, {}
    for name, work in works.items():
        ROWS[name].on(barabasi_albert(100), work.model).step()  # compiled before the plan is timed
        with planning() as spent:
            work.forward()
        plans[name] = getattr(spent, options.clock)
    found = dict(zip(names, times(list(works.values()), options), strict=True))
    for name in names:
        ratios = [f"{ours / gps:.1f}" for ours, gps in zip(found[name], found[GPS], strict=True)]
        memory = step_memory(make, (name, edges), (name, 3000)) if options.memory else "-"
        forward, step = (f"{value:.4f}" for value in found[name])
        lines.append((name, forward, ratios[0], step, ratios[1], f"{plans[name] / found[name][0]:.1%}", memory))
    print(f"\n{graph.num_entries - graph.num_nodes:,} directed edges, {graph.num_nodes:,} nodes")
    show(lines)
    if {"relaxed", "exact"} <= set(found):
        ratios = [f"{exact / relaxed:.2f}" for exact, relaxed in zip(found["exact"], found["relaxed"], strict=True)]
        print(f"exact / relaxed: forward {ratios[0]}, step {ratios[1]}")


def hold(edges: int, options: argparse.Namespace) -> None:
    """Print the peak memory of a step alone."""
    lines = [("", "edges", "step GB")]
    lines += [(name, f"{edges:,}", step_memory(make, (name, edges), (name, 3000))) for name in options.rows]
    show(lines)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--edges", type=int, nargs="+", default=[10_000, 100_000])
    options.add_argument("--rows", nargs="+", choices=[*ROWS], default=["relaxed", "exact", "lean"])
    options.add_argument("--no-memory", dest="memory", action="store_false", help="leave out the peak memory")
    options.add_argument("--no-times", dest="times", action="store_false", help="peak memory alone, of the rows")
    chosen = options.parse_args()
    start(chosen, "Runtime model, 32 channels x 4 layers, beside GPS of the same size")
    for edges in chosen.edges:
        compare(edges, chosen) if chosen.times else hold(edges, chosen)


if __name__ == "__main__":
    main()
