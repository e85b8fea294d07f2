"""Facts: a relation and its entities in order, two or more, as in knowledge hypergraphs: reading them, and what is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from anyorder.datasets.csv_stream import read_lines, read_rows
from anyorder.errors import InputError
from anyorder.experiments.hyperedges.tuples import Ints
from anyorder.suggest import nearest
from anyorder.training.parts import fold_parts

NOTHING = -1
"""Fills the places that a fact does not have."""
_PARTS = {"train": ("train",), "valid": ("valid", "val", "dev"), "test": ("test",)}
_ENDINGS = (".txt", ".tsv", ".txt.gz", ".tsv.gz", "")


@dataclass(frozen=True, eq=False)
class Facts:
    """Relations (n,) and entities (n, places), which are ``NOTHING`` beyond the arity of a fact.

    >>> facts = Facts(np.array([0, 1]), np.array([[3, 4, -1], [4, 5, 6]]))
    >>> facts.arity.tolist(), facts.queries.tolist()
    ([2, 3], [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]])
    """

    relation: Ints
    entities: Ints

    def __len__(self) -> int:
        return len(self.relation)

    @cached_property
    def arity(self) -> Ints:
        """How many entities each fact has."""
        found: Ints = (self.entities != NOTHING).sum(1)
        return found

    @cached_property
    def queries(self) -> Ints:
        """(queries, 2): every fact with each of its places as a gap."""
        return np.argwhere(self.entities != NOTHING)

    def chosen(self, rows: Ints) -> Facts:
        return Facts(self.relation[rows], self.entities[rows])

    def joined(self, others: Facts) -> Facts:
        return Facts(np.concatenate([self.relation, others.relation]), np.concatenate([self.entities, others.entities]))


@dataclass(frozen=True, eq=False)
class FactData:
    """Facts to train on, choose by and test on, and the names of relations and entities."""

    train: Facts
    valid: Facts
    test: Facts
    relations: tuple[str, ...]
    entities: tuple[str, ...]
    notes: tuple[str, ...] = ()


def part_files(folder: Path) -> dict[str, Path]:
    """The files train, valid and test of a folder, with or without an ending."""
    found = {}
    for part, names in _PARTS.items():
        paths = [folder / f"{name}{ending}" for name in names for ending in _ENDINGS]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            raise InputError(f"{folder} has no file {part}.txt: expected train.txt, valid.txt and test.txt (or .tsv, .gz)")
        found[part] = path
    return found


def read_facts(
    path: Path,
    *,
    valid: float = 0.1,
    test: float = 0.1,
    fold: tuple[int, int] | None = None,
    seed: int = 0,
    relation: str = "",
) -> FactData:
    """The facts of a folder with three files, or of one file, distinct and split at random: by shares or (folds, fold).

    With the name of a column, ``relation``, the file is a table with a header and the other columns are the entities in
    order; blank cells at the end of a row are places that its fact does not have.
    """
    if path.is_dir():
        if fold is not None:
            raise InputError(f"{path} is a folder with files for training, validation and test: folds are cut from one file")
        lines = {part: _lines(file) for part, file in part_files(path).items()}
        known = {line[0] for line in lines["train"]}
        notes = []
        for part in ("valid", "test"):
            lines[part], numbered = _unnumbered(lines[part], known)
            notes += [f"the first column of the {part} file numbers its lines and is left out"] if numbered else []
        return _encoded(lines, tuple(notes))
    if not (0 < valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise InputError(f"shares must leave facts to train on and to choose by, got {valid} and {test}")
    rows = list(dict.fromkeys(map(tuple, _table_lines(path, relation) if relation else _lines(path))))
    order = [list(rows[n]) for n in np.random.default_rng(seed).permutation(len(rows))]
    first, second = round(test * len(rows)), round((test + valid) * len(rows))
    parts = {"train": order[second:], "valid": order[first:second], "test": order[: first if test else second]}
    if fold is not None:
        found = fold_parts(np.arange(len(rows)), None, folds=fold[0], fold=fold[1], seed=seed)
        parts = {part: [list(rows[n]) for n in getattr(found, part)] for part in parts}
    empty = next((name for name, part in parts.items() if not part), None)
    if empty is not None:
        raise InputError(
            f"{path}: {len(rows)} distinct facts leave none for the {empty} part: more, or other shares, are needed"
        )
    return _encoded(parts, ())


def read_fields(path: Path) -> list[tuple[int, list[str]]]:
    """The fields of each line with its number, between tabs, commas or spaces, as the file has them."""
    listed = [(number, text) for number, text in read_lines(path) if not text.startswith("#")]
    if not listed:
        raise InputError(f"{path} has no facts: expected a relation and its entities per line")
    mark = next((mark for mark in "\t," if any(mark in text for _, text in listed)), None)
    found = [(number, [name.strip() for name in text.split(mark)]) for number, text in listed]
    for number, line in found:
        if len(line) < 3 or "" in line:
            raise InputError(f"{path}, line {number}: expected a relation and two entities or more, got {line}")
    return found


def _lines(path: Path) -> list[list[str]]:
    return [line for _, line in read_fields(path)]


def _table_lines(path: Path, relation: str) -> list[list[str]]:
    """The relation and the entities of each row of a table."""
    rows = read_rows(path, "\t" if ".tsv" in path.suffixes else ",")
    _, names = next(rows, (0, []))
    names = [name.strip() for name in names]
    if relation not in names:
        raise InputError(f"{path} has no column {relation!r}: expected one of {names}{nearest(relation, names)}")
    place, found = names.index(relation), []
    for number, cells in rows:
        if len(cells) != len(names):
            raise InputError(f"{path}, line {number}: expected {len(names)} fields, got {len(cells)}")
        entities = [cell.strip() for cell in (*cells[:place], *cells[place + 1 :])]
        while entities and not entities[-1]:
            entities.pop()
        if len(entities) < 2 or "" in entities or not cells[place].strip():
            raise InputError(
                f"{path}, line {number}: expected a relation and two entities or more without gaps, got {cells}"
            )
        found.append([cells[place].strip(), *entities])
    return found


def _unnumbered(lines: list[list[str]], relations: set[str]) -> tuple[list[list[str]], bool]:
    """Lines without a first column that is different in each of them and stands before a known relation."""
    first = {line[0] for line in lines}
    if len(first) < len(lines) or first & relations or not all(line[1] in relations for line in lines):
        return lines, False
    return [line[1:] for line in lines], True


def _encoded(lines: dict[str, list[list[str]]], notes: tuple[str, ...]) -> FactData:
    every = [line for part in lines.values() for line in part]
    relations = {name: n for n, name in enumerate(dict.fromkeys(line[0] for line in every))}
    entities = {name: n for n, name in enumerate(dict.fromkeys(name for line in every for name in line[1:]))}
    places = max(len(line) for line in every) - 1
    parts = {}
    for name, part in lines.items():
        rows = np.full((len(part), places), NOTHING, dtype=np.int64)
        for row, line in zip(rows, part, strict=True):
            row[: len(line) - 1] = [entities[entity] for entity in line[1:]]
        parts[name] = Facts(np.array([relations[line[0]] for line in part], dtype=np.int64), rows)
    return FactData(parts["train"], parts["valid"], parts["test"], tuple(relations), tuple(entities), notes)


class KnownAnswers:
    """Which entities are known to fill a gap, of all facts together: none is a wrong answer where another is asked for."""

    def __init__(self, parts: Sequence[Facts]) -> None:
        self.offsets = np.cumsum([0, *(len(part.queries) for part in parts)])
        found = [
            _keys(part.relation[part.queries[:, 0]], part.entities[part.queries[:, 0]], part.queries[:, 1]) for part in parts
        ]
        self.keys, group = np.unique(np.concatenate([keys for keys, _ in found]), axis=0, return_inverse=True)
        self.group = group.reshape(-1)
        order = np.argsort(self.group, kind="stable")
        self.answers = np.concatenate([answers for _, answers in found])[order]
        self.pointer = np.searchsorted(self.group[order], np.arange(len(self.keys) + 1))

    def of(self, part: int, queries: Ints) -> tuple[Ints, Ints]:
        """Pairs (place among ``queries``, entity) of all known answers; queries are numbered as those of their part."""
        return self._listed(self.group[self.offsets[part] + queries], np.arange(len(queries)))

    def matching(self, relation: Ints, entities: Ints, gap: Ints) -> tuple[Ints, Ints]:
        """The same for any facts with gaps."""
        place = {key: number for number, key in enumerate(map(bytes, self.keys))}
        asked = [place.get(bytes(key), NOTHING) for key in _keys(relation, entities, gap)[0]]
        known = np.flatnonzero(np.array(asked) != NOTHING)
        return self._listed(np.array(asked, np.int64)[known], known)

    def _listed(self, group: Ints, row: Ints) -> tuple[Ints, Ints]:
        counts = self.pointer[group + 1] - self.pointer[group]
        begin = np.repeat(self.pointer[group] - np.cumsum(counts) + counts, counts)
        return np.repeat(row, counts), self.answers[begin + np.arange(len(begin))]


def _keys(relation: Ints, entities: Ints, gap: Ints) -> tuple[Ints, Ints]:
    """Relation and entities but for the gap, and what fills it."""
    others = entities.copy()
    every = np.arange(len(gap))
    answers = others[every, gap].copy()
    others[every, gap] = NOTHING - 1
    return np.column_stack([relation, others]), answers
