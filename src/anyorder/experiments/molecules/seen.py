"""Whether a file looks like a table of molecules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from anyorder.errors import InputError
from anyorder.peek import FileLook, is_number

_EMPTY = ("", "nan", "na", "n/a", "null", "none")
_TWO = {"0", "1", "0.0", "1.0"}
_NAMES = ("id", "name", "mol_id", "cmpd_chemblid", "inchi", "inchikey", "index", "unnamed: 0", "")


def reason(seen: FileLook, options: Sequence[str] = ()) -> str:
    """Why a file is taken for molecules; nothing where it is not."""
    column = smiles_column(seen.names) if seen.form == "table" else ""
    return f"a table with the column {column!r}" if column else ""


def smiles_column(names: Sequence[str]) -> str:
    """The column that holds SMILES by its name: ``smiles``, else one that ends so; empty where there is none.

    >>> smiles_column(["id", "Canonical_SMILES", "gap"]), smiles_column(["id", "gap"])
    ('Canonical_SMILES', '')
    """
    folded = [name.casefold() for name in names]
    found = [n for n, name in enumerate(folded) if name == "smiles"] or [
        n for n, name in enumerate(folded) if name.endswith("smiles") or name.startswith("smiles")
    ]
    return names[found[0]] if found else ""


def target_column(seen: FileLook, smiles: str) -> str:
    """The one column beside the SMILES that may be predicted; refused where there are none or several."""
    rest = [name for name in seen.names if name != smiles and name.casefold() not in _NAMES]
    if len(rest) != 1:
        some = f"one of {rest[:20]}" if rest else "a table with a column to predict"
        raise InputError(f"{seen.path}: say what to predict with --target: expected {some}")
    return rest[0]


def guessed_goal(seen: FileLook, targets: Sequence[str]) -> Literal["regression", "classification"]:
    """Classes where the first rows of a target hold text alone, or zeros and ones alone; else numbers."""
    for place in (seen.names.index(name) for name in targets if name in seen.names):
        values = {line[place] for line in seen.lines if place < len(line) and line[place].casefold() not in _EMPTY}
        if values and ((values <= _TWO and len(values) > 1) or not any(map(is_number, values))):
            return "classification"
    return "regression"
