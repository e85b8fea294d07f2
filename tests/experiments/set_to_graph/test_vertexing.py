"""Adaptive vertex reconstruction on jets whose vertices are known."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from anyorder.experiments.set_to_graph.baselines.vertexing import VertexFinder, measured_resolution
from anyorder.experiments.set_to_graph.jets import JetSample
from anyorder.experiments.set_to_graph.partitions import partition_scores
from anyorder.experiments.set_to_graph.tracks import Resolution, perigee

Array = NDArray[np.float64]
SHARP = Resolution(d0=(0.002, 0.004), z0=(0.004, 0.006), phi=(1e-5, 5e-5), ctgtheta=(1e-5, 5e-5), pt=(0.0, 0.0))


def jets_from(births: list[Array], seed: int = 0, resolution: Resolution = SHARP, low_pt: float = 1.0) -> JetSample:
    """One jet per array of birth points (track, 3), along x with some spread; tracks of one point are one vertex."""
    rng = np.random.default_rng(seed)
    counts = [len(points) for points in births]
    number = sum(counts)
    pt = low_pt + rng.exponential(3.0, number)
    phi, eta = rng.normal(0.0, 0.15, number), rng.normal(0.3, 0.15, number)
    momentum = np.stack([pt * np.cos(phi), pt * np.sin(phi), pt * np.sinh(eta)], axis=1)
    track = perigee(np.concatenate(births), momentum, rng.choice([-1.0, 1.0], number), 2.0)
    seen = resolution.smear(track, rng)
    jet = np.tile([80.0, 0.3, 0.0, 9.0], (number, 1))
    tracks = np.stack([seen.d0, seen.z0, seen.phi, seen.ctgtheta, seen.pt, seen.charge], axis=1)
    vertex = np.concatenate([np.unique(points, axis=0, return_inverse=True)[1].ravel() for points in births])
    return JetSample(
        features=np.concatenate([tracks, jet], axis=1).astype(np.float32),
        vertex=vertex.astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        flavour=np.zeros(len(births), dtype=np.int32),
    )


def random_births(rng: np.random.Generator, num_jets: int) -> list[Array]:
    """A primary vertex at the origin and up to two displaced ones along the jet."""
    births = []
    for _ in range(num_jets):
        points = [np.zeros(3)] * int(rng.integers(2, 6))
        for distance in rng.uniform(5.0, 40.0, int(rng.integers(0, 3))):
            place = distance * np.array([1.0, *rng.normal(0.0, 0.05, 2)]) + np.array([0.0, 0.0, 0.3 * distance])
            points += [place] * int(rng.integers(2, 4))
        births.append(np.array(points))
    return births


FINDER = VertexFinder(resolution=SHARP, beam_width=(0.002, 0.004))


def test_finds_the_vertices_of_a_sharp_detector() -> None:
    sample = jets_from(random_births(np.random.default_rng(1), 300))
    scores = partition_scores(sample.vertex, FINDER(sample), sample.offsets)
    assert scores.adjusted_rand_index.mean() > 0.97
    assert np.mean(scores.adjusted_rand_index == 1.0) > 0.9


def test_the_fit_reads_the_curvature() -> None:
    births = [np.array([[0.0, 0.0, 0.0]] * 3 + [[300.0, 5.0, 90.0]] * 3)] * 100  # where strange hadrons decay
    sample = jets_from(births, low_pt=0.5)
    right = partition_scores(sample.vertex, FINDER(sample), sample.offsets)
    wrong = partition_scores(sample.vertex, replace(FINDER, magnetic_field=0.01)(sample), sample.offsets)
    assert right.adjusted_rand_index.mean() > 0.95
    assert wrong.adjusted_rand_index.mean() < right.adjusted_rand_index.mean() - 0.2


def test_a_primary_jet_is_one_cluster() -> None:
    sample = jets_from([np.zeros((6, 3))] * 50)
    found = FINDER(sample).reshape(50, 6)
    assert np.mean((found == 0).all(axis=1)) > 0.95


def test_residuals_vanish_at_the_birth_point() -> None:
    exact = Resolution(d0=(0.0, 0.0), z0=(0.0, 0.0), phi=(0.0, 0.0), ctgtheta=(0.0, 0.0), pt=(0.0, 0.0))
    births = [np.tile([30.0, 8.0, -12.0], (5, 1)), np.tile([-2.0, 0.5, 3.0], (5, 1))]
    helices, valid = FINDER.helices(jets_from(births, resolution=exact))
    across, along, *_ = helices.residuals(np.array([[30.0, 8.0, -12.0], [-2.0, 0.5, 3.0]]))
    np.testing.assert_allclose(across[valid], 0.0, atol=1e-4)  # features are float32
    np.testing.assert_allclose(along[valid], 0.0, atol=1e-4)


def test_steps_end_at_the_least_sum_of_squares() -> None:
    sample = jets_from([np.tile([4.0, 0.3, 1.0], (5, 1))] * 4)
    helices, _ = FINDER.helices(sample)
    vertex = np.zeros((4, 3))
    for _ in range(8):
        vertex = helices.step(vertex, np.ones((4, 5)))
    best = helices.chi2(vertex).sum(axis=1)
    np.testing.assert_allclose(vertex, np.tile([4.0, 0.3, 1.0], (4, 1)), atol=0.2)
    for shift in 0.01 * np.concatenate([np.eye(3), -np.eye(3)]):
        assert np.all(helices.chi2(vertex + shift).sum(axis=1) > best - 1e-3)


def test_the_order_of_tracks_and_the_other_jets_do_not_matter() -> None:
    rng = np.random.default_rng(3)
    sample = jets_from(random_births(rng, 60))
    found = FINDER(sample)
    ranges = zip(sample.offsets[:-1], sample.offsets[1:], strict=True)
    order = np.concatenate([rng.permutation(np.arange(start, end)) for start, end in ranges])
    shuffled = JetSample(sample.features[order], sample.vertex[order], sample.offsets, sample.flavour)
    agreement = partition_scores(found[order], FINDER(shuffled), sample.offsets)
    assert np.all(agreement.rand_index == 1.0)
    alone = np.concatenate([FINDER(sample[jet : jet + 1]) for jet in range(len(sample))])
    assert np.array_equal(alone, found)
    assert np.array_equal(replace(FINDER, block=7)(sample), found)


def test_turning_a_jet_about_the_beam_changes_nothing() -> None:
    sample = jets_from(random_births(np.random.default_rng(4), 60))
    turned = sample.features.copy()
    turned[:, 2] = (turned[:, 2] + 2.0 + np.pi) % (2 * np.pi) - np.pi
    agreement = partition_scores(FINDER(sample), FINDER(replace(sample, features=turned)), sample.offsets)
    assert agreement.rand_index.mean() > 0.999  # float32 angles may move a track over a cut


def test_labels_count_from_zero_in_each_jet() -> None:
    sample = jets_from(random_births(np.random.default_rng(5), 100))
    found = FINDER(sample)
    for start, end in zip(sample.offsets[:-1], sample.offsets[1:], strict=True):
        assert sorted(set(found[start:end].tolist())) == list(range(len(set(found[start:end].tolist()))))


def test_tracks_that_cross_nothing_are_singletons() -> None:
    births = [np.array([[0.0, 0.0, 0.0]] * 3 + [[20.0, 4.0, -50.0], [10.0, -3.0, 50.0]])] * 20
    sample = jets_from(births)
    assert np.mean(FINDER(sample).reshape(20, 5)[:, 3:] == [1, 2]) > 0.9


def test_an_empty_sample_gives_no_labels() -> None:
    assert FINDER(jets_from([np.zeros((2, 3))])[:0]).shape == (0,)


def test_normalised_features_are_refused() -> None:
    sample = jets_from([np.zeros((3, 3))])
    features = sample.features.copy()
    features[1, 4] = -0.5
    with pytest.raises(ValueError, match="raw features"):
        FINDER(replace(sample, features=features))


def test_measured_resolution_is_the_one_put_in() -> None:
    true = Resolution(d0=(0.012, 0.095), z0=(0.09, 0.19))
    found = measured_resolution(jets_from([np.zeros((8, 3))] * 2000, resolution=true, low_pt=0.3))
    np.testing.assert_allclose(found.d0, true.d0, rtol=0.15)
    np.testing.assert_allclose(found.z0, true.z0, rtol=0.15)
    assert found.phi == true.phi
    with pytest.raises(ValueError, match="at least 240 tracks"):
        measured_resolution(jets_from([np.zeros((8, 3))]))


def test_two_thousand_jets_take_well_under_two_seconds() -> None:
    sample = jets_from(random_births(np.random.default_rng(6), 2000))
    start = time.process_time()
    FINDER(sample)
    assert time.process_time() - start < 2.0
