"""Delaunay triangulations of random points in the unit square, generated from a seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch.utils.data import Dataset

from anyorder.arrays import read_arrays
from anyorder.datasets.registry import data_dir
from anyorder.errors import InputError, reading
from anyorder.experiments.set_to_graph.sets import SetSample
from anyorder.extras import require
from anyorder.files import replacing


def delaunay_set(num_points: int, rng: np.random.Generator) -> SetSample:
    """Points i.i.d. uniform in the unit square and the symmetric adjacency of their Delaunay triangulation.

    >>> delaunay_set(3, np.random.default_rng(0)).edges.tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    if num_points < 3:
        raise ValueError(f"a triangulation needs at least 3 points, got num_points={num_points}")
    points = rng.random((num_points, 2), dtype=np.float32)
    return SetSample(points, triangulate(points))


def triangulate(points: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
    """The symmetric adjacency (n, n) of the Delaunay triangulation of points (n, 2), diagonal False."""
    spatial = require("scipy.spatial", "train")
    corners = spatial.Delaunay(points.astype(np.float64)).simplices
    adjacency = np.zeros((len(points), len(points)), dtype=np.bool_)
    adjacency[corners, np.roll(corners, 1, axis=1)] = True
    return adjacency | adjacency.T


@dataclass(frozen=True)
class DelaunaySets(Dataset[SetSample]):
    """A map-style dataset of ``num_sets`` triangulated sets of ``min_points`` to ``max_points`` points, both included.

    Set i depends on the seed and on i alone, so that loader workers may generate it in any order.

    >>> len(DelaunaySets(num_sets=2, min_points=20, max_points=80, seed=0)[1].points) in range(20, 81)
    True
    """

    num_sets: int
    min_points: int
    max_points: int
    seed: int

    def __post_init__(self) -> None:
        if self.num_sets < 1 or self.seed < 0:
            raise ValueError(f"num_sets must be positive and seed 0 or more, got {self.num_sets} and {self.seed}")
        if not 3 <= self.min_points <= self.max_points:
            raise ValueError(
                f"sizes must satisfy 3 <= min_points <= max_points, got {self.min_points} and {self.max_points}"
            )

    def __len__(self) -> int:
        return self.num_sets

    def __getitem__(self, index: int) -> SetSample:
        if not 0 <= index < self.num_sets:
            raise IndexError(f"there are {self.num_sets} sets, got index {index}")
        rng = np.random.default_rng((self.seed, index))
        return delaunay_set(int(rng.integers(self.min_points, self.max_points + 1)), rng)

    def __iter__(self) -> Iterator[SetSample]:
        return (self[index] for index in range(self.num_sets))

    @property
    def name(self) -> str:
        """What tells these sets from others, as a file name.

        >>> DelaunaySets(num_sets=5, min_points=20, max_points=80, seed=1).name
        'delaunay_n20-80_sets5_seed1'
        """
        return f"delaunay_n{self.min_points}-{self.max_points}_sets{self.num_sets}_seed{self.seed}"


@dataclass(frozen=True, eq=False)
class StoredSets(Dataset[SetSample]):
    """Sets in flat arrays: the points (total, channels) and edges i < j (total, 2) of all sets, one after the other."""

    points: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.int64]
    edges: npt.NDArray[np.integer]
    edge_counts: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        owned, held = (int(self.sizes.sum()), int(self.edge_counts.sum())), (len(self.points), len(self.edges))
        if owned != held or len(self.sizes) != len(self.edge_counts):
            raise ValueError(f"sizes and edge_counts add up to {owned} points and edges, but there are {held}")

    def check(self) -> None:
        """Refuse arrays from a file that would lead outside of a set."""
        shapes = (self.points.ndim, self.points.dtype.kind, self.edges.ndim, self.edges.shape[1:], self.edges.dtype.kind)
        if shapes not in ((2, "f", 2, (2,), "u"), (2, "f", 2, (2,), "i")):
            raise InputError(f"expected points (total, channels) and edges (total, 2) of integers, got {shapes}")
        if any(counts.ndim != 1 or counts.dtype.kind not in "iu" for counts in (self.sizes, self.edge_counts)):
            raise InputError(f"sizes and edge_counts must be whole numbers, got {self.sizes.dtype} {self.edge_counts.dtype}")
        if not np.isfinite(self.points).all() or (self.sizes < 1).any() or (self.edge_counts < 0).any():
            raise InputError("expected finite points, and a point in every set")
        if len(self.edges) and ((self.edges < 0) | (self.edges >= np.repeat(self.sizes, self.edge_counts)[:, None])).any():
            raise InputError("an edge leaves its set")

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, index: int) -> SetSample:
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} sets, got index {index}")
        last_point, last_edge = self._ends[:, index]
        points = self.points[last_point - self.sizes[index] : last_point]
        return SetSample.from_edges(points, self.edges[last_edge - self.edge_counts[index] : last_edge])

    def __iter__(self) -> Iterator[SetSample]:
        return (self[index] for index in range(len(self)))

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        return np.stack((np.cumsum(self.sizes), np.cumsum(self.edge_counts)))

    @classmethod
    def of(cls, samples: Iterable[SetSample]) -> StoredSets:
        """The given sets in flat arrays."""
        points, edges = zip(*((sample.points, sample.edges) for sample in samples), strict=True)
        sizes, counts = (np.array([len(part) for part in parts], dtype=np.int64) for parts in (points, edges))
        narrow = np.min_scalar_type(int(sizes.max()) - 1)
        return cls(np.concatenate(points), sizes, np.concatenate(edges).astype(narrow), counts)

    def save(self, path: Path) -> None:
        """Write one npz file, whole or not at all."""
        with replacing(path) as partial, partial.open("wb") as file:
            np.savez(file, points=self.points, sizes=self.sizes, edges=self.edges, edge_counts=self.edge_counts)

    @classmethod
    def load(cls, path: Path) -> StoredSets:
        """Read what :meth:`save` wrote."""
        try:
            with reading(path, "a whole file of stored sets"):
                arrays = read_arrays(path, needed=("points", "sizes", "edges", "edge_counts"))
                stored = cls(arrays["points"], arrays["sizes"], arrays["edges"], arrays["edge_counts"])
                stored.check()
                return replace(stored, sizes=stored.sizes.astype(np.int64), edge_counts=stored.edge_counts.astype(np.int64))
        except InputError as error:
            raise InputError(f"{error}: delete it and make it again") from error


def cached_delaunay(sets: DelaunaySets, folder: Path | None = None) -> StoredSets:
    """The sets from one npz file in ``folder`` (default: ``delaunay`` in the data folder), made if it is absent."""
    path = (data_dir() / "delaunay" if folder is None else folder) / f"{sets.name}.npz"
    if not path.exists():
        progress = require("rich.progress", "train")
        StoredSets.of(progress.track(sets, description=f"making {sets.name}", total=len(sets))).save(path)
    stored = StoredSets.load(path)
    if len(stored) != len(sets):
        raise InputError(f"{path} holds {len(stored)} sets, expected {len(sets)}: delete it and make it again")
    return stored
