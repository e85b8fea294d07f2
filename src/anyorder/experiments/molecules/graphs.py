"""SMILES to graphs with OGB's 9 atom and 3 bond features, and many of them in flat arrays. Needs RDKit, no torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyorder.extras import require

# Number of values of each categorical feature; the last value of a list that can overflow means "anything else".
ATOM_FEATURES = {
    "atomic_number": 119,  # Z - 1
    "chirality": 5,
    "degree": 12,  # with hydrogens
    "formal_charge": 12,  # -5..5
    "hydrogens": 10,
    "radical_electrons": 6,
    "hybridization": 6,
    "aromatic": 2,
    "in_ring": 2,
}
BOND_FEATURES = {"type": 5, "stereo": 6, "conjugated": 2}
CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
HYBRIDIZATION = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
BOND_TYPE = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
BOND_STEREO = ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY")

FINGERPRINT_BITS = 2048
FINGERPRINT_RADIUS = 2
MOST_ATOMS = 2**16 - 1  # bonds are stored with 16-bit atom numbers


class UnreadableMoleculeError(ValueError):
    """A SMILES that gives no graph; the message is the reason."""


@dataclass(frozen=True)
class Unreadable:
    """A row of a table whose SMILES gives no graph."""

    row: int
    smiles: str
    reason: str


@dataclass(frozen=True)
class SmilesRow:
    """One row of a table of molecules; ``row`` counts data rows from 0, a missing target is NaN."""

    row: int
    smiles: str
    targets: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class MoleculeGraph:
    """Atoms ``(atom, 9)`` and bonds ``(bond, 5)``: begin, end, type, stereo, conjugated, each bond once.

    >>> smiles_to_graph("C=O").bonds.tolist()
    [[0, 1, 1, 0, 0]]
    """

    atoms: NDArray[np.uint8]
    bonds: NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class FlatMolecules:
    """Many molecules end to end; ``counts`` has the atoms, bonds and SMILES bytes of each."""

    atoms: NDArray[np.uint8]
    bonds: NDArray[np.uint16]
    smiles: NDArray[np.uint8]
    counts: NDArray[np.int64]
    targets: NDArray[np.float64]
    rows: NDArray[np.int64]
    fingerprints: NDArray[np.uint8] | None  # (molecule, bits / 8), packed
    unreadable: tuple[Unreadable, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @staticmethod
    def join(parts: Sequence[FlatMolecules]) -> FlatMolecules:
        """The molecules of all parts, in order."""
        packed = [part.fingerprints for part in parts if part.fingerprints is not None]
        return FlatMolecules(
            atoms=np.concatenate([part.atoms for part in parts]),
            bonds=np.concatenate([part.bonds for part in parts]),
            smiles=np.concatenate([part.smiles for part in parts]),
            counts=np.concatenate([part.counts for part in parts]),
            targets=np.concatenate([part.targets for part in parts]),
            rows=np.concatenate([part.rows for part in parts]),
            fingerprints=np.concatenate(packed) if packed else None,
            unreadable=tuple(bad for part in parts for bad in part.unreadable),
        )


def smiles_to_graph(smiles: str, *, max_atoms: int | None = None) -> MoleculeGraph:
    """The graph that OGB's ``smiles2graph`` gives, each bond once; raises `UnreadableMoleculeError` with the reason.

    >>> smiles_to_graph("[Na+]").atoms.tolist()  # an ion of one atom
    [[10, 0, 0, 6, 0, 0, 5, 0, 0]]
    """
    return _graph(read_smiles(smiles), max_atoms)


def read_smiles(smiles: str) -> Any:
    """The RDKit molecule of a SMILES, or `UnreadableMoleculeError` with what RDKit has against it."""
    chem = require("rdkit.Chem", "molecules")
    if not smiles.strip():
        raise UnreadableMoleculeError("the SMILES is empty")
    with require("rdkit.rdBase", "molecules").BlockLogs():
        molecule = chem.MolFromSmiles(smiles)
        if molecule is not None:
            return molecule
        unchecked = chem.MolFromSmiles(smiles, sanitize=False)
        if unchecked is None:
            raise UnreadableMoleculeError("not SMILES: the text cannot be parsed")
        problems = [problem.Message() for problem in chem.DetectChemistryProblems(unchecked)]
    raise UnreadableMoleculeError("; ".join(problems) or "RDKit cannot sanitize the molecule")


def fingerprint(smiles: str) -> NDArray[np.uint8]:
    """Morgan fingerprint of radius 2 folded to 2048 bits, as zeros and ones.

    >>> int(fingerprint("C").sum()), fingerprint("CCO").shape
    (1, (2048,))
    """
    return _fingerprint(read_smiles(smiles))


def convert_rows(
    rows: Iterable[SmilesRow], num_targets: int, *, fingerprints: bool = False, max_atoms: int | None = None
) -> FlatMolecules:
    """Every row as a graph, end to end; rows without a graph are listed in ``unreadable``."""
    kept: list[SmilesRow] = []
    graphs: list[MoleculeGraph] = []
    packed: list[NDArray[np.uint8]] = []
    unreadable: list[Unreadable] = []
    for row in rows:
        try:
            molecule = read_smiles(row.smiles)
            graph = _graph(molecule, max_atoms)
        except UnreadableMoleculeError as error:
            unreadable.append(Unreadable(row.row, row.smiles, str(error)))
            continue
        kept.append(row)
        graphs.append(graph)
        if fingerprints:
            packed.append(np.packbits(_fingerprint(molecule)))
    texts = [row.smiles.encode() for row in kept]
    counts = [(len(graph.atoms), len(graph.bonds), len(text)) for graph, text in zip(graphs, texts, strict=True)]
    return FlatMolecules(
        atoms=np.concatenate([np.empty((0, len(ATOM_FEATURES)), np.uint8), *(graph.atoms for graph in graphs)]),
        bonds=np.concatenate([np.empty((0, 2 + len(BOND_FEATURES)), np.uint16), *(graph.bonds for graph in graphs)]),
        smiles=np.frombuffer(b"".join(texts), np.uint8),
        counts=np.array(counts, np.int64).reshape(-1, 3),
        targets=np.array([row.targets for row in kept], np.float64).reshape(len(kept), num_targets),
        rows=np.array([row.row for row in kept], np.int64),
        fingerprints=np.array(packed, np.uint8).reshape(len(kept), FINGERPRINT_BITS // 8) if fingerprints else None,
        unreadable=tuple(unreadable),
    )


def _graph(molecule: Any, max_atoms: int | None) -> MoleculeGraph:
    limit = MOST_ATOMS if max_atoms is None else min(max_atoms, MOST_ATOMS)
    count = molecule.GetNumAtoms()
    if not 0 < count <= limit:
        raise UnreadableMoleculeError("no atoms" if count == 0 else f"{count} atoms, more than the limit of {limit}")
    chirality, hybridization, bond_type, bond_stereo = _enumerations()
    atoms = [
        (
            _position(atom.GetAtomicNum(), 1, 118),
            chirality.get(atom.GetChiralTag(), 4),
            _position(atom.GetTotalDegree(), 0, 10),
            _position(atom.GetFormalCharge(), -5, 5),
            _position(atom.GetTotalNumHs(), 0, 8),
            _position(atom.GetNumRadicalElectrons(), 0, 4),
            hybridization.get(atom.GetHybridization(), 5),
            atom.GetIsAromatic(),
            atom.IsInRing(),
        )
        for atom in map(molecule.GetAtomWithIdx, range(count))  # twice as fast as iterating over GetAtoms()
    ]
    bonds = []
    for bond in map(molecule.GetBondWithIdx, range(molecule.GetNumBonds())):
        stereo = bond_stereo.get(bond.GetStereo())
        if stereo is None:  # OGB has no value for it either
            raise UnreadableMoleculeError(f"bond stereo {bond.GetStereo()} has no value among the bond features")
        kind = bond_type.get(bond.GetBondType(), 4)
        bonds.append((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), kind, stereo, bond.GetIsConjugated()))
    return MoleculeGraph(np.array(atoms, np.uint8), np.array(bonds, np.uint16).reshape(-1, 2 + len(BOND_FEATURES)))


def _position(value: int, low: int, high: int) -> int:
    """Position of a value in low..high; everything outside shares the position after the last."""
    return value - low if low <= value <= high else high - low + 1


@lru_cache(maxsize=1)
def _enumerations() -> tuple[dict[Any, int], dict[Any, int], dict[Any, int], dict[Any, int]]:
    chem = require("rdkit.Chem", "molecules")
    tables = (
        (chem.ChiralType, CHIRALITY),
        (chem.HybridizationType, HYBRIDIZATION),
        (chem.BondType, BOND_TYPE),
        (chem.BondStereo, BOND_STEREO),
    )
    first, second, third, fourth = ({kind.names[name]: i for i, name in enumerate(names)} for kind, names in tables)
    return first, second, third, fourth


@lru_cache(maxsize=1)
def _fingerprint_generator() -> Any:
    generator = require("rdkit.Chem.rdFingerprintGenerator", "molecules")
    return generator.GetMorganGenerator(radius=FINGERPRINT_RADIUS, fpSize=FINGERPRINT_BITS)


def _fingerprint(molecule: Any) -> NDArray[np.uint8]:
    bits: NDArray[np.uint8] = _fingerprint_generator().GetFingerprintAsNumPy(molecule)
    return bits
