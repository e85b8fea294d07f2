"""What a forest reads of a molecule: counts of a Morgan fingerprint and RDKit's descriptors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from typing import Any

import numpy as np

from anyorder.errors import InputError
from anyorder.experiments.molecules.graphs import FINGERPRINT_RADIUS, read_smiles
from anyorder.extras import require
from anyorder.training.forest import Floats

BITS = 1024
_LARGEST = 1e6
_SLOW = ("Ipc", "AvgIpc", "BCUT2D", "SPS")
"""Descriptors that take most of the time, by the beginning of their names."""
_ALONE = 4_000
"""Molecules from which on other processes help."""


def descriptor_names() -> tuple[str, ...]:
    """The descriptors that this version of RDKit has, without the slow ones."""
    return tuple(name for name in _functions() if not name.startswith(_SLOW))


def describe_molecules(smiles: Sequence[str], names: Sequence[str]) -> Floats:
    """(molecule, count or descriptor), in the order of ``names`` after the counts."""
    unknown = [name for name in names if name not in _functions()]
    if unknown:
        raise InputError(f"this version of RDKit has no descriptor {unknown[0]!r}, which the model was trained with")
    texts, count = list(smiles), os.cpu_count() or 1
    if len(texts) < _ALONE or count == 1:
        return _describe(texts, tuple(names))
    pieces = [texts[start : start + 500] for start in range(0, len(texts), 500)]
    with ProcessPoolExecutor(count, get_context("spawn")) as pool:
        return np.concatenate(list(pool.map(_describe, pieces, [tuple(names)] * len(pieces))))


def _describe(smiles: Sequence[str], names: tuple[str, ...]) -> Floats:
    functions = [_functions()[name] for name in names]
    rows = np.zeros((len(smiles), BITS + len(names)), np.float32)
    for row, text in zip(rows, smiles, strict=True):
        molecule = read_smiles(text)
        row[:BITS] = _generator().GetCountFingerprintAsNumPy(molecule)
        row[BITS:] = np.clip(np.nan_to_num([_value(each, molecule) for each in functions]), -_LARGEST, _LARGEST)
    return rows


def _value(function: Any, molecule: Any) -> float:
    """A descriptor; 0 where RDKit has none for the molecule."""
    try:
        return float(function(molecule))
    except (ValueError, ZeroDivisionError, OverflowError, RuntimeError):
        return 0.0


@lru_cache(maxsize=1)
def _functions() -> dict[str, Any]:
    return dict(require("rdkit.Chem.Descriptors", "molecules").descList)


@lru_cache(maxsize=1)
def _generator() -> Any:
    made = require("rdkit.Chem.rdFingerprintGenerator", "molecules")
    return made.GetMorganGenerator(radius=FINGERPRINT_RADIUS, fpSize=BITS)
