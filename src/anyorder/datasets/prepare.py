"""Make a dataset's own files from the files that its source publishes."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyorder.datasets.archives import unpack
from anyorder.datasets.entries import Dataset
from anyorder.extras import require

Maker = Callable[[Dataset, Path, Path], None]

_QM9_COLUMNS = {
    "Index": "index",
    "SMILES": "smiles",
    "N_atoms": "n_atoms",
    "Dipole_debye": "mu_debye",
    "Polarizability_bohr3": "alpha_bohr3",
    "HOMO_au": "homo_ha",
    "LUMO_au": "lumo_ha",
    "HOMO_LUMO_gap_au": "gap_ha",
    "R2_bohr2": "r2_bohr2",
    "ZPVE_au": "zpve_ha",
    "InternalEnergy_0K_au": "u0_ha",
    "InternalEnergy_298K_au": "u298_ha",
    "Enthalphy_298K_au": "h298_ha",
    "GibbsFreeEnergy_298K_au": "g298_ha",
    "Heatcapacity_Cv_cal_mol_K": "cv_cal_mol_k",
}


def unpack_archives(entry: Dataset, originals: Path, target: Path) -> None:
    """Unpack every archive; a top folder with the dataset's own name is left out."""
    for file in entry.originals:
        unpack(originals / file.path, target, strip=entry.name)


def gzip_files(entry: Dataset, originals: Path, target: Path) -> None:
    """Store every original gzipped."""
    for file in entry.originals:
        packed = target / f"{file.path}.gz"
        packed.parent.mkdir(parents=True, exist_ok=True)
        with (originals / file.path).open("rb") as plain, _gzip(packed) as out:
            shutil.copyfileobj(plain, out)


def qm9(entry: Dataset, originals: Path, target: Path) -> None:
    """Join the three tables of the package and keep the columns about the molecular graph and its properties."""
    with zipfile.ZipFile(originals / entry.originals[0].path) as package, _writer(target / "qm9.csv.gz") as writer:
        writer.writerow(_QM9_COLUMNS.values())
        for number in (1, 2, 3):
            with package.open(f"qm9pack/data/qm9_part{number}.csv") as part:
                for row in csv.DictReader(io.TextIOWrapper(part, encoding="utf-8", newline="")):
                    texts = [row["Index"], row["SMILES"], row["N_atoms"]]
                    writer.writerow(texts + [repr(float(row[name])) for name in [*_QM9_COLUMNS][3:]])


def pcqm4mv2_2k(entry: Dataset, originals: Path, target: Path) -> None:
    """Canonical SMILES of the molecules that the source writes with explicit hydrogens and coordinates."""
    chem, logger = require("rdkit.Chem", "molecules"), require("rdkit.RDLogger", "molecules")
    logger.DisableLog("rdApp.*")
    table = (originals / entry.originals[0].path).read_bytes().replace(b"\r\n", b"\n")
    with _gzip(target / "pcqm4mv2-2k_original_cxsmiles.csv.gz") as out:
        out.write(table)
    with _writer(target / "pcqm4mv2_2k.csv.gz") as writer:
        writer.writerow(("row", "smiles", "smiles_h_filled", "n_radical_electrons", "homolumogap"))
        for number, row in enumerate(csv.DictReader(io.StringIO(table.decode()))):
            explicit = row["smiles"].split(" |")[0]
            molecule = _without_added_hydrogens(chem, explicit)
            radicals = sum(atom.GetNumRadicalElectrons() for atom in molecule.GetAtoms())
            filled = chem.MolToSmiles(chem.MolFromSmiles(explicit))
            # the source calls the column `homo`; its numbers are the gap in eV
            writer.writerow((number, chem.MolToSmiles(molecule), filled, radicals, row["homo"]))


def _without_added_hydrogens(chem: Any, smiles: str) -> Any:
    """The molecule with the hydrogens that are written and no others: what is left open is a radical."""
    options = chem.SmilesParserParams()
    options.removeHs, options.sanitize = False, False
    molecule = chem.MolFromSmiles(smiles, options)
    for atom in molecule.GetAtoms():
        atom.SetNoImplicit(True)
    chem.SanitizeMol(molecule)
    return chem.RemoveHs(molecule)


@contextmanager
def _gzip(path: Path) -> Iterator[Any]:
    """A gzip file that does not hold the time or the name, so that making it twice gives the same bytes."""
    with path.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as out:
        yield out


@contextmanager
def _writer(path: Path) -> Iterator[Any]:
    with _gzip(path) as out:
        text = io.TextIOWrapper(out, encoding="utf-8", newline="")
        yield csv.writer(text, lineterminator="\n")
        text.flush()
        text.detach()


MAKERS: dict[str, Maker] = {
    "unpack": unpack_archives,
    "gzip": gzip_files,
    "qm9": qm9,
    "pcqm4mv2_2k": pcqm4mv2_2k,
}
