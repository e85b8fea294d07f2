"""Named columns of mixed kinds: numbers and categories, either of which may be missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder.errors import InputError

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
MISSING = -1
"""The place of a category that is not there."""
_EMPTY = ("", "na", "nan", "none", "null", "?")


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a table: ``numbers`` (NaN where missing) and ``categories`` as places in ``values`` (-1 where missing).

    >>> table = Columns.of({"age": [31, None, 7], "kind": ["a", "b", "a"]}, rows=3)
    >>> table.numbers.ravel().tolist(), table.categories.ravel().tolist(), table.values
    ([31.0, nan, 7.0], [0, 1, 0], (('a', 'b'),))
    """

    numbers: Floats
    number_names: tuple[str, ...]
    categories: Ints
    category_names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]

    @classmethod
    def empty(cls, rows: int) -> Columns:
        """No columns."""
        return cls(np.zeros((rows, 0), np.float32), (), np.zeros((rows, 0), np.int64), (), ())

    @classmethod
    def of(cls, table: Mapping[str, Sequence[Any]], *, rows: int, categorical: Sequence[str] = ()) -> Columns:
        """Columns from lists of what a file holds: numbers where every value is one, else categories."""
        made = cls.empty(rows)
        for name, column in table.items():
            if len(column) != rows:
                raise ValueError(f"column {name!r} has {len(column)} values, expected {rows}")
            numbers = None if name in categorical else as_numbers(column)
            made = made.with_categories(name, column) if numbers is None else made.with_numbers((name,), numbers[:, None])
        return made

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.number_names, *self.category_names)

    def with_numbers(self, names: Sequence[str], numbers: Any) -> Columns:
        """One more block of numbers."""
        block = np.asarray(numbers, np.float32).reshape(len(self), len(names))
        if np.isinf(block).any():
            row, column = np.argwhere(np.isinf(block))[0].tolist()
            raise InputError(f"column {names[column]!r} is infinite in row {row}: expected a number, or nothing")
        return replace(self, numbers=np.hstack([self.numbers, block]), number_names=(*self.number_names, *names))

    def with_categories(self, name: str, column: Sequence[Any]) -> Columns:
        """One more column of categories; values that are numbers stand in their order."""
        texts = [_text(value) for value in column]
        values = tuple(sorted({text for text in texts if text is not None}, key=_order))
        place = {value: n for n, value in enumerate(values)}
        codes = np.array([MISSING if text is None else place[text] for text in texts], np.int64)
        return replace(
            self,
            categories=np.hstack([self.categories, codes[:, None]]),
            category_names=(*self.category_names, name),
            values=(*self.values, values),
        )

    def take(self, rows: Any) -> Columns:
        """The same columns of some rows."""
        return replace(self, numbers=self.numbers[rows], categories=self.categories[rows])

    def drop(self, names: Sequence[str]) -> Columns:
        """The columns without some of them; names that are not there are no matter."""
        return self.keep([name for name in self.names if name not in names])

    def keep(self, names: Sequence[str]) -> Columns:
        """Some columns, numbers before categories."""
        numbers = [n for n, name in enumerate(self.number_names) if name in names]
        categories = [n for n, name in enumerate(self.category_names) if name in names]
        return Columns(
            self.numbers[:, numbers],
            tuple(self.number_names[n] for n in numbers),
            self.categories[:, categories],
            tuple(self.category_names[n] for n in categories),
            tuple(self.values[n] for n in categories),
        )

    def texts(self, name: str) -> list[str | None]:
        """A column as text, None where it is missing."""
        if name in self.category_names:
            place = self.category_names.index(name)
            values = self.values[place]
            return [None if code == MISSING else values[code] for code in self.categories[:, place].tolist()]
        column = self.numbers[:, self.number_names.index(name)].tolist()
        return [None if value != value else _text(value) for value in column]

    def missing(self) -> int:
        """How many values are not there."""
        return int(np.isnan(self.numbers).sum() + (self.categories == MISSING).sum())


def as_numbers(column: Sequence[Any]) -> Floats | None:
    """A column as numbers with NaN where it is empty; None where some value is no number."""
    found = np.full(len(column), np.nan, np.float64)
    for row, value in enumerate(column):
        if _text(value) is None:
            continue
        try:
            found[row] = float(value)
        except (TypeError, ValueError):
            return None
    return found.astype(np.float32)


def _text(value: Any) -> str | None:
    """A value as text; None where it is missing.

    >>> _text(2.0), _text(" a "), _text(float("nan")), _text("NA")
    ('2', 'a', None, None)
    """
    if value is None or (isinstance(value, (float, np.floating)) and np.isnan(value)):
        return None
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    text = str(value).strip()
    return None if text.lower() in _EMPTY or text == "<NA>" else text


def _order(text: str) -> tuple[int, float, str]:
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text
