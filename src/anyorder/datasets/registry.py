"""Where datasets are: the registry, the data folder, and what to do when a file is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from anyorder.datasets.catalogue import CATALOGUE
from anyorder.datasets.entries import DataFile, Dataset
from anyorder.suggest import closest

__all__ = [
    "DATASETS",
    "DataFile",
    "Dataset",
    "cache_folder",
    "data_dir",
    "dataset",
    "folder",
    "locate",
    "missing",
    "originals_folder",
]

DATASETS: dict[str, Dataset] = {entry.name: entry for entry in CATALOGUE}

Folder = str | os.PathLike[str] | None


def dataset(name: str) -> Dataset:
    """The entry of a dataset.

    >>> dataset("jets_alise")
    Traceback (most recent call last):
    ...
    ValueError: unknown dataset 'jets_alise': did you mean 'jets_alice'? `anyorder data list` shows all of them
    """
    if name not in DATASETS:
        raise ValueError(f"unknown dataset {name!r}: {_hint(name, DATASETS)}`anyorder data list` shows all of them")
    return DATASETS[name]


def data_dir(given: Folder = None) -> Path:
    """The folder of all datasets: the one given, else $ANYORDER_DATA, else the user's cache folder."""
    chosen = given if given is not None else os.environ.get("ANYORDER_DATA") or cache_folder()
    return Path(chosen).expanduser().absolute()


def folder(name: str, *, data_dir: Folder = None) -> Path:
    """The folder of one dataset, whether it exists or not."""
    return _root(data_dir) / dataset(name).name


def originals_folder(name: str, *, data_dir: Folder = None) -> Path:
    """Where the published files lie from which a dataset's own files are made."""
    return folder(name, data_dir=data_dir) / "originals"


def missing(name: str, *, part: str = "", data_dir: Folder = None) -> tuple[DataFile, ...]:
    """The files of a dataset, or of a file or folder inside it, that are not there."""
    home = folder(name, data_dir=data_dir)
    return tuple(file for file in _part(dataset(name), part) if not (home / file.path).is_file())


def locate(name: str, *, part: str = "", data_dir: Folder = None) -> Path:
    """The folder of a dataset whose files are all there; with ``part``, that file or folder inside it.

    ``locate("dhne_hyperedges", part="GPS")`` needs the two files of GPS only.
    """
    entry = dataset(name)
    if entry.generated:
        raise ValueError(f"{name} is generated while it is used: it has no files to locate")
    absent = missing(name, part=part, data_dir=data_dir)
    if absent:
        raise FileNotFoundError(instructions(entry, absent, data_dir=data_dir))
    return folder(name, data_dir=data_dir) / part


def instructions(entry: Dataset, absent: Sequence[DataFile], *, data_dir: Folder = None) -> str:
    """Exactly what to run, or what to put where, to have these files of a dataset."""
    root = _root(data_dir)
    home = root / entry.name
    option = "" if root == _root(None) else f" --data-dir {root}"
    again = f"anyorder data get {entry.name}{option}"
    ways = []
    if entry.command:
        ways.append(f"run: {entry.command}{option}")
    elif entry.make or any(file.url for file in absent):
        first = [file.how.format(folder=home / "originals") for file in entry.originals if file.how]
        ways.append("run: " + " && ".join([*first, again]))
    ways.append(_listing(f"put here (source: {entry.source}):", home, absent))
    if entry.make:
        ways.append(_listing(f"put the originals here and run {again}:", home / "originals", entry.originals))
    ways.append("name a folder that has them, with ANYORDER_DATA or --data-dir")
    head = f"{entry.name}: {len(absent)} of {len(entry.files)} files are not in {home}"
    return "\n".join([head, *([entry.notes] if entry.notes else []), " - " + "\n - or ".join(ways)])


def _listing(title: str, home: Path, files: Sequence[DataFile]) -> str:
    return "\n".join([title, *(f"     {home / file.path}{_facts(file)}" for file in files)])


def _facts(file: DataFile) -> str:
    known = [] if file.size is None else [f"{file.size:,} bytes{' unpacked' if file.content else ''}"]
    if file.url:
        known.append(f"from {file.url}")
    return f"  ({', '.join(known)})" if known else ""


def _part(entry: Dataset, part: str) -> tuple[DataFile, ...]:
    wanted = part.strip("/")
    chosen = tuple(file for file in entry.files if not wanted or (file.path + "/").startswith(wanted + "/"))
    if entry.files and not chosen:
        paths = [file.path for file in entry.files]
        known = dict.fromkeys([*(path.split("/")[0] for path in paths), *paths])
        raise ValueError(f"{entry.name} has no part {part!r}: {_hint(part, known)}expected one of {', '.join(known)}")
    return chosen


def _hint(name: str, known: Iterable[str]) -> str:
    close = closest(name, known, cutoff=0.6)
    return "" if close is None else f"did you mean {close!r}? "


def _root(given: Folder) -> Path:
    return data_dir(given)


def cache_folder() -> Path:
    """The platform's folder for files that can be had again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "anyorder" / "data"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "anyorder" / "data"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "anyorder" / "data"
