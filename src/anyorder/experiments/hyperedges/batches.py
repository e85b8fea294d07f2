"""Positive tuples with fresh negatives as batches, and training tuples as text that is kept with a model."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from anyorder.experiments.hyperedges.data import Part, TypedHyperedges
from anyorder.experiments.hyperedges.negatives import NegativeSampler
from anyorder.experiments.hyperedges.tuples import Ints, offsets_of, row_codes
from anyorder.layouts.transfer import Transferable
from anyorder.training.sampling import GlobalBatches
from anyorder.training.shapes import Shapes


@dataclass(frozen=True, eq=False)
class TupleBatch(Transferable):
    """Positives with their negatives; equal tuples are scored once.

    ``tuples`` (tuple, k) are distinct, and ``place`` (item, 1 + negatives) says which of them belong to an item, its
    positive first. ``weights`` (item,) is how much a positive counts in training.
    """

    tuples: Tensor
    place: Tensor
    weights: Tensor
    unseen: Tensor
    """(item,): whether training does not hold the positive as well."""
    watched: Tensor
    """(item,): whether the item is looked at only, and chooses nothing."""

    def __len__(self) -> int:
        return len(self.place)


@dataclass(frozen=True, eq=False)
class Positives:
    """Some positives and what draws their negatives; ``stream`` keeps the random numbers of parts apart."""

    tuples: Ints
    sampler: NegativeSampler
    stream: int
    weights: NDArray[np.float64]
    unseen: NDArray[np.bool_]
    watched: bool = False
    fresh: bool = True
    """Other negatives in every epoch."""

    @classmethod
    def of(
        cls, data: TypedHyperedges, part: Part, *, per_positive: int, watched: bool = False, fresh: bool = True
    ) -> Positives:
        """The training, validation or test tuples of a dataset."""
        sampler = NegativeSampler(data.known(part), per_positive=per_positive)
        stream = ("train", "validation", "test").index(part)
        if part == "train":
            weights = data.train_weights / data.train_weights.mean()
            return cls(data.train, sampler, stream, weights, np.zeros(len(data.train), dtype=np.bool_), watched, fresh)
        tuples = data.validation if part == "validation" else data.test
        return cls(tuples, sampler, stream, np.ones(len(tuples)), data.unseen(part), watched, fresh)

    def draw(self, seed: int, epoch: int) -> Ints:
        """(positive, 1 + negatives, k): every positive, then its negatives of an epoch."""
        generator = np.random.default_rng([seed, self.stream, epoch if self.fresh else 0])
        negatives = self.sampler(self.tuples, generator).reshape(len(self.tuples), -1, self.tuples.shape[1])
        return np.concatenate([self.tuples[:, None], negatives], axis=1)


class TupleSet(Dataset[TupleBatch]):
    """Positives with negatives that are drawn for a whole epoch at once.

    Items are numbered through all epochs: number e * len + i is positive i with its negatives of epoch e, which follow from
    (seed, e) alone. With ``scored``, an evaluation sees that many of them, others in every epoch.
    """

    def __init__(self, parts: Sequence[Positives], *, seed: int, scored: int | None = None) -> None:
        self.parts, self.seed, self.scored = tuple(parts), seed, scored
        self.sizes = self.parts[0].sampler.known.sizes
        self.weights = torch.from_numpy(np.concatenate([part.weights for part in parts])).float()
        self.unseen = torch.from_numpy(np.concatenate([part.unseen for part in parts]))
        self.watched = torch.cat([torch.full((len(part.tuples),), part.watched) for part in parts])
        self._drawn: tuple[int, Ints] | None = None

    def __len__(self) -> int:
        return len(self.weights)

    def _epoch(self, epoch: int) -> Ints:
        if self._drawn is None or self._drawn[0] != epoch:
            self._drawn = epoch, np.concatenate([part.draw(self.seed, epoch) for part in self.parts])
        return self._drawn[1]

    def __getitem__(self, number: int) -> TupleBatch:
        return self.__getitems__([number])

    def __getitems__(self, numbers: Sequence[int]) -> TupleBatch:
        """A whole batch, which the loader asks for at once."""
        epoch, rows = numbers[0] // len(self), np.asarray(numbers) % len(self)
        chosen = self._epoch(epoch)[rows]
        tuples, place = distinct_tuples(chosen.reshape(-1, chosen.shape[-1]), self.sizes)
        items = torch.from_numpy(rows)
        return TupleBatch(
            torch.from_numpy(tuples),
            torch.from_numpy(place.reshape(chosen.shape[:2])),
            self.weights[items],
            self.unseen[items],
            self.watched[items],
        )


def distinct_tuples(tuples: Ints, sizes: Sequence[int]) -> tuple[Ints, Ints]:
    """The distinct rows, and for each row its place among them.

    >>> [part.tolist() for part in distinct_tuples(np.array([[1, 2], [0, 3], [1, 2]]), (2, 2))]
    [[[0, 3], [1, 2]], [1, 0, 1]]
    """
    codes = row_codes(tuples - np.asarray(offsets_of(sizes), dtype=np.int64), sizes)
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    return tuples[first], place.reshape(-1)


class NumberedBatches(GlobalBatches):
    """Batches of items that are numbered through all epochs, see ``TupleSet``; also for evaluations.

    With ``drawn``, an epoch has that many of the items, a random choice of its own.

    >>> batches = NumberedBatches(3, batch_size=2, shuffle=False)
    >>> batches.set_epoch(2)
    >>> list(batches)
    [[6, 7], [8]]
    >>> [len(batch) for batch in NumberedBatches(9, batch_size=2, drawn=5)]
    [2, 2, 1]
    """

    def __init__(self, num_items: int, *, drawn: int | None = None, shuffle: bool = True, **options: int) -> None:
        if drawn is not None and not 0 < drawn <= num_items:
            raise ValueError(f"drawn must be at least 1 and at most the number of items, {num_items}, got {drawn}")
        super().__init__(num_items, shuffle=shuffle or drawn is not None, **options)
        self.drawn = num_items if drawn is None else drawn

    @property
    def sampler(self) -> NumberedBatches:
        """Where the trainer looks for ``set_epoch`` before training and evaluation alike."""
        return self

    def __len__(self) -> int:
        return -(-self.drawn // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        first, order = self.epoch * self.num_items, self.order()[: self.drawn]
        for batch in self.cut(order):
            yield [first + place for place in batch]


@dataclass(frozen=True, eq=False)
class Known(Shapes):
    """What a model must know of its data: node types, and the training tuples that its node features come from."""

    sizes: tuple[int, ...]
    names: tuple[str, ...]
    train: Ints = field(repr=False)
    weights: NDArray[np.float64] = field(repr=False)
    vocabulary: tuple[tuple[str, ...], ...] | None = field(default=None, repr=False)
    """The names of the nodes of each column, where they have any."""

    @classmethod
    def of(cls, data: TypedHyperedges) -> Known:
        return cls(data.sizes, data.names, data.train, data.train_weights)

    def hyperedges(self) -> TypedHyperedges:
        """The training tuples as a dataset without anything to test on."""
        nothing = np.zeros((0, len(self.sizes)), dtype=np.int64)
        return TypedHyperedges(sizes=self.sizes, names=self.names, train=self.train, test=nothing, weights=self.weights)

    def to_data(self) -> dict[str, Any]:
        """As plain data; tuples as packed text, a few bytes a tuple."""
        data: dict[str, Any] = {"sizes": list(self.sizes), "names": list(self.names)}
        data["train"] = pack(self.train.astype("<i8").T)
        if not bool((self.weights == 1).all()):
            data["weights"] = pack(self.weights.astype("<f8"))
        if self.vocabulary is not None:
            data["vocabulary"] = [list(names) for names in self.vocabulary]
        return data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Known:
        sizes = tuple(int(size) for size in data["sizes"])
        train = np.frombuffer(unpack(data["train"]), "<i8").reshape(len(sizes), -1).T.astype(np.int64)
        packed, names = data.get("weights"), data.get("vocabulary")
        weights = np.ones(len(train)) if packed is None else np.frombuffer(unpack(packed), "<f8").astype(np.float64)
        vocabulary = None if names is None else tuple(tuple(column) for column in names)
        return cls(sizes, tuple(data["names"]), train, weights, vocabulary)


def pack(array: NDArray[np.generic]) -> str:
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes())).decode("ascii")


def unpack(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))
