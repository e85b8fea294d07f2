"""A user's own sets: both file formats read alike, errors name the row, predictions come out as they went in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anyorder.experiments.set_to_graph.files import LabelKind, read_sets
from anyorder.experiments.set_to_graph.sets import SetSample
from anyorder.experiments.set_to_graph.writers import write_predictions, write_sets

FEATURES = [[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [[6.0, 7.0]]]
ENDINGS = (".parquet", ".npz")


def parquet(tmp_path: Path, **columns: Any) -> Path:
    path = tmp_path / "sets.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def npz(tmp_path: Path, **arrays: Any) -> Path:
    path = tmp_path / "sets.npz"
    np.savez(path, **arrays)
    return path


def samples(kind: LabelKind) -> list[SetSample]:
    rng = np.random.default_rng(0)
    points = [rng.normal(size=(size, 3)).astype(np.float32) for size in (4, 1, 6)]
    if kind is LabelKind.EDGES:
        edges: list[list[list[int]]] = [[[0, 1], [2, 3]], [], [[0, 5]]]
        return [SetSample.from_edges(*pair) for pair in zip(points, edges, strict=True)]
    if kind is LabelKind.PARTITION:
        return [SetSample.from_partition(part, rng.integers(0, 3, len(part))) for part in points]
    return [SetSample(part) for part in points]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", LabelKind)
def test_written_sets_read_back_equal(tmp_path: Path, ending: str, kind: LabelKind) -> None:
    path, written = tmp_path / f"sets{ending}", samples(kind)
    write_sets(path, written, kind)
    read = read_sets(path)
    assert (read.kind, len(read), read.channels) == (kind, 3, 3)
    for index, one in enumerate(written):
        np.testing.assert_array_equal(read[index].points, one.points)
        np.testing.assert_equal(read[index].adjacency, one.adjacency)


class TestParquet:
    def test_edges_are_undirected_and_extra_columns_are_ignored(self, tmp_path: Path) -> None:
        sets = read_sets(parquet(tmp_path, features=FEATURES, edges=[[[2, 0]], []], name=["a", "b"]))
        assert sets.kind is LabelKind.EDGES
        assert sets[0].adjacency is not None
        assert sets[0].adjacency.astype(int).tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
        assert sets[1].edges.shape == (0, 2)

    def test_no_row_may_have_edges(self, tmp_path: Path) -> None:
        sets = read_sets(parquet(tmp_path, features=FEATURES, edges=pa.array([[], []])))
        assert [len(sample.edges) for sample in sets.sets] == [0, 0]

    def test_fixed_size_and_large_lists_and_many_row_groups(self, tmp_path: Path) -> None:
        path = tmp_path / "sets.parquet"
        kind = pa.large_list(pa.list_(pa.float64(), 2))
        table = pa.table({"features": pa.array(FEATURES * 3, type=kind), "partition": [[1, 0, 1], [4]] * 3})
        pq.write_table(table, path, row_group_size=2)
        sets = read_sets(path)
        assert len(sets) == 6
        assert sets[4].edges.tolist() == [[0, 2]]

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"points": FEATURES}, "there is no 'features', only 'points'"),
            ({"features": [[1.0], [2.0]]}, "must hold a list of lists of numbers in each row, got double"),
            ({"features": [1.0, 2.0]}, "must hold a list of lists of numbers in each row, got double"),
            ({"features": [[["a"]], [["b"]]]}, "must hold numbers, got string"),
            ({"features": [[[1.0]], None]}, r"row 1: a value of features is missing \(null\)"),
            ({"features": [[[1.0]], [[2.0], None]]}, r"row 1: a value of features is missing \(null\)"),
            ({"features": [[[1.0], [2.0]], [[None]]]}, r"row 1: a value of features is missing \(null\)"),
            ({"features": [[[1.0]], [[1.0], [1.0, 2.0]]]}, "row 1: an item of features has 2 numbers, expected 1"),
            ({"features": [[[1.0]], []]}, "row 1: the set has no points"),
            ({"features": [[], []]}, "row 0: the set has no points"),
            ({"features": [[[1.0]], [[0.0], [float("nan")]]]}, "row 1: feature 0 is nan, expected a finite"),
            ({"features": [[[1.0]], [[1e300]]]}, r"row 1: feature 0 is 1e\+300, expected a finite"),
            ({"features": FEATURES, "edges": [[[0, 1, 2]], []]}, "row 0: an item of edges has 3 numbers, expected 2"),
            (
                {"features": FEATURES, "edges": [[], [[0, 1]]]},
                r"row 1: edge \(0, 1\) leaves the set, which has 1 points",
            ),
            ({"features": FEATURES, "edges": [[[-1, 1]], []]}, r"row 0: edge \(-1, 1\) leaves the set"),
            ({"features": FEATURES, "edges": [[[1, 1]], []]}, r"row 0: edge \(1, 1\) joins a point with itself"),
            ({"features": FEATURES, "edges": [[[0.0, 1.0]], []]}, "edges must be whole numbers, got float64"),
            (
                {"features": FEATURES, "partition": [[0, 0, 0], [0, 1]]},
                "row 1: the partition has 2 entries for 1 points",
            ),
            ({"features": FEATURES, "partition": [[0, 0, 0], [0, 0, 0]]}, "row 1: the partition has 3 entries"),
            ({"features": FEATURES, "partition": [[0.5, 0, 0], [0]]}, "partition must be whole numbers"),
            ({"features": FEATURES, "partition": [[0, 0, 0], [0]], "edges": [[], []]}, "has both: leave one out"),
        ],
    )
    def test_errors_name_file_and_row(self, tmp_path: Path, columns: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=rf"sets\.parquet: .*{message}"):
            read_sets(parquet(tmp_path, **columns))

    def test_no_rows(self, tmp_path: Path) -> None:
        column = pa.array([], type=pa.list_(pa.list_(pa.float32())))
        with pytest.raises(ValueError, match="there are no rows"):
            read_sets(parquet(tmp_path, features=column))

    def test_truncated(self, tmp_path: Path) -> None:
        path = parquet(tmp_path, features=FEATURES)
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(ValueError, match="not a whole Parquet file"):
            read_sets(path)


class TestNpz:
    def test_sets_of_one_size(self, tmp_path: Path) -> None:
        points = np.arange(12.0).reshape(2, 3, 2)
        sets = read_sets(npz(tmp_path, features=points, partition=[[0, 0, 1], [2, 2, 2]]))
        np.testing.assert_array_equal(sets[1].points, points[1])
        assert sets[0].edges.tolist() == [[0, 1]]

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"x": np.zeros((1, 1, 1))}, "there is no 'features', only 'x'"),
            ({"features": np.zeros(3)}, r"of shape \(sets, n, channels\) or .*got float64 \(3,\)"),
            ({"features": np.array([[["a"]]])}, "must be numbers"),
            ({"features": np.zeros((3, 2))}, "an array 'sizes' must say how many each set has"),
            ({"features": np.zeros((3, 2)), "sizes": [1, 1]}, r"must have shape \(2, 2\).*got \(3, 2\)"),
            ({"features": np.zeros((3, 2)), "sizes": [4, -1]}, "row 1: sizes is negative"),
            ({"features": np.zeros((3, 2)), "sizes": [3, 0]}, "row 1: the set has no points"),
            ({"features": np.zeros((3, 2)), "sizes": [1.5, 1.5]}, "sizes must be whole numbers"),
            ({"features": np.zeros((2, 3, 1)), "edges": [[0, 1]]}, "an array 'edge_counts' must say"),
            ({"features": np.zeros((2, 3, 1)), "edges": [[0, 1]], "edge_counts": [1]}, r"of shape \(2,\), got"),
            (
                {"features": np.zeros((2, 3, 1)), "edges": [[0, 3]], "edge_counts": [0, 1]},
                r"row 1: edge \(0, 3\) leaves",
            ),
            ({"features": np.zeros((2, 3, 1)), "partition": [0, 1]}, r"partition must have shape \(6,\)"),
        ],
    )
    def test_errors(self, tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=rf"sets\.npz: .*{message}"):
            read_sets(npz(tmp_path, **arrays))

    def test_pickled_objects_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="Python objects, which are not read"):
            read_sets(npz(tmp_path, features=np.array([[1.0], [1.0, 2.0]], dtype=object)))

    def test_truncated(self, tmp_path: Path) -> None:
        path = npz(tmp_path, features=np.zeros((1, 1, 1)))
        path.write_bytes(path.read_bytes()[:-30])
        with pytest.raises(ValueError, match="not a whole NPZ file"):
            read_sets(path)


def test_unknown_endings_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ending in .parquet or .npz, got '.csv'"):
        read_sets(tmp_path / "sets.csv")
    with pytest.raises(FileNotFoundError, match=r"sets\.npz does not exist"):
        read_sets(tmp_path / "sets.npz")


class TestPredictions:
    EDGES = (np.array([[0, 1], [1, 2]]), np.empty((0, 2), dtype=np.int64), np.array([[3, 4]]))
    CLUSTERS = (np.array([0, 0, 1]), np.array([0]), np.array([2, 1]))

    def test_parquet(self, tmp_path: Path) -> None:
        write_predictions(tmp_path / "e.parquet", self.EDGES, LabelKind.EDGES)
        assert pq.read_table(tmp_path / "e.parquet").to_pydict() == {"edges": [[[0, 1], [1, 2]], [], [[3, 4]]]}
        write_predictions(tmp_path / "p.parquet", self.CLUSTERS, LabelKind.PARTITION)
        assert pq.read_table(tmp_path / "p.parquet").to_pydict() == {"partition": [[0, 0, 1], [0], [2, 1]]}

    def test_npz(self, tmp_path: Path) -> None:
        write_predictions(tmp_path / "e.npz", self.EDGES, LabelKind.EDGES)
        with np.load(tmp_path / "e.npz") as file:
            assert {name: file[name].tolist() for name in file.files} == {
                "edges": [[0, 1], [1, 2], [3, 4]],
                "edge_counts": [2, 0, 1],
            }
        write_predictions(tmp_path / "p.npz", self.CLUSTERS, LabelKind.PARTITION)
        with np.load(tmp_path / "p.npz") as file:
            assert {name: file[name].tolist() for name in file.files} == {
                "partition": [0, 0, 1, 0, 2, 1],
                "sizes": [3, 1, 2],
            }

    def test_json_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "deep" / "e.jsonl"
        write_predictions(path, self.EDGES, LabelKind.EDGES)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert lines[0] == {"row": 0, "edges": [[0, 1], [1, 2]]}
        assert lines[1] == {"row": 1, "edges": []}
        assert len(lines) == 3

    def test_wrong_predictions_are_refused_and_leave_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"row 1: predicted partition must have shape \(points,\), got \(1, 2\)"):
            write_predictions(tmp_path / "p.npz", [np.zeros(2), np.zeros((1, 2))], LabelKind.PARTITION)
        with pytest.raises(ValueError, match=r"ending in .parquet or .npz or .jsonl, got '.txt'"):
            write_predictions(tmp_path / "p.txt", self.CLUSTERS, LabelKind.PARTITION)
        with pytest.raises(ValueError, match="nothing to write"):
            write_predictions(tmp_path / "p.npz", [], LabelKind.PARTITION)
        with pytest.raises(ValueError, match=r"got LabelKind\.NONE"):
            write_predictions(tmp_path / "p.npz", self.CLUSTERS, LabelKind.NONE)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"features": np.zeros((3, 4, 1)), "sizes": [4, 2, 3]}, "sets of several sizes lie end to end"),
        ({"features": np.zeros((3, 4, 1)), "partition": np.zeros((4, 3), int)}, r"partition must have shape \(12,\)"),
        ({"features": np.zeros((12, 0)), "sizes": [12]}, "at least one channel"),
    ],
)
def test_arrays_that_do_not_fit_each_other(tmp_path, arrays, message):
    with pytest.raises(ValueError, match=message):
        read_sets(npz(tmp_path, **arrays))


def test_another_kind_of_file_by_this_name(tmp_path):
    with (tmp_path / "sets.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="not a whole NPZ file"):
        read_sets(tmp_path / "sets.npz")
