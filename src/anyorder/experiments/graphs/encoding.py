"""Columns of mixed kinds as one matrix of numbers, in the same way for training and for new data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anyorder.errors import InputError
from anyorder.experiments.graphs.columns import MISSING, Columns, Floats
from anyorder.training.shapes import Shapes

MOST_VALUES = 64
"""Of a category that get a channel of their own: the most frequent ones; the others share one."""


@dataclass(frozen=True)
class Encoding(Shapes):
    """How columns become channels: numbers standardised (0/1 columns stay), categories one-hot, a mark where missing.

    >>> table = Columns.of({"age": [31, None, 7], "kind": ["a", "b", "a"]}, rows=3)
    >>> Encoding.fit(table)(table).round(1).tolist()
    [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [-1.0, 0.0, 1.0, 0.0]]
    """

    numbers: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    gaps: tuple[str, ...]
    """Columns of numbers that have a mark where they are missing."""
    categories: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]

    @classmethod
    def fit(cls, columns: Columns) -> Encoding:
        """After the rows of the training part."""
        numbers = columns.numbers.astype(np.float64)
        known = ~np.isnan(numbers)
        count = np.maximum(known.sum(0), 1)
        mean = np.where(known, numbers, 0.0).sum(0) / count
        std = np.sqrt(np.where(known, (numbers - mean) ** 2, 0.0).sum(0) / count)
        binary = np.where(known, (numbers == 0) | (numbers == 1), True).all(0) & known.all(0)
        std = np.where(binary | (std <= 1e-6 * np.abs(mean)) | (std == 0), 1.0, std)
        whole = np.all(known, axis=0)
        gaps = [name for n, name in enumerate(columns.number_names) if not whole[n]]
        kept = [_frequent(columns, n) for n in range(len(columns.category_names))]
        means = np.where(binary, 0.0, mean)
        return cls(
            columns.number_names,
            tuple(means.tolist()),
            tuple(std.tolist()),
            tuple(gaps),
            columns.category_names,
            tuple(kept),
        )

    @property
    def channels(self) -> int:
        return len(self.numbers) + len(self.gaps) + sum(len(values) for values in self.values)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each channel."""
        chosen = [f"{name}={value}" for name, values in zip(self.categories, self.values, strict=True) for value in values]
        return (*self.numbers, *(f"{name} missing" for name in self.gaps), *chosen)

    def __call__(self, columns: Columns) -> Floats:
        """(row, channel); columns are found by name, and one that is not there is refused."""
        absent = [name for name in (*self.numbers, *self.categories) if name not in columns.names]
        if absent:
            raise ValueError(f"column {absent[0]!r} of the training is missing; there are {list(columns.names)}")
        text = [name for name in self.numbers if name not in columns.number_names]
        if text:
            raise ValueError(f"column {text[0]!r} held numbers in training and holds text now: {_sample(columns, text[0])}")
        places = [columns.number_names.index(name) for name in self.numbers]
        raw = columns.numbers[:, places]
        scaled = (raw - np.array(self.mean, np.float64)) / np.array(self.std, np.float64)
        gaps = np.isnan(raw[:, [self.numbers.index(name) for name in self.gaps]])
        far = np.abs(np.nan_to_num(scaled)) > np.finfo(np.float32).max
        if far.any():
            row, column = np.argwhere(far)[0].tolist()
            raise InputError(
                f"column {self.numbers[column]!r} is {raw[row, column]:.3g} in row {row}, which float32 does not hold after "
                f"scaling: the mean of the training is {self.mean[column]:.3g}"
            )
        parts = [np.nan_to_num(scaled, posinf=0.0, neginf=0.0), gaps]
        parts += [_one_hot(columns, name, values) for name, values in zip(self.categories, self.values, strict=True)]
        return np.hstack([part.astype(np.float32) for part in parts]).reshape(len(columns), self.channels)


def _frequent(columns: Columns, place: int) -> tuple[str, ...]:
    """The values of a category that get a channel."""
    codes, values = columns.categories[:, place], columns.values[place]
    counts = np.bincount(codes[codes != MISSING], minlength=len(values))
    chosen = np.sort(np.argsort(-counts, kind="stable")[:MOST_VALUES])
    return tuple(values[n] for n in chosen if counts[n])


def _one_hot(columns: Columns, name: str, values: tuple[str, ...]) -> Floats:
    place = {value: n for n, value in enumerate(values)}
    made = np.zeros((len(columns), len(values)), np.float32)
    if name in columns.category_names:
        own = columns.category_names.index(name)
        codes = columns.categories[:, own]
        lookup = np.array([place.get(value, -1) for value in columns.values[own]] + [-1], np.int64)[codes]
    else:  # numbers now, but categories in training
        lookup = np.array([place.get(text or "", -1) for text in columns.texts(name)], np.int64)
    rows = np.flatnonzero(lookup >= 0)
    made[rows, lookup[rows]] = 1.0
    return made


def _sample(columns: Columns, name: str) -> str:
    shown = [text for text in columns.texts(name) if text is not None][:3]
    return ", ".join(repr(text) for text in shown)
