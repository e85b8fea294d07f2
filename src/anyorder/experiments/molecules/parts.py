"""Parts of molecule stores as datasets, and where stores go."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Dataset

from anyorder.datasets import registry
from anyorder.experiments.molecules.data import BuildOptions, Molecule, MoleculeStore, SplitMolecules
from anyorder.experiments.molecules.sources import fixed_split

SMALL_TABLE = 1 << 20  # bytes; below, starting processes takes longer than the work


class MoleculePart(Dataset[Molecule]):
    """Some molecules of a store."""

    def __init__(self, store: MoleculeStore, members: NDArray[np.int64]) -> None:
        self.store, self.members = store, members
        self.sizes = store.num_atoms()[members]

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, number: int) -> Molecule:
        return self.store[int(self.members[number])]


def limited(opened: SplitMolecules, limits: dict[str, int | None], name: str) -> SplitMolecules:
    """The same parts, or so many molecules of them: always the same ones."""
    split = dict(opened.split)
    for part, limit in limits.items():
        if limit is not None:
            if not 0 < limit <= len(split[part]):
                raise ValueError(f"the part {part!r} has {len(split[part])} molecules, cannot take {limit}")
            split[part] = split[part][fixed_split(len(split[part]), limit, 0, f"{name}/{part}")["train"]]
    return SplitMolecules(opened.store, split)


def cache_dir(root: Path) -> Path:
    """Where stores of graphs go: into the data folder, or the user's own where that is read-only."""
    nearest = next(folder for folder in (root, *root.parents) if folder.exists())
    return (root if os.access(nearest, os.W_OK) else registry.cache_folder()) / "cache"


def build_options(table: Path, max_atoms: int | None = None) -> BuildOptions:
    """How to make the store of a table."""
    small = table.is_file() and table.stat().st_size < SMALL_TABLE
    return BuildOptions(workers=0 if small else None, max_atoms=max_atoms)
