"""The runtime model of the paper beside GPS (Performer), forward and training step, in one run.

    OMP_NUM_THREADS=1 python benchmarks/runtime.py --edges 10000 100000
"""

from __future__ import annotations

import argparse
import statistics
import time

import networkx
import torch

from anyorder import Encoder, Features, RandomFeatures, SparseIndexSet


def graph(edges: int, seed: int = 0) -> SparseIndexSet:
    """A Barabasi-Albert graph with 5 links per new node: loops first, then both directions of each edge."""
    nodes = max(7, edges // 10)
    pairs = torch.tensor(list(networkx.barabasi_albert_graph(nodes, 5, seed=seed).edges))
    loops = torch.arange(nodes).repeat(2, 1).T
    return SparseIndexSet(torch.cat([loops, pairs, pairs.flip(1)]), num_nodes=nodes)


def timed(work, repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def gps(layers: int = 4) -> torch.nn.Module:
    from torch_geometric.nn import GINConv, GPSConv

    def update() -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32))

    class Stack(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(
                GPSConv(32, GINConv(update()), heads=4, attn_type="performer") for _ in range(layers)
            )

        def forward(self, x, links, batch):
            for layer in self.layers:
                x = layer(x, links, batch)
            return x

    return Stack()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--coupling", default="relaxed", choices=("relaxed", "exact"))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.manual_seed(0)
    sizes = {"channels": 32, "heads": 4, "head_channels": 8}
    model = Encoder(
        order_in=2, orders=(2, 2, 2, 2, 0), channels_in=32, channels_out=32, kernel=RandomFeatures(), coupling=options.coupling, **sizes
    )
    other = gps()
    print(f"threads {torch.get_num_threads()}, coupling {options.coupling}")
    for edges in options.edges:
        index = graph(edges)
        x = Features(index, torch.randn(index.num_entries, 32))
        links = index.tuples[index.num_nodes :].T.contiguous()
        nodes, batch = torch.randn(index.num_nodes, 32), torch.zeros(index.num_nodes, dtype=torch.int64)
        start = time.perf_counter()
        fresh = SparseIndexSet._trusted(index.tuples, index.num_nodes, index.node_graph, 1)
        for layer in model.layers:
            fresh.plan(fresh.with_order(layer.order_out)).prepare(layer.attention.classes)
        plan = time.perf_counter() - start

        def step(run) -> None:
            run().square().mean().backward()

        with torch.no_grad():
            ours = timed(lambda: model(x).rows, options.repeats)
            theirs = timed(lambda: other(nodes, links, batch), options.repeats)
        ours_step = timed(lambda: step(lambda: model(x).rows), options.repeats)
        theirs_step = timed(lambda: step(lambda: other(nodes, links, batch)), options.repeats)
        print(
            f"{index.num_entries - index.num_nodes:>8} edges: forward {ours:.3f} s, {ours / theirs:.1f} x GPS ({theirs:.4f} s); "
            f"step {ours_step:.3f} s, {ours_step / theirs_step:.1f} x GPS ({theirs_step:.4f} s); plan {plan:.4f} s, {plan / ours:.2f} of a forward"
        )


if __name__ == "__main__":
    main()
