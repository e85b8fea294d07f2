"""Records: what a run was, where it ran and what came out."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, field, fields
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from anyorder.files import read_json, write_json

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
    """How far the training was when it was tested, where it is to go on."""

    def write(self, path: Path) -> None:
        write_json(path, {"kind": "anyorder-record", **vars(self)})

    @classmethod
    def read(cls, path: Path) -> Record:
        data = read_json(path)
        if not isinstance(data, dict) or data.pop("kind", None) != "anyorder-record":
            raise ValueError(f"{path} is not a record of a run")
        needed = {part.name for part in fields(cls) if part.default is MISSING and part.default_factory is MISSING}
        missing = needed - data.keys()
        if missing:
            raise ValueError(f"{path} lacks {sorted(missing)}")
        kinds = {"metrics": dict, "history": list, "overrides": list, "seed": int}
        for name, kind in kinds.items():
            if not isinstance(data[name], kind):
                raise ValueError(f"{path}: {name} must be a {kind.__name__}, got {data[name]!r}")
        data["overrides"] = tuple(data["overrides"])
        return cls(**{part.name: data[part.name] for part in fields(cls) if part.name in data})

    @property
    def place(self) -> tuple[str, str, str, str, int, tuple[str, ...]]:
        """What it is a record of; two records of one place are two attempts."""
        return self.table, self.dataset, self.row, self.scale, self.seed, self.overrides


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
        record.write(into / record.recipe / record.scale / f"record-seed-{record.seed}.json")
    return len(chosen), len(records) - len(chosen)


def _record_files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.json"):
        if path.name == RECORD or path.name.startswith("record-"):
            yield path


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


def commit() -> str:
    """The commit of the source tree, with a mark where it has changes; empty outside of one."""
    here = Path(__file__).parent
    try:
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
