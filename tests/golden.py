"""Ten steps of a recipe, the same on every machine up to rounding; ``python tests/golden.py`` writes the values anew."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from anyorder.experiments import find

FILE = Path(__file__).with_name("golden.json")
STEPS = 10
CHAINS = ("gcn", "gin-0", "gat", "mlp-pi-s", "ours-s-without-global", "ours-s-phi-without-global", "ours-s", "ours-s-phi")
PAIRS = ("ours-d", "ours-d-phi", "s2g", "s2g-plus", "siam", "mlp", "gnn5")
RECIPES = (*(f"chains/{row}" for row in CHAINS), *(f"delaunay/50/{row}" for row in PAIRS))


def losses(name: str, folder: Path) -> list[float]:
    """The losses of ten steps of Adam on small batches, without dropout and without the loop of a training."""
    run = find(name).make("quick")
    small = {
        key: value for key, value in (("train_sets", 40), ("valid_sets", 4), ("test_sets", 4)) if hasattr(run.task, key)
    }
    task = replace(run.task, **small)
    torch.manual_seed(0)
    splits = task.load(seed=0, data_dir=folder)
    model = run.model.build(splits.shapes).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    together = task.collate(run.model)
    items = [splits.train[n] for n in range(40)]
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    found = []
    for step in range(STEPS):
        optimiser.zero_grad()
        loss = task.loss(model, together(items[4 * step : 4 * step + 4]))
        loss.backward()
        optimiser.step()
        found.append(round(float(loss.detach()), 6))
    return found


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        FILE.write_text(json.dumps({name: losses(name, Path(place)) for name in RECIPES}, indent=1) + "\n")
