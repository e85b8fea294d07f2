"""Attention from points to pairs that can be sharp: learned features pair by pair and by sums, beside softmax and ReLU.

    OMP_NUM_THREADS=1 python benchmarks/sharp_kernels.py --points 25 50 100 200 400

One layer 1 -> 2 of 128 channels and 4 heads of 32, on sets that have about 10,000 pairs together. The same layer takes
either way, by ``anyorder.layouts.plan.FEW_KEYS``: this says from which size of sets on sums are faster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from anyorder import EquivariantAttention, Features, LearnedFeatures, RandomFeatures, Softmax
from anyorder.bench.models import Workload
from anyorder.layouts import CompleteIndexSet, plan
from shared import parser, show, start, times

LEARNED = {"kernel": LearnedFeatures(num_features=512, factors=3), "coupling": "exact"}
ROWS: dict[str, tuple[dict[str, Any], int]] = {
    "softmax": ({"kernel": Softmax()}, 0),
    "relu": ({"kernel": RandomFeatures()}, 0),
    "relu, exact": ({"kernel": RandomFeatures(), "coupling": "exact"}, 0),
    "learned, exact, by sums": (LEARNED, 0),
    "learned, exact, pair by pair": (LEARNED, 10**9),
}
PAIRS = 10_000


def make(name: str, points: int) -> Workload:
    """A row of the table on sets of so many points."""
    settings, few = ROWS[name]
    torch.manual_seed(0)
    layer = EquivariantAttention(order_in=1, order_out=2, channels=128, heads=4, head_channels=32, **settings)
    nodes = CompleteIndexSet(1, torch.full((max(1, PAIRS // points**2),), points))
    target = nodes.with_order(2)
    x = Features.of_rows(nodes, torch.randn(nodes.num_entries, 128))
    plan.FEW_KEYS = few  # read when the plan is made, once
    layer.prepare(nodes, target)
    return Workload(layer, _forward(layer, x, target))


def _forward(layer: nn.Module, x: Features, target: Any) -> Callable[[], torch.Tensor]:
    return lambda: layer(x, target).rows


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--points", type=int, nargs="+", default=[25, 50, 100, 200])
    options.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    chosen = options.parse_args()
    start(chosen, "Kernels that can be sharp, from points to pairs")
    lines = [("points", "row", "forward s", "step s", "x softmax")]
    for points in chosen.points:
        works = [make(name, points) for name in chosen.rows]
        for work in works:
            work.step()
        found = times(works, chosen)
        for name, (forward, step) in zip(chosen.rows, found, strict=True):
            lines.append((str(points), name, f"{forward:.3f}", f"{step:.3f}", f"{step / found[0][1]:.1f}"))
    show(lines)


if __name__ == "__main__":
    main()
