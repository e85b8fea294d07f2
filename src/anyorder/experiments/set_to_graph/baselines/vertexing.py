"""Adaptive vertex reconstruction (AVR): partition the tracks of a jet by fitting vertices to helices, without learning.

A vertex is fitted by weighted least squares, with weights that fall with the distance of a track and sharpen as a
temperature is lowered; the tracks that belong to it are taken off, and the rest is fitted again until no pair is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from anyorder.experiments.set_to_graph.jets import TRACK_FEATURES, JetSample
from anyorder.experiments.set_to_graph.tracks import CURVATURE, Resolution, wrap_angle

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Labels = NDArray[np.int64]
LOOSE = 1e-6  # 1 / mm^2: holds a vertex that its tracks leave free, as parallel ones do, within a metre


@dataclass(frozen=True)
class Helices:
    """Helices with the variances of their perigee, all of shape (jet, track)."""

    rho: Array  # signed radius
    centre_x: Array
    centre_y: Array
    phi: Array
    z0: Array
    ctgtheta: Array
    var_d0: Array
    var_z0: Array
    var_phi: Array
    var_ctgtheta: Array

    def take(self, rows: Labels, columns: Labels | None = None) -> Helices:
        """The helices of some jets, all tracks of each or those in ``columns`` (jet, track)."""
        which = rows if columns is None else (rows[:, None], columns)
        return Helices(*(getattr(self, item.name)[which] for item in fields(self)))

    def residuals(self, vertex: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Distances of closest approach to a vertex (jet, 3), across and along the beam, direction there, weights.

        With the vertex as origin the perigee is rho - +|C| away; variances grow with the way travelled from the
        perigee at the true origin, and the weights are their inverses.
        """
        x, y = self.centre_x - vertex[:, None, 0], self.centre_y - vertex[:, None, 1]
        side = np.sign(self.rho)
        phi = np.arctan2(side * x, -side * y)
        way = -self.rho * wrap_angle(phi - self.phi)
        across = self.rho - side * np.hypot(x, y)
        along = self.z0 + self.ctgtheta * way - vertex[:, None, 2]
        weight_across = 1 / (self.var_d0 + way**2 * self.var_phi)
        weight_along = 1 / (self.var_z0 + way**2 * self.var_ctgtheta)
        return across, along, phi, weight_across, weight_along

    def chi2(self, vertex: Array) -> Array:
        """Squared distance of each track from the vertex in units of its resolution."""
        across, along, _, weight_across, weight_along = self.residuals(vertex)
        return across**2 * weight_across + along**2 * weight_along

    def step(self, vertex: Array, weight: Array, beam: Array | None = None) -> Array:
        """One Gauss-Newton step of the weighted least squares; ``beam`` holds inverse variances about the origin."""
        across, along, phi, weight_across, weight_along = self.residuals(vertex)
        sine, cosine, zero = np.sin(phi), np.cos(phi), np.zeros_like(phi)
        slope = np.concatenate(
            [
                np.stack([sine, -cosine, zero], axis=-1),
                np.stack([self.ctgtheta * cosine, self.ctgtheta * sine, zero - 1], axis=-1),
            ],
            axis=1,
        )
        weights = np.concatenate([weight * weight_across, weight * weight_along], axis=1)
        weighted = (slope * weights[..., None]).swapaxes(1, 2)
        pull = -weighted @ np.concatenate([across, along], axis=1)[..., None]
        hold = np.full(3, LOOSE)
        if beam is not None:
            hold = hold + beam
            pull = pull - (beam * vertex)[..., None]
        return np.asarray(vertex + np.linalg.solve(weighted @ slope + np.diag(hold), pull)[..., 0])


@dataclass(frozen=True)
class VertexFinder:
    """The settings of the search: detector, cut-offs in standard deviations, and the annealing schedule."""

    magnetic_field: float = 2.0
    resolution: Resolution = field(default_factory=Resolution)
    beam_width: tuple[float, float] = (0.01, 0.05)  # mm, across and along: where the primary vertex is
    primary_cut: float = 3.5
    secondary_cut: float = 3.0
    temperatures: tuple[float, ...] = (64.0, 16.0, 4.0, 1.0, 1.0)
    seed_steps: int = 5
    block: int = 2000  # jets that are in memory together

    def __call__(self, sample: JetSample) -> Labels:
        """A vertex label per track of a sample with raw features; labels count from 0 in each jet.

        The tracks that no vertex takes are singletons.
        """
        starts = range(0, len(sample), self.block)
        labels = [self._find(sample.select(slice(start, start + self.block))) for start in starts]
        return np.concatenate(labels) if labels else np.zeros(0, dtype=np.int64)

    def _find(self, sample: JetSample) -> Labels:
        helices, valid = self.helices(sample)
        beam = np.array([self.beam_width[0], self.beam_width[0], self.beam_width[1]]) ** -2.0
        primary = self._anneal(helices, np.zeros((len(sample), 3)), valid, self.primary_cut, beam)
        labels = np.where(primary, 0, np.where(valid, -1, -2))
        seeds = self._seeds(helices, labels == -1)
        for number in range(1, len(seeds.jet) + 1):  # each turn uses up a seed of every jet that still has one
            best, seeds = seeds.best(labels == -1)
            if not len(best.jet):
                break
            left = labels[best.jet] == -1
            taken = self._anneal(helices.take(best.jet), best.vertex, left, self.secondary_cut)
            taken &= taken.sum(axis=1, keepdims=True) > 1
            labels[best.jet] = np.where(taken, number, labels[best.jet])
        singles = labels.max(initial=0) + 1 + np.arange(labels.shape[1])
        return _renumbered(np.where(labels == -1, singles, labels)[valid], sample.num_tracks)

    def helices(self, sample: JetSample) -> tuple[Helices, Mask]:
        """The helices of a sample, padded to its largest jet, and which of them exist."""
        valid = np.arange(int(sample.num_tracks.max(initial=0))) < sample.num_tracks[:, None]
        track = np.ones((*valid.shape, len(TRACK_FEATURES)))  # padding is any helix: its weight is always 0
        track[valid] = sample.features[:, : len(TRACK_FEATURES)]
        d0, z0, phi, ctgtheta, pt, charge = np.moveaxis(track, -1, 0)
        if np.any((pt <= 0) | (charge == 0)):
            raise ValueError("tracks need a positive pT and a charge: pass raw features, not normalised ones")
        rho = pt / (CURVATURE * self.magnetic_field * charge)
        widths = self.resolution
        return Helices(
            rho=rho,
            centre_x=(rho - d0) * np.sin(phi),
            centre_y=(d0 - rho) * np.cos(phi),
            phi=phi,
            z0=z0,
            ctgtheta=ctgtheta,
            var_d0=widths.d0_width(pt, ctgtheta) ** 2,
            var_z0=widths.z0_width(pt, ctgtheta) ** 2,
            var_phi=widths.phi_width(pt) ** 2,
            var_ctgtheta=widths.ctgtheta_width(pt) ** 2,
        ), valid

    def _anneal(self, helices: Helices, vertex: Array, left: Mask, cut: float, beam: Array | None = None) -> Mask:
        """Which of the tracks that are left belong to the vertex that the annealed fit from a start ends at."""
        for temperature in self.temperatures:
            vertex = helices.step(vertex, left * _weight(helices.chi2(vertex), cut, temperature), beam)
        return np.asarray(left & (helices.chi2(vertex) < cut**2))

    def _seeds(self, helices: Helices, left: Mask) -> Seeds:
        """The crossing of every pair of tracks that are left and do cross, with the weights of all tracks there."""
        first, second = np.triu_indices(left.shape[1], 1)
        jet, pair = np.nonzero(left[:, first] & left[:, second])
        tracks = np.stack([first[pair], second[pair]], axis=1)
        two, vertex = helices.take(jet, tracks), np.zeros((len(jet), 3))
        for _ in range(self.seed_steps):
            vertex = two.step(vertex, np.ones((len(jet), 2)))
        crossing = np.flatnonzero((two.chi2(vertex) < self.secondary_cut**2).all(axis=1))
        jet, vertex = jet[crossing], vertex[crossing]
        weight = _weight(helices.take(jet).chi2(vertex), self.secondary_cut, 1.0)
        return Seeds(jet, tracks[crossing], vertex, weight)


@dataclass(frozen=True)
class Seeds:
    """Where to begin a fit: crossings of two tracks, sorted by jet, with the weight of each track of the jet there."""

    jet: Labels
    tracks: Labels
    vertex: Array
    weight: Array

    def take(self, which: NDArray[np.generic]) -> Seeds:
        """Some of the seeds."""
        return Seeds(self.jet[which], self.tracks[which], self.vertex[which], self.weight[which])

    def best(self, left: Mask) -> tuple[Seeds, Seeds]:
        """The seed of each jet with the largest weight of tracks that are left, and the seeds for later."""
        usable = self.take(np.asarray(np.take_along_axis(left[self.jet], self.tracks, axis=1).all(axis=1)))
        score = np.sum(usable.weight * left[usable.jet], axis=1)
        order = np.lexsort((-score, usable.jet))
        chosen = np.zeros(len(order), dtype=bool)
        chosen[order[np.diff(usable.jet[order], prepend=-1) > 0]] = True
        return usable.take(chosen), usable.take(~chosen)


def measured_resolution(sample: JetSample, start: Resolution | None = None, num_bins: int = 12) -> Resolution:
    """The d0 and z0 resolutions of a detector, from the core of its light jets in bins of pT; the rest as in ``start``.

    Half the distance between the quantiles at 16 % and 84 % is fitted as (c^2 + s^2 / pT^2)^(1/2).
    """
    light = np.repeat(sample.flavour == 0, sample.num_tracks)
    if np.sum(light) < 20 * num_bins:
        raise ValueError(f"expected at least {20 * num_bins} tracks in light jets to measure from, got {np.sum(light)}")
    d0, z0, _, ctgtheta, pt = sample.features[light, :5].astype(np.float64).T
    bins = np.array_split(np.argsort(pt, kind="stable"), num_bins)
    terms = []
    for values, power in ((d0, 0.5), (z0, 1.5)):
        scale = (1 + ctgtheta**2) ** power / pt**2  # of the squared second term
        design = np.array([[1.0, np.median(scale[own])] for own in bins])
        width = np.array([np.diff(np.quantile(values[own], (0.16, 0.84)))[0] / 2 for own in bins])
        relative = design / width[:, None] ** 2  # every bin counts by its relative error
        constant, slope = np.linalg.lstsq(relative, np.ones(num_bins), rcond=None)[0]
        terms.append((float(np.sqrt(max(constant, 1e-6))), float(np.sqrt(max(slope, 0.0)))))
    return replace(start or Resolution(), d0=terms[0], z0=terms[1])


def _weight(chi2: Array, cut: float, temperature: float) -> Array:
    """The weight of a track, 1 / (1 + exp((chi2 - cut^2) / 2T)): one half at the cut-off, a step at temperature 0."""
    return np.asarray(1 / (1 + np.exp(np.clip((chi2 - cut**2) / (2 * temperature), -50, 50))))


def _renumbered(labels: Labels, counts: Labels) -> Labels:
    """Labels from 0 in each jet, in the order of the old ones."""
    owner = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((labels, owner))
    new_jet = np.diff(owner[order], prepend=-1) > 0
    rank = np.cumsum((np.diff(labels[order], prepend=-1) != 0) & ~new_jet)
    numbered = np.empty_like(labels)
    numbered[order] = rank - np.repeat(rank[new_jet], counts[counts > 0])
    return numbered
