"""A small search over settings by validation alone: what was tried, on which seeds, and what was chosen, in one record."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anyorder.errors import reading
from anyorder.files import read_json, write_json
from anyorder.training.jobs import Job
from anyorder.training.records import Record, commit, now, recipe_folder, versions
from anyorder.training.run import Recipe, Scale, Selection

TUNING = "tuning.json"
Space = Mapping[str, Sequence[str]]
"""Settings (``path.to.key``) and the values to try, as text."""


@dataclass(frozen=True)
class Trial:
    """Settings that were tried, and the best value of the validation metric on each seed."""

    overrides: tuple[str, ...]
    valid: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.valid)


@dataclass(frozen=True)
class Tuning:
    """A finished search: the first trial is the recipe as it is."""

    recipe: str
    scale: str
    selection: Selection
    seeds: tuple[int, ...]
    space: dict[str, tuple[str, ...]]
    trials: tuple[Trial, ...]

    @property
    def chosen(self) -> Trial:
        """The trial with the best mean on validation; of equal ones the earlier."""
        sign = 1 if self.selection.mode == "max" else -1
        return max(self.trials, key=lambda trial: sign * trial.mean if math.isfinite(trial.mean) else -math.inf)

    def write(self, path: Path) -> None:
        """Write the search as plain data."""
        trials = [{"overrides": list(t.overrides), "valid": list(t.valid), "mean": t.mean} for t in self.trials]
        write_json(
            path,
            {
                "kind": "anyorder-tuning",
                "recipe": self.recipe,
                "scale": self.scale,
                "metric": f"{self.selection.mode} of {self.selection.metric} on validation",
                "seeds": list(self.seeds),
                "space": {key: list(values) for key, values in self.space.items()},
                "trials": trials,
                "chosen": list(self.chosen.overrides),
                "versions": versions(),
                "commit": commit(),
                "finished": now(),
            },
        )


def collect_choices(runs: Path, into: Path) -> int:
    """Copy the records of the searches below a folder to the places of their recipes; how many."""
    paths = sorted(runs.rglob(TUNING))
    for path in paths:
        data = read_json(path, dict)
        with reading(path, "the record of a search"):
            home = recipe_folder(str(data["recipe"]), str(data["scale"]), into)
        write_json(home / TUNING, data)
    return len(paths)


def candidates(space: Space, trials: int, *, seed: int = 0) -> list[tuple[str, ...]]:
    """Settings to try: none changed first, then points of the grid at random, none twice; the same for the same seed.

    >>> candidates({"a": ("1", "2"), "b": ("x",)}, 3)
    [(), ('a=1', 'b=x'), ('a=2', 'b=x')]
    """
    if trials < 1:
        raise ValueError(f"a search needs at least one trial, got {trials}")
    if not space or not all(space.values()):
        raise ValueError(f"a search needs settings with values to try, got {dict(space)}")
    grid = [
        tuple(f"{key}={value}" for key, value in zip(space, point, strict=True))
        for point in itertools.product(*space.values())
    ]
    random.Random(seed).shuffle(grid)
    return [(), *grid[: trials - 1]]


def best_on_validation(record: Record, selection: Selection) -> float:
    """The best value of the selection metric over the evaluations of a run; nothing here reads the test set."""
    values = [entry[selection.metric] for entry in record.history if selection.metric in entry]
    if not values:
        raise ValueError(f"{record.recipe} was never evaluated by {selection.metric!r} on a validation set")
    return max(values) if selection.mode == "max" else min(values)


def tune(
    recipe: Recipe,
    *,
    scale: Scale,
    space: Space,
    trials: int,
    seeds: Sequence[int],
    execute: Callable[[Job], Record],
    say: Callable[[str], None] = print,
) -> Tuning:
    """Run every candidate on every seed; ``execute`` carries out a job and gives its record."""
    selection = recipe.make(scale).task.selection
    if selection is None:
        raise ValueError(f"{recipe.name} has no metric that selects by validation, so there is nothing to tune by")
    done = []
    for overrides in candidates(space, trials):
        # a seed that is set by hand: tables leave out what was changed, also where nothing else is
        jobs = [Job.of(recipe, scale=scale, seed=seed, overrides=(*overrides, f"seed={seed}")) for seed in seeds]
        trial = Trial(overrides, tuple(best_on_validation(execute(job), selection) for job in jobs))
        say(f"{selection.metric} {trial.mean:.4g} on validation: {' '.join(overrides) or 'as it is'}")
        done.append(trial)
    kept = {key: tuple(values) for key, values in space.items()}
    return Tuning(recipe.name, scale, selection, tuple(seeds), kept, tuple(done))
