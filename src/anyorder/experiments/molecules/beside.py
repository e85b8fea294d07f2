"""A forest on fingerprints and descriptors beside a network: validation says how much each of them counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from anyorder.arrays import read_arrays, write_arrays
from anyorder.errors import InputError, reading
from anyorder.experiments.molecules.descriptors import BITS, describe_molecules, descriptor_names
from anyorder.experiments.molecules.goals import Goal, Regression, as_logits, chances
from anyorder.experiments.molecules.models import MoleculeModel
from anyorder.experiments.molecules.parts import MoleculePart
from anyorder.files import read_json, write_json
from anyorder.training.forest import MOST_ROWS, TREES, Floats, Forest
from anyorder.training.run import Answers, Run, Splits

FOREST, BESIDE = "forest.npz", "beside.json"
_SHARES = tuple(n / 10 for n in range(11))
_CHUNK, _MOST_VALID = 256, 5_000


@dataclass(frozen=True, eq=False)
class Beside:
    """A forest for each target, the descriptors that they read, and the share of the network in the answer."""

    share: float
    names: tuple[str, ...]
    forests: tuple[Forest, ...]

    def blended(self, goal: Goal, network: Tensor, smiles: Sequence[str]) -> Tensor:
        """The answer for some molecules, in the units of a network's output."""
        if self.share == 1:
            return network
        return blend(goal, network, forest_out(goal, self.forests, describe_molecules(smiles, self.names)), self.share)

    @property
    def title(self) -> str:
        """Who answers.

        >>> Beside(0.4, (), ()).title, Beside(0.0, (), ()).title, Beside(1.0, (), ()).title
        ('answer: 40 % network, 60 % forest', 'answer: the forest', 'answer: the network')
        """
        if self.share in (0.0, 1.0):
            return f"answer: the {'network' if self.share else 'forest'}"
        return f"answer: {100 * self.share:.0f} % network, {100 * (1 - self.share):.0f} % forest"

    def save(self, folder: Path) -> None:
        """Write it beside the weights: arrays and JSON."""
        held = {name: array for n, forest in enumerate(self.forests) for name, array in forest.arrays(f"{n}-").items()}
        write_arrays(folder / FOREST, held)
        write_json(folder / BESIDE, {"network": self.share, "descriptors": list(self.names), "targets": len(self.forests)})

    @classmethod
    def load(cls, folder: Path) -> Beside | None:
        """What was saved into a folder; None where no forest stands beside its network."""
        path = folder / BESIDE
        if not path.exists():
            return None
        data = read_json(path, dict)
        with reading(path, "what stands beside a network"):
            names, share = tuple(map(str, data["descriptors"])), float(data["network"])
            arrays = read_arrays(folder / FOREST)
            forests = tuple(Forest.of_arrays(arrays, f"{n}-") for n in range(int(data["targets"])))
        if not 0 <= share <= 1 or any(int(forest.feature.max(initial=-1)) >= BITS + len(names) for forest in forests):
            raise InputError(f"{path}: expected a share between 0 and 1 and forests that read {BITS + len(names)} columns")
        return cls(share, names, forests)


def forest_out(goal: Goal, forests: Sequence[Forest], rows: Floats) -> Tensor:
    """What forests answer, in the units of a network's output."""
    found = [torch.from_numpy(forest.answers(rows)) for forest in forests]
    if isinstance(goal, Regression):
        return (torch.cat(found, 1) - goal.mean) / goal.std
    return torch.cat([as_logits(each) for each in found], 1)


def blend(goal: Goal, first: Tensor, second: Tensor, share: float) -> Tensor:
    """The mean of two outputs, of numbers or of probabilities, with a share for the first."""
    if isinstance(goal, Regression):
        return share * first + (1 - share) * second
    pairs = zip(first.split(goal.widths, 1), second.split(goal.widths, 1), strict=True)
    return torch.cat([as_logits(share * chances(a) + (1 - share) * chances(b)) for a, b in pairs], 1)


def stand_beside(run: Run, model: nn.Module, splits: Splits, folder: Path) -> list[Answers]:
    """Fit a forest, choose by validation how much it counts, save it, and let all of them answer the test part."""
    goal: Any = model.goal
    train, valid, test = (_Part.of(part, limit) for part, limit in _parts(splits))
    names = descriptor_names()
    rows = {part: describe_molecules(part.smiles, names) for part in (train, valid, test)}
    network = {part: part.network(model, run.model) for part in (valid, test)}
    forests = fit_forests(goal, rows[train], train.targets, run.seed)
    theirs = forest_out(goal, forests, rows[valid])
    share = _best_share(run, goal, network[valid], theirs, valid.targets)
    whole = np.concatenate([rows[train], rows[valid]]), np.concatenate([train.targets, valid.targets])
    beside = Beside(share, names, fit_forests(goal, *whole, run.seed))  # the share is chosen: all but the test may be seen
    beside.save(folder)
    forest = forest_out(goal, beside.forests, rows[test])
    answer = blend(goal, network[test], forest, share) if 0 < share < 1 else network[test] if share else forest
    outs = {beside.title: answer, "network": network[test], "forest": forest}
    outs[_trivial(goal)] = trivial_out(goal, train.targets, len(answer))
    if share in (0.0, 1.0):
        outs.pop("network" if share else "forest")
    return [Answers(title, goal.evaluate(out, torch.from_numpy(test.targets).float())) for title, out in outs.items()]


def fit_forests(goal: Goal, rows: Floats, targets: NDArray[np.float64], seed: int) -> tuple[Forest, ...]:
    """A forest for each target, on the rows that have it."""
    made = []
    for n, column in enumerate(targets.T):
        there = ~np.isnan(column)
        classes = 0 if isinstance(goal, Regression) else len(goal.labels[n])
        trees = TREES if targets.shape[1] < 4 else TREES // 2
        made.append(Forest.fit(rows[there], column[there], classes=classes, trees=trees, seed=seed))
    return tuple(made)


def trivial_out(goal: Goal, targets: NDArray[np.float64], count: int) -> Tensor:
    """The mean of the training part, or the shares of its classes, for every molecule."""
    if isinstance(goal, Regression):
        return torch.zeros(count, len(goal.names))
    found = []
    for labels, column in zip(goal.labels, targets.T, strict=True):
        counts = np.bincount(column[~np.isnan(column)].astype(np.int64), minlength=len(labels))
        found.append(as_logits(torch.from_numpy(counts / counts.sum()).float()[None]))
    return torch.cat(found, 1).expand(count, -1)


def _trivial(goal: Goal) -> str:
    return "mean" if isinstance(goal, Regression) else "most frequent class"


def _best_share(run: Run, goal: Any, network: Tensor, forest: Tensor, targets: NDArray[np.float64]) -> float:
    selection = run.task.selection
    assert selection is not None
    if getattr(run.task, "alone", False):
        return 1.0
    known = torch.from_numpy(targets).float()
    found = {
        share: run.task.metrics(goal.evaluate(blend(goal, network, forest, share), known))[selection.metric]
        for share in _SHARES
    }
    return min(found, key=lambda share: found[share])


@dataclass(frozen=True, eq=False)
class _Part:
    """Some molecules of a part, in their order."""

    part: MoleculePart
    places: NDArray[np.int64]

    @classmethod
    def of(cls, part: MoleculePart, limit: int) -> _Part:
        places = np.arange(len(part))
        if len(places) > limit:
            places = np.sort(np.random.default_rng(0).permutation(len(part))[:limit])
        return cls(part, places)

    @property
    def smiles(self) -> list[str]:
        return [self.part.store.smiles(int(self.part.members[place])) for place in self.places]

    @property
    def targets(self) -> NDArray[np.float64]:
        return self.part.store.targets()[self.part.members[self.places]]

    def network(self, model: nn.Module, config: Any) -> Tensor:
        """What the network answers."""
        assert isinstance(config, MoleculeModel)
        chunks = np.array_split(self.places, max(1, len(self.places) // _CHUNK))
        with torch.inference_mode():
            return torch.cat([model(config.inputs([self.part[int(n)] for n in chunk])) for chunk in chunks])


def _parts(splits: Splits) -> list[tuple[MoleculePart, int]]:
    found: list[Any] = [splits.train, splits.valid, splits.test]
    return list(zip(found, (MOST_ROWS, _MOST_VALID, 10**9), strict=True))
