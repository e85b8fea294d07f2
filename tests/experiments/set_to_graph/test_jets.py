"""Jets in ROOT files: what is written reads back equal, and what cannot be read says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anyorder.experiments.set_to_graph import jets as jets_module
from anyorder.experiments.set_to_graph.jet_statistics import OFFICIAL_STATISTICS, statistics, statistics_table
from anyorder.experiments.set_to_graph.jets import (
    FEATURES,
    FLAVOUR,
    JET_FEATURES,
    OFFICIAL_NORMALISATION,
    SPLITS,
    TRACK_FEATURES,
    VERTEX,
    JetFileError,
    JetSample,
    Normalisation,
    _track_counts,
    concatenate,
    normalisation,
    read_jets,
    write_jets,
)
from data_folder import DATA

uproot = pytest.importorskip("uproot")
ak = pytest.importorskip("awkward")
ARRAYS = ("features", "vertex", "offsets", "flavour")


def random_sample(num_jets: int = 50, seed: int = 0) -> JetSample:
    rng = np.random.default_rng(seed)
    counts = rng.integers(2, 15, num_jets)
    features = rng.normal(3.0, 2.0, (counts.sum(), len(FEATURES))).astype(np.float32)
    features[:, len(TRACK_FEATURES) :] = np.repeat(rng.normal(size=(num_jets, len(JET_FEATURES))), counts, axis=0)
    return JetSample(
        features=features,
        vertex=rng.integers(0, 4, counts.sum()).astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        flavour=rng.choice(np.array([0, 4, 5], dtype=np.int32), num_jets),
    )


def jets(features: Any, vertex: Any, offsets: Any, flavour: Any) -> JetSample:
    """A sample from plain lists."""
    return JetSample(np.array(features), np.array(vertex), np.array(offsets), np.array(flavour))


def assert_equal(one: JetSample, other: JetSample) -> None:
    for name in ARRAYS:
        first, second = getattr(one, name), getattr(other, name)
        assert first.dtype == second.dtype
        np.testing.assert_array_equal(first, second, err_msg=name)


def columns(counts: list[int], **changed: Any) -> dict[str, Any]:
    """The branches of a small file with these numbers of tracks, some replaced, those that are None left out."""
    total = sum(counts)
    tracks = {name: ak.unflatten(np.arange(total, dtype=np.float32), counts) for name in TRACK_FEATURES}
    jets = {name: np.arange(len(counts), dtype=np.float32) + 1 for name in JET_FEATURES}
    vertex = {VERTEX: ak.unflatten(np.arange(total, dtype=np.int32), counts)}
    flavour = {FLAVOUR: np.zeros(len(counts), dtype=np.int32)}
    return {name: array for name, array in (tracks | jets | vertex | flavour | changed).items() if array is not None}


def write_tree(path: Path, branches: dict[str, Any], name: str = "tree") -> Path:
    with uproot.recreate(path) as file:
        tree = file.mktree(name, {key: ak.Array(array).type.content for key, array in branches.items()})
        tree.extend(branches)
    return path


class TestSample:
    def test_indexing(self) -> None:
        sample = random_sample()
        own = slice(sample.offsets[3], sample.offsets[4])
        np.testing.assert_array_equal(sample[3].features, sample.features[own])
        np.testing.assert_array_equal(sample[3 - len(sample)].vertex, sample.vertex[own])
        assert sample[-1].flavour == sample.flavour[-1]
        assert [len(jet.vertex) for jet in sample] == sample.num_tracks.tolist()
        with pytest.raises(IndexError, match="jet 50 of a sample of 50"):
            sample[50]

    def test_slices_masks_and_numbers_agree(self) -> None:
        sample = random_sample()
        mask = np.arange(len(sample)) % 2 == 0
        assert_equal(sample[::2], sample[mask])
        assert_equal(sample[::2], sample[np.flatnonzero(mask)])
        reordered = sample[[7, 2, 7]]
        assert reordered.num_tracks.tolist() == sample.num_tracks[[7, 2, 7]].tolist()
        np.testing.assert_array_equal(reordered[2].features, sample[7].features)
        assert len(sample[[]]) == 0

    def test_concatenate_undoes_cutting(self) -> None:
        sample = random_sample()
        assert_equal(concatenate([sample[:20], sample[20:]]), sample)

    def test_normalised_with_its_own_constants_has_mean_zero_and_deviation_one(self) -> None:
        sample = random_sample(2000)
        after = normalisation(sample.normalised(normalisation(sample)))
        np.testing.assert_allclose(after.mean, 0.0, atol=1e-5)
        np.testing.assert_allclose(after.deviation, 1.0, atol=1e-5)

    def test_normalised_is_x_minus_mean_over_deviation(self) -> None:
        sample = random_sample(3)
        value = sample.normalised(OFFICIAL_NORMALISATION).features[5, 4]
        assert value == pytest.approx((sample.features[5, 4] - 5.237357) / 7.4841413, rel=1e-5)

    def test_a_constant_feature_becomes_zero(self) -> None:
        sample = jets(np.full((2, 10), 7.0), [0, 0], [0, 2], [0])
        assert not sample.normalised(normalisation(sample)).features.any()

    def test_wrong_shapes_are_named(self) -> None:
        with pytest.raises(ValueError, match=r"shape \(tracks, 10\), got \(4, 9\)"):
            jets(np.zeros((4, 9)), [0] * 4, [0, 4], [0])
        with pytest.raises(ValueError, match="4 vertex labels"):
            jets(np.zeros((4, 10)), [0] * 3, [0, 4], [0])
        with pytest.raises(ValueError, match="offsets must rise"):
            jets(np.zeros((4, 10)), [0] * 4, [0, 4, 4], [0, 0])
        with pytest.raises(ValueError, match="10 means and deviations"):
            Normalisation((0.0,), (1.0,))
        with pytest.raises(ValueError, match="must be positive"):
            Normalisation((0.0,) * 10, (0.0,) * 10)


class TestFiles:
    def test_a_written_file_reads_back_equal(self, tmp_path: Path) -> None:
        sample = random_sample(500)
        write_jets(tmp_path / "deep" / "jets.root", sample)
        assert_equal(read_jets(tmp_path / "deep" / "jets.root"), sample)
        assert [path.name for path in (tmp_path / "deep").iterdir()] == ["jets.root"]

    def test_the_written_tree_has_the_official_schema(self, tmp_path: Path) -> None:
        write_jets(tmp_path / "jets.root", random_sample())
        with uproot.open(tmp_path / "jets.root") as file:
            assert file.classnames(cycle=False) == {"tree": "TTree"}
            kinds = {name: branch.typename for name, branch in file["tree"].items()}
        for name in TRACK_FEATURES:
            assert kinds[name] == "float[]"
        assert kinds[VERTEX] == "int32_t[]"
        assert [kinds[name] for name in (*JET_FEATURES, FLAVOUR)] == ["float"] * 4 + ["int32_t"]

    def test_jet_features_are_repeated_on_each_track(self, tmp_path: Path) -> None:
        sample = read_jets(write_tree(tmp_path / "jets.root", columns([2, 3])))
        assert sample.features[:, 6].tolist() == [1.0, 1.0, 2.0, 2.0, 2.0]
        assert sample.features[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]

    def test_jets_with_no_track_or_one_are_left_out_and_counted(self, tmp_path: Path) -> None:
        sample = read_jets(write_tree(tmp_path / "jets.root", columns([2, 0, 1, 3, 1])))
        assert sample.num_tracks.tolist() == [2, 3]
        assert sample.skipped_short == 3
        assert sample.features[:, 0].tolist() == [0.0, 1.0, 3.0, 4.0, 5.0]

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_non_finite_features_are_refused_or_skipped(self, tmp_path: Path, bad: float) -> None:
        d0 = np.arange(7, dtype=np.float32)
        d0[3] = bad
        jet_mass = np.array([1.0, 2.0, bad], dtype=np.float32)
        branches = columns([2, 3, 2], trk_d0=ak.unflatten(d0, [2, 3, 2]), jet_M=jet_mass)
        path = write_tree(tmp_path / "jets.root", branches)
        with pytest.raises(JetFileError, match="2 of 3 jets have a feature that is NaN or infinite"):
            read_jets(path)
        sample = read_jets(path, skip_non_finite=True)
        assert (len(sample), sample.skipped_non_finite, sample.skipped_short) == (1, 2, 0)

    def test_missing_branches_are_named(self, tmp_path: Path) -> None:
        path = write_tree(tmp_path / "jets.root", columns([2, 2], trk_pt=None, jet_M=None))
        with pytest.raises(JetFileError, match=r"lacks the branches \['trk_pt', 'jet_M'\]; it has .*trk_d0"):
            read_jets(path)

    def test_branches_of_different_lengths_are_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Damaged bytes can make a branch shorter; uproot reads it without a word."""
        path = write_tree(tmp_path / "jets.root", columns([2, 3]))
        read = jets_module._branches

        def shorter(*given: Any) -> dict[str, Any]:
            found = dict(read(*given))
            return {**found, "jet_M": found["jet_M"][:1]}

        monkeypatch.setattr(jets_module, "_branches", shorter)
        with pytest.raises(JetFileError, match=r"different numbers of jets.*'jet_M': 1"):
            read_jets(path)

    def test_another_tree_name(self, tmp_path: Path) -> None:
        with pytest.raises(JetFileError, match=r"TTree named 'tree', got \{'events': 'TTree'\}"):
            read_jets(write_tree(tmp_path / "jets.root", columns([2]), name="events"))

    def test_a_file_without_a_tree(self, tmp_path: Path) -> None:
        with uproot.recreate(tmp_path / "empty.root"):
            pass
        with pytest.raises(JetFileError, match="got nothing"):
            read_jets(tmp_path / "empty.root")

    def test_a_tree_without_entries(self, tmp_path: Path) -> None:
        branches = {name: array[:0] for name, array in columns([2]).items()}
        with pytest.raises(JetFileError, match="no entries"):
            read_jets(write_tree(tmp_path / "jets.root", branches))

    def test_track_branches_that_disagree(self, tmp_path: Path) -> None:
        path = write_tree(tmp_path / "jets.root", columns([2, 2], trk_z0=ak.Array([[1.0, 2.0], [3.0, 4.0, 5.0]])))
        with pytest.raises(JetFileError, match="jet 1 has 2 entries in trk_d0 and 3 in trk_z0"):
            read_jets(path)

    def test_a_flat_branch_in_place_of_lists(self, tmp_path: Path) -> None:
        path = write_tree(tmp_path / "jets.root", columns([2, 2], trk_phi=np.zeros(2, dtype=np.float32)))
        with pytest.raises(JetFileError, match="trk_phi must hold a list of numbers per jet"):
            read_jets(path)

    def test_an_unknown_flavour(self, tmp_path: Path) -> None:
        path = write_tree(tmp_path / "jets.root", columns([2, 2], jet_flav=np.array([5, 15], dtype=np.int32)))
        with pytest.raises(JetFileError, match=r"one of \[0, 4, 5\], got \[15\]"):
            read_jets(path)

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"training_data\.root"):
            read_jets(tmp_path / "nowhere.root")

    def test_an_empty_file(self, tmp_path: Path) -> None:
        (tmp_path / "jets.root").touch()
        with pytest.raises(JetFileError, match="0 bytes"):
            read_jets(tmp_path / "jets.root")

    def test_a_foreign_file(self, tmp_path: Path) -> None:
        (tmp_path / "jets.root").write_bytes(b"PK\x03\x04 and more than a header's worth of other bytes")
        with pytest.raises(JetFileError, match="not a ROOT file"):
            read_jets(tmp_path / "jets.root")

    @pytest.mark.parametrize("kept", [10, 200, 0.5, 0.99])
    def test_a_truncated_file(self, tmp_path: Path, kept: float) -> None:
        write_jets(tmp_path / "jets.root", random_sample())
        whole = (tmp_path / "jets.root").read_bytes()
        (tmp_path / "jets.root").write_bytes(whole[: int(kept if kept > 1 else kept * len(whole))])
        with pytest.raises(JetFileError, match=r"jets\.root is truncated: its header promises"):
            read_jets(tmp_path / "jets.root")

    def test_damaged_bytes(self, tmp_path: Path) -> None:
        write_jets(tmp_path / "jets.root", random_sample())
        whole = bytearray((tmp_path / "jets.root").read_bytes())
        whole[100:] = bytes(255 - byte for byte in whole[100:])
        (tmp_path / "jets.root").write_bytes(bytes(whole))
        with pytest.raises(JetFileError, match=r"jets\.root is a damaged ROOT file"):
            read_jets(tmp_path / "jets.root")

    def test_a_failed_write_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ak, "unflatten", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_jets(tmp_path / "jets.root", random_sample())
        assert not list(tmp_path.iterdir())


class TestStatistics:
    def test_by_hand(self) -> None:
        # a bottom jet of vertices {2, 1} tracks, a light jet of {2}, a light jet of {1, 1}
        features = np.zeros((7, 10))
        features[:, 0] = [1, 2, 3, 4, 5, 6, 7]
        features[:, 6] = [3, 3, 3, 6, 6, 9, 9]
        sample = jets(features, [0, 4, 0, 1, 1, 0, 1], [0, 3, 5, 7], [5, 0, 0])
        found = statistics(sample)
        assert found.jets == 3
        assert found.tracks == pytest.approx(7 / 3)
        assert found.same_vertex_entries == pytest.approx((5 + 4 + 2) / 3)
        assert (found.jets_of, found.tracks_of) == ({5: 1, 0: 2}, {5: 3.0, 0: 2.0})
        assert found.vertices_of == {5: 2.0, 0: 1.5}
        assert (found.normalisation.mean[0], found.normalisation.mean[6]) == (4.0, 6.0)
        assert found.normalisation.deviation[0] == pytest.approx(2.0)

    def test_the_table_has_the_official_values_first(self) -> None:
        table = statistics_table({"ours": statistics(random_sample())}).splitlines()
        assert table[0] == "| | official | ours |"
        assert f"| tracks per jet | 7.11 | {random_sample().num_tracks.mean():.2f} |" in table
        assert any(line.startswith("| vertices per jet, charm | - | ") for line in table)
        assert any(line.startswith("| jet_pt, deviation | 49.1345 | ") for line in table)
        assert {line.count("|") for line in table} == {4}
        assert OFFICIAL_STATISTICS.normalisation is OFFICIAL_NORMALISATION

    def test_a_sample_without_jets_has_none(self) -> None:
        with pytest.raises(ValueError, match="at least one jet"):
            statistics(random_sample()[[]])


def test_a_real_sample_of_another_detector() -> None:
    if not (DATA / "jets_alice").is_dir():
        pytest.skip("jets_alice is not on this machine")
    samples = {name: read_jets(DATA / "jets_alice" / file) for name, file in SPLITS.items()}
    assert {name: len(sample) for name, sample in samples.items()} == {"train": 14_274, "valid": 2_860, "test": 2_845}
    assert statistics(samples["test"]).jets_of == {5: 978, 4: 916, 0: 951}
    assert sum(sample.skipped_short for sample in samples.values()) == 0
    assert samples["train"].num_tracks.mean() == pytest.approx(6.883, abs=1e-3)


def test_branches_with_different_numbers_of_jets_are_refused():
    with pytest.raises(JetFileError, match=r"x\.root: 'b' has 0 jets, 'a' has 2"):
        _track_counts({"a": np.ones(2, np.int64), "b": np.ones(0, np.int64)}, Path("x.root"))
