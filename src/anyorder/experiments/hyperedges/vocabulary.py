"""Names and ids of the nodes of every column, saved with a model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from anyorder.errors import InputError, reading
from anyorder.experiments.hyperedges.tuples import Ints, offsets_of
from anyorder.files import read_json, write_bytes
from anyorder.suggest import closest

FORMAT = "anyorder vocabulary 1"
CLOSE_ENOUGH = 20_000  # names that are compared one by one; of more, those with the same beginning


@dataclass(frozen=True)
class Vocabulary:
    """The names of the nodes of each column; a node's id is its place there plus the sizes of the columns before.

    >>> words = Vocabulary(("user", "tag"), (("ann", "bob"), ("red", "blue")))
    >>> words.encode([["bob", "red"]]).tolist(), words.decode(np.array([[1, 2]]))
    ([[1, 2]], [['bob', 'red']])
    >>> words.node("tag", "bluee")
    Traceback (most recent call last):
    ...
    ValueError: tag 'bluee' is unknown (2 known); the nearest known name is 'blue'
    """

    columns: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if len(self.columns) != len(self.names) or len(set(self.columns)) != len(self.columns):
            raise ValueError(
                f"expected different columns with one list of names each, got the columns {self.columns} "
                f"and {len(self.names)} lists"
            )
        for column, table in zip(self.columns, self._ids, strict=True):
            if len(table) != len(self.names[self.columns.index(column)]):
                raise ValueError(f"the names of column {column!r} must all be different")

    @cached_property
    def _ids(self) -> tuple[dict[str, int], ...]:
        return tuple(
            {name: offset + place for place, name in enumerate(names)}
            for names, offset in zip(self.names, offsets_of(self.sizes), strict=True)
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many names each column has."""
        return tuple(map(len, self.names))

    def _place(self, column: str) -> int:
        if column not in self.columns:
            raise ValueError(f"there is no column {column!r}; the columns are {', '.join(self.columns)}")
        return self.columns.index(column)

    def node(self, column: str, name: str) -> int:
        """The id of a name, or an error with the nearest known name."""
        place = self._place(column)
        node = self._ids[place].get(name)
        if node is None:
            nearest = _nearest(name, self.names[place])
            hint = f"; the nearest known name is {nearest!r}" if nearest is not None else ""
            raise ValueError(f"{column} {name!r} is unknown ({len(self.names[place])} known){hint}")
        return node

    def encode(self, rows: Sequence[Sequence[str]]) -> Ints:
        """Ids of rows of names, shape (n, columns)."""
        self._check_width(rows)
        try:
            found = [[table[name] for table, name in zip(self._ids, row, strict=True)] for row in rows]
        except KeyError:  # say which name it was, and what is near to it
            found = [[self.node(*pair) for pair in zip(self.columns, row, strict=True)] for row in rows]
        return np.asarray(found, dtype=np.int64).reshape(len(rows), len(self.columns))

    def encode_query(self, row: Sequence[str], *, wildcard: str = "?") -> tuple[int | None, ...]:
        """Ids of one row in which ``wildcard`` stands for a node to be found.

        >>> Vocabulary(("user", "tag"), (("ann",), ("red",))).encode_query(["ann", "?"])
        (0, None)
        """
        self._check_width([row])
        pairs = zip(self.columns, row, strict=True)
        return tuple(None if name == wildcard else self.node(column, name) for column, name in pairs)

    def decode(self, tuples: Ints) -> list[list[str]]:
        """Names of rows of ids."""
        local = np.asarray(tuples) - np.asarray(offsets_of(self.sizes))
        return [[names[place] for names, place in zip(self.names, row, strict=True)] for row in local.tolist()]

    def _check_width(self, rows: Sequence[Sequence[str]]) -> None:
        for row in rows:
            if len(row) != len(self.columns):
                raise ValueError(f"expected {len(self.columns)} names ({', '.join(self.columns)}), got {list(row)}")

    def save(self, path: str | Path) -> None:
        """Write as JSON."""
        content = {"format": FORMAT, "columns": dict(zip(self.columns, self.names, strict=True))}
        write_bytes(Path(path), json.dumps(content, ensure_ascii=False).encode())

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read what ``save`` wrote."""
        path = Path(path)
        content = read_json(path)
        if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("columns"), dict):
            raise InputError(f"{path} is no vocabulary: expected the format {FORMAT!r} and its columns")
        with reading(path):
            return cls.of(content["columns"])

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> Vocabulary:
        """From the names of each column, which came from a file."""
        for column, names in columns.items():
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise InputError(f"the names of column {column!r} must be a list of texts, got {str(names)[:60]}")
        return cls(tuple(columns), tuple(tuple(names) for names in columns.values()))


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """The known name most like ``name``, if any is like it."""
    if len(names) > CLOSE_ENOUGH:
        start = name[:2].casefold()
        names = [known for known in names if known[:2].casefold() == start and abs(len(known) - len(name)) < 4]
        names = names[:CLOSE_ENOUGH]
    return closest(name, names)
