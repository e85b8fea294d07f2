"""A dense batch from sets to graphs: a training step beside its own matrix products, with softmax and with a kernel.

    OMP_NUM_THREADS=1 python benchmarks/set_to_graph.py

Batch 32 of n = 50 points: Enc_1->1(256, 64, 4) x 5, Enc_1->2(256, 64, 4), MLP(2, 256, 1), cross-entropy over all pairs. The
products are those that ran, timed alone on the same shapes. Those of attention run inside operators and are timed as plain
batched products: the ratio with these counts all the products that the model consists of.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from anyorder import DenseIndexSet, Encoder, Features, RandomFeatures, Softmax
from anyorder.bench.layer import compare, list_products, report
from anyorder.bench.models import Workload
from anyorder.layers import Kernel
from shared import parser, start, step_memory

KERNELS: dict[str, Kernel] = {"softmax": Softmax(), "kernel": RandomFeatures()}


class SetToGraph(nn.Module):
    """Encoder layers from points to pairs, and an MLP on each pair."""

    def __init__(self, kernel: str) -> None:
        super().__init__()
        self.encoder = Encoder(
            order_in=1,
            orders=(1, 1, 1, 1, 1, 2),
            channels_in=2,
            channels=256,
            channels_out=None,
            heads=4,
            head_channels=64,
            kernel=KERNELS[kernel],
            dropout=0.1,
        )
        self.head = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, x: Features) -> Tensor:
        pairs = self.encoder(x, target=x.index.with_order(2))
        return self.head(pairs.rows).squeeze(1)


def make(given: tuple[str, int, int]) -> Workload:
    """The model and a batch of random points with random edges."""
    kernel, sets, points = given
    torch.manual_seed(0)
    model = SetToGraph(kernel)
    index = DenseIndexSet(1, torch.ones(sets, points, dtype=torch.bool))
    x = Features(index, torch.rand(sets, points, 2))
    edges = (torch.rand(sets * points * points) < 0.1).float()
    return Workload(model, lambda: model(x), lambda logits: binary_cross_entropy_with_logits(logits, edges))


def run(options: argparse.Namespace) -> None:
    found, memory = [], {}
    for kernel in options.kernels:
        given = (kernel, options.sets, options.points)
        work = make(given)
        found.append(compare(kernel, work.step, clock=options.clock))
        memory[kernel] = step_memory(make, given, (kernel, 2, 4))
        if options.products:
            print(f"\nmatrix products with {kernel}\n{list_products(found[-1].products)}")
    print(f"\n{report(found)}")
    print("peak memory of a step: " + ", ".join(f"{kernel} {gigabytes} GB" for kernel, gigabytes in memory.items()))


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--sets", type=int, default=32)
    options.add_argument("--points", type=int, default=50)
    options.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    options.add_argument("--products", action="store_true", help="list the products")
    chosen = options.parse_args()
    start(chosen, f"Training step, {chosen.sets} sets of {chosen.points} points")
    run(chosen)


if __name__ == "__main__":
    main()
