"""Jets (Table 3): which tracks of a jet come from the same vertex."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import Dataset

from anyorder.arrays import digest
from anyorder.datasets.registry import locate
from anyorder.errors import InputError
from anyorder.experiments.set_to_graph.baselines.pairs import PairModel
from anyorder.experiments.set_to_graph.baselines.vertexing import VertexFinder, measured_resolution
from anyorder.experiments.set_to_graph.files import LabelKind
from anyorder.experiments.set_to_graph.jets import (
    FEATURES,
    OFFICIAL_NORMALISATION,
    SPLITS,
    JetSample,
    Normalisation,
    normalisation,
    read_jets,
    read_unlabelled_jets,
)
from anyorder.experiments.set_to_graph.models import PairModelSettings
from anyorder.experiments.set_to_graph.sets import SetBatch, SetSample, SetShapes
from anyorder.experiments.set_to_graph.task import PairTask, SoftF1
from anyorder.experiments.set_to_graph.tracks import Resolution
from anyorder.training.config import configurable
from anyorder.training.run import Selection, Splits
from anyorder.training.sampling import GlobalBatches

ENOUGH_TRACKS = 1000  # in light jets, to measure the resolution of a detector
IMPACT_SCALE = 0.05  # mm, about a resolution
LONG_TAILED = [FEATURES.index("trk_d0"), FEATURES.index("trk_z0")]
MOMENTUM, CHARGE = FEATURES.index("trk_pt"), FEATURES.index("trk_charge")
DATASETS = {"alice": "jets_alice", "simulated": "jets_simulated", "official": "jets"}


def compressed(features: NDArray[Any]) -> NDArray[Any]:
    """Features with arcsinh(x / 0.05 mm) for the impact parameters d0 and z0, and log pT.

    >>> compressed(np.array([[0.05, 5.0, 0, 0, np.e, 1, 50, 0, 0, 9]]))[0, :5].round(2).tolist()
    [0.88, 5.3, 0.0, 0.0, 1.0]
    """
    small = features.copy()
    small[:, LONG_TAILED] = np.arcsinh(features[:, LONG_TAILED] / IMPACT_SCALE)
    small[:, MOMENTUM] = np.log(features[:, MOMENTUM])
    return small


def expanded(features: NDArray[Any]) -> NDArray[Any]:
    """The inverse of :func:`compressed`."""
    large = features.copy()
    large[:, LONG_TAILED] = np.sinh(features[:, LONG_TAILED]) * IMPACT_SCALE
    large[:, MOMENTUM] = np.exp(features[:, MOMENTUM])
    return large


class JetSets(Dataset[SetSample]):
    """Jets as sets of tracks with normalised features, labelled by flavour."""

    def __init__(self, sample: JetSample, constants: Normalisation) -> None:
        self.sample = sample.normalised(constants)

    def __len__(self) -> int:
        return len(self.sample)

    def __getitem__(self, number: int) -> SetSample:
        jet = self.sample.jet(number)
        return SetSample.from_partition(jet.features, jet.vertex, jet.flavour)


@dataclass(frozen=True)
class JetShapes(SetShapes):
    """Sets of tracks, and what the training part shows of the detector."""

    compressed: bool = False
    resolution: dict[str, tuple[float, float]] | None = None


@configurable
@dataclass(frozen=True)
class Jets(PairTask):
    """Official, simulated or other jets; the epoch with the best validation F1 counts.

    The official files come with their normalisation, others are normalised by their training part. ``compress`` takes
    arcsinh(x / 0.05 mm) of the impact parameters and log pT first: a few tracks from far away make their deviation a
    hundred times the resolution, which hides the vertices. With ``published`` a training batch holds jets of one size.
    ``limit`` keeps the first jets of the training part alone.
    """

    shapes_type = JetShapes

    sample: Literal["alice", "simulated", "official"] = "official"
    f1_over_sets: SoftF1 = "sum"
    compress: bool = False
    published: bool = False
    limit: int | None = None

    @property
    def answers(self) -> LabelKind:
        return LabelKind.PARTITION

    @property
    def soft_f1(self) -> SoftF1:
        return self.f1_over_sets

    @property
    def selection(self) -> Selection:
        return Selection("F1", "max")

    @property
    def parts(self) -> dict[int, str]:
        return {5: "B", 4: "C", 0: "L"}

    def load(self, *, seed: int, data_dir: Path | None) -> Splits:
        folder = locate(DATASETS[self.sample], data_dir=data_dir)
        train, valid, test = (read_jets(folder / SPLITS[part]) for part in ("train", "valid", "test"))
        known_by = digest(*(array for part in (train, valid, test) for array in (part.features, part.vertex, part.offsets)))
        resolution = _resolution(train)
        if self.limit is not None:
            train = train.select(slice(self.limit))
        if self.compress:
            train, valid, test = (replace(part, features=compressed(part.features)) for part in (train, valid, test))
        known = self.sample == "official" and not self.compress
        constants = OFFICIAL_NORMALISATION if known else normalisation(train)
        shapes = JetShapes(
            channels=len(FEATURES),
            max_points=int(max(part.num_tracks.max() for part in (train, valid, test))),
            mean=tuple(constants.mean),
            deviation=tuple(constants.deviation),
            compressed=self.compress,
            resolution=resolution,
        )
        sets = [JetSets(part, constants) for part in (train, valid, test)]
        return Splits(sets[0], sets[1], sets[2], shapes, digest=known_by)

    def batches(self, data: Dataset[Any], *, batch_size: int, seed: int, shuffle: bool, rank: int, world: int) -> Any:
        place = {"batch_size": batch_size, "seed": seed, "rank": rank, "world": world}
        if self.published and shuffle and isinstance(data, JetSets):
            return EqualSizeBatches(data.sample.num_tracks, **place)
        return super().batches(data, shuffle=shuffle, **place)

    def read_input(self, path: Path, shapes: SetShapes) -> Iterator[SetSample | None]:
        assert isinstance(shapes, JetShapes)
        sample, numbers = read_unlabelled_jets(path)
        if shapes.compressed:
            sample = replace(sample, features=compressed(sample.features))
        jets = JetSets(sample, _constants(shapes))
        place_of = {number: place for place, number in enumerate(numbers.tolist())}
        for number in range(len(sample) + sample.skipped_short):
            yield jets[place_of[number]] if number in place_of else None

    def program(self, model: nn.Module, shapes: SetShapes) -> tuple[nn.Module, dict[str, Tensor]]:
        if isinstance(shapes, JetShapes) and shapes.compressed:
            raise InputError("a model of compressed jets is no program: it would need arcsinh and log of its inputs first")
        return super().program(model, shapes)


def _constants(shapes: JetShapes) -> Normalisation:
    assert shapes.mean is not None and shapes.deviation is not None
    return Normalisation(shapes.mean, shapes.deviation)


def _resolution(train: JetSample) -> dict[str, tuple[float, float]] | None:
    """What the light jets show of the detector, if there are enough of them."""
    light_tracks = int(train.num_tracks[train.flavour == 0].sum())
    return asdict(measured_resolution(train)) if light_tracks >= ENOUGH_TRACKS else None


class EqualSizeBatches:
    """Batches of jets with equally many tracks, as published, in random order; the last of each size is smaller."""

    def __init__(self, sizes: Any, *, batch_size: int, seed: int, rank: int = 0, world: int = 1) -> None:
        rows = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
        make = partial(GlobalBatches, batch_size=batch_size, seed=seed, shuffle=True, rank=rank, world=world)
        self.groups = [(own, make(len(own))) for own in rows if len(own) >= world]
        self.seed, self.epoch = seed, 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        for _, batches in self.groups:
            batches.set_epoch(epoch)

    def __len__(self) -> int:
        return sum(len(batches) for _, batches in self.groups)

    def __iter__(self) -> Iterator[list[int]]:
        drawn = [own[batch].tolist() for own, batches in self.groups for batch in batches]
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self.epoch) % 2**63)
        return (drawn[number] for number in torch.randperm(len(drawn), generator=generator).tolist())


class WithoutLearning(PairModel):
    """A model with nothing to learn: an empty parameter stands for those that an optimiser asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.nothing = nn.Parameter(torch.zeros(0))

    def answer(self, batch: SetBatch) -> Tensor:
        """The logits (pairs,)."""
        raise NotImplementedError

    def forward(self, batch: SetBatch) -> Tensor:
        """The logits (pairs,); they depend on the empty parameter, so that training them is possible and does nothing."""
        return self.answer(batch) + self.nothing.sum()


class OneClusterModel(WithoutLearning):
    """All points together: what a model must beat."""

    def answer(self, batch: SetBatch) -> Tensor:
        """The logits (pairs,), all 1."""
        return batch.points.new_ones(batch.num_pairs)


class VertexModel(WithoutLearning):
    """Adaptive vertex reconstruction: the logit of a pair is 1 if its tracks belong to one vertex, else -1."""

    def __init__(self, finder: VertexFinder, constants: Normalisation, *, compressed: bool) -> None:
        super().__init__()
        self.finder, self.constants, self.compressed = finder, constants, compressed

    def answer(self, batch: SetBatch) -> Tensor:
        """The logits (pairs,) of tracks with normalised features."""
        raw = batch.points.cpu().numpy().astype(np.float64) * self.constants.deviation + self.constants.mean
        raw = expanded(raw) if self.compressed else raw
        raw[:, CHARGE] = np.round(raw[:, CHARGE])  # whole again
        offsets = np.concatenate([[0], batch.sizes.cumsum(0).cpu().numpy()])
        nothing = np.zeros(len(raw), dtype=np.int32)
        sample = JetSample(raw.astype(np.float32), nothing, offsets, np.zeros(batch.num_sets, dtype=np.int32))
        vertex = torch.from_numpy(self.finder(sample)).to(batch.points.device)
        first, second = batch.pair_index
        return torch.where(vertex[first] == vertex[second], 1.0, -1.0)


@configurable
@dataclass(frozen=True)
class OneCluster(PairModelSettings):
    """The trivial row: one cluster for all points."""

    def build(self, shapes: SetShapes) -> nn.Module:
        return OneClusterModel()


@configurable
@dataclass(frozen=True)
class VertexReconstruction(PairModelSettings):
    """AVR, with the resolution that the training part shows."""

    magnetic_field: float = 2.0
    """In tesla."""
    primary_cut: float = 3.5
    secondary_cut: float = 3.0

    def build(self, shapes: SetShapes) -> nn.Module:
        if not isinstance(shapes, JetShapes) or shapes.resolution is None:
            raise ValueError(
                f"vertex reconstruction measures the resolution of the detector from the light jets of the training part: "
                f"expected at least {ENOUGH_TRACKS} tracks in them"
            )
        resolution = Resolution(**shapes.resolution)
        finder = VertexFinder(resolution=resolution, **vars(self))
        return VertexModel(finder, _constants(shapes), compressed=shapes.compressed)
