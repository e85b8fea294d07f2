"""Delaunay sets: true triangulations, the same for the same seed, stored and read back."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from anyorder.experiments.set_to_graph.sets import SetSample, collate_sets
from anyorder.experiments.set_to_graph.triangulations import DelaunaySets, StoredSets, cached_delaunay, delaunay_set

SETS = DelaunaySets(num_sets=6, min_points=20, max_points=30, seed=3)


def edges_by_definition(points: np.ndarray) -> set[tuple[int, int]]:
    """The edges of all triangles whose circumcircle holds no other point."""
    exact = points.astype(np.float64)
    edges: set[tuple[int, int]] = set()
    for corners in combinations(range(len(exact)), 3):
        a, b, c = exact[list(corners)]
        centre = np.linalg.solve(2 * np.array([b - a, c - a]), [b @ b - a @ a, c @ c - a @ a])
        radius = np.linalg.norm(a - centre)
        others = np.delete(exact, corners, axis=0)
        if (np.linalg.norm(others - centre, axis=1) > radius).all():
            edges |= {*combinations(corners, 2)}
    return edges


@pytest.mark.parametrize("seed", range(3))
def test_edges_are_those_of_empty_circumcircles(seed: int) -> None:
    sample = delaunay_set(12, np.random.default_rng(seed))
    assert {*map(tuple, sample.edges.tolist())} == edges_by_definition(sample.points)


def test_targets_are_symmetric_without_loops_and_points_fill_the_unit_square() -> None:
    sample = delaunay_set(200, np.random.default_rng(0))
    assert sample.points.dtype == np.float32
    assert sample.adjacency is not None
    assert (sample.adjacency == sample.adjacency.T).all()
    assert not sample.adjacency.diagonal().any()
    assert 0 <= sample.points.min() < 0.05 and 0.95 < sample.points.max() < 1


def test_a_triangulation_has_as_many_edges_as_eulers_formula_says() -> None:
    from scipy.spatial import ConvexHull

    sample = delaunay_set(50, np.random.default_rng(1))
    assert len(sample.edges) == 3 * 50 - 3 - len(ConvexHull(sample.points).vertices)


def same(one: SetSample, other: SetSample) -> bool:
    return np.array_equal(one.points, other.points) and np.array_equal(one.edges, other.edges)


class TestDelaunaySets:
    def test_a_set_depends_on_seed_and_index_alone(self) -> None:
        longer = DelaunaySets(num_sets=100, min_points=20, max_points=30, seed=3)
        assert all(same(longer[index], SETS[index]) for index in reversed(range(len(SETS))))
        assert not same(SETS[0], SETS[1])
        assert not same(SETS[0], DelaunaySets(num_sets=6, min_points=20, max_points=30, seed=4)[0])

    def test_sizes_are_uniform_and_both_ends_occur(self) -> None:
        sizes = [len(sample.points) for sample in DelaunaySets(num_sets=300, min_points=3, max_points=6, seed=0)]
        assert set(sizes) == {3, 4, 5, 6}
        assert np.bincount(sizes)[3:].min() > 45

    def test_iterating_ends(self) -> None:
        assert len(list(SETS)) == 6
        with pytest.raises(IndexError, match="there are 6 sets, got index 6"):
            SETS[6]

    def test_loader_workers_generate_the_same_batches(self) -> None:
        alone, shared = (
            list(DataLoader(SETS, batch_size=4, collate_fn=collate_sets, num_workers=workers)) for workers in (0, 1)
        )
        assert [batch.num_sets for batch in alone] == [4, 2]
        for one, other in zip(alone, shared, strict=True):
            assert torch.equal(one.points, other.points)
            assert torch.equal(one.targets, other.targets)

    @pytest.mark.parametrize(
        "arguments",
        [
            {"num_sets": 0, "min_points": 3, "max_points": 3, "seed": 0},
            {"num_sets": 1, "min_points": 2, "max_points": 3, "seed": 0},
            {"num_sets": 1, "min_points": 5, "max_points": 4, "seed": 0},
            {"num_sets": 1, "min_points": 5, "max_points": 5, "seed": -1},
        ],
    )
    def test_impossible_sets_are_refused(self, arguments: dict[str, int]) -> None:
        with pytest.raises(ValueError, match=r"num_sets must be positive|sizes must satisfy 3 <= min_points"):
            DelaunaySets(**arguments)


class TestCache:
    def test_stored_sets_equal_generated_ones(self, tmp_path: Path) -> None:
        stored = cached_delaunay(SETS, tmp_path)
        assert len(stored) == len(SETS)
        assert all(same(one, other) for one, other in zip(stored, SETS, strict=True))
        assert [path.name for path in tmp_path.iterdir()] == ["delaunay_n20-30_sets6_seed3.npz"]

    def test_a_second_call_reads_the_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        cached_delaunay(SETS, tmp_path)
        monkeypatch.setattr("anyorder.experiments.set_to_graph.triangulations.delaunay_set", None)
        assert len(cached_delaunay(SETS, tmp_path)) == 6

    def test_the_data_folder_is_the_default(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANYORDER_DATA", str(tmp_path))
        cached_delaunay(SETS)
        assert (tmp_path / "delaunay" / f"{SETS.name}.npz").is_file()

    def test_an_interrupted_write_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(file: object, **arrays: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(np, "savez", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cached_delaunay(SETS, tmp_path)
        assert not list(tmp_path.iterdir())

    def test_damaged_files_say_so(self, tmp_path: Path) -> None:
        cached_delaunay(SETS, tmp_path)
        (path,) = tmp_path.iterdir()
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(ValueError, match="delete it and make it again"):
            cached_delaunay(SETS, tmp_path)
        StoredSets.of([SETS[0]]).save(path)
        with pytest.raises(ValueError, match="holds 1 sets, expected 6"):
            cached_delaunay(SETS, tmp_path)
