"""Molecules in memory-mapped shards: flat arrays with offsets, a checksum for every file, access by index.

A store is a folder. Shard ``n`` is one ``.npy`` file per array and ``shard-n.json``, which is written last: a shard
without it does not exist. ``manifest.json`` is written when all shards are there.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder.errors import InputError, reading
from anyorder.experiments.molecules.graphs import (
    ATOM_FEATURES,
    BOND_FEATURES,
    FlatMolecules,
    Unreadable,
    fingerprint,
    smiles_to_graph,
)
from anyorder.files import file_digest, read_json

FORMAT = 1
MANIFEST = "manifest.json"
ARRAYS = {"atoms", "bonds", "smiles", "offsets", "targets", "rows"}


@dataclass(frozen=True)
class StoredFile:
    """A file of a shard with its size and checksum."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Shard:
    """The molecules of the table rows from ``first_row`` up to, not including, ``end_row``."""

    first_row: int
    end_row: int
    num_molecules: int
    num_atoms: int
    num_bonds: int
    files: dict[str, StoredFile]
    unreadable: tuple[Unreadable, ...]

    def problem(self, folder: Path, *, checksums: bool) -> str | None:
        """What is wrong with the files of this shard, or None."""
        for file in self.files.values():
            path = folder / file.name
            if not path.is_file():
                return f"{path} is missing"
            if path.stat().st_size != file.size:
                return f"{path} has {path.stat().st_size} bytes, expected {file.size}"
            if checksums and file_digest(path) != file.sha256:
                return f"{path} does not have the SHA-256 {file.sha256} of the manifest"
        return None

    def shapes(self, num_targets: int) -> dict[str, tuple[int, ...]]:
        """The shapes of arrays, as far as the counts of the shard say them."""
        return {
            "atoms": (self.num_atoms, len(ATOM_FEATURES)),
            "bonds": (self.num_bonds, 2 + len(BOND_FEATURES)),
            "offsets": (self.num_molecules + 1, 3),
            "targets": (self.num_molecules, num_targets),
            "rows": (self.num_molecules,),
        }

    @staticmethod
    def from_json(value: dict[str, Any]) -> Shard:
        """The inverse of ``dataclasses.asdict``."""
        files = {array: StoredFile(**file) for array, file in value["files"].items()}
        for file in files.values():
            if not isinstance(file.name, str) or Path(file.name).name != file.name or not isinstance(file.size, int):
                raise InputError(f"expected the name of a file in the folder and its size, got {file}")
        shard = Shard(**{**value, "files": files, "unreadable": tuple(Unreadable(**bad) for bad in value["unreadable"])})
        counts = (shard.first_row, shard.end_row, shard.num_molecules, shard.num_atoms, shard.num_bonds)
        if any(isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < 2**63 for count in counts):
            raise InputError(f"expected counts of rows, molecules, atoms and bonds, got {str(counts)[:80]}")
        if not files.keys() >= ARRAYS:
            raise InputError(f"expected the arrays {sorted(ARRAYS)}, got {sorted(files)}")
        return shard


@dataclass(frozen=True)
class Manifest:
    """What a store holds, and the job (source, columns, options) that made it."""

    job: dict[str, Any]
    num_rows: int
    shards: tuple[Shard, ...]

    @property
    def target_names(self) -> tuple[str, ...]:
        return tuple(target["column"] for target in self.job["source"]["targets"])

    @property
    def num_molecules(self) -> int:
        return sum(shard.num_molecules for shard in self.shards)

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """Every row that gave no graph, with its text and the reason."""
        return tuple(bad for shard in self.shards for bad in shard.unreadable)

    def write(self, folder: Path) -> None:
        """Write ``manifest.json``, with the totals for a human reader."""
        totals = {"num_molecules": self.num_molecules, "num_unreadable": len(self.unreadable)}
        write_json(folder / MANIFEST, {"totals": totals, **asdict(self)})

    @staticmethod
    def read(folder: Path) -> Manifest:
        """Read ``manifest.json``; a folder without one is no (finished) store."""
        path = folder / MANIFEST
        if not path.is_file():
            raise FileNotFoundError(f"{folder} holds no finished molecule store: {MANIFEST} is missing")
        value = read_json(path)
        kinds = {"job": dict, "num_rows": int, "shards": list}
        if not isinstance(value, dict) or any(not isinstance(value.get(name), kind) for name, kind in kinds.items()):
            raise InputError(f"{path} is damaged: expected 'job', 'num_rows' and 'shards'")
        with reading(path, "the manifest of a molecule store"):
            if value["job"]["format"] != FORMAT:
                raise InputError(f"{path} has format {value['job']['format']}, expected {FORMAT}: build the store again")
            manifest = Manifest(value["job"], value["num_rows"], tuple(Shard.from_json(shard) for shard in value["shards"]))
            if not all(isinstance(name, str) for name in manifest.target_names):
                raise InputError(f"expected names of targets, got {str(manifest.target_names)[:80]}")
        return manifest


@dataclass(frozen=True, eq=False)
class Molecule:
    """One molecule: ``atoms (atom, 9)``, ``bond_index (2, bond)``, ``bonds (bond, 3)``, ``targets``, its table row.

    Every bond occurs in both directions, one after the other, as OGB has it.
    """

    atoms: NDArray[np.uint8]
    bond_index: NDArray[np.uint16]
    bonds: NDArray[np.uint16]
    targets: NDArray[np.float64]
    row: int
    fingerprint: NDArray[np.uint8] | None = None  # packed bits
    smiles: str = ""  # of molecules without a store

    @staticmethod
    def from_smiles(smiles: str, targets: Sequence[float] = (), row: int = 0) -> Molecule:
        """A molecule without a store; raises `UnreadableMoleculeError` with the reason.

        >>> Molecule.from_smiles("C=O").bond_index.tolist()
        [[0, 1], [1, 0]]
        """
        graph = smiles_to_graph(smiles)
        packed = np.packbits(fingerprint(smiles))
        return Molecule(graph.atoms, *_both_ways(graph.bonds), np.array(targets, np.float64), row, packed, smiles)


def _both_ways(bonds: NDArray[np.uint16]) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Index and features of bonds in both directions, from (begin, end, features) of each bond."""
    twice = np.repeat(bonds, 2, axis=0)
    twice[1::2, :2] = bonds[:, 1::-1]
    return twice[:, :2].T, twice[:, 2:]


class MoleculeStore:
    """Random access to the molecules of a store; picklable, files are mapped at first use in each process."""

    def __init__(self, path: str | Path, *, verify: bool = True) -> None:
        """``verify`` compares all files with their checksums, a gigabyte in a second or two; sizes are compared always."""
        self.path = Path(path)
        self.manifest = Manifest.read(self.path)
        self._starts = list(accumulate((shard.num_molecules for shard in self.manifest.shards), initial=0))
        self._maps: dict[int, dict[str, NDArray[Any]]] = {}
        for shard in self.manifest.shards:
            if problem := shard.problem(self.path, checksums=verify):
                raise InputError(f"the molecule store is damaged: {problem}; build it again to repair it")

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, index: int) -> Molecule:
        maps, place = self._find(index)
        (atom, bond, _), (atom_end, bond_end, _) = maps["offsets"][place : place + 2].tolist()
        bond_index, bonds = _both_ways(maps["bonds"][bond:bond_end])
        return Molecule(
            atoms=maps["atoms"][atom:atom_end],
            bond_index=bond_index,
            bonds=bonds,
            targets=maps["targets"][place],
            row=int(maps["rows"][place]),
            fingerprint=maps["fingerprints"][place] if "fingerprints" in maps else None,
        )

    def smiles(self, index: int) -> str:
        """The SMILES of a molecule, as the table has it."""
        maps, place = self._find(index)
        begin, end = maps["offsets"][place : place + 2, 2].tolist()
        return bytes(maps["smiles"][begin:end]).decode()

    @property
    def target_names(self) -> tuple[str, ...]:
        return self.manifest.target_names

    def num_atoms(self) -> NDArray[np.int64]:
        """Number of atoms of every molecule."""
        return self._all(lambda maps: np.diff(maps["offsets"][:, 0]), np.empty(0, np.int64))

    def rows(self) -> NDArray[np.int64]:
        """Table row of every molecule."""
        return self._all(lambda maps: maps["rows"], np.empty(0, np.int64))

    def targets(self) -> NDArray[np.float64]:
        """Targets ``(molecule, target)`` of all molecules."""
        return self._all(lambda maps: maps["targets"], np.empty((0, len(self.target_names))))

    def locate(self, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Indices of table rows, in their order; rows listed as unreadable are left out, unknown rows refused."""
        wanted, known = np.asarray(rows, np.int64), self.rows()
        places = np.searchsorted(known, wanted)
        found = places < len(known)
        found[found] = known[places[found]] == wanted[found]
        unknown = set(wanted[~found].tolist()) - {bad.row for bad in self.manifest.unreadable}
        if unknown:
            raise ValueError(
                f"{len(unknown)} rows are not in the table, which has {self.manifest.num_rows} rows; "
                f"the first is {min(unknown)}"
            )
        return places[found]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_maps": {}}

    def _find(self, index: int) -> tuple[dict[str, NDArray[Any]], int]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"molecule {index} of a store of {len(self)}")
        index = index % len(self)
        number = bisect_right(self._starts, index) - 1
        return self._map(number), index - self._starts[number]

    def _map(self, number: int) -> dict[str, NDArray[Any]]:
        if number not in self._maps:
            shard = self.manifest.shards[number]
            # plain views: slicing an np.memmap costs several times as much
            with reading(self.path, "a whole molecule store"):
                maps = {
                    array: np.load(self.path / file.name, mmap_mode="r", allow_pickle=False).view(np.ndarray)
                    for array, file in shard.files.items()
                }
                for array, shape in shard.shapes(len(self.target_names)).items():
                    if maps[array].shape != shape:
                        raise InputError(f"{shard.files[array].name}: expected shape {shape}, got {maps[array].shape}")
                self._maps[number] = maps
        return self._maps[number]

    def _all(self, read: Any, empty: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([empty, *(read(self._map(number)) for number in range(len(self.manifest.shards)))])


def write_shard(folder: Path, number: int, molecules: FlatMolecules, rows: range) -> Shard:
    """Write the molecules of some table rows: the arrays first, the JSON that makes the shard valid last."""
    offsets = np.zeros((len(molecules) + 1, 3), np.int64)
    np.cumsum(molecules.counts, axis=0, out=offsets[1:])
    arrays: dict[str, NDArray[Any]] = {
        "atoms": molecules.atoms,
        "bonds": molecules.bonds,
        "smiles": molecules.smiles,
        "offsets": offsets,
        "targets": molecules.targets,
        "rows": molecules.rows,
    }
    if molecules.fingerprints is not None:
        arrays["fingerprints"] = molecules.fingerprints
    files = {}
    for name, array in arrays.items():
        path = folder / f"shard-{number:05d}.{name}.npy"
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            np.save(file, array)
            file.flush()
            os.fsync(file.fileno())
        files[name] = StoredFile(path.name, temporary.stat().st_size, file_digest(temporary))
        os.replace(temporary, path)
    sizes = (len(molecules), len(molecules.atoms), len(molecules.bonds))
    shard = Shard(rows.start, rows.stop, *sizes, files=files, unreadable=molecules.unreadable)
    write_json(shard_json(folder, number), asdict(shard))
    return shard


def shard_json(folder: Path, number: int) -> Path:
    """Where the description of a shard lies."""
    return folder / f"shard-{number:05d}.json"


def write_json(path: Path, value: Any) -> None:
    """Write JSON in one step: a reader sees the old file or the new one."""
    temporary = path.with_suffix(".json.tmp")
    with temporary.open("w") as file:
        json.dump(value, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
