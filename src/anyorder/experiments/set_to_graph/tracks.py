"""Charged tracks in a solenoid: helix, perigee parameters, resolutions and efficiencies of a generic detector.

Lengths in mm, momenta in GeV, the field in tesla along z. The perigee is the point of the helix nearest the z axis, at
(-d0 sin phi, d0 cos phi, z0), where phi is the direction of the transverse momentum there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
CURVATURE = 2.99792458e-4  # 1 / radius in 1 / mm of a unit charge with 1 GeV in 1 T


@dataclass(frozen=True)
class Perigee:
    """The helix of each track, as five parameters and a charge."""

    d0: Array
    z0: Array
    phi: Array
    ctgtheta: Array
    pt: Array
    charge: Array


@dataclass(frozen=True)
class Resolution:
    """Gaussian widths of the perigee parameters, each from a constant and a second term.

    d0 and z0 add (c, s / (pT sin^p theta)) in quadrature, with p = 1/2 and 3/2; phi and cot theta are c + s / pT; the
    relative width of pT is c + s pT.

    >>> print("{:.4f}".format(Resolution().d0_width(np.array(1.0), np.array(0.0))))
    0.0856
    """

    d0: tuple[float, float] = (0.010, 0.085)
    z0: tuple[float, float] = (0.050, 0.110)
    phi: tuple[float, float] = (1e-4, 1e-3)
    ctgtheta: tuple[float, float] = (0.7e-3, 2e-3)
    pt: tuple[float, float] = (0.013, 4e-4)

    def d0_width(self, pt: Array, ctgtheta: Array) -> Array:
        """Width of d0 in mm; sin theta = (1 + cot^2 theta)^(-1/2)."""
        return np.hypot(self.d0[0], self.d0[1] / pt * (1 + ctgtheta**2) ** 0.25)

    def z0_width(self, pt: Array, ctgtheta: Array) -> Array:
        """Width of z0 in mm."""
        return np.hypot(self.z0[0], self.z0[1] / pt * (1 + ctgtheta**2) ** 0.75)

    def phi_width(self, pt: Array) -> Array:
        """Width of phi in radians."""
        return self.phi[0] + self.phi[1] / pt

    def ctgtheta_width(self, pt: Array) -> Array:
        """Width of cot theta."""
        return self.ctgtheta[0] + self.ctgtheta[1] / pt

    def smear(self, track: Perigee, rng: np.random.Generator) -> Perigee:
        """The tracks as measured; pT is log-normal, so that it stays positive."""
        noise = rng.standard_normal((5, *track.pt.shape))
        return Perigee(
            d0=track.d0 + noise[0] * self.d0_width(track.pt, track.ctgtheta),
            z0=track.z0 + noise[1] * self.z0_width(track.pt, track.ctgtheta),
            phi=wrap_angle(track.phi + noise[2] * self.phi_width(track.pt)),
            ctgtheta=track.ctgtheta + noise[3] * self.ctgtheta_width(track.pt),
            pt=track.pt * np.exp(noise[4] * (self.pt[0] + self.pt[1] * track.pt)),
            charge=track.charge,
        )


def wrap_angle(angle: Array) -> Array:
    """The same angle in [-pi, pi).

    >>> float(wrap_angle(np.array(1.5 * np.pi)) / np.pi)
    -0.5
    """
    return np.asarray((angle + np.pi) % (2 * np.pi) - np.pi)


def perigee(position: Array, momentum: Array, charge: Array, field: float) -> Perigee:
    """The exact perigee of particles born at ``position`` with ``momentum``, both (track, 3).

    The direction turns by -1 / rho per length, with the signed radius rho = pT / (curvature q B), about the centre
    C = (x + rho sin phi, y - rho cos phi); the perigee lies on the line from the origin to C, and d0 = rho -+ |C|.
    """
    x, y, z = position.T
    pt = np.hypot(momentum[:, 0], momentum[:, 1])
    phi = np.arctan2(momentum[:, 1], momentum[:, 0])
    ctgtheta = momentum[:, 2] / pt
    rho = pt / (CURVATURE * field * charge)
    centre_x, centre_y = x + rho * np.sin(phi), y - rho * np.cos(phi)
    side = np.sign(rho)
    phi_there = np.arctan2(side * centre_x, -side * centre_y)
    travelled = -rho * wrap_angle(phi_there - phi)
    return Perigee(
        d0=rho - side * np.hypot(centre_x, centre_y),
        z0=z + ctgtheta * travelled,
        phi=phi_there,
        ctgtheta=ctgtheta,
        pt=pt,
        charge=charge,
    )


def efficiency(pt: Array, eta: Array, particle: NDArray[np.int32]) -> Array:
    """The probability to find the track of a charged particle, by pT, |eta| and kind (electron, muon, hadron)."""
    kind = np.select([np.abs(particle) == 11, np.abs(particle) == 13], [0, 1], default=2)
    band = np.digitize(pt, (1.0, 100.0))  # 0.1 to 1, 1 to 100, above 100 GeV
    central = np.array([[0.73, 0.95, 0.99], [0.75, 0.99, 0.99], [0.70, 0.95, 0.95]])
    forward = np.array([[0.50, 0.83, 0.90], [0.70, 0.98, 0.98], [0.60, 0.85, 0.85]])
    found = np.where(np.abs(eta) <= 1.5, central[kind, band], forward[kind, band])
    return np.where((pt > 0.1) & (np.abs(eta) <= 2.5), found, 0.0)
