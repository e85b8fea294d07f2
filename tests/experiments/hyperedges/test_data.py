from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from anyorder.experiments.hyperedges.cooccurrence import cooccurrence_features
from anyorder.experiments.hyperedges.data import TypedHyperedges, read_hyperedges
from data_folder import DATA

FOLDER = DATA / "dhne_hyperedges"
needs_data = pytest.mark.skipif(not FOLDER.is_dir(), reason="the released hyperedge files are not on this machine")


def random_hyperedges(sizes: tuple[int, ...] = (5, 4, 3), count: int = 30, seed: int = 0) -> TypedHyperedges:
    generator = np.random.default_rng(seed)
    shift = np.cumsum([0, *sizes[:-1]])
    draw = generator.integers(0, sizes, size=(count + 10, len(sizes))) + shift
    return TypedHyperedges(sizes=sizes, train=draw[:count], test=draw[count:])


def naive_features(data: TypedHyperedges, position: int) -> np.ndarray:
    """The definition, tuple by tuple."""
    counts = np.zeros((data.num_nodes, data.num_nodes))
    for row, weight in zip(data.train.tolist(), data.train_weights, strict=True):
        for a in row:
            for b in row:
                counts[a, b] += weight * (a != b)
    start = data.offsets[position]
    block = counts[start : start + data.sizes[position]]
    block = block[:, block.any(axis=0)]
    return block / block.max(axis=0)


@pytest.mark.parametrize("sizes", [(5, 4), (5, 4, 3), (3, 2, 4, 3)])
def test_features_match_the_definition(sizes):
    data = random_hyperedges(sizes)
    for position, matrix in enumerate(cooccurrence_features(data)):
        expected = naive_features(data, position)
        np.testing.assert_allclose(matrix.dense(), expected)
        np.testing.assert_allclose(matrix.to_torch().to_dense().numpy(), expected, rtol=1e-6)


def test_features_convert_to_scipy():
    pytest.importorskip("scipy")
    matrix = cooccurrence_features(random_hyperedges())[0]
    np.testing.assert_allclose(matrix.to_scipy().toarray(), matrix.dense())


def test_features_count_weights():
    base = random_hyperedges(count=12)
    weights = np.arange(1.0, 13.0)
    data = TypedHyperedges(sizes=base.sizes, train=base.train, test=base.test, weights=weights)
    repeated = TypedHyperedges(sizes=base.sizes, train=np.repeat(base.train, np.arange(1, 13), axis=0), test=base.test)
    for one, other in zip(cooccurrence_features(data), cooccurrence_features(repeated), strict=True):
        np.testing.assert_allclose(one.dense(), other.dense())


def test_validation_is_taken_from_training():
    data = random_hyperedges(count=50)
    split = data.with_validation(0.2, seed=3)
    assert len(split.validation) == 10
    both = np.concatenate([split.train, split.validation])
    assert sorted(both.tolist()) == sorted(data.train.tolist())
    assert np.array_equal(split.test, data.test)
    again, other = data.with_validation(0.2, seed=3), data.with_validation(0.2, seed=4)
    assert np.array_equal(split.validation, again.validation)
    assert not np.array_equal(split.validation, other.validation)
    with pytest.raises(ValueError, match="already"):
        split.with_validation()


def test_unseen_and_known_follow_the_parts():
    shared, fresh = [0, 2], [1, 4]
    data = TypedHyperedges(
        sizes=(2, 3), train=np.array([shared]), validation=np.array([[0, 3]]), test=np.array([shared, fresh, [0, 3]])
    )
    assert data.unseen("test").tolist() == [False, True, False]
    assert data.unseen("validation").tolist() == [True]
    assert [len(data.known(part)) for part in ("train", "validation", "test")] == [1, 2, 3]


def test_arrays_cannot_be_written():
    data = random_hyperedges()
    with pytest.raises(ValueError, match="read-only"):
        data.train[0, 0] = 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": (5,)}, "at least two node types"),
        ({"train": np.array([[0, 5, 99]])}, "row 0 holds node 99 in column 2"),
        ({"names": ("a", "b")}, "expected 3 different type names"),
        ({"weights": np.zeros(30)}, "positive numbers"),
    ],
)
def test_impossible_hyperedges_are_refused(change, message):
    base = random_hyperedges()
    fields = {"sizes": base.sizes, "train": base.train, "test": base.test} | change
    with pytest.raises(ValueError, match=message):
        TypedHyperedges(**fields)


def write(folder: Path, *, train: np.ndarray, test: np.ndarray, sizes: tuple[int, ...] = (3, 2)) -> Path:
    np.savez(folder / "train_data.npz", train_data=train, nums_type=np.array(sizes))
    np.savez(folder / "test_data.npz", test_data=test, nums_type=np.array(sizes))
    return folder


def test_reader_offsets_ids_and_takes_whole_floats(tmp_path):
    data = read_hyperedges(write(tmp_path, train=np.array([[2.0, 1.0]]), test=np.array([[0, 0]])))
    assert data.train.tolist() == [[2, 4]] and data.test.tolist() == [[0, 3]]
    assert data.train.dtype == np.int64


def test_reader_says_what_is_wrong(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"train_data\.npz is missing"):
        read_hyperedges(tmp_path)
    with pytest.raises(ValueError, match="whole numbers"):
        read_hyperedges(write(tmp_path, train=np.array([[0.5, 1.0]]), test=np.array([[0, 0]])))
    with pytest.raises(ValueError, match="expected 2 columns"):
        read_hyperedges(write(tmp_path, train=np.array([[0, 1, 1]]), test=np.array([[0, 0]])))
    with pytest.raises(ValueError, match="row 0 holds node 3 in column 0"):
        read_hyperedges(write(tmp_path, train=np.array([[3, 1]]), test=np.array([[0, 0]])))
    (tmp_path / "test_data.npz").write_bytes(b"PK\x03\x04 torn off")
    with pytest.raises(ValueError, match="not a whole NPZ file"):
        read_hyperedges(tmp_path)


@needs_data
@pytest.mark.parametrize(
    ("name", "sizes", "train", "test", "unseen"),
    [
        ("GPS", (146, 70, 5), 1154, 282, 282),
        ("MovieLens", (1943, 5610, 8040), 38365, 8047, 8047),
        ("drug", (12, 1077, 6398), 137404, 34352, 11327),
        ("wordnet", (40750, 18, 40752), 117153, 29289, 29289),
    ],
)
def test_released_files_hold_what_is_known_of_them(name, sizes, train, test, unseen):
    data = read_hyperedges(FOLDER / name)
    assert (data.sizes, len(data.train), len(data.test), data.unseen("test").sum()) == (sizes, train, test, unseen)
    assert data.names[0] != "type0"
