"""Single precision beside mixed precision: a training step of rows of Delaunay at the medium scale.

    OMP_NUM_THREADS=1 python benchmarks/half_precision.py

Batches of four sets of 50 points, ours of 128 channels and baselines half as wide, with the loss of the paper, as
``anyorder run delaunay/50 --all --scale medium`` trains them. CPUs without instructions for bfloat16 gain nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from anyorder.bench.models import Workload
from anyorder.experiments.set_to_graph.delaunay_recipes import RECIPES
from anyorder.experiments.set_to_graph.sets import SetBatch, SetSample, SetShapes
from anyorder.experiments.set_to_graph.triangulations import DelaunaySets
from shared import parser, show, start, times

MEDIUM = {recipe.row: recipe for recipe in RECIPES if recipe.dataset == "Delaunay (50)" and "medium" in recipe.scales}


def make(row: str, batch: Callable[[], list[SetSample]], half: bool) -> Workload:
    """A row of the table with or without autocast."""
    torch.manual_seed(0)
    run = MEDIUM[row].make("medium")
    model = run.model.build(SetShapes(channels=2, max_points=50))
    given: SetBatch = run.model.collate()(batch())  # type: ignore[attr-defined]

    def forward() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            return run.task.loss(model, given)

    return Workload(model, forward, lambda loss: loss)


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--rows", nargs="+", choices=MEDIUM, default=["Ours (D)", "Ours (D, phi)", "S2G", "S2G+", "SIAM"])
    chosen = options.parse_args()
    start(chosen, "Mixed precision")
    sets = DelaunaySets(4, 50, 50, seed=0)
    lines = [("row", "single: step s", "bf16-mixed: step s", "ratio")]
    for row in chosen.rows:
        works = [make(row, lambda: [sets[n] for n in range(4)], half) for half in (False, True)]
        for work in works:
            work.step()
        (_, single), (_, mixed) = times(works, chosen)
        lines.append((row, f"{single:.3f}", f"{mixed:.3f}", f"{mixed / single:.2f}"))
    show(lines)


if __name__ == "__main__":
    main()
