"""From proton collisions to jets of tracks: top pairs from Pythia, anti-kT jets from FastJet, a parametrised tracker.

A stand-in for the official sample of the vertex-finding task, made to look like it; it is not that sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder.experiments.set_to_graph.jets import JetSample
from anyorder.experiments.set_to_graph.tracks import Perigee, Resolution, efficiency, perigee, wrap_angle
from anyorder.extras import require

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Ground states that carry a bottom or a charm quark and decay weakly, by particle number.
BOTTOM_HADRONS = (511, 521, 531, 541, 5122, 5132, 5142, 5232, 5242, 5332, 5342, 5512, 5532, 5542, 5554)
CHARM_HADRONS = (411, 421, 431, 4122, 4132, 4232, 4332, 4412, 4422, 4432, 4444)
NEUTRINOS = (12, 14, 16)


@dataclass(frozen=True)
class EventSettings:
    """Collision, selections and detector; mm, GeV and tesla."""

    energy: float = 14_000.0
    jet_radius: float = 0.4
    jet_min_pt: float = 34.0
    max_eta: float = 2.5  # of jets and of tracks
    track_min_pt: float = 0.5
    birth_max_radius: float = 1150.0  # tracks of particles born outside are not seen
    birth_max_z: float = 3510.0
    magnetic_field: float = 2.0
    track_max_distance: float = 0.4  # delta R to the nearest jet
    hadron_max_distance: float = 0.3  # delta R of the heavy hadron that gives a jet its flavour
    hadron_min_pt: float = 5.0
    vertex_link: float = 0.05  # true production points closer than this are one vertex
    min_tracks: int = 2
    max_tracks: int = 14
    resolution: Resolution = field(default_factory=Resolution)


@dataclass(frozen=True)
class Particles:
    """Flat arrays over the particles of many events: event number, identity, four-momentum and production point."""

    event: Index
    identity: NDArray[np.int32]
    final: NDArray[np.bool_]
    momentum: Array  # px, py, pz, energy
    birth: Array  # x, y, z
    charge: Array

    def __getitem__(self, which: NDArray[Any]) -> Particles:
        return Particles(*(getattr(self, item.name)[which] for item in fields(self)))

    @property
    def pt(self) -> Array:
        return np.asarray(np.hypot(self.momentum[:, 0], self.momentum[:, 1]))

    @property
    def eta(self) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):  # along the beam eta is infinite
            return np.asarray(np.arcsinh(self.momentum[:, 2] / self.pt))

    @property
    def phi(self) -> Array:
        return np.asarray(np.arctan2(self.momentum[:, 1], self.momentum[:, 0]))


def simulate_events(num_events: int, seed: int | tuple[int, ...], settings: EventSettings) -> JetSample:
    """All selected jets of ``num_events`` collisions, not yet balanced in flavour; the same for the same seed."""
    pythia_seed, noise_seed = np.random.SeedSequence(seed).spawn(2)
    particles = generate(num_events, int(pythia_seed.generate_state(1)[0]) % 899_999_999 + 1, settings)
    rng = np.random.default_rng(noise_seed)
    jets = cluster(particles, settings)
    charged = particles[select_charged(particles, rng, settings)]
    track = perigee(charged.birth, charged.momentum[:, :3], charged.charge, settings.magnetic_field)
    track = settings.resolution.smear(track, rng)
    owner, distance = nearest_jet(jets, charged.event, np.arcsinh(track.ctgtheta), track.phi)
    owner = np.where(distance < settings.track_max_distance, owner, -1)
    return _assemble(jets, flavours(jets, particles, settings), owner, track, charged.birth, settings)


def generate(num_events: int, pythia_seed: int, settings: EventSettings) -> Particles:
    """Top pairs whose W bosons decay to quarks, with parton showers, hadronisation and decays."""
    pythia8, ak = require("pythia8mc", "jets"), require("awkward", "jets")
    pythia = pythia8.Pythia("", False)
    for line in (
        "Print:quiet = on",
        "Random:setSeed = on",
        f"Random:seed = {pythia_seed}",
        f"Beams:eCM = {settings.energy}",
        "Top:gg2ttbar = on",
        "Top:qqbar2ttbar = on",
        "24:onMode = off",
        "24:onIfAny = 1 2 3 4 5",
    ):
        if not pythia.readString(line):
            raise ValueError(f"Pythia refused the setting {line!r}")
    if not pythia.init():
        raise RuntimeError(f"Pythia could not start with seed {pythia_seed}; its own messages say why")
    listing = pythia.nextBatch(num_events)["prt"]
    flat = ak.flatten(listing)
    identity = ak.to_numpy(flat["id"])
    kinds, kind = np.unique(identity, return_inverse=True)
    charge = np.array([pythia.particleData.charge(int(one)) for one in kinds])[kind]
    birth = (ak.fill_none(flat["vProd"][axis], 0.0) for axis in ("px", "py", "pz"))  # none stands for the origin
    return Particles(
        event=np.repeat(np.arange(len(listing)), ak.to_numpy(ak.num(listing))),
        identity=identity,
        final=ak.to_numpy(flat["status"]) > 0,
        momentum=np.stack([ak.to_numpy(flat["p"][axis]) for axis in ("px", "py", "pz", "e")], axis=1),
        birth=np.stack([ak.to_numpy(axis) for axis in birth], axis=1),
        charge=charge,
    )


def cluster(particles: Particles, settings: EventSettings) -> Particles:
    """Anti-kT jets of the visible final particles, above the pT and within the |eta| of the settings."""
    fastjet, ak = require("fastjet", "jets"), require("awkward", "jets")
    require("vector", "jets").register_awkward()
    visible = particles[particles.final & ~np.isin(np.abs(particles.identity), NEUTRINOS)]
    num_events = int(particles.event[-1]) + 1
    columns = dict(zip(("px", "py", "pz", "E"), visible.momentum.T, strict=True))
    events = ak.unflatten(ak.zip(columns, with_name="Momentum4D"), np.bincount(visible.event, minlength=num_events))
    definition = fastjet.JetDefinition(fastjet.antikt_algorithm, settings.jet_radius)
    found = fastjet.ClusterSequence(events, definition).inclusive_jets(min_pt=settings.jet_min_pt)
    flat = ak.flatten(found)
    momentum = np.stack([ak.to_numpy(flat[axis]) for axis in columns], axis=1)
    event = np.repeat(np.arange(num_events), ak.to_numpy(ak.num(found)))
    none = np.zeros(len(event))
    jets = Particles(event, none.astype(np.int32), none.astype(bool), momentum, np.zeros((len(event), 3)), none)
    return jets[np.abs(jets.eta) < settings.max_eta]


def select_charged(particles: Particles, rng: np.random.Generator, settings: EventSettings) -> NDArray[np.bool_]:
    """Which particles leave a track: charged, final, inside the tracker, and found."""
    pt, eta = particles.pt, particles.eta
    inside = (np.hypot(particles.birth[:, 0], particles.birth[:, 1]) < settings.birth_max_radius) & (
        np.abs(particles.birth[:, 2]) < settings.birth_max_z
    )
    chosen = particles.final & (particles.charge != 0) & inside
    chosen &= (pt > settings.track_min_pt) & (np.abs(eta) < settings.max_eta)
    return np.asarray(chosen & (rng.random(len(pt)) < efficiency(pt, eta, particles.identity)))


def nearest_jet(jets: Particles, event: Index, eta: Array, phi: Array) -> tuple[Index, Array]:
    """The nearest jet of the same event to each direction, and its delta R; infinite where the event has none."""
    distances, slots = jet_distances(jets, event, eta, phi)
    nearest = distances.argmin(axis=1)[:, None]
    return np.take_along_axis(slots, nearest, 1)[:, 0], np.take_along_axis(distances, nearest, 1)[:, 0]


def jet_distances(jets: Particles, event: Index, eta: Array, phi: Array) -> tuple[Array, Index]:
    """Delta R of each direction to every jet of its event, padded with infinity, and the numbers of those jets."""
    num_events = int(max(event.max(initial=0), jets.event.max(initial=0))) + 1
    counts = np.bincount(jets.event, minlength=num_events)
    table = np.full((num_events, max(int(counts.max()), 1)), -1, dtype=np.int64)
    starts = np.cumsum(counts) - counts
    table[jets.event, np.arange(len(jets.event)) - starts[jets.event]] = np.arange(len(jets.event))
    slots = table[event]
    if len(jets.event) == 0:
        return np.full(slots.shape, np.inf), slots
    distances = np.hypot(jets.eta[slots] - eta[:, None], wrap_angle(jets.phi[slots] - phi[:, None]))
    return np.where(slots >= 0, distances, np.inf), slots


def flavours(jets: Particles, particles: Particles, settings: EventSettings) -> NDArray[np.int32]:
    """5 for jets near a weakly decaying bottom hadron, else 4 near a charm hadron, else 0."""
    flavour = np.zeros(len(jets.event), dtype=np.int32)
    for number, hadrons in ((4, CHARM_HADRONS), (5, BOTTOM_HADRONS)):  # bottom overrides the charm it decays to
        heavy = particles[np.isin(np.abs(particles.identity), hadrons) & (particles.pt > settings.hadron_min_pt)]
        distances, slots = jet_distances(jets, heavy.event, heavy.eta, heavy.phi)
        flavour[slots[distances < settings.hadron_max_distance]] = number
    return flavour


def link_vertices(owner: Index, birth: Array, link: float) -> NDArray[np.int32]:
    """Labels of tracks sorted by jet: single linkage of production points closer than ``link`` within a jet.

    Labels count from 0 in each jet, in the order in which its vertices first appear.
    """
    graph = require("scipy.sparse.csgraph", "jets")
    sparse = require("scipy.sparse", "jets")
    place = np.arange(len(owner))
    steps = range(1, int(np.bincount(owner).max(initial=1)))
    first = np.concatenate([place[:0], *(place[:-step] for step in steps)])
    second = np.concatenate([place[:0], *(place[step:] for step in steps)])
    close = (owner[first] == owner[second]) & (np.linalg.norm(birth[first] - birth[second], axis=1) < link)
    edges = sparse.coo_matrix((np.ones(close.sum()), (first[close], second[close])), shape=(len(owner), len(owner)))
    _, component = graph.connected_components(edges, directed=False)
    _, appears, label = np.unique(component, return_index=True, return_inverse=True)
    is_first = np.zeros(len(owner), dtype=np.int64)
    is_first[appears] = 1
    rank = np.cumsum(is_first) - 1  # vertices numbered over all jets by first appearance
    starts = np.searchsorted(owner, owner)  # the first track of the same jet
    return (rank[appears[label]] - rank[starts]).astype(np.int32)


def _assemble(
    jets: Particles, flavour: NDArray[np.int32], owner: Index, track: Perigee, birth: Array, settings: EventSettings
) -> JetSample:
    """Tracks sorted by jet and falling pT, for the jets with an allowed number of them."""
    counts = np.bincount(owner[owner >= 0], minlength=len(flavour))
    kept = (counts >= settings.min_tracks) & (counts <= settings.max_tracks)
    chosen = np.flatnonzero((owner >= 0) & kept[owner])
    order = chosen[np.lexsort((-track.pt[chosen], owner[chosen]))]
    owner = (np.cumsum(kept) - 1)[owner[order]]
    energy, momentum = jets.momentum[:, 3], np.linalg.norm(jets.momentum[:, :3], axis=1)
    mass = np.sqrt(np.maximum((energy - momentum) * (energy + momentum), 0.0))
    per_track = [track.d0, track.z0, track.phi, track.ctgtheta, track.pt, track.charge]
    per_jet = [jets.pt, jets.eta, jets.phi, mass]
    return JetSample(
        features=np.stack([c[order] for c in per_track] + [c[kept][owner] for c in per_jet], axis=1).astype(np.float32),
        vertex=link_vertices(owner, birth[order], settings.vertex_link),
        offsets=np.concatenate([[0], np.cumsum(counts[kept])]),
        flavour=flavour[kept],
    )
