"""The simulation of jets: geometry and labels by hand, chunks with a stand-in for Pythia, and a small real run."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from anyorder.experiments.set_to_graph import jet_simulation
from anyorder.experiments.set_to_graph.jet_events import (
    EventSettings,
    Particles,
    flavours,
    jet_distances,
    link_vertices,
    nearest_jet,
    simulate_events,
)
from anyorder.experiments.set_to_graph.jet_simulation import SHARES, balance_code, balanced_choice, simulate
from anyorder.experiments.set_to_graph.jet_statistics import statistics
from anyorder.experiments.set_to_graph.jets import FEATURES, FLAVOURS, SPLITS, JetSample, concatenate, read_jets

pytest.importorskip("uproot")
pytest.importorskip("scipy")
needs_pythia = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("pythia8mc", "fastjet", "vector")),
    reason="pythia8mc and fastjet are not installed",
)


def particles(event: list[int], identity: list[int], pt: list[float], eta: list[float], phi: list[float]) -> Particles:
    size, slope, angle = np.array(pt), np.array(eta), np.array(phi)
    axes = [np.cos(angle), np.sin(angle), np.sinh(slope), np.cosh(slope)]
    number = len(event)
    return Particles(
        event=np.array(event),
        identity=np.array(identity, dtype=np.int32),
        final=np.ones(number, dtype=bool),
        momentum=size[:, None] * np.stack(axes, axis=1),
        birth=np.zeros((number, 3)),
        charge=np.ones(number),
    )


def fake_events(num_events: int, seed: tuple[int, ...], settings: EventSettings) -> JetSample:
    """As many jets as events, of all flavours and sizes, without physics."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(settings.min_tracks, 6, num_events)
    features = rng.normal(size=(counts.sum(), len(FEATURES)))
    jets = np.stack([rng.exponential(60.0, num_events), rng.uniform(-2.5, 2.5, num_events)], axis=1)
    features[:, 6:8] = np.repeat(jets, counts, axis=0)
    features[:, 8:] = 1.0
    return JetSample(
        features=features.astype(np.float32),
        vertex=np.zeros(counts.sum(), dtype=np.int32),
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        flavour=rng.choice(np.array([0, 0, 4, 5], dtype=np.int32), num_events),
    )


def read_all(files: dict[str, Path]) -> dict[str, JetSample]:
    return {name: read_jets(path) for name, path in files.items()}


def same(one: dict[str, JetSample], other: dict[str, JetSample]) -> bool:
    return all(
        np.array_equal(getattr(one[split], name), getattr(other[split], name))
        for split in SPLITS
        for name in ("features", "vertex", "offsets", "flavour")
    )


class TestLabels:
    def test_single_linkage_chains_within_a_jet_only(self) -> None:
        birth = np.zeros((7, 3))
        birth[:, 0] = [0.0, 1.0, 0.04, 0.08, 0.0, 0.04, 5.0]  # mm; 0, 2 and 3 form a chain of 0.04 mm links
        owner = np.array([0, 0, 0, 0, 1, 1, 1])
        assert link_vertices(owner, birth, 0.05).tolist() == [0, 1, 0, 0, 0, 0, 1]
        assert link_vertices(owner, birth, 0.03).tolist() == [0, 1, 2, 3, 0, 1, 2]
        assert link_vertices(owner[:0], birth[:0], 0.05).tolist() == []

    def test_distances_wrap_and_stay_within_the_event(self) -> None:
        jets = particles([0, 0, 2], [0] * 3, [50.0] * 3, [0.0, 1.0, 0.0], [3.1, 0.0, 0.0])
        event, eta, phi = np.array([0, 0, 1, 2]), np.array([0.0, 0.9, 0.0, 0.3]), np.array([-3.1, 0.0, 0.0, 0.4])
        owner, distance = nearest_jet(jets, event, eta, phi)
        assert owner[[0, 1, 3]].tolist() == [0, 1, 2]
        np.testing.assert_allclose(distance, [2 * np.pi - 6.2, 0.1, np.inf, 0.5], atol=1e-9)
        all_distances, slots = jet_distances(jets, event, eta, phi)
        assert np.isinf(all_distances[slots < 0]).all()

    def test_bottom_wins_over_charm_and_soft_or_far_hadrons_do_not_count(self) -> None:
        jets = particles([0, 0, 0, 1], [0] * 4, [50.0] * 4, [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 0.0])
        heavy = particles(
            [0, 0, 0, 0, 0, 1],
            [421, -521, 411, 511, 4122, 531],
            [20.0, 30.0, 20.0, 4.9, 20.0, 30.0],
            [0.0, 0.0, 0.1, 0.0, 0.0, 0.5],
            [0.0, 0.1, 1.0, 1.0, 2.31, 0.0],
        )
        assert flavours(jets, heavy, EventSettings()).tolist() == [5, 4, 0, 0]


class TestBalance:
    def test_every_bin_holds_each_flavour_as_often(self) -> None:
        sample = fake_events(4000, (0,), EventSettings())
        chosen = balanced_choice(balance_code(sample), sample.flavour, 900, seed=0)
        assert len(set(chosen.tolist())) == 900
        code, flavour = balance_code(sample)[chosen], sample.flavour[chosen]
        counts: list[NDArray[np.int64]] = [np.bincount(code[flavour == f], minlength=code.max() + 1) for f in FLAVOURS]
        assert np.array_equal(counts[0], counts[1])
        assert np.array_equal(counts[0], counts[2])

    def test_too_few_jets_are_an_error(self) -> None:
        sample = fake_events(100, (0,), EventSettings())
        with pytest.raises(ValueError, match="900 balanced jets were asked for"):
            balanced_choice(balance_code(sample), sample.flavour, 900, seed=0)


class TestChunks:
    @pytest.fixture(autouse=True)
    def no_physics(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[int, ...]] = []

        def counted(num_events: int, seed: tuple[int, ...], settings: EventSettings) -> JetSample:
            self.made.append(seed)
            return fake_events(num_events, seed, settings)

        monkeypatch.setattr(jet_simulation, "simulate_events", counted)
        needed = {"rich.progress": importlib.import_module("rich.progress"), "pythia8mc": None}
        monkeypatch.setattr(jet_simulation, "require", lambda name, extra: needed[name])

    def test_shares_flavours_and_record(self, tmp_path: Path) -> None:
        files = simulate(300, out_dir=tmp_path, seed=3, chunk_events=200, progress=False)
        assert {name: path.name for name, path in files.items()} == SPLITS
        samples = read_all(files)
        assert {name: len(sample) for name, sample in samples.items()} == {"train": 180, "valid": 60, "test": 60}
        for sample in samples.values():
            assert [np.sum(sample.flavour == flavour) for flavour in FLAVOURS] == [len(sample) / 3] * 3
        together = concatenate(list(samples.values()))
        assert len(np.unique(together.features, axis=0)) == len(together.features)  # no jet twice
        record = json.loads((tmp_path / "simulation.json").read_text())
        assert (record["num_jets"], record["seed"], record["events"]) == (300, 3, 200 * len(self.made))
        assert sum(SHARES.values()) == pytest.approx(1.0)

    def test_the_same_seed_gives_the_same_sample(self, tmp_path: Path) -> None:
        one, two, other = (
            read_all(simulate(90, out_dir=tmp_path / name, seed=seed, chunk_events=100, progress=False))
            for name, seed in (("one", 0), ("two", 0), ("other", 1))
        )
        assert same(one, two)
        assert not same(one, other)

    def test_finished_chunks_are_not_simulated_again(self, tmp_path: Path) -> None:
        first = read_all(simulate(90, out_dir=tmp_path, chunk_events=100, progress=False))
        made = len(self.made)
        assert made > 1
        assert same(read_all(simulate(90, out_dir=tmp_path, chunk_events=100, progress=False)), first)
        assert len(self.made) == made
        simulate(180, out_dir=tmp_path, chunk_events=100, progress=False)
        assert len(self.made) == len(set(self.made)) > made

    def test_an_interrupted_run_goes_on(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = read_all(simulate(90, out_dir=tmp_path / "whole", chunk_events=100, progress=False))
        needed = len(self.made)
        assert needed > 2

        def interrupted(num_events: int, seed: tuple[int, ...], settings: EventSettings) -> JetSample:
            if len(self.made) == needed + 2:
                raise KeyboardInterrupt
            self.made.append(seed)
            return fake_events(num_events, seed, settings)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(jet_simulation, "simulate_events", interrupted)
            simulate(90, out_dir=tmp_path / "cut", chunk_events=100, progress=False)
        assert not (tmp_path / "cut" / SPLITS["train"]).exists()
        resumed = read_all(simulate(90, out_dir=tmp_path / "cut", chunk_events=100, progress=False))
        assert same(resumed, whole)
        assert len(self.made) == 2 * needed

    def test_a_damaged_chunk_is_made_again(self, tmp_path: Path) -> None:
        first = read_all(simulate(90, out_dir=tmp_path, chunk_events=100, progress=False))
        made = len(self.made)
        chunk = sorted(tmp_path.glob("chunks/*/*.npz"))[0]
        chunk.write_bytes(chunk.read_bytes()[:500])
        assert same(read_all(simulate(90, out_dir=tmp_path, chunk_events=100, progress=False)), first)
        assert len(self.made) == made + 1

    def test_other_settings_use_other_chunks(self, tmp_path: Path) -> None:
        simulate(30, out_dir=tmp_path, chunk_events=100, progress=False)
        made = len(self.made)
        simulate(30, out_dir=tmp_path, chunk_events=100, settings=EventSettings(jet_min_pt=40.0), progress=False)
        assert len(self.made) > made
        assert len(list((tmp_path / "chunks").iterdir())) == 2

    def test_settings_that_give_no_jets_do_not_run_for_ever(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        one = fake_events(1, (0,), EventSettings())
        monkeypatch.setattr(jet_simulation, "simulate_events", lambda number, seed, settings: one)
        with pytest.raises(ValueError, match=r"no jets that can be balanced, only .*charm"):
            simulate(30, out_dir=tmp_path, chunk_events=5000, progress=False)

    @pytest.mark.parametrize(
        ("jets", "seed", "workers", "match"),
        [(4, 0, 1, "num_jets must be at least 5"), (9, -1, 1, "seed must not"), (9, 0, 0, "workers must be at least")],
    )
    def test_wrong_arguments(self, tmp_path: Path, jets: int, seed: int, workers: int, match: str) -> None:
        with pytest.raises(ValueError, match=match):
            simulate(jets, out_dir=tmp_path, seed=seed, workers=workers)


@needs_pythia
class TestPhysics:
    def test_a_few_real_events(self) -> None:
        settings = EventSettings()
        sample = simulate_events(40, 7, settings)
        again = simulate_events(40, 7, settings)
        assert np.array_equal(sample.features, again.features)
        assert np.array_equal(sample.vertex, again.vertex)
        assert len(sample) > 80
        assert sample.num_tracks.min() >= 2
        assert sample.num_tracks.max() <= 14
        assert sample.jet_features[:, 0].min() > 34.0
        assert np.abs(sample.jet_features[:, 1]).max() < 2.5
        assert set(np.unique(sample.flavour)) == set(FLAVOURS)
        assert set(np.unique(sample.features[:, 5])) == {-1.0, 1.0}
        assert np.isfinite(sample.features).all()
        vertices = statistics(sample).vertices_of
        assert vertices[5] > vertices[4] > vertices[0] >= 1.0  # heavier hadrons make more vertices
        light = np.repeat(sample.flavour == 0, sample.num_tracks)
        assert np.median(np.abs(sample.features[light, 0])) < 0.1  # most tracks point at the collision

    @pytest.mark.slow
    def test_the_sample_does_not_depend_on_the_number_of_workers(self, tmp_path: Path) -> None:
        one = read_all(simulate(15, out_dir=tmp_path / "one", seed=1, workers=1, chunk_events=25, progress=False))
        two = read_all(simulate(15, out_dir=tmp_path / "two", seed=1, workers=2, chunk_events=25, progress=False))
        assert same(one, two)
