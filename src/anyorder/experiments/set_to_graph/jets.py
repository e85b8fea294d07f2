"""Jets for set to graph: reader, writer and normalisation of the ROOT schema of the vertex-finding data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anyorder.errors import InputError
from anyorder.extras import require
from anyorder.files import replacing

TREE = "tree"
TRACK_FEATURES = ("trk_d0", "trk_z0", "trk_phi", "trk_ctgtheta", "trk_pt", "trk_charge")
JET_FEATURES = ("jet_pt", "jet_eta", "jet_phi", "jet_M")
FEATURES = TRACK_FEATURES + JET_FEATURES
VERTEX, FLAVOUR = "trk_vtx_index", "jet_flav"
FLAVOURS = {5: "bottom", 4: "charm", 0: "light"}
SPLITS = {"train": "training_data.root", "valid": "valid_data.root", "test": "test_data.root"}


class JetFileError(InputError):
    """A file that does not hold jets in the expected schema."""


@dataclass(frozen=True)
class Normalisation:
    """Per-feature constants of (x - mean) / deviation, in the order of ``FEATURES``."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.mean) != len(FEATURES) or len(self.deviation) != len(FEATURES):
            raise ValueError(
                f"a normalisation needs {len(FEATURES)} means and deviations, one per feature, "
                f"got {len(self.mean)} and {len(self.deviation)}"
            )
        if not all(deviation > 0 for deviation in self.deviation):
            raise ValueError(f"deviations must be positive, got {self.deviation}")


OFFICIAL_NORMALISATION = Normalisation(
    mean=(
        0.0006078152,
        0.0038490593,
        -0.0026713554,
        0.0047640945,
        5.237357,
        -0.00015662189,
        75.95093,
        0.0022607117,
        -0.0023569583,
        9.437994,
    ),
    deviation=(14.128961, 10.688491, 1.8167108, 1.889725, 7.4841413, 1.0, 49.134453, 1.2152709, 1.8164033, 6.765137),
)


@dataclass(frozen=True)
class Jet:
    """One jet: a row of ``features`` and a vertex label per track, and the flavour of the jet."""

    features: NDArray[np.float32]
    vertex: NDArray[np.int32]
    flavour: int


@dataclass(frozen=True, eq=False)
class JetSample:
    """Many jets as flat arrays: jet j owns the tracks ``offsets[j]:offsets[j + 1]``.

    >>> sample = JetSample(np.zeros((5, 10)), np.array([0, 0, 0, 0, 1]), np.array([0, 2, 5]), np.array([0, 5]))
    >>> len(sample), sample[1].vertex.tolist(), len(sample[:1])
    (2, [0, 0, 1], 1)
    """

    features: NDArray[np.float32]
    vertex: NDArray[np.int32]
    offsets: NDArray[np.int64]
    flavour: NDArray[np.int32]
    skipped_short: int = 0  # jets left out because they had no track or one
    skipped_non_finite: int = 0  # jets left out because a feature was NaN or infinite

    def __post_init__(self) -> None:
        kinds = {"features": np.float32, "vertex": np.int32, "offsets": np.int64, "flavour": np.int32}
        for name, kind in kinds.items():
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=kind))
        if self.features.ndim != 2 or self.features.shape[1] != len(FEATURES):
            raise ValueError(f"features must have shape (tracks, {len(FEATURES)}), got {self.features.shape}")
        if self.vertex.shape != self.features.shape[:1]:
            raise ValueError(f"expected {len(self.features)} vertex labels, one per track, got {self.vertex.shape}")
        if self.flavour.ndim != 1 or self.offsets.shape != (len(self.flavour) + 1,):
            raise ValueError(
                f"offsets must have one more entry than there are jets: {self.offsets.shape} for {self.flavour.shape}"
            )
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.features) or np.any(np.diff(self.offsets) < 1):
            raise ValueError(f"offsets must rise from 0 to {len(self.features)}, the number of tracks, at every jet")

    def __len__(self) -> int:
        return len(self.flavour)

    def __iter__(self) -> Iterator[Jet]:
        return (self.jet(index) for index in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        """One ``Jet`` for an integer; a ``JetSample`` for a slice, a mask or an array of jet numbers."""
        return self.jet(int(index)) if isinstance(index, (int, np.integer)) else self.select(index)

    def jet(self, index: int) -> Jet:
        """The jet with this number; negative numbers count from the end."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"jet {index} of a sample of {len(self)}")
        own = slice(self.offsets[index % len(self)], self.offsets[index % len(self) + 1])
        return Jet(self.features[own], self.vertex[own], int(self.flavour[index]))

    def select(self, which: slice | ArrayLike) -> JetSample:
        """The jets of a slice, a mask or an array of jet numbers, in that order."""
        if not isinstance(which, slice):
            which = np.asarray(which) if np.size(which) else slice(0)
        jets = np.arange(len(self))[which]
        counts = self.num_tracks[jets]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        tracks = np.repeat(self.offsets[jets] - offsets[:-1], counts) + np.arange(offsets[-1])
        return JetSample(self.features[tracks], self.vertex[tracks], offsets, self.flavour[jets])

    @property
    def num_tracks(self) -> NDArray[np.int64]:
        """The number of tracks of each jet."""
        return np.diff(self.offsets)

    @property
    def jet_features(self) -> NDArray[np.float32]:
        """The four jet features, once per jet."""
        return self.features[self.offsets[:-1], len(TRACK_FEATURES) :]

    def normalised(self, constants: Normalisation) -> JetSample:
        """The sample with (x - mean) / deviation for features."""
        mean, deviation = (np.asarray(part, dtype=np.float32) for part in (constants.mean, constants.deviation))
        return replace(self, features=(self.features - mean) / deviation)


def concatenate(samples: Sequence[JetSample]) -> JetSample:
    """All jets of several samples, one after the other; the counts of skipped jets add up."""
    if not samples:
        raise ValueError("expected at least one sample to concatenate, got none")
    counts = np.concatenate([sample.num_tracks for sample in samples])
    return JetSample(
        features=np.concatenate([sample.features for sample in samples]),
        vertex=np.concatenate([sample.vertex for sample in samples]),
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        flavour=np.concatenate([sample.flavour for sample in samples]),
        skipped_short=sum(sample.skipped_short for sample in samples),
        skipped_non_finite=sum(sample.skipped_non_finite for sample in samples),
    )


def normalisation(sample: JetSample) -> Normalisation:
    """Mean and deviation of each feature, tracks and jets counted once each; a constant feature gets deviation 1."""
    if len(sample) == 0:
        raise ValueError("a sample without jets has no mean: pass the training part, with at least one jet")
    columns = [*sample.features[:, : len(TRACK_FEATURES)].T, *sample.jet_features.T]
    mean = tuple(float(np.mean(column, dtype=np.float64)) for column in columns)
    deviation = tuple(float(np.std(column, dtype=np.float64)) or 1.0 for column in columns)
    return Normalisation(mean, deviation)


def read_jets(path: str | Path, *, skip_non_finite: bool = False) -> JetSample:
    """Read a ROOT file of jets with their vertices and flavours.

    Jets with no track or one have no pair to predict: they are left out and counted in ``skipped_short``. A jet with a
    feature that is NaN or infinite is an error, or left out and counted in ``skipped_non_finite`` on request.
    """
    sample, _ = _read(path, fewest=2, labelled=True, skip_non_finite=skip_non_finite)
    return sample


def read_unlabelled_jets(path: str | Path) -> tuple[JetSample, NDArray[np.int64]]:
    """Jets with at least one track of a ROOT file, which needs no vertices and flavours, and their numbers in the file."""
    return _read(path, fewest=1, labelled=False, skip_non_finite=False)


def _read(path: str | Path, *, fewest: int, labelled: bool, skip_non_finite: bool) -> tuple[JetSample, NDArray[np.int64]]:
    """The jets with at least ``fewest`` tracks, and where they stand in the file."""
    uproot, ak = require("uproot", "jets"), require("awkward", "jets")
    path = Path(path)
    _check_root(path)
    try:
        with uproot.open(path) as file:
            arrays = _branches(file, path, (*FEATURES, VERTEX, FLAVOUR) if labelled else FEATURES)
    except JetFileError:
        raise
    except Exception as error:  # damaged bytes surface as any error of the decoders below
        raise JetFileError(f"{path} is a damaged ROOT file: {type(error).__name__}: {error}") from error
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise JetFileError(f"{path} is a damaged ROOT file: its branches have different numbers of jets, {lengths}")
    flat = {name: ak.to_numpy(ak.flatten(array)) for name, array in arrays.items() if array.ndim == 2}
    counts = _track_counts({name: ak.to_numpy(ak.num(arrays[name])) for name in flat}, path)
    jets = np.stack([ak.to_numpy(arrays[name]) for name in JET_FEATURES], axis=1).astype(np.float32)
    tracks = np.stack([flat[name] for name in TRACK_FEATURES], axis=1).astype(np.float32)
    flavour = ak.to_numpy(arrays[FLAVOUR]) if labelled else np.zeros(len(counts), dtype=np.int32)
    vertex = flat[VERTEX] if labelled else np.zeros(len(tracks), dtype=np.int32)
    unknown = sorted(set(np.unique(flavour).tolist()) - set(FLAVOURS))
    if unknown:
        raise JetFileError(f"{path}: {FLAVOUR} must be one of {sorted(FLAVOURS)}, got {unknown[:5]}")

    owner = np.repeat(np.arange(len(counts)), counts)
    finite = np.asarray(np.isfinite(jets).all(axis=1))
    finite[owner[~np.isfinite(tracks).all(axis=1)]] = False
    if not skip_non_finite and not finite.all():
        raise JetFileError(
            f"{path}: {np.sum(~finite)} of {len(finite)} jets have a feature that is NaN or infinite (the first is jet "
            f"{np.argmin(finite)}); pass skip_non_finite=True to leave them out"
        )
    keep = finite & (counts >= fewest)
    sample = JetSample(
        features=np.concatenate([tracks, jets[owner]], axis=1)[keep[owner]],
        vertex=vertex[keep[owner]],
        offsets=np.concatenate([[0], np.cumsum(counts[keep])]),
        flavour=flavour[keep],
        skipped_short=int(np.sum(finite & (counts < fewest))),
        skipped_non_finite=int(np.sum(~finite)),
    )
    return sample, np.flatnonzero(keep)


_HEADER = 24  # bytes


def _check_root(path: Path) -> None:
    """Refuse what is not a whole ROOT file: its header holds a magic word and the position of its end."""
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: expected a ROOT file such as {', '.join(SPLITS.values())}")
    with path.open("rb") as file:
        header = file.read(_HEADER)
    size = path.stat().st_size
    if size == 0:
        raise JetFileError(f"{path} is empty: expected a ROOT file, got 0 bytes")
    if not header.startswith(b"root"):
        raise JetFileError(f"{path} is not a ROOT file: expected it to begin with b'root', got {header[:4]!r}")
    wide = int.from_bytes(header[4:8], "big") >= 1_000_000  # large files keep their end in eight bytes
    end = int.from_bytes(header[12:20] if wide else header[12:16], "big")
    if size < max(end, _HEADER):
        raise JetFileError(f"{path} is truncated: its header promises {max(end, _HEADER)} bytes, the file has {size}")


def _branches(file: Any, path: Path, wanted: Sequence[str]) -> dict[str, Any]:
    """Branches of the schema as awkward arrays, or an error that says what the file has instead."""
    kinds = file.classnames(cycle=False)
    if kinds.get(TREE) != "TTree":
        raise JetFileError(f"{path}: expected a TTree named {TREE!r}, got {kinds or 'nothing'}")
    tree = file[TREE]
    missing = [name for name in wanted if name not in tree]
    if missing:
        raise JetFileError(f"{path}: the tree lacks the branches {missing}; it has {tree.keys()}")
    if tree.num_entries == 0:
        raise JetFileError(f"{path}: the tree has no entries, expected at least one jet")
    arrays = {name: tree[name].array() for name in wanted}
    for name, array in arrays.items():
        axes = 2 if name.startswith("trk_") else 1
        if array.ndim != axes:
            shape = "a list of numbers" if axes == 2 else "one number"
            raise JetFileError(f"{path}: branch {name} must hold {shape} per jet, got {array.type}")
    return arrays


def _track_counts(counts: dict[str, NDArray[np.int64]], path: Path) -> NDArray[np.int64]:
    """The number of tracks of each jet, on which all track branches must agree."""
    first, *others = counts
    for name in others:
        if len(counts[name]) != len(counts[first]):
            raise JetFileError(f"{path}: {name!r} has {len(counts[name])} jets, {first!r} has {len(counts[first])}")
        differ = np.flatnonzero(counts[name] != counts[first])
        if len(differ):
            jet = int(differ[0])
            raise JetFileError(
                f"{path}: jet {jet} has {counts[first][jet]} entries in {first} and {counts[name][jet]} in {name}"
            )
    return counts[first]


def write_jets(path: str | Path, sample: JetSample) -> None:
    """Write a sample as a ROOT file of the same schema; the file appears when it is whole."""
    uproot, ak = require("uproot", "jets"), require("awkward", "jets")
    path = Path(path)
    tracks = {name: sample.features[:, column] for column, name in enumerate(TRACK_FEATURES)} | {VERTEX: sample.vertex}
    inner = {name.removeprefix("trk_"): values for name, values in tracks.items()}
    jets = dict(zip(JET_FEATURES, sample.jet_features.T, strict=True)) | {FLAVOUR: sample.flavour}
    types = {name: str(values.dtype) for name, values in jets.items()}
    types["trk"] = "var * {" + ", ".join(f"{name}: {values.dtype}" for name, values in inner.items()) + "}"
    with replacing(path) as partial, uproot.recreate(partial) as file:
        tree = file.mktree(TREE, types, counter_name=lambda counted: "n_trks")
        tree.extend({**jets, "trk": ak.unflatten(ak.zip(inner), sample.num_tracks)})
