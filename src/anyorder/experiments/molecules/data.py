"""Datasets of molecules: public tables with fixed splits, OGB's PCQM4M folders, and any table of SMILES."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anyorder.experiments.molecules.build import BuildOptions, build_store
from anyorder.experiments.molecules.sources import MoleculeTable, PCQM4MFolder, Split, Target, fixed_split
from anyorder.experiments.molecules.store import Molecule, MoleculeStore

__all__ = [
    "ESOL",
    "FREESOLV",
    "LIPOPHILICITY",
    "PCQM4MV2_2K",
    "QM9_GAP",
    "BuildOptions",
    "Molecule",
    "MoleculeStore",
    "MoleculeTable",
    "NamedTable",
    "PCQM4MFolder",
    "SplitMolecules",
    "Target",
    "build_store",
    "open_named",
    "open_pcqm4m",
    "open_table",
]

HARTREE = 27.211386  # eV


@dataclass(frozen=True, eq=False)
class SplitMolecules:
    """A store and the parts of a split, as indices of the store."""

    store: MoleculeStore
    split: Split


@dataclass(frozen=True)
class NamedTable:
    """A public table with a fixed split: ``train`` rows, ``valid`` rows and the rest for test."""

    name: str
    file: str
    targets: tuple[Target, ...]
    num_rows: int
    train: int
    valid: int
    smiles: str = "smiles"

    def table(self, data_dir: Path) -> MoleculeTable:
        """The table inside the data folder."""
        return MoleculeTable(data_dir / self.file, self.smiles, self.targets)

    def split(self) -> Split:
        """The fixed split, as rows of the table."""
        return fixed_split(self.num_rows, self.train, self.valid, self.name)


QM9_GAP = NamedTable("qm9", "qm9/qm9.csv.gz", (Target("gap_ha", HARTREE),), 130_831, 110_000, 10_000)
PCQM4MV2_2K = NamedTable("pcqm4mv2_2k", "pcqm4mv2_2k/pcqm4mv2_2k.csv.gz", (Target("homolumogap"),), 1_999, 1_600, 200)
ESOL = NamedTable(
    "esol",
    "moleculenet_small/esol.csv.gz",
    (Target("measured log solubility in mols per litre"),),
    1_128,
    902,
    113,
)
FREESOLV = NamedTable("freesolv", "moleculenet_small/freesolv.csv.gz", (Target("expt"),), 642, 514, 64)
LIPOPHILICITY = NamedTable("lipophilicity", "moleculenet_small/lipo.csv.gz", (Target("exp"),), 4_200, 3_360, 420)


def open_named(
    named: NamedTable, data_dir: Path, cache_dir: Path, options: BuildOptions | None = None, *, progress: bool = True
) -> SplitMolecules:
    """A public table with its fixed split; the store ``cache_dir/name`` is built at first use."""
    store = build_store(named.table(data_dir), cache_dir / named.name, options, progress=progress)
    if store.manifest.num_rows != named.num_rows:
        raise ValueError(f"{named.file} has {store.manifest.num_rows} rows, expected {named.num_rows}: another version?")
    return SplitMolecules(store, {part: store.locate(rows) for part, rows in named.split().items()})


def open_pcqm4m(
    folder: Path, cache_dir: Path, options: BuildOptions | None = None, *, progress: bool = True
) -> SplitMolecules:
    """PCQM4M-LSC or PCQM4Mv2 as OGB lays it out, with the official split."""
    official = PCQM4MFolder.find(folder)
    store = build_store(official.table(), cache_dir / official.path.resolve().name, options, progress=progress)
    split = {part: store.locate(rows) for part, rows in official.split().items()}
    for part in ("train", "valid"):
        missing = split[part][np.isnan(store.targets()[split[part], 0])]
        if len(missing):
            raise ValueError(
                f"{len(missing)} molecules of the part {part!r} have no homolumogap; the first is row "
                f"{store[int(missing[0])].row} of {official.table().path}"
            )
    return SplitMolecules(store, split)


def open_table(
    table: MoleculeTable,
    store_dir: Path,
    options: BuildOptions | None = None,
    *,
    valid: float = 0.1,
    test: float = 0.1,
    name: str = "own",
    progress: bool = True,
) -> SplitMolecules:
    """Any table, with fractions of its rows for validation and test; another ``name`` gives another split."""
    store = build_store(table, store_dir, options, progress=progress)
    rows = store.manifest.num_rows
    held_out = round(valid * rows), round(test * rows)
    split = fixed_split(rows, rows - sum(held_out), held_out[0], name)
    return SplitMolecules(store, {part: store.locate(members) for part, members in split.items()})
