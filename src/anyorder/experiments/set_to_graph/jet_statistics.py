"""What a sample of jets looks like in numbers, beside what is known of the official sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyorder.experiments.set_to_graph.jets import (
    FEATURES,
    FLAVOURS,
    OFFICIAL_NORMALISATION,
    JetSample,
    Normalisation,
    normalisation,
)


@dataclass(frozen=True)
class JetStatistics:
    """Averages of a sample: per jet, per jet of a flavour (by its number), and per feature."""

    jets: int
    tracks: float
    same_vertex_entries: float  # ordered pairs of tracks of one vertex, the diagonal counted
    normalisation: Normalisation
    jets_of: Mapping[int, int]
    tracks_of: Mapping[int, float]
    vertices_of: Mapping[int, float]


# Of the official sample only these are published: 0.9 million jets, their average sizes and the feature constants.
OFFICIAL_STATISTICS = JetStatistics(900_000, 7.11, 35.9, OFFICIAL_NORMALISATION, {}, {}, {})


def vertex_sizes(sample: JetSample) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The jet and the number of tracks of every vertex of the sample."""
    owner = np.repeat(np.arange(len(sample)), sample.num_tracks)
    vertices, sizes = np.unique(np.stack([owner, sample.vertex], axis=1), axis=0, return_counts=True)
    return vertices[:, 0], sizes


def statistics(sample: JetSample) -> JetStatistics:
    """Average tracks, same-vertex entries and vertices of a sample, per flavour too, and its feature constants.

    >>> two = JetSample(np.zeros((5, 10)), np.array([0, 0, 0, 0, 1]), np.array([0, 2, 5]), np.array([0, 5]))
    >>> statistics(two).tracks, statistics(two).same_vertex_entries, statistics(two).vertices_of
    (2.5, 4.5, {5: 2.0, 0: 1.0})
    """
    constants = normalisation(sample)
    owner, sizes = vertex_sizes(sample)
    vertices = np.bincount(owner, minlength=len(sample))
    present = [flavour for flavour in FLAVOURS if np.any(sample.flavour == flavour)]
    return JetStatistics(
        jets=len(sample),
        tracks=float(sample.num_tracks.mean()),
        same_vertex_entries=float(np.sum(sizes**2) / len(sample)),
        normalisation=constants,
        jets_of={flavour: int(np.sum(sample.flavour == flavour)) for flavour in present},
        tracks_of={flavour: float(sample.num_tracks[sample.flavour == flavour].mean()) for flavour in present},
        vertices_of={flavour: float(vertices[sample.flavour == flavour].mean()) for flavour in present},
    )


def statistics_table(columns: Mapping[str, JetStatistics]) -> str:
    """A Markdown table with a column per sample, the official one first; a dash marks what is not published."""
    columns = {"official": OFFICIAL_STATISTICS, **columns}
    known = columns.values()
    rows = [
        ("jets", [f"{column.jets:,}" for column in known]),
        ("tracks per jet", [f"{column.tracks:.2f}" for column in known]),
        ("same-vertex entries per jet", [f"{column.same_vertex_entries:.1f}" for column in known]),
    ]
    for flavour, name in FLAVOURS.items():
        rows.append((f"jets, {name}", [_number(column.jets_of.get(flavour), ",") for column in known]))
        rows.append((f"tracks per jet, {name}", [_number(column.tracks_of.get(flavour), ".2f") for column in known]))
        rows.append((f"vertices per jet, {name}", [_number(c.vertices_of.get(flavour), ".2f") for c in known]))
    for index, feature in enumerate(FEATURES):
        constants = [column.normalisation for column in known]
        rows.append((f"{feature}, mean", [f"{c.mean[index]:.4f}" for c in constants]))
        rows.append((f"{feature}, deviation", [f"{c.deviation[index]:.4f}" for c in constants]))
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    lines += ["| " + " | ".join([name, *cells]) + " |" for name, cells in rows]
    return "\n".join(lines) + "\n"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
