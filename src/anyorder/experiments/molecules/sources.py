"""Tables of molecules, read row by row: any CSV (plain or gzip), OGB's PCQM4M folders, and fixed splits."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import math
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import numpy as np
from numpy.typing import NDArray

from anyorder.errors import InputError, reading
from anyorder.experiments.molecules.graphs import SmilesRow
from anyorder.experiments.molecules.saved_arrays import SavedArray, saved_arrays
from anyorder.files import check_members, file_digest

Split = Mapping[str, NDArray[np.int64]]

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none"})
LARGEST = 1e30
"""Of a target: squares of larger ones have no place in 32 bits."""
PCQM4M_FOLDERS = ("pcqm4m_kddcup2021", "pcqm4m-v2")


@dataclass(frozen=True)
class Target:
    """A column of numbers to predict, and what to multiply them with (27.211386 for hartree to eV)."""

    column: str
    scale: float = 1.0


@dataclass(frozen=True)
class MoleculeTable:
    """A CSV of SMILES and targets that is read one row at a time.

    A missing target is refused with its row, unless ``keep_missing``: then it is NaN.
    """

    path: Path
    smiles: str = "smiles"
    targets: tuple[Target, ...] = ()
    keep_missing: bool = False

    def __post_init__(self) -> None:
        names = [target.column for target in self.targets]
        if len(set(names)) < len(names) or self.smiles in names:
            raise InputError(f"the SMILES column and the targets must differ, got {self.smiles!r} and {names}")

    def rows(self) -> Iterator[SmilesRow]:
        """Data rows in order, with the targets as numbers; a bad row is refused with its number and line."""
        row = -1
        with self.cells() as (header, lines):
            smiles_at = self.column(header, self.smiles)
            targets_at = [self.column(header, target.column) for target in self.targets]
            for row, (where, cells) in enumerate(lines):
                numbers = tuple(
                    self._number(cells[at], target, where) for at, target in zip(targets_at, self.targets, strict=True)
                )
                yield SmilesRow(row, cells[smiles_at].strip(), numbers)
        if row < 0:
            raise InputError(f"{self.path} has a header but no rows")

    @contextmanager
    def cells(self) -> Iterator[tuple[list[str], Iterator[tuple[str, list[str]]]]]:
        """The header, and the cells of each data row with the words that name the row in an error."""
        with self._reader() as (reader, header):
            yield header, self._lines(reader, header)

    def _lines(self, reader: Any, header: list[str]) -> Iterator[tuple[str, list[str]]]:
        for row, cells in enumerate(cells for cells in reader if cells):  # blank lines are no rows
            where = f"row {row} (line {reader.line_num}) of {self.path.name}"
            if len(cells) != len(header):
                raise InputError(f"{where} has {len(cells)} cells, expected {len(header)} as in the header")
            yield where, cells

    def count(self) -> int:
        """Number of data rows; reads the whole table, so that a bad row is refused before any work is done."""
        return sum(1 for _ in self.rows())

    def sha256(self) -> str:
        """SHA-256 of the file as it lies on disk."""
        return file_digest(self.path)

    def describe(self) -> dict[str, Any]:
        """What decides the content of the rows, as JSON values."""
        return {
            "file": self.path.name,
            "sha256": self.sha256(),
            "smiles": self.smiles,
            "targets": [asdict(target) for target in self.targets],
            "keep_missing": self.keep_missing,
        }

    @contextmanager
    def _reader(self) -> Iterator[tuple[Any, list[str]]]:
        with open_text(self.path) as text:
            reader = csv.reader(text, strict=True)
            try:
                header = next((cells for cells in reader if cells), None)
                if header is None:
                    raise InputError(f"{self.path} is empty: expected a header with a column {self.smiles!r}")
                yield reader, [name.strip() for name in header]
            except csv.Error as error:
                raise InputError(f"{self.path}, line {reader.line_num}: {error}") from error
            except UnicodeDecodeError as error:
                raise InputError(f"{self.path} is not UTF-8 text after line {reader.line_num}: {error}") from error
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise InputError(f"{self.path} is cut off or damaged after line {reader.line_num}: {error}") from error

    def column(self, header: Sequence[str], name: str) -> int:
        """Where a column stands."""
        if header.count(name) != 1:
            found = "no column" if name not in header else "more than one column"
            raise InputError(f"{self.path} has {found} {name!r}; its columns are {', '.join(map(repr, header))}")
        return header.index(name)

    def _number(self, text: str, target: Target, where: str) -> float:
        text = text.strip()
        if text.lower() in MISSING:
            if self.keep_missing:
                return math.nan
            raise InputError(
                f"{where}: target {target.column!r} is missing ({text!r}); fill it, remove the row, "
                "or ask to keep missing targets"
            )
        try:
            number = float(text)
        except ValueError:
            number = math.inf
        if not abs(number * target.scale) <= LARGEST:
            raise InputError(
                f"{where}: target {target.column!r} is {text!r}, expected a finite number of at most {LARGEST:g}"
            )
        return number * target.scale


@dataclass(frozen=True)
class PCQM4MFolder:
    """PCQM4M-LSC or PCQM4Mv2 as OGB lays it out: ``raw/data.csv.gz`` (idx, smiles, homolumogap), ``split_dict.pt``.

    The parts are rows of the table: train, valid and test, or train, valid, test-dev and test-challenge. Test
    molecules have no public gap, so that missing gaps are kept.
    """

    path: Path

    @staticmethod
    def find(path: Path) -> PCQM4MFolder:
        """The dataset in this folder, or in the folder that OGB makes inside it."""
        found = [folder for folder in (path, *(path / name for name in PCQM4M_FOLDERS)) if _is_pcqm4m(folder)]
        if len(found) != 1:
            problem = "no PCQM4M dataset" if not found else "more than one PCQM4M dataset"
            raise FileNotFoundError(
                f"{problem} in {path}: expected raw/data.csv.gz and split_dict.pt there or in one "
                f"of its folders {', '.join(PCQM4M_FOLDERS)}"
            )
        return PCQM4MFolder(found[0])

    def table(self) -> MoleculeTable:
        """The molecules with their gap in eV."""
        return MoleculeTable(self.path / "raw" / "data.csv.gz", "smiles", (Target("homolumogap"),), keep_missing=True)

    def split(self) -> Split:
        """Rows of each part of the official split."""
        return load_split(self.path / "split_dict.pt")


def _is_pcqm4m(folder: Path) -> bool:
    return (folder / "raw" / "data.csv.gz").is_file() and (folder / "split_dict.pt").is_file()


def load_split(path: Path) -> Split:
    """Read a ``split_dict.pt`` (a dict of integer arrays saved by torch) without running code from the file."""
    import torch

    quiet = warnings.catch_warnings()
    with reading(path, "a split that torch has saved"), quiet, torch.serialization.safe_globals(saved_arrays()):
        warnings.simplefilter("ignore", UserWarning)  # of damaged headers: what is wrong is said once
        raw = path.read_bytes()
        check_members(raw)
        loaded = torch.load(io.BytesIO(raw), weights_only=True)
    with reading(path):
        if not isinstance(loaded, dict) or not {"train", "valid"} <= set(loaded):
            raise InputError(f"{path} must hold a dict with the parts train and valid, got {_shape_of(loaded)}")
        split = {str(part): _rows_of(part, rows) for part, rows in loaded.items()}
        _check_disjoint(split, path)
    return split


def _rows_of(part: object, rows: object) -> NDArray[np.int64]:
    array = rows.rows if isinstance(rows, SavedArray) else np.asarray(rows)
    if array.dtype.kind not in "iu":
        raise InputError(f"the part {part!r} must be row numbers, got {array.dtype}")
    return array.astype(np.int64).reshape(-1)


def fixed_split(num_rows: int, train: int, valid: int, name: str) -> dict[str, NDArray[np.int64]]:
    """Rows 0..num_rows-1 in the order of SHA-256 of ``name/row``: train, valid, and the rest is test.

    The order depends on nothing else, so that the split is the same for every version of every library.

    >>> {part: rows.tolist() for part, rows in fixed_split(6, 3, 2, "example").items()}
    {'train': [0, 2, 4], 'valid': [3, 5], 'test': [1]}
    """
    if min(train, valid) < 0 or train + valid > num_rows:
        raise InputError(f"cannot take {train} training and {valid} validation rows of {num_rows}")
    order = np.array(sorted(range(num_rows), key=lambda row: hashlib.sha256(f"{name}/{row}".encode()).digest()))
    parts = np.split(order.astype(np.int64), [train, train + valid])
    return {part: np.sort(rows) for part, rows in zip(("train", "valid", "test"), parts, strict=True)}


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """A text file, plain or gzip by its first bytes, decoded as UTF-8 on the fly."""
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        binary = cast(BinaryIO, gzip.GzipFile(fileobj=raw)) if zipped else raw
        with io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as text:
            yield text


def _check_disjoint(split: Split, path: Path) -> None:
    rows, counts = np.unique(np.concatenate(list(split.values())), return_counts=True)
    if len(rows) and (rows[0] < 0 or counts.max() > 1):
        raise InputError(
            f"{path}: every row must be in one part only and not negative; row {rows[counts.argmax()]} "
            f"occurs {counts.max()} times, the smallest row is {rows[0]}"
        )


def _shape_of(value: object) -> str:
    return f"a dict with {sorted(map(str, value))}" if isinstance(value, dict) else type(value).__name__
