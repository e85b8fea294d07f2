"""Where the time of a forward pass and of a training step goes, in percent, by kind of operation.

    OMP_NUM_THREADS=1 python benchmarks/profile_steps.py

The models of the benchmarks: runtime, molecules-like, small graphs (32 of 23 nodes) and sets to graphs (8 sets of 50 points
in place of 32). Kinds are those of the operators that the profiler of torch saw, by the time spent in
each itself; "Python" is what no operator accounts for: our code, torch's dispatcher, autograd's own bookkeeping.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

import molecules_like
import set_to_graph
import small_graphs
from anyorder import INTO_NODES, RandomFeatures, collate
from anyorder.bench import barabasi_albert
from anyorder.bench.models import LEAN, HigherOrder, Workload
from shared import parser, show, start

KINDS: dict[str, tuple[str, ...]] = {
    "products": ("mm", "addmm", "bmm", "baddbmm", "addmm_", "linear", "matmul"),
    "attention": ("segment_attention", "segment_attention_backward", "exact_attention", "softmax", "scaled_dot_product"),
    "gathers": ("gather", "index", "scatter", "embedding"),
    "norms": ("layer_norm", "native_layer_norm", "batch_norm"),
    "copies": ("cat", "copy_", "clone", "fill_", "zero_", "empty", "zeros", "contiguous", "stack", "split", "slice"),
}
REST, PYTHON = "element by element", "Python"


def kind_of(name: str) -> str:
    """The kind of an operator by its name.

    >>> kind_of("aten::addmm"), kind_of("anyorder::gather_add"), kind_of("aten::mul")
    ('products', 'gathers', 'element by element')
    """
    short = name.rpartition("::")[2]
    if short in KINDS["products"]:
        return "products"
    return next((kind for kind, words in KINDS.items() if kind != "products" and any(word in short for word in words)), REST)


def shares(call: Callable[[], object], repeats: int) -> dict[str, float]:
    """Percent of the time of a call by kind, and the seconds that it takes without the profiler."""
    for _ in range(2):
        call()
    began = time.process_time()
    for _ in range(repeats):
        call()
    alone = (time.process_time() - began) / repeats
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(repeats):
            call()
        busy = (time.process_time() - cpu) / (time.perf_counter() - wall)  # the profiler counts wall seconds
    spent: Counter[str] = Counter()
    for event in seen.key_averages():
        if "::" in event.key or "anyorder" in event.key:  # not the ranges of the profiler itself
            spent[kind_of(event.key)] += busy * event.self_cpu_time_total / 1e6 / repeats
    total = max(alone, sum(spent.values()))
    found = {kind: 100 * spent[kind] / total for kind in (*KINDS, REST)}
    return {**found, PYTHON: max(0.0, 100 - sum(found.values())), "seconds": alone}


def workloads() -> dict[str, tuple[Workload, int]]:
    """The models on their inputs, and how often each is called."""
    torch.manual_seed(0)
    relaxed = HigherOrder("sparse", RandomFeatures(), "relaxed")
    lean = HigherOrder("sparse", RandomFeatures(), "relaxed", **LEAN)
    into_nodes = HigherOrder("sparse", RandomFeatures(), "relaxed", **INTO_NODES)
    generator = torch.Generator().manual_seed(0)
    sets = [small_graphs.graph(generator) for _ in range(32)]
    small = collate([small_graphs.Features(index, torch.randn(index.num_entries, 32)) for index in sets])
    return {
        "runtime, 10,000 edges": (relaxed.on(barabasi_albert(10_000)), 5),
        "runtime, 10,000 edges, lean": (lean.on(barabasi_albert(10_000)), 5),
        "runtime, 10,000 edges, into nodes": (into_nodes.on(barabasi_albert(10_000)), 10),
        "molecules-like, 256 graphs": (molecules_like.make(("ours", 256, 256, 0.1)), 2),
        "molecules-like, 256 graphs, into nodes": (molecules_like.make(("ours, into nodes", 256, 256, 0.1)), 2),
        "32 small graphs, width 32": (small_graphs.make("ours", small), 20),
        "32 small graphs, width 32, lean": (small_graphs.make("ours, lean", small), 20),
        "32 small graphs, width 32, into nodes": (small_graphs.make("ours, into nodes", small), 20),
        "sets to graphs, kernel": (set_to_graph.make(("kernel", 8, 50)), 2),
        "sets to graphs, softmax": (set_to_graph.make(("softmax", 8, 50)), 2),
    }


def main() -> None:
    options = parser(__doc__ or "").parse_args()
    start(options, "where the time goes, in percent")
    columns = (*KINDS, REST, PYTHON)
    lines: list[tuple[str, ...]] = [("", "", "seconds", *columns)]
    for name, (work, repeats) in workloads().items():
        for what, call in (("forward", work.forward), ("step", work.step)):
            found = shares(call, repeats)
            lines.append((name, what, f"{found['seconds']:.3f}", *(f"{found[kind]:.0f}" for kind in columns)))
    show(lines)


if __name__ == "__main__":
    main()
