"""The perigee of a helix against walking along it, and the resolutions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from anyorder.experiments.set_to_graph.tracks import CURVATURE, Resolution, efficiency, perigee, wrap_angle

Array = NDArray[np.float64]


def random_births(rng: np.random.Generator, number: int) -> tuple[Array, Array, Array]:
    position = rng.normal(0.0, 60.0, (number, 3))
    momentum = rng.normal(0.0, 2.0, (number, 3)) + rng.choice([-1.0, 1.0], (number, 3))
    return position, momentum, rng.choice([-1.0, 1.0], number)


def walk(position: Array, momentum: Array, charge: Array, field: float, step: float) -> tuple[Array, Array]:
    """Points and directions (step, track, 3) of dp/dt = q v x B, integrated over 400 mm with tiny steps."""
    pt = np.hypot(momentum[:, 0], momentum[:, 1])
    half = np.exp(-0.5j * CURVATURE * field * charge / pt * step)  # half a turn of a step, as a complex factor
    place, along = position[:, 0] + 1j * position[:, 1], (momentum[:, 0] + 1j * momentum[:, 1]) / pt
    places, directions = [place], [along]
    for _ in range(int(400 / abs(step))):
        place, along = place + step * along * half, along * half**2
        places.append(place)
        directions.append(along)
    z = position[:, 2] + np.arange(len(places))[:, None] * step * momentum[:, 2] / pt
    return np.stack([np.real(places), np.imag(places), z], axis=-1), np.asarray(np.angle(directions))


@pytest.mark.parametrize("field", [2.0, -0.5])
def test_perigee_is_the_nearest_point_of_the_walk(field: float) -> None:
    position, momentum, charge = random_births(np.random.default_rng(0), 40)
    track = perigee(position, momentum, charge, field)
    ways = [walk(position, momentum, charge, field, step) for step in (-0.05, 0.05)]  # back and forth in time
    points, phi = (np.concatenate([way[part] for way in ways]) for part in (0, 1))
    nearest = np.hypot(points[..., 0], points[..., 1]).argmin(axis=0)
    points, phi = points[nearest, np.arange(40)], phi[nearest, np.arange(40)]
    np.testing.assert_allclose(np.abs(track.d0), np.hypot(points[:, 0], points[:, 1]), atol=1e-3)
    np.testing.assert_allclose(wrap_angle(track.phi - phi), 0.0, atol=1e-2)
    np.testing.assert_allclose(track.z0, points[:, 2], atol=0.3)
    np.testing.assert_allclose(-track.d0 * np.sin(track.phi), points[:, 0], atol=0.1)
    np.testing.assert_allclose(track.d0 * np.cos(track.phi), points[:, 1], atol=0.1)


def test_a_track_from_the_origin_has_no_impact_parameters() -> None:
    _, momentum, charge = random_births(np.random.default_rng(1), 50)
    track = perigee(np.zeros((50, 3)), momentum, charge, 2.0)
    np.testing.assert_allclose(track.d0, 0.0, atol=1e-9)
    np.testing.assert_allclose(track.z0, 0.0, atol=1e-9)
    np.testing.assert_allclose(track.phi, np.arctan2(momentum[:, 1], momentum[:, 0]), atol=1e-12)


def test_a_stiff_track_is_a_straight_line() -> None:
    track = perigee(np.array([[3.0, 1.0, 7.0]]), np.array([[1e6, 0.0, 5e5]]), np.array([1.0]), 2.0)
    assert track.d0[0] == pytest.approx(1.0, abs=1e-5)
    assert track.z0[0] == pytest.approx(7.0 - 0.5 * 3.0, abs=1e-5)


def test_smearing_has_the_widths_it_says() -> None:
    number, pt, ctgtheta = 40_000, 2.0, 1.5
    momentum = np.tile([pt, 0.0, pt * ctgtheta], (number, 1))
    track = perigee(np.zeros((number, 3)), momentum, np.ones(number), 2.0)
    seen = Resolution().smear(track, np.random.default_rng(2))
    sine = (1 + ctgtheta**2) ** -0.5
    assert np.std(seen.d0) == pytest.approx(np.hypot(0.010, 0.085 / (pt * sine**0.5)), rel=0.02)
    assert np.std(seen.z0) == pytest.approx(np.hypot(0.050, 0.110 / (pt * sine**1.5)), rel=0.02)
    assert np.std(seen.phi) == pytest.approx(1e-4 + 1e-3 / pt, rel=0.02)
    assert np.std(seen.ctgtheta) == pytest.approx(0.7e-3 + 2e-3 / pt, rel=0.02)
    assert np.std(seen.pt) == pytest.approx(pt * (0.013 + 4e-4 * pt), rel=0.02)


def test_efficiency_depends_on_kind_momentum_and_direction() -> None:
    pt, eta = np.array([0.05, 0.7, 5.0, 5.0, 5.0, 200.0, 5.0]), np.array([0.0, 0.0, 0.0, 2.0, 2.6, 0.0, -1.0])
    particle = np.array([211, 211, -211, 211, 211, 11, 13], dtype=np.int32)
    assert efficiency(pt, eta, particle).tolist() == [0.0, 0.70, 0.95, 0.85, 0.0, 0.99, 0.99]


def test_wrap_angle() -> None:
    angles = np.linspace(-20.0, 20.0, 401)
    wrapped = wrap_angle(angles)
    assert np.all((wrapped >= -np.pi) & (wrapped < np.pi))
    np.testing.assert_allclose(np.exp(1j * wrapped), np.exp(1j * angles), atol=1e-12)
