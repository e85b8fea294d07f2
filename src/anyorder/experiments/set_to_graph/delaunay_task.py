"""Delaunay (Table 3): the triangulation of random points in the unit square."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from anyorder.arrays import digest
from anyorder.datasets.registry import data_dir as data_folder
from anyorder.experiments.set_to_graph.files import LabelKind
from anyorder.experiments.set_to_graph.sets import SetShapes
from anyorder.experiments.set_to_graph.task import PairTask, StandardisedSets
from anyorder.experiments.set_to_graph.triangulations import DelaunaySets, cached_delaunay
from anyorder.training.config import configurable
from anyorder.training.run import Splits


@configurable
@dataclass(frozen=True)
class Delaunay(PairTask):
    """Sets of ``min_points`` to ``max_points`` points; the last epoch counts.

    There is a validation set apart from the test set, to look at while training; ``published`` looks at the test set.
    ``standardise`` moves and scales the unit square so that coordinates have mean 0 and deviation 1. ``with_f1`` is the
    loss that the paper writes, cross-entropy and soft F1; cross-entropy alone is what was released.
    Sets are generated once for a seed and kept in the data folder.
    """

    min_points: int = 50
    max_points: int = 50
    train_sets: int = 50_000
    valid_sets: int = 5_000
    test_sets: int = 5_000
    published: bool = False
    standardise: bool = False
    with_f1: bool = False

    @property
    def answers(self) -> LabelKind:
        return LabelKind.EDGES

    @property
    def edges_with_f1(self) -> bool:
        return self.with_f1

    @property
    def score_name(self) -> str:
        return "F1"

    def sets(self, number: int, *, part: int, seed: int) -> DelaunaySets:
        """The training (part 0), validation (1) or test (2) sets of a seed; no two parts share their random numbers."""
        return DelaunaySets(number, self.min_points, self.max_points, seed=3 * seed + part)

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        folder = data_folder(data_dir) / "delaunay"
        counts = (self.train_sets, self.valid_sets, self.test_sets)
        wanted = [part for part in range(3) if not (self.published and part == 1)]
        made = {part: cached_delaunay(self.sets(counts[part], part=part, seed=seed), folder) for part in wanted}
        shapes = SetShapes(channels=2, max_points=self.max_points)
        if self.standardise:  # by the moments of the uniform distribution
            shapes = replace(shapes, mean=(0.5, 0.5), deviation=(12**-0.5, 12**-0.5))
        parts = (made[0], made.get(1, made[2]), made[2])
        train, valid, test = (StandardisedSets(sets, shapes) for sets in parts)
        held = (array for sets in parts for array in (sets.points, sets.sizes, sets.edges, sets.edge_counts))
        return Splits(train, valid, test, shapes, digest=digest(*held))
