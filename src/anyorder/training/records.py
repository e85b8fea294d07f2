"""Records: what a run was, where it ran and what came out."""

from __future__ import annotations

import math
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from anyorder.errors import InputError, is_control, reading
from anyorder.files import read_json, write_json
from anyorder.training.run import slug

RECORD = "record.json"
_PACKAGES = ("anyorder", "torch", "numpy", "lightning", "torch_geometric", "scikit-learn", "scipy", "numba")


@dataclass(frozen=True)
class Record:
    """The result of one run: metrics maps the parts of the dataset ('' for the whole) to their metrics."""

    recipe: str
    table: str
    dataset: str
    row: str
    scale: str
    seed: int
    reduced: str
    overrides: tuple[str, ...]
    config: dict[str, Any]
    metrics: dict[str, dict[str, float]]
    history: list[dict[str, float]]
    wall_seconds: float
    parameters: int
    versions: dict[str, str] = field(default_factory=dict)
    commit: str = ""
    hardware: dict[str, Any] = field(default_factory=dict)
    finished: str = ""
    """Date and time (UTC)."""
    unfinished: str = ""
    """How far the training was when it was tested, where it is to be resumed."""

    def write(self, path: Path) -> None:
        write_json(path, {"kind": "anyorder-record", **vars(self)})

    @classmethod
    def read(cls, path: Path) -> Record:
        data = read_json(path)
        if not isinstance(data, dict) or data.pop("kind", None) != "anyorder-record":
            raise InputError(f"{path} is not a record of a run")
        needed = {part.name for part in fields(cls) if part.default is MISSING and part.default_factory is MISSING}
        missing = needed - data.keys()
        if missing:
            raise InputError(f"{path} lacks {sorted(missing)}")
        with reading(path):
            _check_record(data)
        data["overrides"] = tuple(data["overrides"])
        return cls(**{part.name: data[part.name] for part in fields(cls) if part.name in data})

    @property
    def place(self) -> tuple[str, str, str, str, int, tuple[str, ...]]:
        """What it is a record of; two records of one place are two attempts."""
        return self.table, self.dataset, self.row, self.scale, self.seed, self.overrides


def write_record(folder: Path, record: Record) -> None:
    """Write the record of a folder; once it is finished, the model holds the best weights, and their own files go."""
    record.write(folder / RECORD)
    if not record.unfinished:
        for path in folder.glob("best-*.safetensors"):
            path.unlink()


def read_records(folder: Path, *, table: str | None = None) -> list[Record]:
    """All records below a folder, those of one table if named; the latest where a seed was run more than once."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there are no records: {folder} does not exist; `anyorder run` makes some")
    latest: dict[Any, Record] = {}
    for path in sorted(_record_files(folder)):
        record = Record.read(path)
        known = latest.get(record.place)
        if (table is None or record.table == table) and (known is None or known.finished <= record.finished):
            latest[record.place] = record
    return list(latest.values())


def collect(runs: Path, into: Path) -> tuple[int, int]:
    """Copy the records of the recipes below a folder to their places; how many, and how many of other runs were left."""
    if not runs.is_dir():
        raise FileNotFoundError(f"{runs} is not a folder of runs")
    records = read_records(runs)
    chosen = [record for record in records if not record.overrides and record.table != "own"]
    for record in chosen:
        record.write(recipe_folder(record.recipe, record.scale, into) / f"record-seed-{record.seed}.json")
    return len(chosen), len(records) - len(chosen)


def recipe_folder(recipe: str, scale: str, into: Path) -> Path:
    """The folder of a recipe below another one; its names may come from anywhere, and must not lead out of it."""
    for part in (*recipe.split("/"), scale):
        if part in ("", ".", "..") or slug(part) != part:
            raise InputError(
                f"a record names the recipe {recipe!r} on the scale {scale!r}: "
                "expected small letters, digits and hyphens between slashes"
            )
    return into / recipe / scale


def _record_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.json"):
        if path.name == RECORD or path.name.startswith("record-"):
            yield path


_WORDS = ("recipe", "table", "dataset", "row", "scale", "reduced", "commit", "finished", "unfinished")
_KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(_WORDS, str),
    "seed": int,
    "overrides": list,
    "config": dict,
    "metrics": dict,
    "history": list,
    "wall_seconds": (int, float),
    "parameters": int,
    "versions": dict,
    "hardware": dict,
}


def _check_record(data: dict[str, Any]) -> None:
    """Refuse values of the wrong kind, and words that would do something to a terminal or lead out of a folder."""
    for name, kind in _KINDS.items():
        if name in data and (not isinstance(data[name], kind) or isinstance(data[name], bool)):
            expected = kind.__name__ if isinstance(kind, type) else "number"
            raise InputError(f"{name} must be a {expected}, got {str(data[name])[:60]!r}")
    for part, found in data["metrics"].items():
        _check_numbers(f"metrics[{part!r}]", found)
    for number, entry in enumerate(data["history"]):
        _check_numbers(f"history[{number}]", entry)
    if any(not isinstance(setting, str) for setting in data["overrides"]):
        raise InputError(f"overrides must be settings as text, got {str(data['overrides'])[:60]!r}")
    if not math.isfinite(data["wall_seconds"]) or abs(data["seed"]) >= 2**63:
        raise InputError(f"wall_seconds and seed must be numbers, got {data['wall_seconds']} and {str(data['seed'])[:30]}")
    words = [*(data.get(name, "") for name in _WORDS), *data["overrides"], *data["metrics"]]
    words += [name for found in (*data["metrics"].values(), *data["history"]) for name in found]
    for word in words:
        if any(map(is_control, word)):
            raise InputError(f"a name holds control characters: {word[:60]!r}")


def _check_numbers(where: str, found: Any) -> None:
    if not isinstance(found, dict):
        raise InputError(f"{where} must be an object of numbers, got {str(found)[:60]!r}")
    for name, value in found.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or (isinstance(value, int) and abs(value) > 2**1000)
        ):
            raise InputError(f"{where}: {name!r} must be a number, got {str(value)[:60]!r}")


def split_metrics(flat: dict[str, float]) -> dict[str, dict[str, float]]:
    """Metrics by part of the dataset.

    >>> split_metrics({"F1": 0.5, "B/F1": 0.4})
    {'': {'F1': 0.5}, 'B': {'F1': 0.4}}
    """
    parts: dict[str, dict[str, float]] = {}
    for name, value in flat.items():
        part, _, metric = name.rpartition("/")
        parts.setdefault(part, {})[metric] = float(value)
    return parts


def now() -> str:
    """The time to write into a record."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that matter for a result."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


@cache
def commit() -> str:
    """The commit of our source tree, with a mark where it has changes; empty in a tree of somebody else's, or in none.

    It is asked for once: what was loaded does not change with the tree.
    """
    here = Path(__file__).parent
    try:
        top = subprocess.run(
            ["git", "rev-parse", "--show-toplevel"], cwd=here, capture_output=True, text=True, timeout=10, check=True
        )
        if not here.samefile(Path(top.stdout.strip()) / "src" / "anyorder" / "training"):
            return ""
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, timeout=10, check=True)
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"], cwd=here, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return head.stdout.strip() + ("+changes" if changed.stdout.strip() else "")


def hardware() -> dict[str, Any]:
    """What the run ran on."""
    gpus = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return {
        "machine": platform.machine(),
        "system": sys.platform,
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "gpus": gpus,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()
