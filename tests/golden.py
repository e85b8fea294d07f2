"""Five steps of a recipe, the same on every machine up to rounding; ``python tests/golden.py`` writes the values anew."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from anyorder.experiments import find, recipes_of
from anyorder.training.run import DirectTask
from golden_data import small

FILE = Path(__file__).with_name("golden.json")
STEPS, BATCH = 5, 4
FAMILIES = {
    "chains": "chains",
    "delaunay/50": "delaunay",
    "jets/alice": "jets",
    "molecules/qm9-gap": "molecules",
    "hyperedges/gps": "hyperedges",
    "hypergraphs/cora": "hypergraphs",
    "hyperedge-sets/cora": "hyperedge-sets",
    "graphs/mutag": "graphs",
    "graphs/wisconsin": "graphs",
    "graphs/wisconsin-links": "graphs",
    "counting": "counting",
}
"""One of the rows of data of each family, and the table it stands in."""
UNTRAINED = ("avr", "one-cluster", "node2vec-mean", "node2vec-min", "cheap")
"""Rows without steps of a gradient."""
NOISY = ("gcn-vn", "gin-vn")
"""Batch norms over the four virtual nodes of a batch: roundings of another CPU grow tenfold a step."""


def names() -> list[str]:
    """The recipes of all families that are trained; larger models of the same kind are left out."""
    known = [(family, name) for family, table in FAMILIES.items() for name in recipes_of(table)]
    rows = [(name, name.rpartition("/")[2]) for family, name in known if name.rpartition("/")[0] == family]
    return [name for name, row in rows if row not in UNTRAINED + NOISY and not row.endswith("k")]


def losses(name: str, folder: Path) -> list[float]:
    """The losses of five steps of Adam on small batches, without dropout and without the loop of a training."""
    run = find(name).make("quick")
    assert not isinstance(run.task, DirectTask)
    torch.manual_seed(0)
    task, splits = small(run, name.rpartition("/")[0], folder)
    model = run.model.build(splits.shapes).train()
    for module in model.modules():
        for rate in ("p", "dropout"):
            if isinstance(getattr(module, rate, None), float):
                setattr(module, rate, 0.0)
        if isinstance(module, torch.nn.BatchNorm1d):
            module.eps = 0.1  # channels that hardly vary in a small batch are not made of rounding alone
    together = task.collate(run.model)
    # Gradients of weights before a batch norm are rounding alone; without eps Adam makes whole steps of them.
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-3)
    found = []
    for step in range(STEPS):
        optimiser.zero_grad()
        loss = task.loss(model, together(_items(splits.train, step, min(BATCH, run.batch_size))))
        loss.backward()
        optimiser.step()
        found.append(round(float(loss.detach()), 6))
    return found


def _items(data: Any, step: int, count: int) -> Any:
    """The next few items; a batch where the data make it."""
    rows = [n % len(data) for n in range(count * step, count * (step + 1))]
    if hasattr(data, "__getitems__"):
        return data.__getitems__(rows)
    return [data[n] for n in dict.fromkeys(rows)]


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        found = {}
        for number, name in enumerate(names()):
            (Path(place) / str(number)).mkdir()
            found[name] = losses(name, Path(place) / str(number))
        FILE.write_text(json.dumps(found, indent=1) + "\n")
